#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ftax {

/// A ZIP file whose members are read into memory, never extracted. What the headers claim is not believed: sizes are
/// bounded by the caller's limit, checksums are verified. Errors name the member, not the file.
class Archive {
  public:
    /// Throws Error{model} for a file that is no consistent ZIP archive, or that is encrypted or names a member twice;
    /// Error{limit} for more than 1,000,000 members.
    Archive(const std::string& path, std::uint64_t max_bytes);
    ~Archive();
    Archive(const Archive&) = delete;
    Archive& operator=(const Archive&) = delete;

    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

    /// Reads one member. Throws Error{limit} when members read so far exceed the limit in total, Error{model} when the
    /// member is damaged or not as long as its header says.
    [[nodiscard]] std::string read(const std::string& name);

    /// Whether a member is kept uncompressed; the file then is at least as large as the member.
    [[nodiscard]] bool is_stored(const std::string& name) const;

  private:
    std::uint64_t bytes_left_;
    void* zip_ = nullptr;  ///< zip_t of libzip, whose header stays out of this one
    std::vector<std::string> names_;
    std::map<std::string, std::uint64_t, std::less<>> index_;
};

}  // namespace ftax
