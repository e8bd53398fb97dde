#include "graphs/base/near_names.hpp"

#include <doctest/doctest.h>

using namespace ftax;

TEST_CASE("a misspelt name finds what it may have meant, nearest first") {
    const std::vector<std::string> names{"resnet18", "resnet50", "bert", "distilbert", "vgg16"};
    CHECK(near_names("ResNet-5O", names) == std::vector<std::string>{"resnet50", "resnet18"});
    CHECK(near_names("bert", names) == std::vector<std::string>{"bert", "distilbert"});
    CHECK(near_names("res", names, 1) == std::vector<std::string>{"resnet18"});
    for (const char* typo : {"resne50", "resnett50", "rsenet50", "resnet5O", "resnet500"})  // one letter off, or two
        CHECK(near_names(typo, names).at(0) == "resnet50");
    CHECK(near_names("NVIDIA's ResNet-50 of 2021", names) == std::vector<std::string>{"resnet50"});
    CHECK(near_names("llama", names).empty());
    CHECK(near_names("", names).empty());
    CHECK(near_names(std::string(1'000'000, 'x'), names).empty());
}
