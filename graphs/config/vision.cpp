#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "graphs/base/data_rows.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/config/transformer.hpp"

namespace ftax::config {
namespace {

/// Whole numbers and truth values of a config.json under their names; of a list the first.
void collect(const nlohmann::json& config, const std::string& prefix, ShapeBindings& numbers) {
    for (const auto& field : config.items()) {
        const bool is_list = field.value().is_array() && !field.value().empty();
        const nlohmann::json& value = is_list ? field.value().front() : field.value();
        if (value.is_boolean() || (value.is_number_integer() && std::abs(value.get<double>()) <= 1 << 26))
            numbers.emplace(prefix + field.key(), value.get<int>());
    }
}

/// Makes the sides of an image multiples of `cell` and its area no smaller or larger than allowed. Source:
/// transformers, image_processing_qwen2_vl.py (smart_resize).
void resize(ShapeBindings& numbers, double cell) {
    const double area = static_cast<double>(numbers["height"] * numbers["width"]);
    const double most = std::min(area, static_cast<double>(numbers["most"]));
    const double scale = std::sqrt(std::max(most, static_cast<double>(numbers["least"])) / area);
    for (std::int64_t* side : {&numbers["height"], &numbers["width"]}) {
        const double cells = static_cast<double>(*side) * scale / cell;
        const double whole = scale < 1 ? std::floor(cells) : scale > 1 ? std::ceil(cells) : std::nearbyint(cells);
        *side = static_cast<std::int64_t>(cell * std::max(1.0, whole));
    }
}

/// Adds the numbers of a row of vision.txt; false without one of the name.
bool define(std::string_view type, ShapeBindings& numbers) {
    bool found = false;
    for_each_data_row(embedded_text("graphs/config/vision.txt"), [&](DataRow row) {
        if (std::ranges::count(words_of(row.text(), ','), type) == 0) return;
        found = true;
        for (const std::string_view word : words_of(row.text())) {
            const auto [name, value] = split_at(word, '=');
            const std::string key(name.substr(0, name.find(':')));
            if (key != name && numbers.contains(key)) continue;  // a default
            ExpressionPool pool;
            numbers[key] = pool.constant_value(pool.parse(filled_in(value, numbers))).value_or(0);
            if (key == "cell") resize(numbers, static_cast<double>(std::max<std::int64_t>(1, numbers[key])));
        }
    });
    return found;
}

}  // namespace

std::shared_ptr<const ImageEncoder> image_encoder(const nlohmann::json& document, DType dtype,
                                                  const ImportOptions& options) {
    const nlohmann::json& vision = document.at("vision_config");
    const auto [height, width] = options.image_size;
    ShapeBindings numbers{{"height", height}, {"width", width}, {"cards", options.tensor_parallel}};
    collect(vision, "", numbers);
    collect(document.value("text_config", document), "text_", numbers);
    if (document.contains("text_config")) collect(document, "", numbers);
    const std::string type = document.value("model_type", ""), own = type + "/" + vision.value("model_type", "");
    if (!define(own, numbers) && !define(type, numbers)) {
        std::vector<std::string_view> known = data_column("graphs/config/vision.txt", 0);
        known.erase(std::ranges::find(known, "*"), known.end());  // what holds for all follows
        throw_error(ErrorCode::usage, "images of '{}' are not supported; supported: {}", own, fmt::join(known, ", "));
    }
    define("*", numbers);
    if (numbers["depth"] > 10'000) throw_error(ErrorCode::limit, "{} layers", numbers["depth"]);
    Network net(type + " images", dtype);
    std::vector<TensorId> x = net.block("vision_stem", numbers, {}, "images"), results;
    for (std::int64_t i = 0; i < numbers["depth"]; ++i) {
        const Network::Module module(net, fmt::format("blocks.{}", i), "VisionBlock");
        ShapeBindings layer = numbers;
        for (const auto& field : vision.items())
            if (field.value().is_array())
                layer["at_" + field.key()] = std::ranges::count(field.value(), nlohmann::json(i));
        define("layer", layer);
        x[0] = net.block("vision_layer", layer, x)[0];
        if (layer["tap"] == 0) continue;
        define("tap", layer);
        results.push_back(net.block("vision_head", layer, {x[0]})[0]);
    }
    results.push_back(net.block("vision_head", numbers, {x[0]})[0]);
    ImageEncoder encoder{net.finish(results), numbers["tokens"]};
    encoder.graph.format = "image encoder";
    static_cast<void>(bind(encoder.graph, {{"batch", 1}}));  // refuses negative sizes
    return std::make_shared<const ImageEncoder>(encoder);
}

}  // namespace ftax::config
