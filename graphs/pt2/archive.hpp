#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct zip;  // of libzip

namespace ftax {

/// A ZIP file whose members are read into memory, never extracted. Headers are not trusted: sizes are bounded by the
/// caller's limit, checksums are verified. Errors name the member, not the file.
class Archive {
  public:
    /// Throws Error{model} for an inconsistent or encrypted ZIP archive, or one with duplicate members;
    /// Error{limit} for more than 1,000,000 members.
    Archive(const std::string& path, std::uint64_t max_bytes);

    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

    /// Hands out one member in parts. Throws Error{limit} if the total size of members read so far exceeds the limit,
    /// Error{model} if the member is damaged or its length differs from its header.
    void read(const std::string& name, const std::function<void(std::string_view)>& take);

    /// Returns true if a member is stored uncompressed; the file is then at least as large as the member.
    [[nodiscard]] bool is_stored(const std::string& name) const;

    /// Returns true if torch.jit.save wrote the archive: it contains code.
    [[nodiscard]] bool is_torchscript() const;

  private:
    std::uint64_t bytes_left_;
    std::unique_ptr<::zip, void (*)(::zip*)> zip_{nullptr, nullptr};
    std::vector<std::string> names_;
    std::map<std::string, std::uint64_t, std::less<>> index_;
};

}  // namespace ftax
