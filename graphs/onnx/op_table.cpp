#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/named.hpp"
#include "graphs/ir/operator_rows.hpp"
#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

unsigned flags_of(std::string_view words) {
    unsigned flags = none;
    for (const std::string_view word : words_of(words))
        flags |= 1U << DataRow(word).choice<unsigned>("any_rank never_folded reads_none reads_first reads_two");
    return flags;
}

std::vector<OpRow> read_rows() {
    const auto rules = by_name<Rule*>(FTAX_NAMED(FTAX_ONNX_RULES));
    std::vector<OpRow> rows;
    for_each_data_row(embedded_text("data/onnx_operators.tsv"), [&](DataRow row) {
        const auto rule = [&] { return rules.at(row.text()); };
        rows.push_back({row.text(), op_kind_from_name(row.text()).value(), rule(), static_cast<int>(row.number()),
                        rule(), flags_of(row.text()), dtype_from_name(row.text())});
    });
    return single_rows<OpRow>(rows);
}

}  // namespace

std::span<const OpRow> op_table() {
    static const std::vector<OpRow> rows = read_rows();
    return rows;
}

const OpRow* find_row(std::string_view domain, std::string_view op_type) {
    std::string name(op_type);
    if (!domain.empty()) name = std::string(domain) + "::" + name;
    return ftax::find_row(op_table(), name);
}

}  // namespace ftax::onnx_import
