#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <sstream>

#include "ftax/error.hpp"
#include "graphs/aten/aten_call.hpp"

using namespace ftax;

namespace {

/// A call under construction: operands by shape, other arguments as expressions.
class Call {
  public:
    explicit Call(std::string target) {
        call_.target = std::move(target);
        call_.name = "call";
    }
    Call& tensor(const std::string& name, const std::vector<std::string>& shape, DType dtype = DType::f32) {
        graph_.tensors.push_back({name, dtype, TensorRole::activation, true, parse(shape), {}, no_op});
        call_.arguments.push_back({name, {static_cast<TensorId>(graph_.tensors.size() - 1)}, {}, {}, {}, {}});
        return *this;
    }
    Call& append(const std::vector<std::string>& shape, DType dtype = DType::f32) {
        graph_.tensors.push_back({"more", dtype, TensorRole::activation, true, parse(shape), {}, no_op});
        call_.arguments.back().tensors.push_back(static_cast<TensorId>(graph_.tensors.size() - 1));
        return *this;
    }
    Call& sizes(const std::string& name, const std::vector<std::string>& values) {
        AtenArgument argument{name, {}, {}, parse(values), {}, {}};
        for (const Expression e : argument.sizes) {
            if (const auto number = graph_.expressions.constant_value(e)) argument.integers.push_back(*number);
        }
        if (argument.integers.size() != argument.sizes.size()) argument.integers.clear();
        call_.arguments.push_back(std::move(argument));
        return *this;
    }
    Call& number(const std::string& name, double value) {
        call_.arguments.push_back({name, {}, {}, {}, value, {}});
        return *this;
    }

    Call& text(const std::string& name, const std::string& value) {
        call_.arguments.push_back({name, {}, {}, {}, {}, value});
        return *this;
    }

    /// "f32[batch,8]" for each output, or "?".
    std::string infer() {
        const auto outputs = infer_aten(graph_, call_);
        if (!outputs) return "no rule";
        std::vector<std::string> texts;
        for (const AtenOutput& output : *outputs) {
            std::vector<std::string> dims;
            for (const Expression dim : output.shape) dims.push_back(graph_.expressions.to_string(dim));
            texts.push_back(output.known_shape ? fmt::format("{}[{}]", name_of(output.dtype), fmt::join(dims, ","))
                                               : "?");
        }
        return fmt::format("{}", fmt::join(texts, " "));
    }

  private:
    std::vector<Expression> parse(const std::vector<std::string>& texts) {
        std::vector<Expression> result;
        for (const std::string& text : texts) result.push_back(graph_.expressions.parse(text));
        return result;
    }

    Graph graph_;
    AtenCall call_;
};

}  // namespace

TEST_CASE("ATen layers give the shapes that PyTorch's documentation states") {
    CHECK(Call("aten::conv2d")
              .tensor("input", {"batch", "3", "224", "224"})
              .tensor("weight", {"64", "3", "7", "7"})
              .sizes("stride", {"2", "2"})
              .sizes("padding", {"3", "3"})
              .infer() == "f32[batch,64,112,112]");
    CHECK(Call("aten::conv_transpose2d")
              .tensor("input", {"n", "8", "5", "5"})
              .tensor("weight", {"8", "4", "3", "3"})
              .sizes("stride", {"2"})
              .sizes("padding", {"1"})
              .sizes("output_padding", {"1"})
              .infer() == "f32[n,4,10,10]");
    CHECK(Call("aten::max_pool2d")
              .tensor("self", {"n", "8", "7", "7"})
              .sizes("kernel_size", {"2"})
              .sizes("stride", {"2"})
              .sizes("ceil_mode", {"1"})
              .infer() == "f32[n,8,4,4]");
    CHECK(Call("aten::linear").tensor("input", {"batch", "seq", "16"}).tensor("weight", {"32", "16"}).infer() ==
          "f32[batch,seq,32]");
    CHECK(Call("aten::matmul")
              .tensor("self", {"batch", "12", "seq", "64"})
              .tensor("other", {"batch", "12", "64", "seq"})
              .infer() == "f32[batch,12,seq,seq]");
    CHECK(Call("aten::matmul").tensor("self", {"5"}).tensor("other", {"3", "5", "7"}).infer() == "f32[3,7]");
    CHECK(Call("aten::baddbmm")
              .tensor("self", {"4", "1", "9"})
              .tensor("batch1", {"4", "2", "3"})
              .tensor("batch2", {"4", "3", "9"})
              .infer() == "f32[4,2,9]");
    CHECK(Call("aten::histc").tensor("self", {"pairs"}).sizes("bins", {"8"}).infer() == "f32[8]");
    CHECK(Call("aten::_grouped_mm")
              .tensor("self", {"pairs", "64"})
              .tensor("mat2", {"8", "64", "128"})
              .tensor("offs", {"8"})
              .infer() == "f32[pairs,128]");
    CHECK(Call("aten::lstm")
              .tensor("input", {"seq", "n", "8"})
              .tensor("hx", {"2", "n", "16"})
              .append({"2", "n", "16"})
              .sizes("bidirectional", {"1"})
              .infer() == "f32[seq,n,32] f32[2,n,16] f32[2,n,16]");
    CHECK(Call("aten::upsample_nearest2d")
              .tensor("self", {"n", "3", "8", "8"})
              .sizes("scale_factors", {"2", "2"})
              .infer() == "f32[n,3,16,16]");
    CHECK(Call("aten::not_an_operator").tensor("self", {"1"}).infer() == "no rule");
}

TEST_CASE("ATen element types are promoted as PyTorch does") {
    CHECK(Call("aten::add").tensor("self", {"4", "1"}, DType::i64).tensor("other", {"3"}, DType::f32).infer() ==
          "f32[4,3]");
    CHECK(Call("aten::mul").tensor("self", {"4"}, DType::f16).tensor("other", {}, DType::f32).infer() == "f16[4]");
    CHECK(Call("aten::mul").tensor("self", {"4"}, DType::i64).number("other", 0.5).infer() == "f32[4]");
    CHECK(Call("aten::div").tensor("self", {"4"}, DType::i64).sizes("other", {"2"}).infer() == "f32[4]");
    CHECK(Call("aten::gt").tensor("self", {"4"}).sizes("other", {"2"}).infer() == "bool[4]");
    CHECK(Call("aten::sum").tensor("self", {"4", "5"}, DType::boolean).sizes("dim", {"-1"}).infer() == "i64[4]");
    CHECK(Call("aten::max").tensor("self", {"4", "5"}).sizes("dim", {"0"}).sizes("keepdim", {"1"}).infer() ==
          "f32[1,5] i64[1,5]");
    CHECK(Call("aten::to").tensor("self", {"4"}).sizes("dtype", {"5"}).infer() == "f16[4]");
}

TEST_CASE("ATen movements follow symbolic sizes") {
    CHECK(Call("aten::view")
              .tensor("self", {"batch", "seq", "768"})
              .sizes("size", {"batch", "seq", "12", "64"})
              .infer() == "f32[batch,seq,12,64]");
    CHECK(Call("aten::reshape").tensor("self", {"batch", "12", "64"}).sizes("shape", {"batch", "-1"}).infer() ==
          "f32[batch,768]");
    CHECK(Call("aten::flatten").tensor("self", {"batch", "512", "7", "7"}).sizes("start_dim", {"1"}).infer() ==
          "f32[batch,25088]");
    CHECK(Call("aten::slice")
              .tensor("self", {"1", "512"}, DType::i64)
              .sizes("dim", {"1"})
              .sizes("start", {"0"})
              .sizes("end", {"100"})
              .sizes("step", {"3"})
              .infer() == "i64[1,34]");
    CHECK(Call("aten::slice")
              .tensor("self", {"batch", "10"})
              .sizes("dim", {"1"})
              .sizes("start", {"-3"})
              .sizes("end", {"9223372036854775807"})
              .infer() == "f32[batch,3]");
    CHECK(Call("aten::chunk").tensor("self", {"batch", "10"}).sizes("chunks", {"4"}).sizes("dim", {"1"}).infer() ==
          "f32[batch,3] f32[batch,3] f32[batch,3] f32[batch,1]");
    CHECK(Call("aten::expand").tensor("self", {"1", "7"}).sizes("size", {"batch", "-1"}).infer() == "f32[batch,7]");
    CHECK(Call("aten::movedim")
              .tensor("self", {"2", "3", "4"})
              .sizes("source", {"0"})
              .sizes("destination", {"2"})
              .infer() == "f32[3,4,2]");
    CHECK(Call("aten::index").tensor("self", {"9", "8", "7"}).tensor("indices", {"5", "1"}, DType::i64).infer() ==
          "f32[5,1,8,7]");
    CHECK(Call("aten::cat").tensor("tensors", {"batch", "2"}).append({"batch", "3"}).sizes("dim", {"-1"}).infer() ==
          "f32[batch,5]");
    CHECK(Call("aten::pixel_shuffle").tensor("self", {"n", "12", "4", "4"}).sizes("upscale_factor", {"2"}).infer() ==
          "f32[n,3,8,8]");
    CHECK(Call("aten::glu").tensor("self", {"batch", "10", "7"}).sizes("dim", {"1"}).infer() == "f32[batch,5,7]");
    CHECK(Call("mine::relu").tensor("self", {"n"}).infer() == "no rule");
}

TEST_CASE("ATen layers that fewer models use give the shapes that PyTorch gives") {
    CHECK(Call("aten::conv1d").tensor("input", {"n", "4", "9"}).tensor("weight", {"6", "4", "3"}).infer() ==
          "f32[n,6,7]");
    CHECK(Call("aten::addmm").tensor("self", {"5"}).tensor("mat1", {"n", "3"}).tensor("mat2", {"3", "5"}).infer() ==
          "f32[n,5]");
    CHECK(Call("aten::einsum")
              .text("equation", "bij, bjk -> bik")
              .tensor("tensors", {"b", "2", "3"})
              .append({"b", "3", "4"})
              .infer() == "f32[b,2,4]");
    CHECK(Call("aten::einsum").text("equation", "...ij,jk").tensor("tensors", {"2", "3"}).append({"3", "4"}).infer() ==
          "f32[2,4]");
    CHECK(Call("aten::einsum")
              .text("equation", "b...ij,jk->k...b")
              .tensor("tensors", {"n", "7", "2", "3"})
              .append({"3", "4"})
              .infer() == "f32[4,7,n]");
    CHECK(Call("aten::scaled_dot_product_attention")
              .tensor("query", {"n", "8", "s", "64"})
              .tensor("key", {"n", "8", "t", "64"})
              .tensor("value", {"n", "8", "t", "32"})
              .infer() == "f32[n,8,s,32]");
    CHECK(Call("aten::gru").tensor("input", {"s", "n", "8"}).tensor("hx", {"1", "n", "5"}).infer() ==
          "f32[s,n,5] f32[1,n,5]");
    CHECK(Call("aten::native_layer_norm").tensor("input", {"n", "s", "8"}).sizes("normalized_shape", {"8"}).infer() ==
          "f32[n,s,8] f32[n,s,1] f32[n,s,1]");
    CHECK(Call("aten::native_group_norm").tensor("input", {"n", "8", "4", "4"}).sizes("group", {"2"}).infer() ==
          "f32[n,8,4,4] f32[n,2] f32[n,2]");
    CHECK(Call("aten::native_batch_norm").tensor("input", {"n", "8", "4", "4"}).infer() ==
          "f32[n,8,4,4] f32[0] f32[0]");
    CHECK(Call("aten::max_pool1d_with_indices").tensor("self", {"n", "3", "9"}).sizes("kernel_size", {"3"}).infer() ==
          "f32[n,3,3] i64[n,3,3]");
    CHECK(Call("aten::adaptive_max_pool2d").tensor("self", {"n", "3", "9", "8"}).sizes("output_size", {"2"}).infer() ==
          "f32[n,3,2,2] i64[n,3,2,2]");
    CHECK(Call("aten::upsample_bilinear2d")
              .tensor("self", {"n", "3", "8", "8"})
              .sizes("output_size", {"7", "5"})
              .infer() == "f32[n,3,7,5]");
    CHECK(Call("aten::upsample_linear1d").tensor("self", {"n", "3", "8"}).infer() == "?");
    CHECK(
        Call("aten::grid_sampler").tensor("input", {"n", "3", "8", "8"}).tensor("grid", {"n", "5", "6", "2"}).infer() ==
        "f32[n,3,5,6]");
    CHECK(Call("aten::fft_rfft2").tensor("self", {"n", "6", "8"}).infer() == "c64[n,6,5]");
    CHECK(Call("aten::fft_irfft").tensor("self", {"n", "5"}, DType::c64).infer() == "f32[n,8]");
    CHECK(Call("aten::fft_fft").tensor("self", {"n", "5"}).sizes("n", {"16"}).sizes("dim", {"1"}).infer() ==
          "c64[n,16]");
    CHECK(Call("aten::im2col")
              .tensor("self", {"n", "3", "8", "8"})
              .sizes("kernel_size", {"2", "2"})
              .sizes("stride", {"2"})
              .infer() == "f32[n,12,16]");
    CHECK(Call("aten::cdist").tensor("x1", {"n", "5", "3"}).tensor("x2", {"n", "7", "3"}).infer() == "f32[n,5,7]");
    CHECK(Call("aten::_native_multi_head_attention").tensor("query", {"n", "s", "8"}).infer() == "f32[n,s,8] f32[0]");
}

TEST_CASE("ATen elementwise operators and reductions give the types that PyTorch gives") {
    CHECK(Call("aten::add").tensor("self", {"4"}, DType::u8).tensor("other", {"4"}, DType::i8).infer() == "i16[4]");
    CHECK(Call("aten::add").tensor("self", {"4"}, DType::f16).tensor("other", {"4"}, DType::bf16).infer() == "f32[4]");
    CHECK(Call("aten::mul").tensor("self", {"4"}, DType::c64).tensor("other", {"4"}, DType::f64).infer() == "c128[4]");
    CHECK(Call("aten::add").tensor("self", {"4"}, DType::boolean).sizes("other", {"2"}).infer() == "i64[4]");
    CHECK(Call("aten::masked_fill")
              .tensor("self", {"4"}, DType::f16)
              .tensor("mask", {"4"}, DType::boolean)
              .number("value", -1.5)
              .infer() == "f16[4]");
    CHECK(Call("aten::div")
              .tensor("self", {"4"}, DType::i64)
              .sizes("other", {"2"})
              .text("rounding_mode", "floor")
              .infer() == "i64[4]");
    CHECK(Call("aten::where")
              .tensor("condition", {"4", "1"}, DType::boolean)
              .tensor("self", {"3"}, DType::f16)
              .tensor("other", {"4", "3"}, DType::f32)
              .infer() == "f32[4,3]");
    CHECK(Call("aten::type_as").tensor("self", {"4"}).tensor("other", {"1"}, DType::f16).infer() == "f16[4]");
    CHECK(Call("aten::to").tensor("self", {"4"}).tensor("other", {"1"}, DType::bf16).infer() == "bf16[4]");
    CHECK(Call("aten::exp").tensor("self", {"4"}, DType::i64).infer() == "f32[4]");
    CHECK(Call("aten::logical_not").tensor("self", {"4"}, DType::i64).infer() == "bool[4]");
    CHECK(Call("aten::cumsum").tensor("self", {"n", "4"}, DType::boolean).sizes("dim", {"1"}).infer() == "i64[n,4]");
    CHECK(Call("aten::new_zeros").tensor("self", {"4"}, DType::f16).sizes("size", {"n", "2"}).infer() == "f16[n,2]");
    CHECK(Call("aten::randint").sizes("high", {"9"}).sizes("size", {"n"}).infer() == "i64[n]");
    CHECK(Call("aten::ones").sizes("size", {"n", "3"}).infer() == "f32[n,3]");
    CHECK(Call("aten::arange").sizes("end", {"n"}).infer() == "i64[n]");
    CHECK(Call("aten::arange").sizes("start", {"2"}).sizes("end", {"12"}).sizes("step", {"3"}).infer() == "i64[4]");
    CHECK(Call("aten::arange").number("end", 1.0).number("step", 0.3).infer() == "f32[4]");
    CHECK(Call("aten::linspace").number("start", 0).number("end", 1).sizes("steps", {"7"}).infer() == "f32[7]");
    CHECK(Call("aten::eye").sizes("n", {"n"}).infer() == "f32[n,n]");
    CHECK(Call("aten::eye").sizes("n", {"2"}).sizes("m", {"3"}).infer() == "f32[2,3]");
    CHECK(Call("aten::cosine_similarity").tensor("x1", {"n", "8"}).tensor("x2", {"n", "8"}).infer() == "f32[n]");
    CHECK(Call("aten::argmax").tensor("self", {"n", "8"}).sizes("dim", {"-1"}).infer() == "i64[n]");
    CHECK(Call("aten::argsort").tensor("self", {"n", "8"}).infer() == "i64[n,8]");
    CHECK(Call("aten::any").tensor("self", {"n", "8"}).infer() == "bool[]");
    CHECK(Call("aten::max").tensor("self", {"n", "8"}).infer() == "f32[]");
    CHECK(Call("aten::min").tensor("self", {"n", "8"}).tensor("other", {"8"}).infer() == "f32[n,8]");
    CHECK(Call("aten::var_mean").tensor("self", {"n", "8"}).sizes("dim", {"1"}).sizes("keepdim", {"1"}).infer() ==
          "f32[n,1] f32[n,1]");
    CHECK(Call("aten::sort").tensor("self", {"n", "8"}).infer() == "f32[n,8] i64[n,8]");
    CHECK(Call("aten::topk").tensor("self", {"n", "8"}).sizes("k", {"3"}).infer() == "f32[n,3] i64[n,3]");
    CHECK(Call("aten::polar").tensor("abs", {"4"}, DType::f64).tensor("angle", {"4"}, DType::f64).infer() == "c128[4]");
    CHECK(Call("aten::outer").tensor("self", {"n"}).tensor("vec2", {"3"}).infer() == "f32[n,3]");
}

TEST_CASE("ATen movements that fewer models use give the shapes that PyTorch gives") {
    CHECK(Call("aten::view").tensor("self", {"n", "4"}, DType::f32).sizes("dtype", {"3"}).infer() == "i32[n,4]");
    CHECK(Call("aten::view_as").tensor("self", {"n", "4"}).tensor("other", {"n", "2", "2"}).infer() == "f32[n,2,2]");
    CHECK(Call("aten::flatten").tensor("self", {}).infer() == "f32[1]");
    CHECK(Call("aten::unflatten").tensor("self", {"n", "12"}).sizes("dim", {"1"}).sizes("sizes", {"3", "-1"}).infer() ==
          "f32[n,3,4]");
    CHECK(Call("aten::squeeze").tensor("self", {"1", "n", "1"}).infer() == "f32[n]");
    CHECK(Call("aten::squeeze").tensor("self", {"1", "n", "1"}).sizes("dim", {"-1"}).infer() == "f32[1,n]");
    CHECK(Call("aten::numpy_T").tensor("self", {"2", "3", "4"}).infer() == "f32[4,3,2]");
    CHECK(Call("aten::swapaxes").tensor("self", {"2", "3", "4"}).sizes("axis0", {"0"}).sizes("axis1", {"-1"}).infer() ==
          "f32[4,3,2]");
    CHECK(Call("aten::mT").tensor("self", {"2", "3", "4"}).infer() == "f32[2,4,3]");
    CHECK(Call("aten::t").tensor("self", {"3"}).infer() == "f32[3]");
    CHECK(Call("aten::broadcast_tensors").tensor("tensors", {"4", "1"}).append({"3"}).infer() == "f32[4,3] f32[4,3]");
    CHECK(Call("aten::meshgrid").tensor("tensors", {"4"}).append({"3"}).infer() == "f32[4,3] f32[4,3]");
    CHECK(Call("aten::meshgrid").tensor("tensors", {"4"}).append({"3"}).text("indexing", "xy").infer() ==
          "f32[3,4] f32[3,4]");
    CHECK(Call("aten::select").tensor("self", {"n", "4"}).sizes("dim", {"1"}).sizes("index", {"-1"}).infer() ==
          "f32[n]");
    CHECK(Call("aten::narrow")
              .tensor("self", {"n", "4"})
              .sizes("dim", {"1"})
              .sizes("start", {"1"})
              .sizes("length", {"2"})
              .infer() == "f32[n,2]");
    CHECK(Call("aten::unfold")
              .tensor("self", {"n", "10"})
              .sizes("dimension", {"1"})
              .sizes("size", {"4"})
              .sizes("step", {"3"})
              .infer() == "f32[n,3,4]");
    CHECK(Call("aten::diagonal").tensor("self", {"2", "3", "4"}).sizes("dim1", {"1"}).sizes("dim2", {"2"}).infer() ==
          "f32[2,3]");
    CHECK(Call("aten::diagonal").tensor("self", {"3", "4"}).sizes("offset", {"1"}).infer() == "?");
    CHECK(Call("aten::split").tensor("self", {"10", "n"}).sizes("split_size", {"4"}).infer() ==
          "f32[4,n] f32[4,n] f32[2,n]");
    CHECK(Call("aten::split_with_sizes")
              .tensor("self", {"n", "7"})
              .sizes("split_sizes", {"3", "4"})
              .sizes("dim", {"1"})
              .infer() == "f32[n,3] f32[n,4]");
    CHECK(Call("aten::tensor_split").tensor("self", {"10"}).sizes("sections", {"4"}).infer() ==
          "f32[3] f32[3] f32[2] f32[2]");
    CHECK(Call("aten::tensor_split").tensor("self", {"2"}).sizes("sections", {"3"}).infer() == "f32[1] f32[1] f32[0]");
    CHECK(Call("aten::tensor_split")
              .tensor("self", {"n", "10"})
              .sizes("indices", {"3", "7"})
              .sizes("dim", {"1"})
              .infer() == "f32[n,3] f32[n,4] f32[n,3]");
    CHECK(Call("aten::unbind").tensor("self", {"2", "n"}).infer() == "f32[n] f32[n]");
    CHECK(Call("aten::unbind").tensor("self", {"n", "2"}).infer() == "");
    CHECK(Call("aten::cat").tensor("tensors", {"0"}).append({"n", "3"}).append({"2", "3"}).infer() == "f32[n+2,3]");
    CHECK(Call("aten::stack").tensor("tensors", {"n", "3"}).append({"n", "3"}).sizes("dim", {"-1"}).infer() ==
          "f32[n,3,2]");
    CHECK(Call("aten::constant_pad_nd").tensor("self", {"n", "3", "4"}).sizes("pad", {"1", "2", "3", "0"}).infer() ==
          "f32[n,6,7]");
    CHECK(Call("aten::repeat").tensor("self", {"3"}).sizes("repeats", {"n", "2"}).infer() == "f32[n,6]");
    CHECK(Call("aten::tile").tensor("self", {"n", "3"}).sizes("dims", {"2"}).infer() == "f32[n,6]");
    CHECK(Call("aten::repeat_interleave")
              .tensor("self", {"n", "3"})
              .sizes("repeats", {"2"})
              .sizes("dim", {"1"})
              .infer() == "f32[n,6]");
    CHECK(Call("aten::repeat_interleave").tensor("self", {"2", "3"}).sizes("repeats", {"2"}).infer() == "f32[12]");
    CHECK(Call("aten::pixel_unshuffle").tensor("self", {"n", "3", "8", "8"}).sizes("downscale_factor", {"2"}).infer() ==
          "f32[n,12,4,4]");
    CHECK(Call("aten::embedding")
              .tensor("weight", {"100", "16"}, DType::f16)
              .tensor("indices", {"n", "s"}, DType::i64)
              .infer() == "f16[n,s,16]");
    CHECK(Call("aten::gather").tensor("self", {"n", "9"}).tensor("index", {"n", "2"}, DType::i64).infer() ==
          "f32[n,2]");
    CHECK(Call("aten::index").tensor("self", {"9", "8"}).tensor("indices", {"9"}, DType::boolean).infer() == "?");
    CHECK(Call("aten::index_select")
              .tensor("self", {"n", "9"})
              .tensor("index", {"4"}, DType::i64)
              .sizes("dim", {"1"})
              .infer() == "f32[n,4]");
    CHECK(Call("aten::one_hot").tensor("self", {"n"}, DType::i64).sizes("num_classes", {"10"}).infer() == "i64[n,10]");
    CHECK(Call("aten::one_hot").tensor("self", {"n"}, DType::i64).sizes("num_classes", {"-1"}).infer() == "?");
    CHECK(Call("aten::view_as_real").tensor("self", {"n", "4"}, DType::c64).infer() == "f32[n,4,2]");
    CHECK(Call("aten::real").tensor("self", {"n"}, DType::c128).infer() == "f64[n]");
    CHECK(Call("aten::view_as_complex").tensor("self", {"n", "2"}).infer() == "c64[n]");
}

TEST_CASE("BAD_INPUTS 16: factors of pixel shuffling that overflow are refused") {
    const std::vector<std::string> image{"2", "12", "4", "4"}, factor{"1099511627776"};
    CHECK_THROWS_AS(Call("aten::pixel_shuffle").tensor("self", image).sizes("upscale_factor", factor).infer(), Error);
    CHECK_THROWS_AS(Call("aten::pixel_unshuffle").tensor("self", image).sizes("downscale_factor", factor).infer(),
                    Error);
}

TEST_CASE("BAD_INPUTS 21: ATen operands that do not fit name the call") {
    const auto message = [](Call& call) {
        try {
            return call.infer();
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::model);
            return std::string(error.what());
        }
    };
    CHECK(message(Call("aten::linear").tensor("input", {"4", "15"}).tensor("weight", {"32", "16"}))
              .find("call (aten::linear)") == 0);
    CHECK(message(Call("aten::view").tensor("self", {"4", "3"}).sizes("size", {"-1", "-1"})).find("two dimensions") !=
          std::string::npos);
    CHECK(message(Call("aten::select").tensor("self", {"4"}).sizes("dim", {"3"})).find("dimension 3 of 1") !=
          std::string::npos);
    CHECK(message(Call("aten::conv2d").tensor("input", {"4"}).tensor("weight", {"1", "1", "1", "1"}))
              .find("dimensions") != std::string::npos);
    CHECK(message(Call("aten::add").tensor("self", {"4"}).tensor("other", {"3"})).find("do not broadcast") !=
          std::string::npos);
    CHECK(message(Call("aten::diagonal").tensor("self", {"4", "4"}).sizes("dim1", {"1"}).sizes("dim2", {"-1"}))
              .find("'dim1' is 'dim2'") != std::string::npos);
    CHECK(message(Call("aten::max_pool2d")
                      .tensor("self", {"1", "1", "4", "4"})
                      .sizes("kernel_size", {"2"})
                      .sizes("stride", {"0"}))
              .find("stride") != std::string::npos);
}

TEST_CASE("products and differences that few models call give the shapes that PyTorch gives") {
    CHECK(Call("aten::diff").tensor("self", {"n", "10"}).infer() == "f32[n,9]");
    CHECK(Call("aten::diff").tensor("self", {"10", "n"}).sizes("n", {"2"}).sizes("dim", {"0"}).infer() == "f32[8,n]");
    CHECK(Call("aten::diff").tensor("self", {"n", "10"}).tensor("prepend", {"n", "1"}).infer() == "f32[n,10]");
    CHECK(Call("aten::tensordot")
              .tensor("self", {"n", "3", "4"})
              .tensor("other", {"4", "5", "3"})
              .sizes("dims_self", {"1", "2"})
              .sizes("dims_other", {"2", "0"})
              .infer() == "f32[n,5]");
    CHECK(Call("aten::_int_mm").tensor("self", {"n", "8"}, DType::i8).tensor("mat2", {"8", "4"}, DType::i8).infer() ==
          "i32[n,4]");
    CHECK(Call("aten::gru_cell").tensor("input", {"n", "8"}).tensor("hx", {"n", "5"}).infer() == "f32[n,5]");
}

TEST_CASE("3,760 calls, random or of torch's own samples, have the types and shapes that PyTorch returns") {
    const auto words = [](const std::string& text, char separator) {
        std::vector<std::string> parts;
        std::istringstream stream(text);
        for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
        return parts;
    };
    std::ifstream recorded(FTAX_SOURCE_DIR "/tests/oracle/aten_calls.tsv");  // aten_calls.py beside it writes it
    std::size_t calls = 0;
    for (std::string line; std::getline(recorded, line); ++calls) {
        const auto columns = words(line, '\t');
        REQUIRE(columns.size() == 3);
        Call call(columns[0]);
        for (const std::string& argument : words(columns[1], ' ')) {
            const std::size_t equals = argument.find('=');
            const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
            if (value.front() == '\'') {
                call.text(name, value.substr(1, value.size() - 2));
            } else if (value.find_first_of(".e") != std::string::npos && value.find('[') == std::string::npos) {
                call.number(name, std::stod(value));
            } else if (value.find('[') == std::string::npos) {
                call.sizes(name, words(value, ','));
            } else {
                bool first = true;
                for (const std::string& tensor : words(value, '+')) {
                    const std::size_t open = tensor.find('[');
                    const auto shape = words(tensor.substr(open + 1, tensor.size() - open - 2), ',');
                    const DType type = dtype_from_name(tensor.substr(0, open)).value();
                    first ? call.tensor(name, shape, type) : call.append(shape, type);
                    first = false;
                }
            }
        }
        CHECK_MESSAGE(call.infer() == columns[2], line);
    }
    CHECK(calls == 3760);
}

TEST_CASE("chunks are as long as the first, the last one shorter, and as many as that makes") {
    const auto chunks = [](const char* length, int count) {
        return Call("aten::chunk").tensor("self", {length, "4"}).sizes("chunks", {std::to_string(count)}).infer();
    };
    CHECK(chunks("7", 3) == "f32[3,4] f32[3,4] f32[1,4]");
    CHECK(chunks("6", 4) == "f32[2,4] f32[2,4] f32[2,4]");
    CHECK(chunks("0", 2) == "f32[0,4] f32[0,4]");
}
