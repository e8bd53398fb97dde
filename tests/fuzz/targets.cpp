#include "tests/fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

#include "calibration/rows/kineto_trace.hpp"
#include "calibration/rows/measurement_file.hpp"
#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/headroom.hpp"
#include "ftax/import.hpp"
#include "ftax/nas.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/loading.hpp"
#include "graphs/onnx/records.hpp"
#include "predictors/profiles/device_file.hpp"
#include "predictors/profiles/profile_file.hpp"
#include "tests/fuzz/generated_graph.hpp"
#include "tests/fuzz/generated_onnx.hpp"

namespace ftax::fuzz {
namespace {

/// Small enough that a run takes milliseconds; what lies beyond is an Error{limit}, an answer like any other.
ImportOptions small_limits() {
    ImportOptions options;
    options.max_nodes = 2000;
    options.max_bytes = 1 << 20;
    return options;
}

/// The bytes as a file that lives in memory only.
class MemoryFile {
  public:
    explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", 0)) {
        if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
            std::abort();
        }
    }
    ~MemoryFile() { ::close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  private:
    int descriptor_;
};

void append(std::string& text, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
}

/// CRC-32 of ZIP.
std::uint32_t checksum(std::string_view bytes) {
    static constexpr std::array<std::uint32_t, 256> of_byte = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
            table[byte] = byte;
            for (int bit = 0; bit < 8; ++bit) table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? 0xEDB88320u : 0u);
        }
        return table;
    }();
    std::uint32_t crc = ~0u;
    for (const char c : bytes) crc = crc >> 8 ^ of_byte[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
    return ~crc;
}

/// An archive of one uncompressed member: local header, content, central directory, its end. Source: APPNOTE.TXT.
std::string stored_zip(std::string_view name, std::string_view content) {
    const auto size = static_cast<std::uint32_t>(content.size()), name_size = static_cast<std::uint32_t>(name.size());
    std::string entry;  // from "version needed" to "extra field length", the same in both headers
    for (const auto& [value, width] : {std::pair{20u, 2},
                                       {0u, 2},
                                       {0u, 2},
                                       {0u, 4},
                                       {checksum(content), 4},
                                       {size, 4},
                                       {size, 4},
                                       {name_size, 2},
                                       {0u, 2}}) {
        append(entry, value, width);
    }
    std::string zip = "PK\3\4" + entry;
    zip.append(name).append(content);
    const auto directory = static_cast<std::uint32_t>(zip.size());
    zip += std::string("PK\1\2\24\0", 6) + entry + std::string(14, '\0');
    zip.append(name);
    const auto directory_size = static_cast<std::uint32_t>(zip.size()) - directory;
    zip += std::string("PK\5\6\0\0\0\0\1\0\1\0", 12);
    append(zip, directory_size, 4);
    append(zip, directory, 4);
    append(zip, 0, 2);
    return zip;
}

void require(bool holds) {
    if (!holds) std::abort();
}

/// Its shapes bind and its work can be counted, or an Error says why not.
void bind_if_possible(const Graph& graph) {
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) bindings[symbol] = 2;
    try {
        const BoundShapes bound = ftax::bind(graph, bindings);
        for (const Op& op : graph.ops) static_cast<void>(work_of(graph, op, bound));
    } catch (const Error&) {
    }
}

/// What every graph that a reader accepts must stand, beside that: its text reads back as the same text.
void use(const Graph& graph) {
    const std::string text = to_text(graph);
    require(to_text(parse_text_graph(text)) == text);
    bind_if_possible(graph);
}

void onnx_wire(std::string_view bytes) {
    const onnx_import::ModelRecord model = onnx_import::read_model({bytes}, small_limits().max_nodes);
    for (const auto& node : model.graph.nodes) static_cast<void>(onnx_import::attributes_of(node));
    for (const auto& value : model.graph.inputs) static_cast<void>(onnx_import::type_of(value));
}

void onnx_graph(std::string_view bytes) {
    use(import_onnx(bytes, "/nonexistent/fuzz.onnx", small_limits()));
}

void onnx_operator(std::string_view bytes) {
    Choices choices(bytes);
    Graph graph = import_onnx(generate_onnx(choices), "/nonexistent/fuzz.onnx", small_limits());
    use(graph);
    try {
        vary_batch(graph, graph.expressions.symbol("batch"));
    } catch (const Error&) {
    }
    find_size_checks(graph);
    bind_if_possible(graph);
}

void zip(std::string_view bytes) {
    const MemoryFile file(bytes);
    use(load_graph(file.path(), small_limits()));
}

void pt2_json(std::string_view bytes) {
    const MemoryFile file(stored_zip("m/models/model.json", bytes));
    use(load_graph(file.path(), small_limits()));
}

void text_graph(std::string_view bytes) {
    use(parse_text_graph(bytes));
}

void config_json(std::string_view bytes) {
    use(import_config(bytes, "fuzz.json", "fuzz"));
}

void profile_json(std::string_view bytes) {
    std::string messages;
    const auto round_trip = [&](const auto& parse) {
        try {
            const std::string text = to_text(parse(bytes, "fuzz.json"));
            require(to_text(parse(text, "fuzz.json")) == text);
        } catch (const Error& error) {
            messages += std::string(error.what()) + "\n";
        }
    };
    round_trip([](const auto&... file) { return parse_device_profile(file...); });
    round_trip([](const auto&... file) { return parse_framework_profile(file...); });
    round_trip(parse_host_profile);
    try {
        static_cast<void>(parse_device(bytes, "fuzz.json"));
    } catch (const Error& error) {
        messages += error.what();
    }
    if (!messages.empty()) throw Error(ErrorCode::profile, messages);
}

void measurement_csv(std::string_view bytes) {
    const CsvTable table(bytes, "fuzz.csv");
    if (holds_operators(table)) {
        static_cast<void>(read_operator_measurements(table));
    } else {
        static_cast<void>(read_model_measurements(table));
    }
}

void kineto_trace(std::string_view bytes) {
    std::istringstream in{std::string(bytes)};
    for (const TraceEvent& event : read_kineto_trace(in, "fuzz.json").events) {
        require(event.start_s > 0 && event.end_s >= event.start_s);
    }
}

/// The first byte says which search space the rest is an architecture of.
void architecture(std::string_view bytes) {
    static const std::vector<std::string> names = nas::space_names();
    if (bytes.empty()) return;
    const nas::Space& searched = nas::space(names[static_cast<unsigned char>(bytes[0]) % names.size()]);
    std::vector<int> choices;
    searched.parse(bytes.substr(1), choices);
    bind_if_possible(nas::build_graph(searched, choices));
}

void expression(std::string_view bytes) {
    ExpressionPool pool, other;
    const std::string text = pool.to_string(pool.parse(bytes));
    require(pool.to_string(pool.parse(text)) == text);
    require(other.to_string(other.parse(text)) == text);
}

/// What holds for the prediction of every graph.
void require_sound(const Prediction& prediction) {
    require(std::isfinite(prediction.latency_s) && prediction.latency_s >= prediction.closed_form_s);
    require(prediction.closed_form_s == std::max(prediction.host_s, prediction.device_s));
    require(prediction.low_s <= prediction.latency_s && prediction.latency_s <= prediction.high_s);
    for (const double share : {prediction.coverage.nodes, prediction.coverage.flops, prediction.coverage.time}) {
        require(share >= 0 && share <= 1);
    }
}

std::vector<DeviceProfile> devices_of_each_architecture() {
    std::vector<DeviceProfile> devices;
    for (const char* name : {"gtx-1080-ti", "v100-sxm2-32gb", "t4", "a100", "l4", "h100-pcie-80gb", "rtx-5090"}) {
        devices.push_back(device_profile(name));
    }
    DeviceSpec cpu{.slug = "cpu", .name = "a CPU", .architecture = Architecture::cpu, .sms = 1, .l2_bytes = 2 << 20};
    devices.push_back({.device = std::move(cpu), .parameters = {{"cpu.gemm_rows", 2, 0, "prior"}}});
    return devices;
}

void generated_graph(std::string_view bytes) {
    Choices choices(bytes);
    const PredictedGraph drawn = generate_prediction(choices);
    const Graph& graph = drawn.graph;
    // The texts take longest: most runs print neither.
    const std::size_t printed = choices.below(8);
    printed == 7 ? use(graph) : bind_if_possible(graph);
    Predictor predictor(graph, *drawn.device, *drawn.framework, drawn.options);
    require_sound(predictor.explain(drawn.sizes).prediction);
    const Graph wide = widened(graph, drawn.sizes, 3, 2);
    printed == 6 ? use(wide) : bind_if_possible(wide);
}

/// An Error is an answer.
template <void (*Read)(std::string_view)>
std::string answered(std::string_view bytes) {
    try {
        Read(bytes);
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

constexpr std::array all{
    Target{"onnx_wire", answered<onnx_wire>},
    Target{"onnx_graph", answered<onnx_graph>},
    Target{"onnx_operator", answered<onnx_operator>},
    Target{"zip", answered<zip>},
    Target{"pt2_json", answered<pt2_json>},
    Target{"text_graph", answered<text_graph>},
    Target{"config_json", answered<config_json>},
    Target{"profile_json", answered<profile_json>},
    Target{"measurement_csv", answered<measurement_csv>},
    Target{"kineto_trace", answered<kineto_trace>},
    Target{"architecture", answered<architecture>},
    Target{"expression", answered<expression>},
    Target{"generated_graph", answered<generated_graph>},
};

}  // namespace

PredictedGraph generate_prediction(Choices& choices) {
    static const std::vector<DeviceProfile> devices = devices_of_each_architecture();
    static const std::vector<FrameworkProfile> frameworks = [] {
        std::vector<FrameworkProfile> all;
        for (const std::string& name : framework_names()) all.push_back(framework_profile(name));
        return all;
    }();
    constexpr std::array precisions{Precision::fp32, Precision::fp16, Precision::amp, Precision::bf16, Precision::tf32};
    constexpr std::array<std::int64_t, 4> sizes{1, 2, 128, 4096};
    PredictedGraph drawn;
    drawn.device = &choices.of(devices);
    drawn.framework = &choices.of(frameworks);
    drawn.options.precision = choices.of(precisions);
    const std::size_t switches = choices.below(16);
    drawn.options.channels_last = (switches & 1) != 0;
    drawn.options.libraries.cudnn = (switches & 2) != 0 ? 9 : 8;
    drawn.options.synchronized = (switches & 4) != 0;
    drawn.options.padding = (switches & 8) != 0 ? 0.5 : 0;
    const std::int64_t batch = choices.of(sizes), seq = choices.of(sizes);
    drawn.sizes = {{"batch", batch}, {"seq", seq}};
    drawn.graph = generate_graph(choices);
    return drawn;
}

std::span<const Target> targets() {
    return all;
}

}  // namespace ftax::fuzz
