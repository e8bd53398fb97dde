#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Longer than any message may repeat, with a space, in characters that no message of ours has in a row.
const std::string secret = "QZ QZ" + std::string(60, 'Q');

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Letters of `secret` in a message.
std::size_t quoted(const std::string& message) {
    std::size_t longest = 0, run = 0;
    for (const char c : message) {
        run = c == 'Q' || c == 'Z' || c == ' ' ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

/// Each word of a text replaced by the secret, one at a time.
void for_each_word(const std::string& text, const std::function<void(const std::string&)>& use) {
    const auto in_word = [&](std::size_t i) {
        return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_';
    };
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
        if (!in_word(begin)) continue;
        std::size_t end = begin;
        while (end < text.size() && in_word(end)) ++end;
        use(text.substr(0, begin) + secret + text.substr(end));
        begin = end;
    }
}

/// Each string field of a protobuf message replaced by the secret, one at a time.
void for_each_string(Message& root, Message& part, const std::function<void(const std::string&)>& use) {
    const auto* reflection = part.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(part, &fields);
    for (const FieldDescriptor* field : fields) {
        const int count = field->is_repeated() ? reflection->FieldSize(part, field) : 1;
        for (int i = 0; i < count; ++i) {
            if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
                for_each_string(root,
                                *(field->is_repeated() ? reflection->MutableRepeatedMessage(&part, field, i)
                                                       : reflection->MutableMessage(&part, field)),
                                use);
            } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && field->is_repeated()) {
                const std::string kept = reflection->GetRepeatedString(part, field, i);
                reflection->SetRepeatedString(&part, field, i, secret);
                use(root.SerializeAsString());
                reflection->SetRepeatedString(&part, field, i, kept);
            } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
                const std::string kept = reflection->GetString(part, field);
                reflection->SetString(&part, field, secret);
                use(root.SerializeAsString());
                reflection->SetString(&part, field, kept);
            }
        }
    }
}

}  // namespace

TEST_CASE("no error repeats more than 40 characters of a file") {
    std::size_t errors = 0;
    for (const ftax::fuzz::Target& target : ftax::fuzz::targets()) {
        if (target.name == "zip" || target.name == "generated_graph" || target.name == "onnx_operator")
            continue;  // compressed; bytes that choose
        const auto check = [&](const std::string& bytes) {
            const std::string message = target.run(bytes);
            if (message.empty()) return;
            ++errors;
            CHECK_MESSAGE(quoted(message) <= 40, target.name, ": ", message);
        };
        for (const auto& entry : fs::directory_iterator(fs::path(FTAX_SOURCE_DIR) / "tests/fuzz/seeds" / target.name)) {
            const std::string bytes = read(entry.path());
            if (entry.path().extension() == ".onnx") {
                onnx::ModelProto model;
                REQUIRE(model.ParseFromString(bytes));
                for_each_string(model, model, check);
            } else {
                for_each_word(bytes, check);
            }
        }
    }
    CHECK(errors > 500);
}
