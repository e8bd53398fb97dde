#include <array>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/nas/spaces.hpp"

namespace ftax::nas {
namespace {

/// Encoders of a given width, depth, heads and feed-forward width over `seq` tokens, with heads of 64 channels at any
/// width. Source: Devlin et al., "BERT", NAACL 2019, arXiv 1810.04805; the free choice of heads and feed-forward width
/// of Chen et al., "AutoFormer", ICCV 2021, arXiv 2107.00651, section 3.
struct Range {
    std::string_view name;
    int first, last, step;
};
constexpr std::array<Range, 4> ranges{
    {{"width", 64, 1024, 64}, {"depth", 1, 24, 1}, {"heads", 1, 16, 1}, {"ffn", 256, 4096, 256}}};
enum Site : std::size_t { width, depth, heads, ffn };
constexpr std::int64_t head_channels = 64;
constexpr std::int64_t vocabulary = 30522;
const std::string tokens = "seq";

enum Kind : std::int16_t { embedding, layer };

class Transformer final : public Space {
  public:
    std::string_view name() const override { return "transformer"; }

    std::vector<int> options() const override {
        return mapped(ranges, [](const Range& r) { return (r.last - r.first) / r.step + 1; });
    }

    /// "768-12-12-3072": width, depth, heads, feed-forward width
    void parse(std::string_view text, std::vector<int>& choices) const override {
        choices.clear();
        parse_integers(name(), text, '-', choices);
        if (choices.size() != ranges.size())
            throw_error(ErrorCode::usage, "transformer: expected width-depth-heads-ffn, not '{}'", excerpt(text));
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const Range& r = ranges[i];
            if (choices[i] < r.first || choices[i] > r.last || (choices[i] - r.first) % r.step != 0)
                throw_error(ErrorCode::usage, "transformer: expected {} from {} to {} in steps of {}, not {}, in '{}'",
                            r.name, r.first, r.last, r.step, choices[i], excerpt(text));
            choices[i] = (choices[i] - r.first) / r.step;
        }
    }

    void blocks(std::span<const int> choices, std::vector<Block>& chain) const override {
        const auto value = [&](Site site) {
            return static_cast<std::int16_t>(ranges[site].first + choices[site] * ranges[site].step);
        };
        chain.push_back({{embedding, value(width)}});
        for (int i = 0; i < value(depth); ++i) chain.push_back({{layer, value(width), value(heads), value(ffn)}});
    }

    ShapeBindings usual_dims() const override { return {{tokens, 128}}; }

    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int>) const override {
        return {net.input("tokens", {"batch", tokens}, DType::i64)};
    }

    void build(GraphBuilder& net, const Block& block, std::vector<TensorId>& live) const override {
        const auto [kind, channels, head_count, hidden, a, b, c, d] = block.fields;
        if (kind == embedding) {
            live = {net.layer_norm(net.embedding(live[0], vocabulary, channels))};
            return;
        }
        const TensorId x = net.layer_norm(net.add(attention(net, live[0], channels, head_count), live[0]));
        const TensorId wide = net.pointwise("gelu", {net.linear(x, hidden)});
        live = {net.layer_norm(net.add(net.linear(wide, channels), x))};
    }

  private:
    static TensorId attention(GraphBuilder& net, TensorId x, std::int64_t channels, std::int64_t head_count) {
        const std::int64_t inner = head_count * head_channels;
        const auto split = [&](const std::vector<std::int64_t>& order) {
            const TensorId projected = net.linear(x, inner);
            return net.transpose(
                net.reshape(projected, {"batch", tokens, std::to_string(head_count), std::to_string(head_channels)}),
                order);
        };
        const TensorId query = split({0, 2, 1, 3});
        const TensorId key = split({0, 2, 3, 1});
        const TensorId value = split({0, 2, 1, 3});
        const TensorId scores = net.pointwise("div", {net.matmul(query, key)});
        const TensorId mixed = net.transpose(net.matmul(net.softmax(scores), value), {0, 2, 1, 3});
        return net.linear(net.reshape(mixed, {"batch", tokens, std::to_string(inner)}), channels);
    }
};

}  // namespace

const Space& transformer_space() {
    static const Transformer space;
    return space;
}

}  // namespace ftax::nas
