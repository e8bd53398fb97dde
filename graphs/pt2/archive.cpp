#include "graphs/pt2/archive.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"

#ifdef FTAX_LIBZIP
#include <dlfcn.h>
#endif

namespace ftax {
namespace {

constexpr zip_int64_t max_members = 1'000'000;
constexpr std::size_t block_bytes = std::size_t{1} << 18;
/// What unpacks to more than both is a bomb: torch stores tensors as they are and compresses text at most.
constexpr std::uint64_t always_unpacked_bytes = std::uint64_t{64} << 20, largest_ratio = 100;

#ifdef FTAX_LIBZIP
/// libzip is loaded with the first archive: with it comes libcrypto, whose start takes longer than a prediction.
void* loaded(const char* function) {
    static void* const library = ::dlopen(FTAX_LIBZIP, RTLD_NOW | RTLD_LOCAL);
    void* const found = library ? ::dlsym(library, function) : nullptr;
    if (!found) throw_error(ErrorCode::refused, "cannot load libzip: {}", ::dlerror());
    return found;
}
#define FTAX_ZIP(function) reinterpret_cast<decltype(&::function)>(loaded(#function))
#else
#define FTAX_ZIP(function) ::function
#endif

}  // namespace

Archive::Archive(const std::string& path, std::uint64_t max_bytes) : bytes_left_(max_bytes) {
    int code = 0;
    zip_ = {FTAX_ZIP(zip_open)(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code), FTAX_ZIP(zip_discard)};
    if (!zip_) {
        zip_error_t error;
        FTAX_ZIP(zip_error_init_with_code)(&error, code);
        const std::string reason = FTAX_ZIP(zip_error_strerror)(&error);
        FTAX_ZIP(zip_error_fini)(&error);
        throw_error(ErrorCode::model, "not a readable ZIP archive: {}", reason);
    }
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    if (!unknown) bytes_left_ = std::min(bytes_left_, std::max(always_unpacked_bytes, largest_ratio * size));
    const zip_int64_t count = FTAX_ZIP(zip_get_num_entries)(zip_.get(), 0);
    if (count > max_members) throw_error(ErrorCode::limit, "more than {} members", max_members);
    for (zip_int64_t i = 0; i < count; ++i) {
        zip_stat_t stat;
        if (FTAX_ZIP(zip_stat_index)(zip_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW, &stat) != 0)
            throw_error(ErrorCode::model, "damaged directory");
        if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE)
            throw_error(ErrorCode::model, "encrypted archive");
        if (!index_.emplace(stat.name, stat.index).second)
            throw_error(ErrorCode::model, "member '{}' occurs twice", excerpt(stat.name));
        names_.emplace_back(stat.name);
    }
}

void Archive::read(const std::string& name, const std::function<void(std::string_view)>& take) {
    const auto found = index_.find(name);
    if (found == index_.end()) throw_error(ErrorCode::model, "has no member '{}'", excerpt(name));
    const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> member(
        FTAX_ZIP(zip_fopen_index)(zip_.get(), found->second, 0), FTAX_ZIP(zip_fclose));
    if (!member) throw_error(ErrorCode::model, "member '{}': {}", excerpt(name), FTAX_ZIP(zip_strerror)(zip_.get()));
    std::uint64_t bytes = 0;
    std::array<char, block_bytes> block;
    while (true) {
        const zip_int64_t count = FTAX_ZIP(zip_fread)(member.get(), block.data(), block.size());
        if (count < 0)
            throw_error(ErrorCode::model, "member '{}': {}", excerpt(name),
                        FTAX_ZIP(zip_error_strerror)(FTAX_ZIP(zip_file_get_error)(member.get())));
        if (count == 0) break;
        if (static_cast<std::uint64_t>(count) > bytes_left_)
            throw_error(ErrorCode::limit,
                        "member '{}' unpacks to more than the limit (--max-bytes; {} times the archive)", excerpt(name),
                        largest_ratio);
        bytes_left_ -= static_cast<std::uint64_t>(count);
        bytes += static_cast<std::uint64_t>(count);
        take({block.data(), static_cast<std::size_t>(count)});
    }
    zip_stat_t stat;
    const bool stated =
        FTAX_ZIP(zip_stat_index)(zip_.get(), found->second, 0, &stat) == 0 && (stat.valid & ZIP_STAT_SIZE);
    if (stated && stat.size != bytes)
        throw_error(ErrorCode::model, "member '{}' has {} bytes, its header says {}", excerpt(name), bytes, stat.size);
}

bool Archive::is_torchscript() const {
    return std::ranges::any_of(
        names_, [](const std::string& name) { return ("/" + name).find("/code/") != std::string::npos; });
}

bool Archive::is_stored(const std::string& name) const {
    zip_stat_t stat;
    const auto found = index_.find(name);
    if (found == index_.end() || FTAX_ZIP(zip_stat_index)(zip_.get(), found->second, 0, &stat) != 0)
        throw_error(ErrorCode::model, "has no member '{}'", excerpt(name));
    return (stat.valid & ZIP_STAT_COMP_METHOD) && stat.comp_method == ZIP_CM_STORE && stat.size == stat.comp_size;
}

}  // namespace ftax
