#include "ftax/types.hpp"

#include <array>
#include <cmath>

#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "ftax/precision.hpp"
#include "ftax/predict.hpp"
#include "graphs/base/data_rows.hpp"

namespace ftax {
namespace {

/// In the order of DType.
struct DTypeRow {
    std::string_view name;
    int bits;
    bool real;
};
constexpr DTypeRow dtype_rows[]{{"unknown", 0, false}, {"f64", 64, true},   {"f32", 32, true},    {"f16", 16, true},
                                {"bf16", 16, true},    {"f8e4m3", 8, true}, {"f8e5m2", 8, true},  {"f4", 4, true},
                                {"i64", 64, false},    {"i32", 32, false},  {"i16", 16, false},   {"i8", 8, false},
                                {"i4", 4, false},      {"i2", 2, false},    {"u64", 64, false},   {"u32", 32, false},
                                {"u16", 16, false},    {"u8", 8, false},    {"u4", 4, false},     {"u2", 2, false},
                                {"bool", 8, false},    {"c64", 64, false},  {"c128", 128, false}, {"string", 0, false}};
static_assert(std::size(dtype_rows) == static_cast<std::size_t>(DType::string) + 1);

constexpr std::array<std::string_view, math_path_count> math_path_names{
    "fp64",       "fp32",      "tf32", "fp16_tensor", "bf16_tensor", "int8_tensor", "fp16_tensor_fp16_accumulate",
    "fp8_tensor", "fp4_tensor"};
constexpr std::array<std::string_view, host_kind_count> host_kind_names{
    "conv",       "conv_depthwise", "conv_grouped", "batch_norm",  "gemm",      "bmm",
    "layer_norm", "elementwise",    "view",         "module_call", "list_part", "fused",
    "engine",     "engine_call",    "graph_node",   "forward",     "sequence",  "synchronize"};
constexpr std::array<std::string_view, 4> bound_names{"host", "compute", "memory", "floor"};

/// In the order of OpKind.
const std::vector<std::string_view>& op_kind_names() {
    static const std::vector<std::string_view> names = data_column("data/operator_kinds.tsv", 0);
    return names;
}

}  // namespace

int bits_of(DType type) noexcept {
    return dtype_rows[static_cast<std::size_t>(type)].bits;
}
std::string_view name_of(DType type) noexcept {
    return dtype_rows[static_cast<std::size_t>(type)].name;
}
bool is_float(DType type) noexcept {
    return dtype_rows[static_cast<std::size_t>(type)].real;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
    return enumerator_named<DType>(dtype_rows, name, &DTypeRow::name);
}

std::string_view name_of(MathPath path) noexcept {
    return math_path_names[static_cast<std::size_t>(path)];
}
std::optional<MathPath> math_path_from_name(std::string_view name) noexcept {
    return enumerator_named<MathPath>(math_path_names, name);
}

std::string_view name_of(Architecture architecture) noexcept {
    return architecture_names[static_cast<std::size_t>(architecture)];
}
GemmTile gemm_tile(std::string_view name, MainLoop loop, int columns_log2, int rows_log2, int threads,
                   double resident) {
    GemmTile tile{.name = std::string(name), .loop = loop, .columns_log2 = columns_log2, .rows_log2 = rows_log2};
    tile.columns = std::ldexp(1.0, columns_log2);
    tile.rows = std::ldexp(1.0, rows_log2);
    tile.area = tile.columns * tile.rows;
    tile.inverse_columns = 1 / tile.columns;
    tile.inverse_rows = 1 / tile.rows;
    tile.inverse_work = 1 / (tile.area * (loop == MainLoop::sliced ? 4 : 1));
    tile.idle_schedulers = 128.0 / threads;
    set_resident(tile, resident);
    return tile;
}

void set_resident(GemmTile& tile, double resident) noexcept {
    tile.resident = resident;
    tile.inverse_resident = 1 / resident;
}

std::optional<Architecture> architecture_from_name(std::string_view name) noexcept {
    return enumerator_named<Architecture>(architecture_names, name);
}

std::string_view name_of(HostKind kind) noexcept {
    return host_kind_names[static_cast<std::size_t>(kind)];
}
std::string_view name_of(Bound bound) noexcept {
    return bound_names[static_cast<std::size_t>(bound)];
}

std::string_view name_of(OpKind kind) noexcept {
    return op_kind_names()[static_cast<std::size_t>(kind)];
}
std::optional<OpKind> op_kind_from_name(std::string_view name) noexcept {
    return enumerator_named<OpKind>(op_kind_names(), name);
}

}  // namespace ftax
