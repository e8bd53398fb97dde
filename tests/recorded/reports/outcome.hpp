#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace ftax::test {

[[nodiscard]] std::string read(const std::filesystem::path& path);

/// What a stream of the process gets during the object's lifetime goes to a file.
class Redirected {
  public:
    Redirected(std::FILE* stream, const std::string& path)
        : stream_(stream), kept_(::dup(::fileno(stream))), path_(path) {
        std::fflush(stream_);
        const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        ::dup2(file, ::fileno(stream_));
        ::close(file);
    }
    ~Redirected() {
        std::fflush(stream_);
        ::dup2(kept_, ::fileno(stream_));
        ::close(kept_);
    }
    Redirected(const Redirected&) = delete;
    Redirected& operator=(const Redirected&) = delete;

  private:
    std::FILE* stream_;
    int kept_;
    std::string path_;
};

/// Words of a command line; quotes hold a word together, "OUT/" is the folder for files, "IGNORED/" for those whose
/// content does not count.
[[nodiscard]] std::vector<std::string> words_of_line(const std::string& line, const std::string& folder);

/// Runs a command line in this process: sums of its seconds and of its other numbers, their count, and digests of its
/// JSON, table, page, files and messages.
[[nodiscard]] std::vector<std::string> outcome(const std::string& line);

/// Runs a command line in this process: the line, all that it prints, its exit code, and the files that it writes.
[[nodiscard]] std::string transcript(const std::string& line);

}  // namespace ftax::test
