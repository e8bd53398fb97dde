#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ftax::test {

/// A file in the temporary folder that is gone when the test ends.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& name, const std::string& content = {});
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// Bytes of a ZIP archive with the given (name, content) members.
std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& members);

/// Program of `y = relu(conv2d(x, w))` with x of the given sizes ("as_int"/"as_expr" objects), as torch.export writes
/// it.
std::string small_program(const std::string& batch_size);

}  // namespace ftax::test
