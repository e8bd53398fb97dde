#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"

namespace ftax {

/// Detects the format of a model file from its first bytes, regardless of its name.
enum class FileFormat { empty, zip, pickle, text, json, onnx, hdf5, gguf, weights, engine, utf16, gzip, elf, unknown };

[[nodiscard]] FileFormat format_of(std::string_view bytes) noexcept;
/// Describes the format for a message, and what to give instead: "a ZIP archive".
[[nodiscard]] std::string_view description_of(FileFormat format) noexcept;

/// A regular file mapped read-only, with pages loaded on demand.
class MappedFile {
  public:
    /// Throws as open_file(), Error{model} if it cannot be mapped.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::string_view bytes() const noexcept { return {data_, size_}; }
    /// Releases all pages read so far; they are reloaded on access.
    void release() const noexcept;

  private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Renames tensors and operators to short names (%1, %w1), except inputs: module paths identify them, and text graphs
/// become half as long.
void shorten_names(Graph& graph);

/// Applies user-provided shapes to a graph with known shapes: a symbol of an input is replaced by the user's expression
/// ("x:4x3x224x224" makes batch 4, "x:nx3x224x224" renames it), everywhere in the graph.
/// Throws Error{usage} for an unknown input, another rank, or a number that the file fixes to another value.
void apply_input_shapes(Graph& graph, const std::vector<InputShape>& shapes);

/// Makes the batch symbolic in a graph exported for one batch size: the leading dimension of its inputs becomes `batch`
/// and is traced through all operators, so that constants that contain the batch (of reshapes, expands, folded tensors)
/// scale with it. Throws Error{usage} if inputs of two or more dimensions differ in their leading one, or naming an
/// operator that mixes the batch with another dimension.
void vary_batch(Graph& graph, Expression batch);
/// The same for the listed inputs only. Their leading dimension must be one positive number.
void vary_batch(Graph& graph, Expression batch, const std::vector<TensorId>& inputs);

}  // namespace ftax
