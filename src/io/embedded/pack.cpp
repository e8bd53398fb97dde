#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "src/core/embedded.hpp"
#include "src/io/file.hpp"
#include "src/io/json_document.hpp"

// ftax_pack ROOT OUTPUT.cpp: parses the JSON files of ROOT/data when ftax is built and writes packed_files().

std::span<const ftax::EmbeddedFile> ftax::packed_files() {
    return {};
}

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Merges a file over those it inherits from, without their chips: each generation only has its own chips.
json merged(const fs::path& file) {
    json own = ftax::parse_json(ftax::read_file(file.string()), file.string());
    if (!own.contains("inherits")) return own;
    json whole = merged(file.parent_path() / (own["inherits"].get<std::string>() + ".json"));
    whole.erase("chips");
    whole.merge_patch(own);
    return whole;
}

std::string table(const fs::path& root) {
    std::map<std::string, json> documents;
    for (const char* folder : {"data/architectures", "data/devices", "data/profiles", "data/stacks"}) {
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            if (entry.path().extension() != ".json") continue;
            const std::string path = entry.path().lexically_relative(root).generic_string();
            json& document = documents[path] = merged(entry.path());
            const json chips = document.value("chips", json::object());
            document.erase("chips");
            for (const auto& [chip, own] : chips.items()) (documents[path + "#" + chip] = document).merge_patch(own);
        }
    }
    std::string source =
        "#include \"src/core/embedded.hpp\"\n\nstd::span<const ftax::EmbeddedFile> ftax::packed_files() {\n"
        "    static constexpr EmbeddedFile files[] = {\n";
    for (const auto& [path, document] : documents) {
        const std::string packed = ftax::pack(document);
        source += fmt::format("        {{\"{}\", {{\"", path);
        for (const char byte : packed) source += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
        source += fmt::format("\", {}}}}},\n", packed.size());
    }
    return source + "    };\n    return files;\n}\n";
}

}  // namespace

int main(int, char** argv) {  // what throws ends the build with its message
    ftax::write_file(argv[2], table(argv[1]));
}
