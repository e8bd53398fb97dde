#include <fmt/format.h>

#include <filesystem>

#include "ftax/graph_builder.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/aten/aten_call.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/ir/control_flow.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/splice.hpp"
#include "graphs/loading.hpp"

namespace ftax {
namespace {

using Counts = std::vector<std::int64_t>;
using Tensors = std::vector<TensorId>;
using nlohmann::json;

struct PartFile {
    explicit PartFile(const std::string& path)
        : document(parse_json(read_file(path), path, ErrorCode::model)), root(document, path, ErrorCode::model) {
        if (!document.is_object()) root.fail("is not an object");
    }

    [[nodiscard]] std::int64_t count(const char* field) const { return root[field].positive_count(); }
    [[nodiscard]] std::string text(const char* field) const { return std::to_string(count(field)); }

    /// Throws Error{model} naming the field, with its value.
    void require(bool holds, const std::string& field, std::string_view what) const {
        if (!holds) root[field].fail(fmt::format("{}, not {}", what, document[field].dump()));
    }
    /// The same for fields that are there with other values than these.
    void require(const std::string& values) const {
        const json only = json::parse(values);
        for (const auto& [field, value] : only.items())
            require(document.value(field, value) == value, field, "ftax reads " + value.dump());
    }

    [[nodiscard]] std::vector<JsonField> entries(const char* field, std::size_t blocks) const {
        std::vector<JsonField> entries = root[field].elements();
        require(!entries.empty() && entries.size() == blocks, field, fmt::format("must have {} entries", blocks));
        return entries;
    }
    /// A number for each block; the field may hold one for all.
    [[nodiscard]] Counts counts(const char* field, std::size_t blocks, int fallback) const {
        const json value = document.value(field, json());
        if (!value.is_array()) return Counts(blocks, value.is_null() ? fallback : count(field));
        return mapped(entries(field, blocks),
                      [](const JsonField& entry) { return std::int64_t{entry.positive_count()}; });
    }

    json document;
    JsonField root;
};

/// Whether a block attends to the text.
bool crosses(const JsonField& type, const std::string& plain) {
    const std::string name = type.text();
    if (name != plain && name != "CrossAttn" + plain) type.fail(fmt::format("must be {0} or CrossAttn{0}", plain));
    return name != plain;
}

class Pipeline : public GraphBuilder {
  public:
    Pipeline(std::string name, const ImportOptions& options) : GraphBuilder(std::move(name)), options_(options) {
        for (DataRow texts(embedded_text("graphs/config/diffusers.txt")); !texts.ends();) {
            Graph block = parse_text_graph(texts.text('~'), "diffusers.txt");
            blocks.emplace(block.name, std::move(block));
        }
    }

    /// Appends a block as the module `path`. A symbol of the block is a dimension of an input or one of `sizes`; a
    /// module that runs again reads the same weights.
    TensorId append(const std::string& block, const std::string& path, const Tensors& inputs,
                    const ShapeBindings& sizes = {}) {
        return append_all(block, path, inputs, sizes).front();
    }
    /// The same for a block with several results.
    Tensors append_all(const std::string& block, const std::string& path, const Tensors& inputs,
                       const ShapeBindings& sizes) {
        const Graph& part = blocks.at(block);
        Graph& whole = graph();
        if (whole.ops.size() > options_.max_nodes) check_room(whole, options_.max_nodes, whole.name);
        std::map<std::string, Expression, std::less<>> replace;
        for (const auto& [symbol, size] : sizes) replace[symbol] = whole.expressions.constant(size);
        Tensors ids(part.tensors.size(), no_tensor);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            name_sizes(part, i, ids[part.inputs[i]] = inputs[i], whole, replace);
        const auto is_weight = [&](std::size_t i) { return part.tensors[i].role == TensorRole::weight; };
        const auto place_of = [&](std::size_t i) { return path_below(path, part.tensors[i].name); };
        for (std::size_t i = 0; i < ids.size(); ++i)
            if (is_weight(i) && weights_.contains(place_of(i))) ids[i] = weights_[place_of(i)];
        splice(whole, part, ids, path, replace, half_type_of_weights(part), dtype);  // other f32 stays f32
        for (std::size_t i = 0; i < ids.size(); ++i)
            if (is_weight(i)) weights_.emplace(place_of(i), ids[i]);
        return mapped(part.outputs, [&](TensorId id) { return ids[id]; });
    }

    /// UNet2DConditionModel; `summary` of the text for Stable Diffusion XL.
    TensorId denoise(const PartFile& file, TensorId latents, TensorId text, TensorId summary) {
        file.require(R"({"act_fn": "silu", "norm_num_groups": 32, "num_attention_heads": null, "class_embed_type": null,
            "encoder_hid_dim_type": null, "dual_cross_attention": false, "only_cross_attention": false,
            "mid_block_type": "UNetMidBlock2DCrossAttn", "resnet_time_scale_shift": "default"})");
        const std::size_t count = file.root["block_out_channels"].elements().size(), last = count - 1;
        const Counts widths = file.counts("block_out_channels", count, 0);
        const Counts heads = file.counts("attention_head_dim", count, 8);  // what diffusers calls their width
        const Counts depths = file.counts("transformer_layers_per_block", count, 1);
        const Counts layers = file.counts("layers_per_block", count, 2);
        const auto down = file.entries("down_block_types", count), up = file.entries("up_block_types", count);
        const std::string linear = file.document.value("use_linear_projection", json()) == true ? "_linear" : "";
        TensorId time = append("time", "unet", {latents}, {{"width", widths[0]}, {"embedding", 4 * widths[0]}});
        if (summary != no_tensor)
            time = append("summary", "unet", {time, summary}, {{"waves", file.count("addition_time_embed_dim")}});
        TensorId x = append("conv", "unet.conv_in", {latents}, {{"out", widths[0]}});
        Tensors skipped{x};
        const auto layer = [&](const std::string& at, std::size_t block, std::int64_t i, bool crosses) {
            const bool keeps = shape(x)[1] == graph().expressions.constant(widths[block]);
            x = append(keeps ? "residual" : "residual_shortcut", fmt::format("{}.resnets.{}", at, i), {x, time},
                       {{"out", widths[block]}});
            if (!crosses) return;
            file.require(widths[block] % heads[block] == 0, "attention_head_dim", "must divide the channels");
            const std::string path = fmt::format("{}.attentions.{}", at, i);
            TensorId h = append("enter" + linear, path, {x});
            for (std::int64_t j = 0; j < depths[block]; ++j)
                h = append("transformer_block", fmt::format("{}.{}", path, j), {h, text}, {{"heads", heads[block]}});
            x = append("leave" + linear, path, {h, x});
        };
        for (std::size_t i = 0; i < count; ++i) {
            const std::string at = fmt::format("unet.down_blocks.{}", i);
            for (std::int64_t j = 0; j < layers[i]; ++j) {
                layer(at, i, j, crosses(down[i], "DownBlock2D"));
                skipped.push_back(x);
            }
            if (i < last) skipped.push_back(x = append("downsample", at, {x}, {{"out", widths[i]}}));
        }
        layer("unet.mid_block", last, 0, true);
        layer("unet.mid_block", last, 1, false);
        for (std::size_t i = 0; i < count; ++i) {
            const std::string at = fmt::format("unet.up_blocks.{}", i);
            for (std::int64_t j = 0; j <= layers[last - i]; ++j) {
                x = append("join", at, {x, skipped.back()});
                skipped.pop_back();
                layer(at, last - i, j, crosses(up[i], "UpBlock2D"));
            }
            if (i < last) x = append("upsample", at, {x});
        }
        return append("head", "unet", {x}, {{"out", file.count("out_channels")}});
    }

    /// FluxTransformer2DModel (`kind` flux) or SD3Transformer2DModel (sd3).
    TensorId transform(const std::string& kind, const PartFile& file, TensorId latents, TensorId text, TensorId pooled,
                       const ShapeBindings& sizes) {
        const bool guided = file.document.value("guidance_embeds", json()) == true, flux = kind == "flux";
        file.require(flux
                         ? R"({"num_attention_heads": 24, "attention_head_dim": 128, "in_channels": 64, "patch_size": 1,
                                "joint_attention_dim": 4096, "pooled_projection_dim": 768})"
                         : R"({"attention_head_dim": 64, "in_channels": 16, "patch_size": 2,
                                "joint_attention_dim": 4096, "pooled_projection_dim": 2048})");
        const json norm = file.document.value("qk_norm", json()),
                   dual = file.document.value("dual_attention_layers", json());
        file.require(norm.is_null() || (norm == "rms_norm" && !flux), "qk_norm", "ftax reads rms_norm, of SD3");
        file.require(dual.empty() || !norm.is_null(), "dual_attention_layers",
                     "ftax reads those of layers with qk_norm");
        const std::string norms = norm.is_null() ? "" : "_rms_norm";
        Tensors state = append_all(kind + (guided ? "_guided" : ""), "transformer", {latents, text, pooled}, sizes);
        const auto layer = [&](const std::string& block, const char* path, std::int64_t i) {
            const Tensors result = append_all(kind + block, fmt::format("transformer.{}.{}", path, i), state, sizes);
            std::ranges::copy(result, state.begin());
        };
        const std::int64_t layers = file.count("num_layers"), last = flux ? -1 : layers - 1;
        for (std::int64_t i = 0; i < layers; ++i) {
            const bool twice = std::ranges::count(dual, json(i)) > 0;
            layer((i == last ? "_last" : twice ? "_dual" : "_block") + norms, "transformer_blocks", i);
        }
        for (std::int64_t i = 0; flux && i < file.count("num_single_layers"); ++i)
            layer("_single", "single_transformer_blocks", i);
        return append(kind + "_head", "transformer", {state[0], state[2]}, sizes);
    }

    TensorId encode(const PartFile& file, const std::string& part, TensorId ids) {
        file.require(R"({"model_type": "t5", "d_model": 4096, "d_ff": 10240, "num_heads": 64, "d_kv": 64,
            "feed_forward_proj": "gated-gelu", "vocab_size": 32128})");
        Tensors state = append_all("t5", part, {ids}, {});
        for (std::int64_t i = 1; i < file.count("num_layers"); ++i)
            state[0] = append("t5_block", fmt::format("{}.encoder.block.{}", part, i), state);
        return append("t5_norm", part, {state[0]});
    }

    std::map<std::string, Graph> blocks;  ///< and text encoders, by name
    DType dtype = DType::f32;             ///< of what the parts have in f32

  private:
    const ImportOptions& options_;
    std::map<std::string, TensorId> weights_;
};

/// What sets a pipeline apart. Sources: diffusers 0.35, pipeline_stable_diffusion.py, pipeline_stable_diffusion_xl.py,
/// pipeline_stable_diffusion_3.py, pipeline_flux.py.
struct Kind {
    std::string_view pipeline;    ///< _class_name of model_index.json
    std::string network, blocks;  ///< the network that denoises: its class, and what its blocks' names begin with
    std::size_t encoders;         ///< of the text
    std::int64_t steps, words;    ///< default steps, and tokens of T5, the last encoder; 0: there is none

    /// Whether each step denoises every image twice: for the prompt and the negative one, encoded one by one.
    [[nodiscard]] bool is_guided() const { return blocks != "flux"; }
};
const Kind kinds[] = {{"StableDiffusionPipeline", "UNet2DConditionModel", "", 1, 50, 0},
                      {"StableDiffusionXLPipeline", "UNet2DConditionModel", "", 2, 50, 0},
                      {"StableDiffusion3Pipeline", "SD3Transformer2DModel", "sd3", 3, 28, 256},
                      {"FluxPipeline", "FluxTransformer2DModel", "flux", 2, 28, 512}};

/// The text that the denoising network reads, and its summary; no_tensor where there is none.
std::pair<TensorId, TensorId> encode(Pipeline& net, const std::string& root, const PartFile& index, const Kind& kind,
                                     const std::string& prompt, const ImportOptions& options) {
    TensorId ids = no_tensor, text = no_tensor, summary = no_tensor;
    for (std::size_t i = 1; i <= kind.encoders; ++i) {
        const std::string number = i == 1 ? "" : fmt::format("_{}", i);
        const std::string part = "text_encoder" + number, path = root + part + "/config.json";
        const std::string type = index.entries(part.c_str(), 2).back().text();
        const PartFile file(path);
        if (kind.words > 0 && i == kind.encoders) {
            const TensorId words =
                net.encode(file, part, net.input(prompt + number, {"batch", std::to_string(kind.words)}, DType::i64));
            text = kind.is_guided() ? net.append("join_words", part, {text, words}) : words;
            continue;
        }
        file.require(R"({"model_type": "clip_text_model"})");
        net.dtype = half_type_of_weights(net.blocks[part] = import_config(file.document.dump(), path, part, options));
        if (ids == no_tensor) ids = net.input(prompt, {"batch", file.text("max_position_embeddings")}, DType::i64);
        TensorId pooled = net.append(part, part, {ids});
        const TensorId hidden = net.graph().ops.back().inputs[0];
        text = text == no_tensor ? hidden : net.append("join_width", part, {text, hidden});
        const bool projects = type == "CLIPTextModelWithProjection";
        if (projects) pooled = net.append("project", part, {pooled}, {{"out", file.count("projection_dim")}});
        if (projects && summary != no_tensor) pooled = net.append("join_summaries", part, {summary, pooled});
        if (projects || kind.words > 0) summary = pooled;
    }
    return {text, summary};
}

}  // namespace

Graph import_pipeline(const std::string& folder, const ImportOptions& options) {
    const std::string root = folder + "/";
    const PartFile index(root + "model_index.json");
    Pipeline net(std::filesystem::path(root).parent_path().filename().string(), options);
    const auto* kind = std::ranges::find(kinds, index.root["_class_name"].text(), &Kind::pipeline);
    index.require(kind != std::end(kinds), "_class_name", "ftax reads StableDiffusion, XL, 3 and Flux pipelines");
    const bool flux = kind->blocks == "flux";
    const std::string part = kind->blocks.empty() ? "unet" : "transformer";
    const std::string scheduler = index.entries("scheduler", 2).back().text() + (flux ? "_packed" : "");
    index.require(scheduler.find("Scheduler") != std::string::npos && net.blocks.contains(scheduler), "scheduler",
                  "ftax knows the steps of other schedulers");
    index.require(
        fmt::format(R"({{"{}": ["diffusers", "{}"], "vae": ["diffusers", "AutoencoderKL"]}})", part, kind->network));
    const PartFile network(root + part + "/config.json"), vae(root + "vae/config.json");
    auto [text, summary] = encode(net, root, index, *kind, kind->is_guided() ? "negative_prompt" : "prompt", options);
    if (kind->is_guided()) {
        const auto prompt = encode(net, root, index, *kind, "prompt", options);
        text = net.append("twice", "scheduler", {text, prompt.first});
        if (summary != no_tensor) summary = net.append("twice_summary", "scheduler", {summary, prompt.second});
    }
    const std::int64_t side = flux ? 128 : network.count("sample_size"), tokens = side / 2 * (side / 2);
    ShapeBindings sizes{{"h", side}, {"w", side}, {"tokens", tokens}};
    if (kind->blocks == "sd3")
        sizes.insert({{"heads", network.count("num_attention_heads")}, {"most", network.count("pos_embed_max_size")}});
    const std::string channels = network.text("in_channels"), height = std::to_string(side);
    TensorId latents = flux ? net.input("latents", {"batch", std::to_string(tokens), channels}, net.dtype)
                            : net.input("latents", {"batch", channels, height, height}, net.dtype);
    const std::int64_t steps = passes_of(net.graph(), options, "steps", kind->steps);
    const std::int64_t passes = scheduler.starts_with("Heun") ? 2 * steps - 1 : steps + scheduler.starts_with("PNDM");
    for (std::int64_t pass = 0; pass < passes; ++pass) {
        const TensorId noisy = kind->is_guided() ? net.append("double", "scheduler", {latents}) : latents;
        TensorId noise = kind->blocks.empty() ? net.denoise(network, noisy, text, summary)
                                              : net.transform(kind->blocks, network, noisy, text, summary, sizes);
        if (kind->is_guided()) noise = net.append("guide", "scheduler", {noise});
        latents = net.append(scheduler, "scheduler", {noise, latents});
    }
    if (kind->pipeline.find("XL") != std::string_view::npos && vae.document.value("force_upcast", json()) != false)
        net.dtype = DType::f32;
    static_cast<void>(vae.entries("block_out_channels", 4));  // is there
    vae.require(R"({"act_fn": "silu", "norm_num_groups": 32, "block_out_channels": [128, 256, 512, 512],
        "layers_per_block": 2, "out_channels": 3, "mid_block_add_attention": true})");
    if (flux) latents = net.append("unpack", "vae", {latents}, {{"h", side / 2}, {"w", side / 2}});
    latents = net.append(vae.document.value("use_post_quant_conv", json()) != false ? "post_quant" : "shift", "vae",
                         {latents});
    Graph graph = net.finish({net.append("AutoencoderKL", "vae", {latents})});
    graph.format = "diffusers";
    shorten_names(graph);
    if (index.document.value("safety_checker", json()).is_array())
        graph.warnings.emplace_back("the safety checker is not counted");
    return graph;
}

}  // namespace ftax
