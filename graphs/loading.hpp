#pragma once

#include <functional>
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

/// Imports an ONNX model from its bytes. `path` names it in messages and locates external data; `release` releases
/// memory of processed bytes (see MappedFile). `keep_batch` keeps a leading dimension that the file fixes, regardless
/// of the given shapes: the caller makes it variable. Throws Error with code model, limit, refused, or usage if an
/// input has no shape.
[[nodiscard]] Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                                const std::function<void()>& release = {}, bool keep_batch = false);

/// Imports a torch.export archive (.pt2 of torch 2.4 to 2.11) without LibTorch; weights are never read.
/// The ATen calls keep their order, their module path and their source names, so that eager frameworks match PyTorch's
/// dispatch. Symbols numbered by torch (s77) are renamed `batch` and `seq` if the inputs identify them. Throws
/// Error{model} for a file that is not such an archive, was compiled by AOTInductor, or has a newer schema;
/// Error{limit} beyond the limits of `options`; Error{usage} for an input shape that does not fit the file.
[[nodiscard]] Graph import_pt2(const std::string& path, const ImportOptions& options);

/// Imports a TorchScript program (.pt of torch.jit.trace or torch.jit.script): checks the archive, lets LibTorch load
/// it and walks its forward method with the input shapes of `options`. The graph is the stream of ATen calls as eager
/// dispatches them, with module paths and views; weights are loaded but never computed on.
/// Throws Error{model} for a damaged archive, for files rejected by LibTorch, and in a build without LibTorch;
/// Error{usage} for an input without a shape; Error{limit} beyond the limits of `options`.
[[nodiscard]] Graph import_torchscript(const std::string& path, const ImportOptions& options);

/// Builds the graph of a model from the text of its config.json, as Hugging Face's transformers describe models.
/// `origin` names the file in messages, `name` the graph; decoders keep keys and values and are cut into one
/// card's part as `options` say. Throws Error{model} naming file and field, Error{limit} for too many layers.
[[nodiscard]] Graph import_config(std::string_view text, const std::string& origin, const std::string& name,
                                  const ImportOptions& options = {});
/// Builds the graph of a pipeline of Hugging Face's diffusers from its folder: text encoders, the UNet for each of the
/// loop `steps`, image decoder. Throws Error{model} naming file and field.
[[nodiscard]] Graph import_pipeline(const std::string& folder, const ImportOptions& options);
/// Returns the hub name of the model of a config.json (`_name_or_path`); empty if missing.
[[nodiscard]] std::string hub_name(std::string_view text, const std::string& origin);

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

/// Returns the config.json that the header of a GGUF file amounts to (ggml-org/ggml, docs/gguf.md; versions 2 and 3),
/// with the format of the weights as its quantization_config. `graphs/config/gguf.txt` lists the architectures, fields
/// and formats. Throws Error{model} naming the file and the byte or the key.
[[nodiscard]] std::string config_of_gguf(std::string_view bytes, const std::string& origin);

/// Renames tensors and operators to short names (%1, %w1), except inputs, which module paths identify; text halves.
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
