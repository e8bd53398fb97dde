#include "graphs/aten_shapes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ftax/error.hpp"

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
    Call& append(const std::vector<std::string>& shape) {
        graph_.tensors.push_back({"more", DType::f32, TensorRole::activation, true, parse(shape), {}, no_op});
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
    CHECK(message(Call("aten::view").tensor("self", {"4", "3"}).sizes("size", {"-1", "-1"})).find("two sizes") !=
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
