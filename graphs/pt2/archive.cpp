#include "graphs/pt2/archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "src/core/excerpt.hpp"
#include "src/core/throw_error.hpp"

namespace ftax {
namespace {

constexpr zip_int64_t max_members = 1'000'000;
constexpr std::size_t block_bytes = std::size_t{1} << 18;
/// What unpacks to more than both is a bomb: torch stores tensors as they are and compresses text at most.
constexpr std::uint64_t always_unpacked_bytes = std::uint64_t{64} << 20, largest_ratio = 100;

zip_t* handle(void* zip) {
    return static_cast<zip_t*>(zip);
}

struct CloseMember {
    void operator()(zip_file_t* member) const {
        if (member) zip_fclose(member);
    }
};

[[noreturn]] void fail(const std::string& what) {
    throw Error(ErrorCode::model, what);
}

}  // namespace

Archive::Archive(const std::string& path, std::uint64_t max_bytes) : bytes_left_(max_bytes) {
    int code = 0;
    std::unique_ptr<zip_t, decltype(&zip_discard)> opened(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code),
                                                          zip_discard);
    if (!opened) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const std::string reason = zip_error_strerror(&error);
        zip_error_fini(&error);
        fail(fmt::format("not a readable ZIP archive: {}", reason));
    }
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    if (!unknown) bytes_left_ = std::min(bytes_left_, std::max(always_unpacked_bytes, largest_ratio * size));
    const zip_int64_t count = zip_get_num_entries(opened.get(), 0);
    if (count > max_members) throw_error(ErrorCode::limit, "more than {} members", max_members);
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        if (zip_stat_index(opened.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW, &stat) != 0)
            fail("damaged directory");
        if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE)
            fail("encrypted archive");
        if (!index_.emplace(stat.name, stat.index).second)
            fail(fmt::format("member '{}' occurs twice", excerpt(stat.name)));
        names_.emplace_back(stat.name);
    }
    zip_ = opened.release();
}

Archive::~Archive() {
    zip_discard(handle(zip_));
}

TextSource Archive::stream(const std::string& name) {
    const auto found = index_.find(name);
    if (found == index_.end()) fail(fmt::format("has no member '{}'", excerpt(name)));
    const std::shared_ptr<zip_file_t> member(zip_fopen_index(handle(zip_), found->second, 0), CloseMember());
    if (!member) fail(fmt::format("member '{}': {}", excerpt(name), zip_strerror(handle(zip_))));
    const auto block = std::make_shared<std::array<char, block_bytes>>();
    return [=, this, index = found->second, bytes = std::uint64_t{0}]() mutable -> std::string_view {
        const zip_int64_t count = zip_fread(member.get(), block->data(), block->size());
        if (count < 0)
            fail(fmt::format("member '{}': {}", excerpt(name), zip_error_strerror(zip_file_get_error(member.get()))));
        if (static_cast<std::uint64_t>(count) > bytes_left_) {
            throw_error(ErrorCode::limit,
                        "member '{}' unpacks to more than the limit (--max-bytes; {} times the archive)", excerpt(name),
                        largest_ratio);
        }
        bytes_left_ -= static_cast<std::uint64_t>(count);
        bytes += static_cast<std::uint64_t>(count);
        zip_stat_t stat;
        const bool stated = zip_stat_index(handle(zip_), index, 0, &stat) == 0 && (stat.valid & ZIP_STAT_SIZE);
        if (count == 0 && stated && stat.size != bytes)
            fail(fmt::format("member '{}' has {} bytes, its header says {}", excerpt(name), bytes, stat.size));
        return {block->data(), static_cast<std::size_t>(count)};
    };
}

std::string Archive::read(const std::string& name) {
    std::string content;
    const TextSource next = stream(name);
    for (std::string_view part = next(); !part.empty(); part = next()) content += part;
    return content;
}

bool Archive::is_stored(const std::string& name) const {
    zip_stat_t stat;
    const auto found = index_.find(name);
    if (found == index_.end() || zip_stat_index(handle(zip_), found->second, 0, &stat) != 0)
        fail(fmt::format("has no member '{}'", excerpt(name)));
    return (stat.valid & ZIP_STAT_COMP_METHOD) && stat.comp_method == ZIP_CM_STORE && stat.size == stat.comp_size;
}

}  // namespace ftax
