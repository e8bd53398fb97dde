#pragma once

#include <string_view>

#include "ftax/graph.hpp"

namespace ftax::fuzz {

/// Takes numbers from bytes; zeros when they are used up.
class Choices {
  public:
    explicit Choices(std::string_view bytes) : bytes_(bytes) {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    /// A number from 0 to limit - 1.
    std::size_t below(std::size_t limit);
    template <class List>
    const auto& of(const List& list) {
        return list[below(list.size())];
    }

  private:
    std::string_view bytes_;
};

/// Builds a graph that any bytes stand for: layers of GraphBuilder, which refuses what does not fit, and between them
/// operators of any kind with any inputs and attributes, as a text graph may hold.
[[nodiscard]] Graph generate_graph(Choices& choices);

}  // namespace ftax::fuzz
