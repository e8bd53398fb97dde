#pragma once

#include <string>
#include <string_view>

namespace ftax {

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

}  // namespace ftax
