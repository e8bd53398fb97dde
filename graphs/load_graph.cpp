#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/aten/aten_call.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/ir/control_flow.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "graphs/pt2/archive.hpp"

namespace ftax {
namespace {

constexpr std::string_view zoo_folder = "graphs/zoo/";
constexpr std::string_view zoo_suffix = ".txt";
constexpr std::string_view config_folder = "graphs/zoo/configs/";
constexpr std::string_view config_suffix = ".json";
constexpr std::array<std::string_view, 3> cache_names{"dynamic", "static", "paged"};

/// Returns the part of a path between folder and suffix; empty if they do not match.
std::string_view stem_of(std::string_view path, std::string_view folder, std::string_view suffix) {
    if (!path.starts_with(folder) || !path.ends_with(suffix)) return {};
    path.remove_prefix(folder.size());
    return path.substr(0, path.size() - suffix.size());
}

/// Name of a zoo model's file: a text graph or a config.json; empty for other embedded files.
std::string_view name_of_file(std::string_view path) {
    const std::string_view config = stem_of(path, config_folder, config_suffix);
    return config.empty() ? stem_of(path, zoo_folder, zoo_suffix) : config;
}

Graph load_config(std::string_view text, const std::string& path, const ImportOptions& options) {
    const std::filesystem::path file(path);
    const std::filesystem::path folder = file.parent_path().filename();
    const bool named_by_folder = file.filename() == "config.json" && !folder.empty() && folder != "." && folder != "..";
    return import_config(text, path, named_by_folder ? folder.string() : file.stem().string(), options);
}

/// What a folder holds instead of a model's config.json, for a message.
std::string models_in(const std::string& folder) {
    bool weights = false;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const std::string suffix = entry.path().extension().string();
        if (suffix == ".onnx" || suffix == ".pt2" || suffix == ".gguf")
            return fmt::format("; give the file {}", entry.path().string());
        weights = weights || suffix == ".safetensors" || suffix == ".bin";
    }
    return weights ? "; it holds weights alone: add the config.json of the model" : "";
}

[[noreturn]] void fail_unknown(std::string_view name) {
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored))
        throw_error(ErrorCode::usage, "{}: a model is a file, this is a folder without config.json{}", name,
                    models_in(std::string(name)));
    if (std::filesystem::exists(name, ignored)) static_cast<void>(open_file(std::string(name)));
    const std::vector<std::string> near = near_names(name, zoo_names());
    constexpr std::array<std::string_view, 6> suffixes{".onnx", ".pt2", ".pt", ".pth", ".txt", ".json"};
    const bool is_path = std::ranges::any_of(suffixes, [&](auto suffix) { return name.ends_with(suffix); });
    const bool is_hub_id =
        !is_path && std::ranges::count(name, '/') == 1 && !name.starts_with('/') && !name.ends_with('/');
    throw_error(ErrorCode::usage, "no file and no zoo model '{}'{}{} (`ftax models` lists all){}", name,
                near.empty() ? "" : "; did you mean ", fmt::join(near, " or "),
                is_path ? ""
                : is_hub_id
                    ? fmt::format("; give the file https://huggingface.co/{}/raw/main/config.json, stored here", name)
                    : "; give the config.json of a model on Hugging Face, or export the model (docs/exporting.md)");
}

Graph load_embedded(const EmbeddedFile& file, const ImportOptions& options) {
    const std::string origin = fmt::format("zoo:{}", name_of_file(file.path));
    if (file.path.ends_with(config_suffix))
        return import_config(file.content, origin, std::string(name_of_file(file.path)), options);
    return parse_text_graph(file.content, origin);
}

Graph load_zoo(std::string_view name, const ImportOptions& options) {
    if (name.empty()) throw_error(ErrorCode::usage, "the zoo holds {}", fmt::join(zoo_names(), ", "));
    const std::string known = zoo_name(name).value_or("");
    for (const EmbeddedFile& file : embedded_files())
        if (!known.empty() && name_of_file(file.path) == known) return load_embedded(file, options);
    fail_unknown(name);
}

bool holds_torchscript(const std::string& path, const ImportOptions& options) {
    try {
        return Archive(path, options.max_bytes).is_torchscript();
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", path, error.what());
    }
}

/// `keep_batch`: see import_onnx().
Graph load_file(const std::string& path, const ImportOptions& options, bool keep_batch) {
    const MappedFile file(path);
    const FileFormat format = format_of(file.bytes());
    if (format == FileFormat::gguf) return load_config(config_of_gguf(file.bytes(), path), path, options);
    if (format == FileFormat::weights) {
        const std::string config = (std::filesystem::path(path).parent_path() / "config.json").string();
        if (std::filesystem::exists(config)) return load_config(read_file(config), config, options);
    }
    if (file.bytes().size() > options.max_bytes)
        throw_error(ErrorCode::limit, "{}: {} bytes, more than {} (--max-bytes)", path, file.bytes().size(),
                    options.max_bytes);
    if (format == FileFormat::zip)
        return holds_torchscript(path, options) ? import_torchscript(path, options) : import_pt2(path, options);
    if (format == FileFormat::onnx)
        return import_onnx(
            file.bytes(), path, options, [&] { file.release(); }, keep_batch);
    if (format == FileFormat::json) return load_config(file.bytes(), path, options);
    if (format == FileFormat::text) return parse_text_graph(file.bytes(), path);
    throw_error(ErrorCode::model, "{}: byte 0: the file is {}", path, description_of(format));
}

void vary_fixed_batch(Graph& graph) {
    const std::vector<std::string>& symbols = graph.expressions.symbols();
    if (std::ranges::find(symbols, "batch") != symbols.end()) return;
    try {
        vary_batch(graph, graph.expressions.symbol("batch"));
        graph.warnings.push_back("the file is for one batch size; its leading dimension was made to vary");
    } catch (const Error& error) {
        graph.warnings.push_back(error.what());
    }
}

Graph read_graph(const std::string& model, const ImportOptions& options, bool keep_batch) {
    constexpr std::string_view zoo_prefix = "zoo:";
    std::error_code ignored;
    const std::string config = (std::filesystem::path(model) / "config.json").string();
    if (model.starts_with(zoo_prefix)) return load_zoo(std::string_view(model).substr(zoo_prefix.size()), options);
    if (std::filesystem::is_regular_file(model, ignored)) return load_file(model, options, keep_batch);
    if (std::filesystem::is_regular_file(config, ignored)) return load_file(config, options, keep_batch);
    if (std::filesystem::is_regular_file(std::filesystem::path(model) / "model_index.json", ignored))
        return import_pipeline(model, options);
    return load_zoo(model, options);
}

}  // namespace

std::optional<CacheKind> cache_kind_from_name(std::string_view name) noexcept {
    return enumerator_named<CacheKind>(cache_names, name);
}

std::vector<ZooModel> zoo_models() {
    std::map<std::string, ZooModel> models;
    for (const EmbeddedFile& file : embedded_files()) {
        const std::string name(name_of_file(file.path));
        if (name.empty()) continue;
        models[name].name = name;
        if (file.path.ends_with(config_suffix)) models[name].source = hub_name(file.content, std::string(file.path));
    }
    for_each_data_row(embedded_text("graphs/zoo/models.tsv"), [&](DataRow row) {
        if (const auto model = models.find(std::string(row.text())); model != models.end())
            model->second.source = row.text();
    });
    for_each_data_row(embedded_text("graphs/zoo/names.tsv"), [&](DataRow row) {
        ZooModel& model = models.at(std::string(row.text()));
        model.note = row.text();
        for (DataRow aliases(row.text()); !aliases.ends();) model.aliases.emplace_back(aliases.text(','));
    });
    return mapped(models, [](auto& named) { return std::move(named.second); });
}

std::vector<std::string> zoo_names() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : embedded_files())
        if (const std::string_view name = name_of_file(file.path); !name.empty()) names.emplace_back(name);
    std::ranges::sort(names);
    return names;
}

std::optional<std::string> zoo_name(std::string_view name) {
    if (std::ranges::count(zoo_names(), name) > 0) return std::string(name);
    const std::string wanted = normalized_name(name);
    for (const ZooModel& model : zoo_models()) {
        std::vector<std::string> names = model.aliases;
        names.insert(names.end(), {model.name, model.source, model.source.substr(model.source.find('/') + 1)});
        for (const std::string& known : names)
            if (!wanted.empty() && normalized_name(known) == wanted) return model.name;
    }
    return std::nullopt;
}

Graph load_graph(const std::string& model, const ImportOptions& options) {
    Graph graph = read_graph(model, options, true);
    if (graph.ops.size() > options.max_nodes) check_room(graph, options.max_nodes, model);
    if (options.tensor_parallel * options.data_parallel * options.expert_parallel > 1 && graph.format != "config")
        throw_error(ErrorCode::usage, "{} cannot be split over {} cards: only models built from a config.json can",
                    graph.name, options.tensor_parallel * options.data_parallel);
    // The importer of TorchScript has taken them: such a file has no shapes of its own.
    if (graph.format != "torchscript") {
        try {
            apply_input_shapes(graph, options.input_shapes);
        } catch (const Error&) {
            if (graph.format != "onnx") throw;
            // A leading dimension that is no batch, of tokens say: operators may still be right for another size.
            graph = read_graph(model, options, false);
            apply_input_shapes(graph, options.input_shapes);
        }
    }
    require_names(graph, options);
    if (options.vary_batch) vary_fixed_batch(graph);
    // Graphs that ftax builds itself hold no sizes of an export.
    if (graph.format != "config" && graph.format != "builder") find_size_checks(graph);
    return graph;
}

}  // namespace ftax
