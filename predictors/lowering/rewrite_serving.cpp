#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

// Serving engines' rewrites of a decoder.

namespace ftax::rewrites {
namespace {

/// What a hand-written kernel between two contractions does in one go. The lookup of an expert's bias, whose rows a
/// range counts, is an epilogue of the experts' product.
bool is_light(const Graph& graph, const Op& op) {
    using enum OpKind;
    if (op.is(embedding)) {
        const OpId producer = op.inputs.size() < 2 ? no_op : graph.tensors[op.inputs[1]].producer;
        return producer != no_op && graph.ops[producer].is(fill);
    }
    if (op.is(matmul)) {  // of a few streams with one another
        constexpr std::int64_t few = 8;
        const auto depth = graph.expressions.constant_value(graph.tensors[op.inputs[0]].shape.back());
        return depth && *depth <= few && graph.tensors[op.inputs[1]].role == TensorRole::activation;
    }
    return op.is(pointwise, cast, fill, copy, concat, pad, softmax, layer_norm, rms_norm, reduce, cumulative, sort,
                 gather);
}

bool is_norm(const Op& op) {
    return op.kind == OpKind::layer_norm || op.kind == OpKind::rms_norm ||
           (op.kind == OpKind::reduce && op.text("function") == "mean");
}

/// Makes one kernel of a run of operators between two that are kernels of their own, between the views that stay.
class RunFusion {
  public:
    RunFusion(Graph& graph, const std::vector<int>& readers, OpId first, OpId end)
        : graph_(graph), readers_(readers), first_(first), end_(end), computed_(graph.tensors.size(), false) {}

    /// Returns false, and appends nothing, for a run of one kernel or of none that reads and writes.
    bool append_to(std::vector<Op>& ops) {
        std::unordered_map<TensorId, int> read_inside;
        std::vector<Op> before, after;
        std::vector<TensorId> read, written;
        const Op* last = nullptr;
        bool norm = false;
        std::size_t kernels = 0;
        std::vector<std::int64_t> looked_up;
        for (OpId id = first_; id < end_; ++id) {
            const Op& op = graph_.ops[id];
            for (const TensorId input : present(op.inputs)) ++read_inside[input];
            const auto computed = [&](TensorId input) { return input != no_tensor && computed_[input]; };
            const bool inside = std::ranges::any_of(op.inputs, computed);
            if (is_view(op)) {
                (inside ? after : before).push_back(op);
                for (const TensorId output : op.outputs) computed_[output] = inside;
                continue;
            }
            for (const TensorId input : present(op.inputs))
                if (!computed_[input] && std::ranges::count(read, input) == 0) read.push_back(input);
            for (const TensorId output : op.outputs) computed_[output] = true;
            written.insert(written.end(), op.outputs.begin(), op.outputs.end());
            append_lookups(graph_, op, looked_up);
            last = &op;
            norm = norm || is_norm(op);
            ++kernels;
        }
        if (kernels < 2) return false;
        const std::vector<TensorId> read_after = inputs_of_kept(after, read_inside);
        const auto leaves = [&](TensorId tensor) {
            return readers_[tensor] > read_inside[tensor] || std::ranges::count(read_after, tensor) > 0;
        };
        Op fused{.kind = norm ? OpKind::rms_norm : OpKind::pointwise,
                 .name = last->name,
                 .source = "fused",
                 .module = last->module,
                 .inputs = without_parts(read),
                 .attributes = {{"function", std::string(fused_function)}}};
        if (!looked_up.empty()) fused.attributes.push_back({std::string(lookups_attribute), std::move(looked_up)});
        fused.attributes.push_back({std::string(token_kernel), std::string(norm ? "norm" : "gated")});
        std::ranges::copy_if(written, std::back_inserter(fused.outputs), leaves);
        if (fused.inputs.empty() || fused.outputs.empty()) return false;
        std::ranges::move(before, std::back_inserter(ops));
        ops.push_back(std::move(fused));
        std::ranges::move(after, std::back_inserter(ops));
        return true;
    }

  private:
    /// Drops the views that nothing outside the run reads, and returns what the others read.
    std::vector<TensorId> inputs_of_kept(std::vector<Op>& views, std::unordered_map<TensorId, int>& read_inside) const {
        std::vector<TensorId> needed;
        for (std::size_t i = views.size(); i-- > 0;) {
            const bool kept = std::ranges::any_of(views[i].outputs, [&](TensorId output) {
                return readers_[output] > read_inside[output] || std::ranges::count(needed, output) > 0;
            });
            if (kept) {
                needed.insert(needed.end(), views[i].inputs.begin(), views[i].inputs.end());
            } else {
                views.erase(views.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
        return needed;
    }

    /// A kernel that reads a tensor has the parts of it that views cut out.
    std::vector<TensorId> without_parts(const std::vector<TensorId>& read) const {
        std::vector<TensorId> whole;
        for (const TensorId tensor : read) {
            TensorId source = tensor;
            bool part = false;
            while (!part) {
                const OpId producer = graph_.tensors[source].producer;
                if (producer == no_op || !is_view(graph_.ops[producer]) || graph_.ops[producer].inputs.empty()) break;
                source = graph_.ops[producer].inputs[0];
                part = std::ranges::count(read, source) > 0;
            }
            if (!part) whole.push_back(tensor);
        }
        return whole;
    }

    Graph& graph_;
    const std::vector<int>& readers_;
    OpId first_, end_;
    std::vector<bool> computed_;
};

bool is_write_to_cache(const Graph& graph, const Op& op) {
    return op.kind == OpKind::scatter && op.inputs.size() == 2 && op.inputs[0] != no_tensor &&
           graph.tensors[op.inputs[0]].role == TensorRole::input;
}

/// Drops operators whose results are no longer read, `before` counting who did, and what only they read.
void erase_no_longer_read(Graph& graph, const std::vector<int>& before) {
    erase_unread(graph, [&](const Op& op) {
        return std::ranges::any_of(op.outputs, [&](TensorId output) { return before[output] > 0; });
    });
}

bool is_append(const Graph& graph, const Op& op) {
    if (op.kind != OpKind::concat || op.inputs.size() != 2 || op.inputs[0] == no_tensor || op.inputs[1] == no_tensor)
        return false;
    const Tensor& past = graph.tensors[op.inputs[0]];
    return past.role == TensorRole::input && past.shape.size() >= 3 && is_float(past.dtype);
}

void set_causal(Op& attention) {
    std::erase_if(attention.attributes, [](const Attribute& attribute) { return attribute.name == "causal"; });
    attention.attributes.push_back({"causal", std::int64_t{1}});
}

/// Returns the operator that appends to the cache of a tensor that attention reads, skipping copies for each head.
OpId appended_through(const Graph& graph, TensorId tensor) {
    for (OpId id = graph.tensors[tensor].producer; id != no_op; id = graph.tensors[graph.ops[id].inputs[0]].producer) {
        const Op& op = graph.ops[id];
        if (is_append(graph, op) || is_write_to_cache(graph, op)) return id;
        if (!is_view(op) || op.inputs.empty()) return no_op;
    }
    return no_op;
}

/// Returns the linear layer that expands a latent cache to a tensor that attention reads, skipping views.
OpId expansion_of(const Graph& graph, TensorId tensor) {
    const OpId id = graph.tensors[viewed(graph, tensor)].producer;
    const bool expands = id != no_op && graph.ops[id].kind == OpKind::linear;
    return expands && appended_through(graph, graph.ops[id].inputs[0]) != no_op ? id : no_op;
}

/// Returns true if an indexer selects the keys of an attention. Its scores and choice become one operator. Source:
/// DeepGEMM, fp8_mqa_logits; vLLM, sparse_attn_indexer.py; SGLang, nsa_indexer.py.
bool fuse_indexer(Graph& graph, const Op& attention) {
    const TensorId chosen = attention.inputs.size() > 3 ? attention.inputs[3] : no_tensor;
    if (chosen == no_tensor || graph.tensors[chosen].producer == no_op) return false;
    OpId relu = graph.tensors[chosen].producer, weights = relu;
    Op& choice = graph.ops[relu];
    if (choice.kind != OpKind::scatter) return choice.integer(selects_attribute, 0) > 0;
    while (relu > 0 && graph.ops[relu].text("function") != "relu") --relu;
    while (weights > 0 && graph.ops[weights].kind != OpKind::linear) --weights;
    if (relu * weights == 0 || graph.ops[relu].inputs.empty() || graph.tensors[chosen].shape.empty()) return false;
    const OpId product = graph.tensors[graph.ops[relu].inputs[0]].producer;
    if (product == no_op || graph.ops[product].kind != OpKind::matmul) return false;
    const OpId turned = graph.tensors[graph.ops[product].inputs[1]].producer;
    if (turned == no_op || graph.ops[turned].kind != OpKind::transpose) return false;
    const TensorId keys = graph.ops[turned].inputs[0];
    const std::int64_t count = attention.integer(entries_attribute, attention.integer(window_attribute, 0));
    choice.kind = OpKind::attention;
    choice.source = "indexer";
    choice.inputs = {graph.ops[product].inputs[0], keys, keys, no_tensor, graph.ops[weights].outputs[0]};
    choice.attributes = {{"causal", std::int64_t{1}}, {selects_attribute, count}};
    graph.tensors[chosen].shape.back() = graph.expressions.constant(count);
    return count > 0;
}

}  // namespace

/// Lets attention read latent vectors in the cache (latent_attribute) instead of keys and values expanded from them for
/// all tokens in every step. The layer's weights multiply new queries and results instead, with the same operations and
/// traffic as expanding only the new tokens.
/// Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2; vLLM, MLACommonImpl (W_UK, W_UV).
void absorb_latent_expansion(Graph& graph) {
    assign_producers(graph);
    const std::vector<int> readers = count_readers(graph);
    for (Op& attention : graph.ops) {
        if (attention.kind != OpKind::attention || attention.inputs.size() < 3) continue;
        const bool selected = fuse_indexer(graph, attention);
        const OpId joined = graph.tensors[attention.inputs[1]].producer;
        const OpId layer = expansion_of(graph, attention.inputs[2]);
        if (layer == no_op || joined == no_op || graph.ops[joined].kind != OpKind::concat) continue;
        const std::vector<TensorId>& parts = graph.ops[joined].inputs;
        if (parts.size() != 2 || expansion_of(graph, parts[0]) != layer) continue;
        const OpId rotated = appended_through(graph, parts[1]);
        if (rotated == no_op) continue;
        if (attention.inputs.size() > 3 && !selected) continue;
        Op& expansion = graph.ops[layer];
        const TensorId latent = expansion.inputs[0];
        const TensorId fresh = graph.ops[appended_through(graph, latent)].inputs[1];
        expansion.inputs[0] = fresh;
        const TensorId expanded = expansion.outputs[0];
        const Expression width = graph.tensors[expanded].shape.back();
        graph.tensors[expanded].shape = graph.tensors[fresh].shape;
        graph.tensors[expanded].shape.back() = width;
        const std::vector<TensorId> given = std::move(attention.inputs);
        attention.inputs = {given[0], latent, graph.ops[rotated].outputs[0], no_tensor, expanded};
        attention.attributes.push_back({std::string(latent_attribute), std::int64_t{selected ? 2 : 1}});
        if (selected) set_causal(attention);
        if (selected) attention.inputs.push_back(given[3]);
    }
    erase_no_longer_read(graph, readers);
}

std::optional<Graph> without_encoder(const Graph& graph) {
    const auto grows = [&](const Tensor& tensor) {
        return std::ranges::any_of(tensor.shape, [&](Expression size) {
            const auto grows_with = [](const std::string& symbol) { return symbol != "batch"; };
            return std::ranges::any_of(graph.expressions.symbols_of(size), grows_with);
        });
    };
    enum class Source : std::uint8_t { none, data, text };  // what a tensor depends on
    std::vector<Source> source(graph.tensors.size(), Source::none);
    for (const TensorId input : graph.inputs) {
        const Tensor& tensor = graph.tensors[input];
        source[input] = is_float(tensor.dtype) && !grows(tensor) ? Source::data : Source::text;
    }
    std::vector<bool> computed(graph.ops.size(), false), crosses(graph.tensors.size(), false);
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const Op& op = graph.ops[id];
        Source most = Source::none;
        for (const TensorId input : present(op.inputs)) most = std::max(most, source[input]);
        for (const TensorId output : op.outputs) source[output] = most;
        computed[id] = most == Source::data;
        if (computed[id]) continue;
        for (const TensorId input : present(op.inputs))
            crosses[input] = crosses[input] || source[input] == Source::data;
    }
    if (std::ranges::count(computed, true) == 0) return std::nullopt;
    Graph steps = graph;
    std::erase_if(steps.inputs, [&](TensorId input) { return source[input] == Source::data; });
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        if (!crosses[id]) continue;
        steps.tensors[id].role = TensorRole::input;
        steps.tensors[id].name = "past_key_values.encoder." + steps.tensors[id].name;
        steps.inputs.push_back(id);
    }
    erase(steps, computed);
    return steps;
}

/// Lets attention write new keys and values into the pages of a cache instead of concatenating them with the old ones.
/// Source: vLLM, reshape_and_cache; TensorRT-LLM, paged KV cache of the attention plugin.
void append_to_pages(Graph& graph) {
    assign_producers(graph);
    const std::vector<int> readers = count_readers(graph);
    for (const Op& op : graph.ops)
        if (is_append(graph, op)) graph.tensors[op.inputs[0]].shape = graph.tensors[op.outputs[0]].shape;
    std::vector<bool> removed(graph.ops.size(), false);
    for (Op& op : graph.ops) {
        if (op.kind != OpKind::attention || op.inputs.size() < 3) continue;
        op.inputs.resize(std::max<std::size_t>(4, op.inputs.size()), no_tensor);
        if (op.inputs[3] != no_tensor && differs_between_queries(graph, op.inputs[3])) set_causal(op);
        if (fuse_indexer(graph, op)) op.inputs.push_back(op.inputs[3]);
        op.inputs[3] = no_tensor;  // the mask: an engine knows how long each sequence is
        for (const std::size_t operand : {std::size_t{1}, std::size_t{2}}) {
            const OpId producer = graph.tensors[op.inputs[operand]].producer;
            if (producer == no_op) continue;
            const Op& append = graph.ops[producer];
            if (!is_append(graph, append) && !is_write_to_cache(graph, append)) continue;
            op.inputs[operand] = append.inputs[0];
            op.inputs.push_back(append.inputs[1]);
            removed[producer] = true;
        }
        if (op.inputs.size() > 4) op.attributes.push_back({std::string(paged), std::int64_t{1}});
    }
    erase(graph, removed);
    erase_no_longer_read(graph, readers);
}

/// Moves an activation to the product that alone reads it, past the layer of the other half, so that both are one
/// kernel. Source: llama.cpp, ggml_swiglu_split.
void defer_activations(Graph& graph) {
    constexpr std::size_t reach = 64;  // operators, so that the search is linear
    const std::vector<int> readers = count_readers(graph);
    for (std::size_t id = graph.ops.size(); id-- > 0;) {
        const Op& op = graph.ops[id];
        if (op.kind != OpKind::pointwise || op.inputs.size() != 1 || readers[op.outputs[0]] != 1) continue;
        const auto first = graph.ops.begin() + std::ptrdiff_t(id),
                   last = first + std::ptrdiff_t(std::min(reach, graph.ops.size() - id));
        const auto reader = std::find_if(first + 1, last, [value = op.outputs[0]](const Op& later) {
            return later.kind == OpKind::pointwise && std::ranges::count(later.inputs, value) > 0;
        });
        if (reader != last) std::rotate(first, first + 1, reader);
    }
}

/// Fuses the operators between two contractions into one kernel: residual sum and norm, rotary embedding, activation
/// and product, the choice of experts. Views are free.
/// Source: vLLM, csrc (fused_add_rms_norm, rotary_embedding, silu_and_mul, topk_softmax); Inductor's scheduler.
void fuse_between_contractions(Graph& graph) {
    assign_producers(graph);
    const std::vector<int> readers = count_readers(graph);
    std::vector<Op> ops;
    ops.reserve(graph.ops.size());
    const auto belongs = [&](const Op& op) { return is_light(graph, op) || is_view(op); };
    for (OpId id = 0, end = 0; id < graph.ops.size(); id = end) {
        while (end < graph.ops.size() && belongs(graph.ops[end])) ++end;
        if (end == id) {  // of operators outside of runs, a later run only asks for the kind
            ops.push_back(std::move(graph.ops[end++]));
        } else if (!RunFusion(graph, readers, id, end).append_to(ops)) {
            ops.insert(ops.end(), graph.ops.begin() + id, graph.ops.begin() + end);
        }
    }
    graph.ops = std::move(ops);
    assign_producers(graph);
}

}  // namespace ftax::rewrites
