#include "graphs/aten/aten_table.hpp"

#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/named.hpp"
#include "graphs/ir/operator_rows.hpp"

namespace ftax {
namespace {

std::vector<AtenRow> read_rows() {
    using namespace aten_attributes;
    using namespace aten_shapes;
    const auto shapes = by_name<Inference*>(FTAX_NAMED(FTAX_ATEN_INFERENCES));
    const auto edits = by_name<Edit*>(FTAX_NAMED(FTAX_ATEN_EDITS));
    const auto readers = by_name<Reader*>(FTAX_NAMED(FTAX_ATEN_READERS));
    const auto appenders = by_name<AppendFunction*>(FTAX_NAMED(FTAX_ATEN_DECOMPOSITIONS));
    std::vector<AtenRow> rows;
    for_each_data_row(embedded_text("data/aten_operators.tsv"), [&](DataRow row) {
        AtenRow& added = rows.emplace_back(AtenRow{row.text(), op_kind_from_name(row.text()).value()});
        const std::string_view shape = row.text();
        added.edit = value_or(edits, shape, nullptr);
        if (!added.edit) added.shape = shapes.at(shape);
        added.attributes = readers.at(row.text());
        added.operands = row.text();
        added.append = appenders.at(row.text());
        added.type = dtype_from_name(row.text());
    });
    return single_rows<AtenRow>(rows);
}

/// Whether an operator belongs to a library of the tables: names of others ("my::add") may have a different meaning.
bool is_of_known_library(std::string_view target) {
    constexpr std::string_view libraries = "aten prims quantized_decomposed torchvision torchao export transformers";
    const std::size_t colons = target.find("::");
    return colons == std::string_view::npos || has_word(libraries, target.substr(0, colons));
}

}  // namespace

const AtenRow* find_aten_row(std::string_view target) {
    if (!is_of_known_library(target)) return nullptr;
    static const std::vector<AtenRow> rows = read_rows();
    const std::string_view name = target.substr(target.rfind(':') + 1);
    const AtenRow* row = find_row<AtenRow>(rows, name);
    return row || !name.ends_with('_') ? row : find_row<AtenRow>(rows, name.substr(0, name.size() - 1));
}

}  // namespace ftax
