#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/import.hpp"

namespace ftax {

/// The format of a model file, from its first bytes; its name does not matter.
enum class FileFormat { empty, zip, pickle, text, json, onnx, hdf5, gguf, safetensors, gzip, elf, unknown };

[[nodiscard]] FileFormat format_of(std::string_view bytes) noexcept;
/// Describes the format for a message: "a ZIP archive".
[[nodiscard]] std::string_view description_of(FileFormat format) noexcept;

/// A regular file mapped read-only: its bytes come into memory only where they are read.
class MappedFile {
  public:
    /// Throws Error{model} when `path` is not a readable regular file.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    [[nodiscard]] std::string_view bytes() const noexcept { return {data_, size_}; }
    /// Gives back the memory of all pages read so far; they are read again when looked at.
    void release() const noexcept;

  private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Gives tensors and operators short names (%1, %w1), keeps those of inputs: the module paths say what is what, and a
/// graph in text form becomes half as long.
void shorten_names(Graph& graph);

/// Applies the shapes a user gives to a graph whose own shapes are known: a symbol of an input becomes what the user
/// writes in its place ("x:4x3x224x224" makes batch 4, "x:nx3x224x224" renames it), everywhere in the graph.
/// Throws Error{usage} for an unknown input, another rank, or a number that the file fixes to another value.
void apply_input_shapes(Graph& graph, const std::vector<InputShape>& shapes);

}  // namespace ftax
