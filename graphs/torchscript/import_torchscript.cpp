#include <algorithm>
#include <filesystem>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/strides.hpp"
#include "graphs/pt2/archive.hpp"
#include "graphs/torchscript/program.hpp"

namespace ftax {
namespace {

constexpr std::uint64_t max_code_bytes = std::uint64_t{1} << 30;

/// Checks the envelope before LibTorch, which takes what such a file says for granted, sees it: code and pickles are
/// read within a limit, so that their checksums hold and they are no bombs; tensors are stored as they are, so that
/// none is larger than the file.
void check_envelope(const std::string& path, std::uint64_t max_bytes) {
    Archive archive(path, std::min(max_bytes, max_code_bytes));
    for (const std::string& member : archive.names()) {
        if (member.ends_with('/')) continue;
        const bool tensor =
            member.find("/data/") != std::string::npos || member.find("/constants/") != std::string::npos;
        if (!tensor) {
            archive.read(member, [](std::string_view) {});
        } else if (!archive.is_stored(member)) {
            throw_error(ErrorCode::model, "tensor '{}' is compressed, as torch never writes it", excerpt(member));
        }
    }
}

}  // namespace

Graph import_torchscript(const std::string& path, const ImportOptions& options) {
    Graph graph;
    try {
        check_envelope(path, options.max_bytes);
        graph = script::interpret_file(path, options);
    } catch (const Error& error) {
        throw_error(error.code(), "{}: {}", path, error.what());
    }
    graph.name = std::filesystem::path(path).stem().string();
    graph.format = "torchscript";
    propagate_strides(graph);
    lay_out_for_cuda(graph, false);
    return graph;
}

}  // namespace ftax
