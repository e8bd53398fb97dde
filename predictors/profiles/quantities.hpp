#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graphs/files/json_document.hpp"

namespace ftax {

/// Reads the name of a generation. Throws Error{profile} like JsonField.
inline Architecture parse_architecture(const JsonField& field) {
    const auto architecture = architecture_from_name(field.text());
    if (!architecture) field.fail("unknown architecture");
    return *architecture;
}

/// Reads numbers of a datasheet: each is {"value": …, "source": …}, the source a key of the document's `sources` or
/// "derived: …". Throws Error{profile} like JsonField.
class Quantities {
  public:
    explicit Quantities(const JsonField& root) : sources_(root["sources"].elements()) {
        for (const JsonField& source : sources_) static_cast<void>(source.text());
    }

    double operator()(const JsonField& field) const { return value_of(field).positive(); }
    int count(const JsonField& field) const { return value_of(field).positive_count(); }
    bool flag(const JsonField& field) const { return value_of(field).flag(); }

    void check_source(const JsonField& source) const {
        const std::string text = source.text();
        const bool known = std::ranges::any_of(sources_, [&](const JsonField& s) { return s.key() == text; });
        if (!known && !text.starts_with("derived: ")) source.fail("is neither a key of sources nor \"derived: …\"");
    }

  private:
    JsonField value_of(const JsonField& field) const {
        field.allow({"value", "source"});
        check_source(field["source"]);
        return field["value"];
    }
    std::vector<JsonField> sources_;
};

}  // namespace ftax
