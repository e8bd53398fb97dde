#pragma once

#include <string>
#include <string_view>

#include "ftax/graph.hpp"

namespace ftax {

/// Parses a graph in ftax's text format, with one statement per line:
///
///     # comment
///     graph resnet18
///     range batch 1 1024
///     input %x f32[batch,3,224,224]
///     weight %w f32[64,3,7,7]
///     constant %axes i64[2]
///     module layer1.0 torchvision.models.resnet.BasicBlock
///     %1 f32[batch,64,112,112] = conv(%x, %w) {stride=[2,2] pad_begin=[3,3] pad_end=[3,3]} "aten::conv2d" @conv1
///     %2 f32[batch,12,128,64]{98304,64,768,1} = transpose(%1) {perm=[0,2,1,3]}
///     %3 f32[batch,4], %4 i64[batch,4] = sort(%2, _) {axis=1 function="topk"} "aten::topk" @head : topk_0
///     output %3
///
/// Names with characters other than letters, digits and `_./:-` are quoted (`%"a b"`, escapes \" \\ \xHH). Operators
/// may appear in any order; they are sorted. `warning "text"` records an assumption of the importer. `range symbol
/// least greatest` gives the values for which the exporter guarantees the program; `greatest` is optional. `_` is an
/// absent optional input, `{…}` after a type gives the strides of a non-contiguous tensor, `?` in place of a shape
/// means unknown, the quoted text is Op::source, `@` the module path, `:` the operator's name. `origin` names the text
/// in errors (a file path). Throws Error{model} with line and column, and Error{limit}.
[[nodiscard]] Graph parse_text_graph(std::string_view text, std::string_view origin = "text graph");

/// Prints a graph in the format of parse_text_graph(); parsing the text gives an equal graph.
[[nodiscard]] std::string to_text(const Graph& graph);

}  // namespace ftax
