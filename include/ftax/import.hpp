#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Shape, and optionally type, that the user gives for a graph input: "images" → "4x3x224x224" or "batchx3x224x224";
/// for a numeric TorchScript parameter, its value.
struct InputShape {
    std::string input;              ///< empty: the next unnamed input
    std::vector<std::string> dims;  ///< integers or expressions of symbols
    std::optional<DType> dtype;
    std::string value = {};  ///< "5", "0.5", "true" or a symbol; empty for a tensor
};

/// KV cache layout of a decoder built from its config.json.
enum class CacheKind : std::uint8_t {
    dynamic,  ///< grows: each step concatenates old and new tokens into a new tensor (transformers' DynamicCache)
    fixed,    ///< `cache` tokens from the start: a step writes its tokens in place, attention reads all (StaticCache)
    paged,    ///< pages allocated on demand: a step writes its own tokens, attention reads the cached ones
};
/// Parses "dynamic", "static" or "paged".
[[nodiscard]] std::optional<CacheKind> cache_kind_from_name(std::string_view name) noexcept;

struct CacheOptions {
    CacheKind kind = CacheKind::dynamic;
    DType type = DType::unknown;  ///< type of keys and values; unknown: type of the weights
};

/// Import options. The limits guard time and memory against hostile files.
struct ImportOptions {
    std::vector<InputShape> input_shapes;             ///< overrides or completes the file's shapes
    std::map<std::string, std::int64_t> trip_counts;  ///< iterations of loops, by name
    std::map<std::string, bool> branches;             ///< Ifs by name; true takes the then branch
    /// ONNX nodes with a data-dependent number of results (NonZero, NonMaxSuppression); each becomes a symbol to be
    /// bound. In the symbol's name, characters other than letters and digits become _.
    std::vector<std::string> data_sizes;
    std::uint64_t max_bytes = 16ull << 30;  ///< file size
    /// Operators after inlining plus interpreted program steps; each takes about 1 KiB (inlined 2) and up to 6 µs.
    std::uint64_t max_nodes = 250'000;
    CacheOptions cache;       ///< for models built from their config.json
    int tensor_parallel = 1;  ///< cards that share each layer of such a model; the graph is that of one card
    int data_parallel = 1;    ///< groups of such cards with separate tokens and shared experts
    int expert_parallel = 1;  ///< parts into which the experts are split over all cards
    int last_layers = 0;      ///< number of last layers of such a model to import; 0: all
    std::array<std::int64_t, 2> image_size{720, 1280};  ///< height and width of the images of a prompt, in pixels
    bool strict = false;                                ///< warnings about unknown versions become errors
    bool vary_batch = false;                            ///< make a fixed batch symbolic where it can be traced
    bool unsupported_is_error = false;  ///< an operator without a rule is an error; else it is modelled as memory-bound
};

/// Loads a model: a file (.onnx, .pt2, .pt, .txt; detected by content, not by extension) or a zoo name ("bert",
/// "resnet50"), optionally written `zoo:bert`. Throws Error with code model, limit or refused; usage if neither a file
/// nor a zoo model of that name exists (the message lists similar names), or if it lacks a loop or condition named in
/// the options.
[[nodiscard]] Graph load_graph(const std::string& model, const ImportOptions& options = {});

/// A model of the embedded zoo.
struct ZooModel {
    std::string name;
    std::string source;                ///< "torchvision:resnet50", "meta-llama/Meta-Llama-3-8B"
    std::string note;                  ///< additional information; usually empty
    std::vector<std::string> aliases;  ///< other names for it
};

/// Returns the embedded zoo, sorted by name.
[[nodiscard]] std::vector<ZooModel> zoo_models();
[[nodiscard]] std::vector<std::string> zoo_names();
/// Returns the zoo name of a model given by name, alias or Hugging Face name, with or without the owner; case, hyphens
/// and underscores are ignored. nullopt if there is none.
[[nodiscard]] std::optional<std::string> zoo_name(std::string_view name);

}  // namespace ftax
