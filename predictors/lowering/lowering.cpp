#include "predictors/lowering/lowering.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "ftax/precision.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/autocast.hpp"
#include "predictors/lowering/launch_rules.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/lowering/type_assignment.hpp"

namespace ftax {
namespace {

using kernels::GemmShape;
using kernels::MemoryClass;
using kernels::MemoryShape;

class Lowering {
  public:
    Lowering(const Graph& graph, const DeviceSpec& device, const PredictOptions& options, const LoweringTraits& traits)
        : graph_(graph),
          device_(device),
          options_(options),
          precision_(precision_spec(options.precision)),
          traits_(traits),
          libraries_(behaviour_of(options.libraries, traits.library, device)),
          types_(graph, device, options, traits) {
        if (is_cpu(device)) traits_.separate_conv_bias = traits_.persistent_recurrences = false;
        if (libraries_.dispatches_modules) {
            traits_.host_kind = std::nullopt;
            traits_.module_calls = true;
        }
        // Groups of attention keep DeepGEMM. Source: srt-slurm, b200-fp8/8k1k_mtp_maxtpt_1.yaml, gb200-fp8/8k1k.yaml.
        const auto in_groups = [](const Op& op) { return op.integer("groups", 1) > 1; };
        flashinfer_gemm_ = options.flashinfer_gemm && std::ranges::none_of(graph.ops, in_groups);
        if (!traits.captures_no_updates || !rewrites::updates_buffers(graph)) return;
        traits_.host_kind = std::nullopt;
        traits_.copies_inputs = traits_.copies_weights = false;
    }

    Schedule run() {
        if (options_.libraries.cudnn < 7 || options_.libraries.cudnn > 9)
            throw_error(ErrorCode::usage, "cuDNN {} is not modelled; there are 7, 8 and 9", options_.libraries.cudnn);
        schedule_.storage = types_.storage();
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i)
            if (graph_.tensors[i].role == TensorRole::weight) schedule_.weight_bytes += known_bytes(i);
        if (traits_.module_calls)
            for (const ModuleCall& call : graph_.module_calls) ++pending_calls_[call.path];
        readers_ = readers_of(graph_);
        if (traits_.copies_weights && !libraries_.weights_in_place) copy_weights();
        for (OpId id = 0; id < graph_.ops.size(); ++id) lower_op(id);
        return std::move(schedule_);
    }

  private:
    /// Returns the bytes of a tensor; 0 if its shape is unknown.
    double known_bytes(std::size_t tensor) const {
        double bytes = bits_of(schedule_.storage[tensor]) / 8.0;
        for (const Expression dim : graph_.tensors[tensor].shape)
            bytes *= static_cast<double>(graph_.expressions.constant_value(dim).value_or(0));
        return bytes;
    }

    /// Returns the module calls that begin with this operator: its own module and every enclosing one not yet entered.
    std::uint32_t take_module_calls(const std::string& path) {
        std::uint32_t calls = 0;
        std::string_view prefix = path;
        while (true) {
            if (const auto taken = pending_calls_.extract(std::string(prefix))) calls += taken.mapped();
            if (prefix.empty()) return calls;
            const std::size_t dot = prefix.rfind('.');
            prefix = dot == std::string_view::npos ? std::string_view{} : prefix.substr(0, dot);
        }
    }

    void begin_launch(OpId id, HostKind host_kind) {
        const Op& op = graph_.ops[id];
        if (traits_.joins_contrib_nodes && !schedule_.launches.empty() &&
            rewrites::are_one_node(graph_.ops[schedule_.launches.back().op], op)) {
            ++schedule_.launches.back().further_calls;
            return;
        }
        // One operator launches all kernels of a layer's experts. Source: TensorRT-LLM, fused_moe_trtllm_gen.py;
        // SGLang, flashinfer's trtllm_*_moe.
        if (traits_.calls_experts && op.module.ends_with(".experts") && !schedule_.launches.empty() &&
            graph_.ops[schedule_.launches.back().op].module == op.module)
            host_kind = HostKind::engine;
        schedule_.launches.push_back(
            {id, traits_.host_kind.value_or(host_kind), static_cast<std::uint32_t>(schedule_.kernels.size()), 0,
             traits_.module_calls && !pending_calls_.empty() ? take_module_calls(op.module) : 0});
    }

    /// Returns the prototype of a memory-bound kernel, whose operands decide whether it moves vectors.
    MemoryShape memory(MemoryClass cls = MemoryClass::pointwise) const {
        return {.cls = cls, .engine = traits_.engine, .vectorized = false};
    }

    void add_kernel(Kernel kernel) {
        if (auto* shape = std::get_if<MemoryShape>(&kernel.shape)) add_fused_operators(*shape, kernel);
        schedule_.kernels.push_back(std::move(kernel));
        ++schedule_.launches.back().kernel_count;
    }

    void add_move(OpId id, MemoryShape shape, std::vector<TensorId> reads, std::vector<TensorId> writes,
                  LaunchCondition when = LaunchCondition::always, std::optional<DType> type = {}) {
        add_kernel({.shape = shape,
                    .when = when,
                    .op = id,
                    .reads = std::move(reads),
                    .writes = std::move(writes),
                    .written_type = type});
    }

    /// Adds to a prototype what its fused operators do beyond their traffic.
    void add_fused_operators(MemoryShape& shape, Kernel& kernel) const {
        const Op& op = graph_.ops[kernel.op];
        const bool casts = libraries_.vectorized_casts && shape.cls == MemoryClass::pointwise &&
                           kernel.reads.size() == 1 && !kernel.writes.empty() &&
                           schedule_.storage[kernel.reads[0]] == DType::f32 &&
                           bits_of(kernel.written_type.value_or(schedule_.storage[kernel.writes[0]])) == 16;
        if (casts || is_generated(op)) shape.vectorized = true;
        // A reduction loads, then combines what its warps have: 1.6 µs instead of 0.75 on an H200 (data/measurements).
        shape.waits += 2 * static_cast<int>(op.integer(rewrites::reductions, 0));
        if (libraries_.strided_reads)
            kernel.strided_read = static_cast<TensorId>(op.integer(rewrites::strided_tensor, no_tensor));
        if (const std::string_view token = op.text(rewrites::token_kernel); !token.empty()) {
            shape.token = token == "norm" ? kernels::TokenKernel::norm : kernels::TokenKernel::gated;
            shape.vectorized = true;
        }
    }

    void launch_move(OpId id, MemoryClass cls, std::vector<TensorId> reads, std::vector<TensorId> writes,
                     LaunchCondition when = LaunchCondition::always, std::optional<DType> type = {}) {
        begin_launch(id, HostKind::elementwise);
        add_move(id, memory(cls), std::move(reads), std::move(writes), when, type);
    }

    /// Emits a launch that rewrites a tensor in another layout or type.
    void launch_copy(OpId id, TensorId tensor, MemoryClass cls, LaunchCondition when = LaunchCondition::always,
                     std::optional<DType> type = {}) {
        launch_move(id, cls, {tensor}, {tensor}, when, type);
    }

    std::vector<TensorId> present_inputs(const Op& op) const {
        std::vector<TensorId> inputs = op.inputs;
        std::erase_if(inputs, [&](TensorId input) {
            return input == no_tensor || graph_.tensors[input].role == TensorRole::constant;
        });
        return inputs;
    }

    void lower_op(OpId id) {
        const Op& op = graph_.ops[id];
        const LaunchRule& rule = launch_rule(op.kind);
        copy_into_buffers(id);
        if (traits_.joins_contrib_nodes && runs_on_host(op)) return lower_onto_host(id);
        if (rule.action == LaunchRule::Action::nothing) return;
        if (is_part_of_update(op)) return begin_launch(id, HostKind::view);
        if (rule.action == LaunchRule::Action::view) return lower_view(id, rule);
        if (rule.action == LaunchRule::Action::contract) return lower_contraction(id, rule);
        if (is_stored_alike(op)) return begin_launch(id, HostKind::view);
        cast_for_autocast(id);
        copy_input_out_of_format(id);
        copy_concat_tables(id);
        begin_launch(id, host_kind(op, rule));
        // Where weights are narrow, too, ATen's kernel replaces cuDNN's and reads the inverse deviations that another
        // computes. Source: Normalization.cpp (_select_batch_norm_backend), Normalization.cu (batch_norm_calc_invstd).
        if (device_.chip().has_measured_gaps() && scales_channels(op) && !traits_.views_move_data &&
            op.inputs.size() > 4 && op.inputs[1] != no_tensor && bits_of(schedule_.storage[op.inputs[1]]) == 16)
            add_move(id, memory(), {op.inputs[4]}, {op.inputs[4]});
        if (op.kind == OpKind::concat && !traits_.host_kind)
            schedule_.launches.back().list_parts = static_cast<std::uint32_t>(op.inputs.size());
        Kernel kernel{.shape = moving_shape(op), .op = id, .reads = present_inputs(op), .writes = op.outputs};
        // The second operand of type_as only has a type; the first one of copy_ is what it overwrites.
        if (op.kind == OpKind::cast && kernel.reads.size() > 1) kernel.reads = {kernel.reads[0]};
        if (op.source.starts_with("aten::copy") && kernel.reads.size() > 1) kernel.reads.erase(kernel.reads.begin());
        if (op.kind == OpKind::scatter) write_updates_alone(op, id, kernel);
        if (op.kind == OpKind::concat && libraries_.concatenates_by_part && !traits_.host_kind &&
            graph_.tensors[op.outputs[0]].shape.size() > 4) {
            for (const TensorId part : kernel.reads) add_move(id, memory(MemoryClass::transpose), {part}, {part});
            return;
        }
        add_kernel(std::move(kernel));
    }

    /// Returns true for nodes without a kernel in the CUDA provider, which run in the CPU provider.
    /// Source: ONNX Runtime, docs/OperatorKernels.md (CUDAExecutionProvider).
    static bool runs_on_host(const Op& op) {
        const std::string_view name = std::string_view(op.source).substr(op.source.rfind(':') + 1);
        return name.starts_with("QLinear") || name == "ConvInteger" || name == "DynamicQuantizeLinear" ||
               name == "MatMulIntegerToFloat";
    }

    void lower_onto_host(OpId id) {
        begin_launch(id, HostKind::engine);
        Launch& launch = schedule_.launches.back();
        launch.on_host = true;
        for (const TensorId input : present_inputs(graph_.ops[id])) {
            const Tensor& tensor = graph_.tensors[input];
            const bool there = tensor.role != TensorRole::activation ||
                               (tensor.producer != no_op && runs_on_host(graph_.ops[tensor.producer]));
            if (!there) launch.crossing.push_back(input);
        }
        for (const TensorId output : graph_.ops[id].outputs) {
            const auto on_device = [&](OpId reader) { return !runs_on_host(graph_.ops[reader]); };
            if (std::ranges::any_of(readers_[output], on_device)) launch.crossing.push_back(output);
        }
    }

    /// Copies the network's inputs, except caches, into the buffers that a CUDA graph reads. Source:
    /// torch/_inductor/cudagraph_trees.py (copy_misaligned_inputs, static_input_idxs); kernelbench.csv, RMSNorm.
    void copy_into_buffers(OpId id) {
        if (!traits_.copies_inputs) return;
        for (const TensorId input : graph_.ops[id].inputs) {
            if (input == no_tensor || graph_.tensors[input].role != TensorRole::input) continue;
            if (readers_[input].front() != id || is_cache_name(graph_.tensors[input].name)) continue;
            if (!schedule_.kernels.empty() && schedule_.kernels.back().reads == std::vector{input}) continue;
            launch_copy(id, input, MemoryClass::copy);
        }
    }

    /// If a compiler turns a module's weights into inputs, a CUDA graph copies them into its own buffers before each
    /// run, with one kernel for many tensors. Source: torch/_dynamo/backends/cudagraphs.py with
    /// inline_inbuilt_nn_modules (range(fixed) is empty); kernelbench.csv, VGG-16.
    void copy_weights() {
        std::vector<TensorId> weights;
        for (TensorId id = 0; id < graph_.tensors.size(); ++id)
            if (graph_.tensors[id].role == TensorRole::weight && !readers_[id].empty()) weights.push_back(id);
        if (weights.empty()) return;
        launch_move(readers_[weights.front()].front(), MemoryClass::copy, weights, weights);
    }

    /// A scatter runs in place and touches only what it writes, unless a later operator reads the old tensor: then the
    /// out-of-place form copies it first.
    void write_updates_alone(const Op& op, OpId id, Kernel& kernel) const {
        const std::vector<TensorId> updates = scattered(graph_, op);
        const auto bases = op.inputs.begin() + static_cast<std::ptrdiff_t>(scatter_bases(op));
        const bool in_place = op.source.ends_with('_');
        const bool kept = !in_place && std::any_of(op.inputs.begin(), bases, [&](TensorId base) {
            return base != no_tensor && !readers_[base].empty() && readers_[base].back() > id;
        });
        if (updates.empty() || kept) return;
        std::erase_if(kernel.reads, [&](TensorId read) { return std::find(op.inputs.begin(), bases, read) != bases; });
        kernel.writes = updates;
        kernel.written_type = schedule_.storage[op.outputs[0]];
    }

    /// An engine's kernel updates a state where it is and reads the result. Source: vLLM and SGLang,
    /// fused_recurrent_gated_delta_rule, selective_state_update and causal_conv1d_update.
    bool is_part_of_update(const Op& op) const {
        return traits_.serves_sequences && !libraries_.separates_updates &&
               (op.integer("updates_state", 0) != 0 ||
                (op.source == "aten::copy_" && is_state_name(graph_.tensors[op.inputs[0]].name)));
    }

    /// A cast between types with the same storage in an f32 run returns its input.
    bool is_stored_alike(const Op& op) const {
        if (op.kind != OpKind::cast || op.inputs.empty() || op.inputs[0] == no_tensor) return false;
        if (storage_type(options_.precision) != DType::f32 || !types_.autocast_policies().empty()) return false;
        const DType from = graph_.tensors[op.inputs[0]].dtype;
        const DType to = graph_.tensors[op.outputs[0]].dtype;
        return is_float(from) && is_float(to) && schedule_.storage[op.inputs[0]] == schedule_.storage[op.outputs[0]];
    }

    /// Returns the prototype of an operator's own memory-bound kernel.
    MemoryShape moving_shape(const Op& op) const {
        const std::string_view function = op.text("function");
        MemoryShape shape = memory(memory_class(op));
        shape.root_mean_square = op.kind == OpKind::rms_norm;
        // One warp sums the losses of all rows, which are in the L2, or eight. Source: PyTorch 2.5, Loss.cu
        // (nll_loss_forward_reduce_cuda_kernel_2d); kernelbench.csv, cross-entropy: 550 to 700 cycles for 32 rows.
        if (function == "nll_loss") shape.elements_per_wait = libraries_.sums_losses_by_blocks ? 288 : 48;
        // Source: ONNX Runtime until 1.24, resize_impl.cu: _ResizeNearestKernel except for two dimensions.
        constexpr int volume = 5;
        if (traits_.resizes_volumes_by_index && op.kind == OpKind::resize && function == "nearest" &&
            graph_.tensors[op.outputs[0]].shape.size() == volume)
            shape.coordinates = volume;
        return shape;
    }

    MemoryClass memory_class(const Op& op) const {
        const bool samples = op.text("function") == "grid_sample";
        const bool has_window = op.kind == OpKind::pool || (op.kind == OpKind::resize && !samples);
        if (has_window && traits_.windows_stream) return MemoryClass::pointwise;
        // An engine's kernels for layers with a state write the whole of it.
        if (traits_.serves_sequences && op.source == "aten::copy_") return MemoryClass::pointwise;
        // An int8 scale is a streaming kernel; batch norms were fitted to wider types.
        if (op.kind == OpKind::batch_norm && types_.has_narrow_activations()) return MemoryClass::pointwise;
        return ftax::memory_class(op);
    }

    void lower_view(OpId id, const LaunchRule& rule) {
        const Op& op = graph_.ops[id];
        if (op.kind == OpKind::split && traits_.calls_engines) return split_engine(id);
        const bool moves = traits_.views_move_data && op.kind != OpKind::reshape && op.kind != OpKind::identity;
        // torch.reshape copies if strides cannot express the result; torch.view would fail.
        const bool may_copy = op.kind == OpKind::reshape && !op.inputs.empty() &&
                              !graph_.tensors[op.inputs[0]].strides.empty() && !traits_.views_move_data;
        if (!moves && !may_copy && !traits_.views_cost_host) return;
        if (may_copy && (is_written_by_generated(op.inputs[0]) || is_read_by_generated(op.outputs[0]))) return;
        begin_launch(id, moves || may_copy ? HostKind::elementwise : rule.host_kind);
        if (moves) add_move(id, memory(rule.memory_class), present_inputs(op), op.outputs);
        if (!may_copy) return;
        add_move(id, memory(MemoryClass::transpose), {op.inputs[0]}, {op.outputs[0]}, LaunchCondition::unless_viewable);
    }

    /// TorchScript dispatches a split between two engines; the next engine call copies non-contiguous pieces. Source:
    /// pytorch/TensorRT, core/runtime (execute_engine).
    void split_engine(OpId id) {
        const auto begin = [&](HostKind kind) {
            begin_launch(id, kind);
            schedule_.launches.back().host_kind = kind;
        };
        begin(HostKind::elementwise);
        begin(HostKind::engine_call);
        for (const TensorId piece : graph_.ops[id].outputs) {
            begin(HostKind::elementwise);
            add_move(id, memory(MemoryClass::copy), {piece}, {piece}, LaunchCondition::unless_contiguous);
        }
    }

    /// Emits one kernel if the engine has one for the sequence, else both products and the softmax with its mask.
    void lower_engine_attention(OpId id) {
        const Op& op = graph_.ops[id];
        const DType stored = schedule_.storage[op.outputs[0]];
        const FusedAttention* fused = types_.fused_attention(op, stored == DType::bf16 ? DType::f16 : stored);
        Kernel kernel{.path = contraction_path(false), .op = id, .reads = present_inputs(op), .writes = op.outputs};
        begin_launch(id, HostKind::bmm);
        if (fused != nullptr) {
            Kernel whole = kernel;
            whole.shape = attention_shape(op, fused->whole_heads);
            whole.longest = kernel.longest = fused->longest;
            if (bits_of(stored) == 8) whole.path = precision_.path;
            if (fused->longest > 0) whole.when = LaunchCondition::within_longest;
            add_kernel(std::move(whole));
            if (fused->longest == 0) return;
            kernel.when = LaunchCondition::beyond_longest;
        }
        // Separate kernels are never narrower than 16 bits. Source: TensorRT, plugin/bertQKVToContextPlugin.
        const int element_bytes = std::max(2, bits_of(stored) / 8);
        for (const OperatorPart part : {OperatorPart::scores, OperatorPart::softmax, OperatorPart::values}) {
            kernel.part = part;
            kernel.shape = GemmShape{.element_bytes = element_bytes, .engine = traits_.engine};
            if (part == OperatorPart::softmax)
                kernel.shape =
                    MemoryShape{.cls = MemoryClass::softmax, .element_bytes = element_bytes, .engine = traits_.engine};
            add_kernel(kernel);
        }
    }

    /// Largest state for which a layer is one kernel. Source: PyTorch 1.12, aten/src/ATen/native/cudnn/RNN.cpp
    /// (use_rnn_persist_small_h), not used for packed sequences.
    bool is_persistent(const Op& op) const {
        const std::int64_t largest = op.text("cell") == "rnn" ? 384 : 192;
        return traits_.persistent_recurrences && op.integer("packed", 0) == 0 && op.integer("hidden", 1) <= largest;
    }

    /// Emits the kernels of cuDNN's call: the products of the inputs with the weights for all steps at once, then, for
    /// each step of each layer and direction, a product with the state and the state update. Nothing overlaps: four
    /// layers take four times as long as one. Source: cudnn-rnn-bench-62143/forward (see recurrent.hpp), first column.
    void lower_recurrent(OpId id) {
        const Op& op = graph_.ops[id];
        cast_for_autocast(id);
        if (op.integer("batch_first", 0) != 0 && !traits_.views_move_data)  // _cudnn_rnn copies transposed data
            launch_copy(id, op.inputs[0], MemoryClass::transpose);
        begin_launch(id, HostKind::conv);
        const auto add_part = [&](KernelShape shape, OperatorPart part) {
            add_kernel({.shape = shape,
                        .path = contraction_path(true),
                        .part = part,
                        .op = id,
                        .reads = present_inputs(op),
                        .writes = op.outputs});
        };
        const int element_bytes = stored_bytes(op.outputs[0]);
        const GemmShape product{.element_bytes = element_bytes,
                                .linear = true,
                                .library = kernels::BlasLibrary::cublas,
                                .older_library = older_blas(),
                                .engine = traits_.engine};
        add_part(product, OperatorPart::input_products);
        if (op.integer("layers", 1) > 1) add_part(product, OperatorPart::later_input_products);
        if (is_persistent(op))
            return add_part(kernels::RecurrentShape{.element_bytes = element_bytes}, OperatorPart::steps);
        add_part(product, OperatorPart::state_product);
        // elemWiseRNNcell, 10 sequences of 256 on an H200: 1.8 µs (data/measurements)
        add_part(MemoryShape{.cls = MemoryClass::transcendental,
                             .element_bytes = element_bytes,
                             .engine = traits_.engine,
                             .waits = 2},
                 OperatorPart::state_update);
    }

    /// Leaves to the kernels of an engine's experts what they do: read tokens by index, or rows sorted in 8 or 4 bits,
    /// and activate them. Returns the values to quantise before a product, or no_tensor. Source: FlashInfer,
    /// trtllm_fused_moe_runner.cu (DeepSeek's scales alone need a kernel that activates); TensorRT-LLM, moe_kernels.cu.
    TensorId leave_to_experts(const Op& op, Precision operands) {
        if (op.integer(experts_attribute, 0) == 0 || schedule_.kernels.empty()) return op.inputs[0];
        const TensorId rows = viewed(graph_, op.inputs[0]);
        const auto experts = experts_shape(op, operands);
        Kernel& before = schedule_.kernels.back();  // sorts the rows or activates them
        const auto tokens = std::ranges::find_if(before.reads, [&](TensorId read) {
            const std::vector<Expression>& shape = graph_.tensors[read].shape;
            return shape.size() > 1 && shape.back() == graph_.tensors[rows].shape.back();
        });
        if (!experts.prepared || std::ranges::count(before.writes, rows) == 0) return op.inputs[0];
        if (experts.gated && tokens != before.reads.end() && before.writes.size() > 1) {
            const TensorId values = *tokens;
            before.reads.erase(tokens);
            std::erase(before.writes, rows);
            return values;
        }
        if (experts.gated || !(experts.fused || libraries_.narrows_activated)) return op.inputs[0];
        before.written_type = precision_spec(operands).activation;
        if (!experts.fused || experts.scaled_outside) return no_tensor;
        schedule_.kernels.pop_back();
        schedule_.launches.pop_back();
        return no_tensor;
    }

    /// Launches what brings the operands of a product into the format that it reads.
    void change_format(OpId id, Precision operands, bool converts) {
        const Op& op = graph_.ops[id];
        const PrecisionSpec& format = precision_spec(operands);
        const TensorId values = leave_to_experts(op, operands);
        if (op.text(rewrites::operands).empty() && format.quantizes_activations() && !types_.has_narrow_activations() &&
            values != no_tensor)
            quantize(id, values);
        if (op.is(OpKind::conv, OpKind::conv_transpose) && operands == Precision::int8) reformat_input(id);
        if (!converts) return;
        const bool as_int8 = multiplies_int8(operands);
        convert(id, op.inputs[0], operands, as_int8 ? DType::i8 : DType::f16);
        // Others dequantise the whole matrix for cuBLAS (ggml_cuda_op_mul_mat_cublas); the product counts narrow reads.
        if (format.quantizes_weights() && device_.peak(format.path) && !as_int8) {
            launch_move(id, MemoryClass::pointwise, {op.inputs[1]}, {op.inputs[1]}, LaunchCondition::beyond_few_rows);
            schedule_.kernels.back().longest = most_rows(operands);
        }
    }

    void copy_heads(OpId id) {
        const Op& op = graph_.ops[id];
        for (std::size_t i = 0; is_widened_attention(op) && i < 3; ++i)
            launch_copy(id, op.inputs[i], MemoryClass::pointwise, LaunchCondition::always, DType::f32);
        // Callers of xformers move the heads into the batch first. Source: huggingface/diffusers 0.10,
        // models/cross_attention.py (head_to_batch_dim).
        for (std::size_t i = 0; libraries_.xformers && i < 3; ++i)
            launch_copy(id, op.inputs[i], MemoryClass::transpose, LaunchCondition::unless_contiguous);
    }

    void lower_contraction(OpId id, const LaunchRule& rule) {
        const Op& op = graph_.ops[id];
        const bool by_node = traits_.joins_contrib_nodes && op.source == "com.microsoft::Attention";
        if (op.kind == OpKind::attention && (traits_.engine || by_node)) return lower_engine_attention(id);
        if (op.kind == OpKind::recurrent) return lower_recurrent(id);
        const bool convolution = op.is(OpKind::conv, OpKind::conv_transpose);
        cast_for_autocast(id);
        if (op.kind == OpKind::matmul && traits_.batched_matmul_copies) copy_unmergeable_operands(id);
        copy_input_out_of_format(id);
        if (op.kind == OpKind::attention) copy_heads(id);
        const Precision operands = types_.operands_of(op);
        const bool converts = traits_.wide_activations && is_layer(op);
        change_format(id, operands, converts);
        // Where Python runs an engine's modules, latent vectors become keys and values operator by operator. Source:
        // SGLang, forward_mha.py; TensorRT-LLM, MLA.forward_context. How many: docs/serving.md.
        constexpr int latent_operators = 44;
        if (traits_.calls_experts && !traits_.host_kind && op.integer(latent_attribute, 0) != 0)
            for (int i = 0; i < latent_operators; ++i) begin_launch(id, HostKind::fused);
        begin_launch(id, host_kind(op, rule));
        schedule_.launches.back().blas_call = blas_call(op);
        const bool sums_in_f32 = libraries_.keeps_scores && op.kind == OpKind::attention;
        Kernel kernel{.shape = contraction_shape(op, operands),
                      .path = is_widened_attention(op) ? MathPath::fp32
                                                       : contraction_path(convolution || sums_in_f32 || splits_f32(op),
                                                                          operands, sums_in_f32),
                      .op = id,
                      .reads = present_inputs(op),
                      .writes = op.outputs};
        if (const auto* experts = std::get_if<kernels::GroupedGemmShape>(&kernel.shape)) {
            kernel.reads = {viewed(graph_, op.inputs[0])};  // rows that a reshape has sorted
            // TensorRT-LLM, get_mxfp4_quant_algo: W4A8_MXFP4_MXFP8; SGLang, flashinfer_mxfp4_moe_precision.
            if (experts->is_mxfp4 && kernel.path == MathPath::fp4_tensor) kernel.path = MathPath::fp8_tensor;
        }
        add_kernel(std::move(kernel));
        if (converts && !multiplies_int8(operands)) convert(id, op.outputs[0], operands, DType::f16);
        add_bias(id, convolution);
    }

    int stored_bytes(TensorId tensor) const { return std::max(1, bits_of(schedule_.storage[tensor]) / 8); }
    bool older_blas() const { return libraries_.older_blas && !traits_.engine; }

    KernelShape contraction_shape(const Op& op, Precision operands) const {
        if (op.is(OpKind::conv, OpKind::conv_transpose)) return conv_shape(op, operands);
        if (op.kind == OpKind::attention) return attention_shape(op, false);
        if (op.integer(experts_attribute, 0) > 0) return experts_shape(op, operands);
        return product_shape(op, operands);
    }

    GemmShape product_shape(const Op& op, Precision operands) const {
        GemmShape shape = traits_.gemm;
        const TensorId typed = traits_.wide_activations ? op.inputs[1] : op.outputs[0];
        shape.element_bytes = types_.autocast_policies().empty() ? stored_bytes(typed) : 2;
        shape.engine = traits_.engine;
        shape.older_library = older_blas();
        shape.oldest_library = libraries_.oldest_blas && !traits_.engine;
        shape.newest_library = libraries_.newest_blas;
        shape.operands = operands;
        const int chip = 10 * device_.compute_capability_major + device_.compute_capability_minor;
        // Source: ggml-cuda, MIN_CC_DP4A.
        shape.dot_products = shape.dot_products && precision_spec(operands).quantizes_weights() && chip >= 61;
        shape.loads_ahead = libraries_.streams_faster;
        shape.hides_promotion = libraries_.hides_promotion;
        shape.scaled_outside = flashinfer_gemm_ && operands == Precision::fp8_block && chip / 10 == 10;
        const Tensor& right = graph_.tensors[op.inputs[1]];
        shape.linear = op.kind == OpKind::linear || (right.shape.size() <= 2 && right.role == TensorRole::weight);
        if (libraries_.cublas_lt_of_any_size && shape.cublas_lt_limit > 0)
            shape.cublas_lt_limit = kernels::no_cublas_lt_limit;
        const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != no_tensor;
        if (shape.linear && !(has_bias && shape.cublas_lt_limit > 0)) shape.library = kernels::BlasLibrary::cublas;
        return shape;
    }

    kernels::ConvShape conv_shape(const Op& op, Precision operands) const {
        kernels::ConvShape shape = traits_.conv;
        const PrecisionSpec& format = precision_spec(operands);
        const bool quantized = format.quantizes_weights();
        shape.element_bytes = quantized ? bits_of(format.activation) / 8 : stored_bytes(op.outputs[0]);
        shape.channels_last = quantized || (shape.channels_last && storage_type(options_.precision) != DType::f32);
        shape.transposed = op.kind == OpKind::conv_transpose;
        shape.older_library = older_blas();
        shape.launches_groups = libraries_.launches_groups && traits_.host_kind == HostKind::engine;
        shape.operands = operands;
        if (libraries_.unlimited_workspace) shape.workspace_bytes = 0;
        if (shape.library == kernels::ConvLibrary::cudnn_heuristic && libraries_.cudnn7_heuristic)
            shape.library = kernels::ConvLibrary::cudnn7_heuristic;
        return shape;
    }

    /// Returns the prototype of an attention in one kernel. `whole_heads` concerns an engine's.
    kernels::AttentionShape attention_shape(const Op& op, bool whole_heads) const {
        using enum kernels::AttentionPath;
        using enum kernels::FlashLibrary;
        kernels::AttentionShape shape;
        shape.causal = op.integer("causal", 0) != 0;
        shape.element_bytes = stored_bytes(op.outputs[0]);
        if (traits_.engine || traits_.wide_activations) {
            shape.path = traits_.engine ? engine : libraries_.keeps_scores ? flash : products;
            if (shape.path == flash) shape.library = ggml;
            shape.whole_heads = whole_heads;
            if (!traits_.engine) shape.element_bytes = stored_bytes(op.inputs[1]);
            return shape;
        }
        if (is_widened_attention(op)) shape.element_bytes = bits_of(DType::f32) / 8;
        // The fused kernels require four dimensions; flash needs half precision and no mask, which cuDNN's kernel
        // takes. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
        const bool masked = op.inputs.size() > 3 && op.inputs[3] != no_tensor;
        const bool flashes = shape.element_bytes == 2 && (!masked || libraries_.cudnn_attention);
        shape.path = graph_.tensors[op.inputs[0]].shape.size() != 4 ? math : flashes ? flash : memory_efficient;
        shape.paged = op.integer(rewrites::paged, 0) != 0;
        if (shape.paged) shape.window = op.integer(window_attribute, 0);
        // 8-bit keys and values are most of the traffic of a decoding step.
        if (shape.path == flash) shape.element_bytes = std::min(shape.element_bytes, stored_bytes(op.inputs[1]));
        shape.selects = op.integer(selects_attribute, 0);
        if (shape.selects > 0 && device_.compute_capability_major >= 9) shape.element_bytes = 1;  // it casts to fp8
        const std::int64_t latents = op.integer(latent_attribute, 0);  // more than 1: of selected tokens
        const bool by_nvidia = (latents > 0 && libraries_.attends_latents_in_fp8) ||
                               (latents > 1 && libraries_.attends_selected_in_fp8) || libraries_.attends_in_xqa;
        const bool narrow = shape.element_bytes == 1 && libraries_.decodes_fp8_in_flashinfer;
        const auto by_others = narrow || libraries_.decodes_in_flashinfer ? flashinfer : generation;
        const auto by_torch = libraries_.cudnn_attention ? cudnn : libraries_.flash1 ? flash1 : flash2;
        shape.library = !shape.paged ? by_torch : by_nvidia ? tensorrt_llm : by_others;
        if (shape.path == memory_efficient && libraries_.xformers) shape.library = xformers;
        return shape;
    }

    kernels::GroupedGemmShape experts_shape(const Op& op, Precision operands) const {
        kernels::GroupedGemmShape shape;
        shape.experts = op.integer(experts_attribute, 1);
        shape.per_token = std::min(op.integer(experts_per_token_attribute, 1), shape.experts);
        shape.element_bytes = stored_bytes(op.outputs[0]);
        shape.operands = operands;
        shape.gated = op.integer("gated", 0) != 0;
        const int major = device_.compute_capability_major;
        const bool groups = op.integer("groups", 1) > 1;
        const bool blocks = operands == Precision::fp8_block, fp4 = operands == Precision::nvfp4;
        const bool mxfp4 = op.integer("mxfp4", 0) != 0, engine = traits_.serves_sequences && !traits_.wide_activations;
        const bool pads = blocks && (libraries_.pads_experts || (libraries_.pads_groups && groups));
        if (pads) shape.padding_cards = libraries_.pads_groups ? 1 : op.integer("cards", 1);
        // CUTLASS, and TRTLLM for GPT-OSS; groups keep CUTLASS where recipes name TRTLLM. Source: TensorRT-LLM,
        // model_config.py (resolve_moe_backend); srt-slurm, recipes/trtllm.
        const MoeBackend asked = options_.moe_backend;
        const bool cutlass = asked == MoeBackend::cutlass || (!mxfp4 && (groups || asked == MoeBackend::by_default));
        shape.in_fp4_cutlass = libraries_.fp4_in_cutlass && fp4 && cutlass;
        shape.fused =
            engine && major == 10 && !pads && !shape.in_fp4_cutlass && (fp4 || blocks || operands == Precision::w4a16);
        shape.prepared = engine && !pads && !(libraries_.sorts_wide_rows && blocks && !shape.fused);
        const bool in_triton = mxfp4 && libraries_.mxfp4_in_triton && asked != MoeBackend::marlin;
        shape.in_marlin = libraries_.widens_in_marlin && operands == Precision::w4a16 && !in_triton;
        shape.widens_apart = libraries_.widens_apart && in_triton;
        shape.is_mxfp4 = mxfp4 && (shape.fused || shape.in_fp4_cutlass || shape.in_marlin);
        shape.scaled_outside = shape.fused && blocks;
        const bool maps_at_once = libraries_.maps_at_once && !blocks && operands != Precision::w4a16;
        shape.sorted = (libraries_.sorts_experts && !shape.fused && !maps_at_once) || shape.widens_apart;
        return shape;
    }

    bool is_layer(const Op& op) const {
        return (op.kind == OpKind::linear || op.kind == OpKind::matmul) && op.inputs.size() > 1 &&
               graph_.tensors[op.inputs[1]].role == TensorRole::weight;
    }

    /// Returns true if llama.cpp multiplies such weights as int8 on tensor cores (mmq.cu, ggml_cuda_should_use_mmq).
    bool multiplies_int8(Precision operands) const {
        return libraries_.multiplies_int8 && precision_spec(operands).quantizes_weights() &&
               device_.peak(MathPath::int8_tensor);
    }

    /// Returns the most tokens that llama.cpp multiplies with weights of this precision by kernels of its own. Source:
    /// MMVQ_MAX_BATCH_SIZE; mmf.cu; mmq.cu, MMQ_DP4A_MAX_BATCH_SIZE, on cards whose tensor cores have no int8.
    std::int64_t most_rows(Precision operands) const {
        if (!precision_spec(operands).quantizes_weights()) return libraries_.streams_half ? 16 : 8;
        return libraries_.multiplies_int8 && !multiplies_int8(operands) ? 63 : 8;
    }

    /// Emits the conversion of activations for more tokens: to fp16 for cuBLAS or back, to int8 for kernels of its own.
    void convert(OpId id, TensorId tensor, Precision operands, DType type) {
        launch_copy(id, tensor, MemoryClass::pointwise, LaunchCondition::beyond_few_rows, type);
        schedule_.kernels.back().longest = most_rows(operands);
    }

    bool is_widened_attention(const Op& op) const {
        return op.kind == OpKind::attention && libraries_.widens_attention &&
               graph_.tensors[op.inputs[0]].shape.size() != 4 && bits_of(schedule_.storage[op.outputs[0]]) == 16;
    }

    /// A convolution reads int8; inputs of another type, such as the network's input, are converted first.
    /// Source: TensorRT's build log, "Reformatting CopyNode for Input Tensor 0 to conv1".
    void reformat_input(OpId id) {
        const TensorId input = graph_.ops[id].inputs[0];
        if (bits_of(schedule_.storage[input]) == 8) return;
        launch_copy(id, input, MemoryClass::pointwise, LaunchCondition::always, DType::i8);
    }

    void quantize(OpId id, TensorId input) {
        begin_launch(id, HostKind::elementwise);
        const bool by_expert = graph_.ops[id].integer(experts_attribute, 0) > 0 && libraries_.quantizes_by_expert;
        add_kernel({.shape = kernels::QuantizeShape{.operands = options_.precision, .by_expert = by_expert},
                    .path = precision_.path,
                    .op = id,
                    .reads = {input},
                    .writes = {input}});
    }

    /// Returns true if the bias needs a separate pass over the result: for convolutions without an epilogue, and for
    /// linear layers with a strided input, which PyTorch runs as a batched product with a shared weight. Source:
    /// aten/src/ATen/native/Convolution.cpp, Linear.cpp (linear) and LinearAlgebra.cpp (should_fold).
    void add_bias(OpId id, bool convolution) {
        const Op& op = graph_.ops[id];
        if (op.inputs.size() < 3 || op.inputs[2] == no_tensor) return;
        const bool strided = op.kind == OpKind::linear && !graph_.tensors[op.inputs[0]].strides.empty() &&
                             graph_.tensors[op.inputs[0]].shape.size() > 2 && !traits_.views_move_data;
        const bool separate = convolution && traits_.separate_conv_bias && op.text(rewrites::epilogue).empty();
        if (!separate && !strided) return;
        launch_move(id, MemoryClass::pointwise, {op.outputs[0], op.inputs[2]}, {op.outputs[0]},
                    strided ? LaunchCondition::unless_contiguous : LaunchCondition::always);
    }

    /// Returns true for f32 attention in the memory-efficient kernel, which uses three TF32 products.
    bool splits_f32(const Op& op) const {
        return op.kind == OpKind::attention && !traits_.engine && !traits_.wide_activations &&
               options_.precision == Precision::fp32 && graph_.tensors[op.inputs[0]].shape.size() == 4;
    }

    MathPath contraction_path(bool convolution, Precision operands = Precision::fp32, bool wide_sums = false) const {
        // Builders of engines allow TF32 unless told otherwise (TensorRT issue 1824), plugins compute in f32
        // (FasterTransformer issue 112).
        const bool plugins = !traits_.fused_attention.empty() && traits_.fused_attention.front().whole_heads;
        const bool allows_tf32 = convolution || (traits_.engine && !plugins);
        const MathPath path = multiplies_int8(operands) ? MathPath::int8_tensor
                              : precision_spec(operands).quantizes_weights()
                                  ? layer_path(device_, operands)
                                  : math_path(device_, options_.precision, allows_tf32);
        // They time kernels and leave emulated tensor cores (GTX 16) aside.
        if (traits_.engine && device_.peak(path) < device_.peak(MathPath::fp32)) return MathPath::fp32;
        const bool half_sums = !wide_sums && (traits_.half_accumulation || (convolution && libraries_.sums_in_half));
        const bool halves =
            half_sums && path == MathPath::fp16_tensor && device_.peak(MathPath::fp16_tensor_fp16_accumulate);
        return halves ? MathPath::fp16_tensor_fp16_accumulate : path;
    }

    static bool is_generated(const Op& op) { return op.integer(rewrites::generated, 0) != 0; }

    /// Returns true if a generated kernel writes the tensor's base, in the layout of its readers.
    bool is_written_by_generated(TensorId tensor) const {
        const OpId id = graph_.tensors[viewed(graph_, tensor)].producer;
        return id != no_op && is_generated(graph_.ops[id]);
    }

    /// Returns true if only generated kernels read the tensor and its views, in place.
    bool is_read_by_generated(TensorId tensor) const {
        return !readers_[tensor].empty() && std::ranges::all_of(readers_[tensor], [&](OpId id) {
            const Op& op = graph_.ops[id];
            return is_view(op) ? is_read_by_generated(op.outputs[0]) : is_generated(op);
        });
    }

    /// Returns true if the filter of a convolution is known to be 1 × 1.
    bool is_pointwise(const Op& conv) const {
        const std::vector<Expression>& filter = graph_.tensors[conv.inputs[1]].shape;
        return filter.size() >= 2 && std::all_of(filter.begin() + 2, filter.end(), [&](Expression e) {
                   return graph_.expressions.constant_value(e) == 1;
               });
    }

    /// cuDNN hands batch-1 pointwise convolutions to cuBLAS on tensor cores, and on some chips (Volta) in f32. Source:
    /// framework_tax.csv, batch 1 and 2 on hosts with a slow library call (80 µs each).
    BlasCall blas_call(const Op& op) const {
        if (traits_.calls_engines || traits_.engine || traits_.host_kind == HostKind::graph_node)
            return BlasCall::never;
        if (op.kind == OpKind::linear) return BlasCall::always;
        const bool by_heuristic = traits_.conv.library == kernels::ConvLibrary::cudnn_heuristic;
        if (op.kind != OpKind::conv || op.integer("groups", 1) != 1 || !by_heuristic) return BlasCall::never;
        if (graph_.tensors[op.inputs[0]].shape.empty()) return BlasCall::never;  // unknown
        const bool through_cublas =
            math_path(device_, options_.precision, true) != MathPath::fp32 || device_.chip().pointwise_through_blas;
        return is_pointwise(op) && through_cublas ? BlasCall::at_batch_one : BlasCall::never;
    }

    /// Returns the stride requirement of an operator's input; if not met, eager PyTorch copies the input first.
    /// Source: aten/src/ATen/native/cudnn/ConvShared.cpp, cuda/layer_norm_kernel.cu (expect_contiguous),
    /// cuda/SoftMax.cu, group_norm.cpp, cudnn/BatchNorm.cpp and the pooling kernels (suggest_memory_format).
    std::optional<LaunchCondition> demanded_format(const Op& op) const {
        using enum OpKind;
        if (op.is(layer_norm, group_norm, softmax, log_softmax)) return LaunchCondition::unless_contiguous;
        if (op.is(conv, conv_transpose, batch_norm, pool)) return LaunchCondition::unless_in_format_of_result;
        return std::nullopt;
    }

    void copy_input_out_of_format(OpId id) {
        const Op& op = graph_.ops[id];
        const auto condition = demanded_format(op);
        if (!condition || traits_.views_move_data || op.inputs[0] == no_tensor || is_written_by_generated(op.inputs[0]))
            return;
        const TensorId input = op.inputs[0];
        const bool in_order = graph_.tensors[input].strides.empty();
        const bool may_reorder = *condition == LaunchCondition::unless_in_format_of_result;
        if (in_order && !(may_reorder && !graph_.tensors[op.outputs[0]].strides.empty())) return;
        launch_copy(id, input, MemoryClass::transpose, *condition);
    }

    /// ONNX Runtime's Concat first sends the list of its inputs and three tables of their sizes to the device, unless
    /// the inputs are few and of equal size. Source: onnxruntime/core/providers/cuda/tensor/concat.cc.
    void copy_concat_tables(OpId id) {
        const Op& op = graph_.ops[id];
        if (op.kind != OpKind::concat || !traits_.concat_copies_tables) return;
        const std::vector<TensorId> parts = present_inputs(op);
        const bool alike = std::ranges::all_of(
            parts, [&](TensorId part) { return graph_.tensors[part].shape == graph_.tensors[parts.front()].shape; });
        constexpr std::size_t passed_by_value = 32;
        const int tables = !alike ? 4 : parts.size() > passed_by_value ? 1 : 0;
        for (int i = 0; i < tables; ++i) launch_move(id, MemoryClass::copy, {}, {});
    }

    HostKind host_kind(const Op& op, const LaunchRule& rule) const {
        if (op.text("function") == rewrites::fused_function) return HostKind::fused;
        if (op.integer("inner", 0) != 0) return HostKind::view;  // called by another operator, not from Python
        if (op.kind == OpKind::matmul) {
            const auto rank = [&](std::size_t i) { return graph_.tensors[op.inputs[i]].shape.size(); };
            return rank(0) > 2 || rank(1) > 2 ? HostKind::bmm : HostKind::gemm;
        }
        if (!op.is(OpKind::conv, OpKind::conv_transpose)) return rule.host_kind;
        const std::int64_t groups = op.integer("groups", 1);
        if (groups == 1) return HostKind::conv;
        const Tensor& input = graph_.tensors[op.inputs[0]];
        const auto channels = input.shape.size() > 1 ? graph_.expressions.constant_value(input.shape[1]) : std::nullopt;
        if (channels == groups) return HostKind::conv_depthwise;
        return is_pointwise(op) ? HostKind::conv_grouped : HostKind::conv;
    }

    /// torch.matmul folds the leading dimensions of its operands into one batch dimension; if the strides do not allow
    /// it (batch > 1 and heads transposed after the sequence), it copies.
    /// Source: aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl: expand().reshape().
    void copy_unmergeable_operands(OpId id) {
        for (const TensorId input : present(graph_.ops[id].inputs)) {
            const Tensor& operand = graph_.tensors[input];
            if (operand.shape.size() < 4 || operand.strides.empty() || is_written_by_generated(input)) continue;
            launch_copy(id, input, MemoryClass::transpose, LaunchCondition::unless_batch_merges);
        }
    }

    /// Under autocast, operands of other types are cast first, weights in every forward pass unless the context stays
    /// open. Source: aten/src/ATen/autocast_mode.cpp, cached_cast; leaving the context clears its cache. Kernels of
    /// engines cast what they read and write, and weights are cast when the engine is built.
    void cast_for_autocast(OpId id) {
        if (types_.autocast_policies().empty() || traits_.engine) return;
        const Op& op = graph_.ops[id];
        const autocast::Policy policy = types_.autocast_policies()[id];
        if (policy != autocast::Policy::lower && policy != autocast::Policy::full) return;
        const DType wanted = policy == autocast::Policy::lower ? DType::f16 : DType::f32;
        const DType other = policy == autocast::Policy::lower ? DType::f32 : DType::f16;
        for (const TensorId input : op.inputs) {
            if (input == no_tensor || schedule_.storage[input] != other) continue;
            if (precision_.keeps_casts && graph_.tensors[input].role == TensorRole::weight) continue;
            // A generated kernel writes both types.
            std::vector<TensorId> reads{input};
            if (is_written_by_generated(input)) reads.clear();
            launch_move(id, MemoryClass::pointwise, reads, {input}, LaunchCondition::always, wanted);
        }
    }

    const Graph& graph_;
    const DeviceSpec& device_;
    const PredictOptions& options_;
    const PrecisionSpec& precision_;
    LoweringTraits traits_;
    LibraryBehaviour libraries_;
    bool flashinfer_gemm_ = false;
    TypeAssignment types_;
    Schedule schedule_;
    std::vector<std::vector<OpId>> readers_;  ///< readers of each tensor, in order
    std::unordered_map<std::string, std::uint32_t> pending_calls_;
};

}  // namespace

Schedule lower(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
               const LoweringTraits& traits) {
    return Lowering(graph, device, options, traits).run();
}

}  // namespace ftax
