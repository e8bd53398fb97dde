#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Shape (and optionally type) the user gives for a graph input: "images" → "4x3x224x224" or "batchx3x224x224"; for a
/// TorchScript parameter that is a number, its value.
struct InputShape {
    std::string input;              ///< empty: the next input of those that are not named
    std::vector<std::string> dims;  ///< integers or expressions of symbols
    std::optional<DType> dtype;
    std::string value = {};  ///< "5", "0.5", "true" or a symbol; empty for a tensor
};

/// How a decoder keeps the keys and values of earlier tokens, where the model is built from its config.json.
enum class CacheKind : std::uint8_t {
    dynamic,  ///< grows: each step joins old and new tokens in a new tensor (transformers' DynamicCache)
    fixed,    ///< of `cache` tokens from the start: a step writes its own, attention reads all (StaticCache)
    paged,    ///< in pages handed out as it grows: a step writes its own tokens, attention reads those there are
};
[[nodiscard]] std::string_view name_of(CacheKind kind) noexcept;  ///< "dynamic", "static", "paged"
/// Parses what name_of prints.
[[nodiscard]] std::optional<CacheKind> cache_kind_from_name(std::string_view name) noexcept;

struct CacheOptions {
    CacheKind kind = CacheKind::dynamic;
    DType type = DType::unknown;  ///< of keys and values; unknown: as the model's weights
};

/// Limits guard time and memory against hostile files; options say what to do with what is not modelled.
struct ImportOptions {
    std::vector<InputShape> input_shapes;             ///< overrides or completes what the file says
    std::map<std::string, std::int64_t> trip_counts;  ///< loops by name
    std::map<std::string, bool> branches;             ///< Ifs by name: true takes the then branch
    /// Nodes of ONNX files whose number of results depends on data (NonZero, NonMaxSuppression), each a symbol that
    /// bindings give a value; other characters than letters and digits are written _.
    std::vector<std::string> data_sizes;
    std::uint64_t max_bytes = 16ull << 30;  ///< of the file
    /// Operators after inlining, and steps of a program between them; each takes about 1 KiB (inlined 2 KiB) and up to
    /// 6 µs while imported.
    std::uint64_t max_nodes = 250'000;
    CacheOptions cache;                 ///< of models built from their config.json
    int tensor_parallel = 1;            ///< cards that share each layer of such a model; the graph is one card's
    int data_parallel = 1;              ///< groups of such cards with tokens of their own, which share the experts
    int expert_parallel = 1;            ///< parts of all these cards, each with experts of its own
    int last_layers = 0;                ///< only so many layers, the last, of such a model; 0: all
    bool strict = false;                ///< turn warnings about unknown versions into errors
    bool vary_batch = false;            ///< let the batch of a file with a fixed one vary, where it can be followed
    bool unsupported_is_error = false;  ///< an operator without a rule is an error, not memory-bound
};

/// Loads a model: a file (.onnx, .pt2, .pt, .txt; told apart by content, not by extension) or a zoo name ("bert",
/// "resnet50"), optionally written `zoo:bert`. Throws Error with code model, limit or refused; usage when neither a
/// file nor a zoo model of that name exists (the message lists near names).
[[nodiscard]] Graph load_graph(const std::string& model, const ImportOptions& options = {});

/// A model of the embedded zoo.
struct ZooModel {
    std::string name;
    std::string source;                ///< "torchvision:resnet50", "meta-llama/Meta-Llama-3-8B"
    std::string note;                  ///< what the name does not say; empty for most
    std::vector<std::string> aliases;  ///< other names for it
};

/// The embedded zoo, sorted by name.
[[nodiscard]] std::vector<ZooModel> zoo_models();
[[nodiscard]] std::vector<std::string> zoo_names();
/// The zoo's own name of a model by its name, an alias or its name on Hugging Face, with or without the owner; case,
/// hyphens and underscores do not count. nullopt for none.
[[nodiscard]] std::optional<std::string> zoo_name(std::string_view name);

}  // namespace ftax
