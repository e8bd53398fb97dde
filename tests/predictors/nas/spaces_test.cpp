#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "ftax/nas.hpp"
#include "ftax/work.hpp"
#include "tests/approx.hpp"

using namespace ftax;

// What the reference code of each space runs, counted from its description a second time: multiply-adds of
// convolutions, linear layers and products of batch 1, and operators by kind, elementwise ones by function.

namespace {

struct Counts {
    double macs = 0;
    std::map<std::string, int> ops;

    void conv(int side, double in, double out, int kernel, double groups = 1) {
        macs += double(side) * side * out * in / groups * kernel * kernel;
        ++ops["conv"];
    }
    /// The same with the batch norm behind it and an activation, or none ("").
    void layer(int side, double in, double out, int kernel, double groups, const std::string& function) {
        conv(side, in, out, kernel, groups);
        ++ops["batch_norm"];
        if (!function.empty()) ++ops[function];
    }
};

Counts counts_of(const nas::Space& space, const std::vector<int>& choices) {
    const Graph graph = nas::build_graph(space, choices);
    ShapeBindings bindings = space.usual_dims();
    bindings["batch"] = 1;
    const BoundShapes bound = ftax::bind(graph, bindings);
    Counts counts;
    for (const Op& op : graph.ops) {
        const bool is_pointwise = op.kind == OpKind::pointwise;
        ++counts.ops[is_pointwise ? std::string(op.text("function")) : std::string(name_of(op.kind))];
        if (op.is(OpKind::conv, OpKind::linear, OpKind::matmul))
            counts.macs += static_cast<double>(work_of(graph, op, bound).flops) / 2;
    }
    return counts;
}

std::vector<int> random_choices(const nas::Space& space, std::mt19937& random) {
    std::vector<int> choices;
    for (const int options : space.options())
        choices.push_back(std::uniform_int_distribution<>(0, options - 1)(random));
    return choices;
}

void check_space(const char* name, Counts (*expected)(const std::vector<int>&)) {
    const nas::Space& space = nas::space(name);
    std::mt19937 random(7);
    for (int i = 0; i < 40; ++i) {
        const std::vector<int> choices = random_choices(space, random);
        const Counts wanted = expected(choices), built = counts_of(space, choices);
        CHECK(built.macs == approx(wanted.macs));
        for (const auto& count : wanted.ops) {
            const std::string& kind = count.first;
            CAPTURE(kind);
            CHECK(built.ops.contains(kind));
            if (built.ops.contains(kind)) CHECK(built.ops.at(kind) == count.second);
        }
    }
}

double rounded(double channels) {  // to eights, as MobileNets do
    const double to_eight = std::max(8.0, 8 * std::floor((channels + 4) / 8));
    return to_eight < 0.9 * channels ? to_eight + 8 : to_eight;
}

Counts fbnet(const std::vector<int>& choices) {
    constexpr int kernels[] = {3, 3, 3, 3, 5, 5, 5, 5}, expansions[] = {1, 1, 3, 6, 1, 1, 3, 6},
                  groups[] = {1, 2, 1, 1, 1, 2, 1, 1};
    constexpr int layers[] = {1, 4, 4, 4, 4, 4, 1}, channels[] = {16, 24, 32, 64, 112, 184, 352},
                  strides[] = {1, 1, 2, 2, 1, 2, 1};
    Counts c;
    c.ops["add"] = c.ops["transpose"] = 0;
    c.layer(32, 3, 16, 3, 1, "relu");
    int side = 32, in = 16;
    auto choice = choices.begin();
    for (std::size_t stage = 0; stage < 7; ++stage) {
        for (int i = 0; i < layers[stage]; ++i) {
            const int stride = i == 0 ? strides[stage] : 1, out = channels[stage], chosen = *choice++;
            const bool same = in == out && stride == 1;
            if (chosen == 8 && !same) c.layer(side / stride, in, out, 1, 1, "relu");
            if (chosen < 8) {
                const int wide = in * expansions[chosen];
                c.layer(side, in, wide, 1, groups[chosen], "relu");
                c.layer(side / stride, wide, wide, kernels[chosen], wide, "relu");
                c.layer(side / stride, wide, out, 1, groups[chosen], "");
                c.ops["transpose"] += groups[chosen] - 1;
                c.ops["add"] += same ? 1 : 0;
            }
            side /= stride;
            in = out;
        }
    }
    if (c.ops["transpose"] == 0) c.ops.erase("transpose");
    if (c.ops["add"] == 0) c.ops.erase("add");
    c.layer(side, in, 1504, 1, 1, "relu");
    c.macs += 1504 * 100;
    return c;
}

Counts nasbench201(const std::vector<int>& choices) {
    Counts c;
    c.layer(32, 3, 16, 3, 1, "");
    int side = 32;
    for (const int channels : {16, 32, 64}) {
        if (channels > 16) {
            side /= 2;
            c.layer(side, channels / 2, channels, 3, 1, "relu");
            c.layer(side, channels, channels, 3, 1, "relu");
            c.conv(side, channels / 2, channels, 1);
            ++c.ops["add"], ++c.ops["pool"];
        }
        for (int cell = 0; cell < 5; ++cell) {
            for (std::size_t edge = 0; edge < 6; ++edge) {
                if (choices[edge] == 0) ++c.ops["mul"];
                if (choices[edge] == 2) c.layer(side, channels, channels, 1, 1, "relu");
                if (choices[edge] == 3) c.layer(side, channels, channels, 3, 1, "relu");
                if (choices[edge] == 4) ++c.ops["pool"];
                ++c.ops["add"];  // Python's sum() begins with a number
            }
        }
    }
    ++c.ops["batch_norm"], ++c.ops["relu"];
    c.macs += 64 * 10;
    return c;
}

Counts transformer(const std::vector<int>& choices) {
    const double width = 64 * (choices[0] + 1), layers = choices[1] + 1, inner = 64 * (choices[2] + 1),
                 ffn = 256 * (choices[3] + 1), tokens = 128;
    const int count = choices[1] + 1;
    Counts c;
    c.macs = layers * tokens * (4 * width * inner + 2 * tokens * inner + 2 * width * ffn);
    c.ops = {{"layer_norm", 1 + 2 * count},
             {"linear", 6 * count},
             {"matmul", 2 * count},
             {"softmax", count},
             {"gelu", count},
             {"div", count},
             {"add", 2 * count},
             {"embedding", 1}};
    return c;
}

Counts ofa(const std::vector<int>& choices) {
    constexpr int channels[] = {24, 40, 80, 112, 160}, strides[] = {2, 2, 2, 1, 2};
    constexpr bool swish[] = {false, false, true, true, true}, squeeze[] = {false, true, false, true, true};
    constexpr int kernels[] = {3, 5, 7}, expansions[] = {3, 4, 6};
    Counts c;
    // h-swish adds 3, bounds, multiplies and divides; h-sigmoid does without the product.
    const auto hard_swish = [&] { ++c.ops["add"], ++c.ops["relu6"], ++c.ops["mul"], ++c.ops["div"]; };
    int side = (choices[45] + 32 + 1) / 2, in = 16;
    c.layer(side, 3, 16, 3, 1, "");
    hard_swish();
    c.layer(side, 16, 16, 3, 16, "relu");
    c.layer(side, 16, 16, 1, 1, "");
    ++c.ops["add"];
    for (std::size_t s = 0; s < 5; ++s) {
        for (std::size_t i = 0; i < std::size_t(choices[40 + s]) + 2; ++i) {
            const int stride = i == 0 ? strides[s] : 1, out = channels[s];
            const double wide = rounded(in * expansions[choices[20 + 4 * s + i]]);
            c.layer(side, in, wide, 1, 1, swish[s] ? "" : "relu");
            side = (side + stride - 1) / stride;
            c.layer(side, wide, wide, kernels[choices[4 * s + i]], wide, swish[s] ? "" : "relu");
            if (swish[s]) hard_swish(), hard_swish();
            if (squeeze[s]) {
                const double squeezed = rounded(std::floor(wide / 4));
                c.conv(1, wide, squeezed, 1);
                c.conv(1, squeezed, wide, 1);
                hard_swish();
                ++c.ops["relu"];
                c.ops["reduce"] += 2;
            }
            c.layer(side, wide, out, 1, 1, "");
            if (in == out && stride == 1) ++c.ops["add"];
            in = out;
        }
    }
    c.layer(side, 160, 960, 1, 1, "");
    hard_swish();
    c.conv(1, 960, 1280, 1);
    hard_swish();
    c.ops["reduce"] += 2;
    c.macs += 1280 * 1000;
    return c;
}

Counts ofa_resnet(const std::vector<int>& choices) {
    constexpr int channels[] = {256, 512, 1024, 2048}, strides[] = {1, 2, 2, 2}, least[] = {2, 2, 4, 2};
    constexpr double widths[] = {0.65, 0.8, 1}, expansions[] = {0.2, 0.25, 0.35};
    Counts c;
    const auto scaled = [&](int full, std::size_t place) { return rounded(full * widths[choices[23 + place]]); };
    int side = (choices[29] + 32 + 1) / 2;
    const double middle = scaled(32, 0);
    double in = scaled(64, 1);
    c.layer(side, 3, middle, 3, 1, "relu");
    if (choices[0] == 2) c.layer(side, middle, middle, 3, 1, "relu"), ++c.ops["add"];
    c.layer(side, middle, in, 3, 1, "relu");
    side = (side + 1) / 2;
    ++c.ops["pool"];
    std::size_t block = 5;
    for (std::size_t s = 0; s < 4; ++s) {
        const double out = scaled(channels[s], 2 + s);
        for (int i = 0; i < least[s] + choices[1 + s]; ++i) {
            const int stride = i == 0 ? strides[s] : 1, after = (side + stride - 1) / stride;
            const double inner = rounded(std::round(out * expansions[choices[block + std::size_t(i)]]));
            c.layer(side, in, inner, 1, 1, "relu");
            c.layer(after, inner, inner, 3, 1, "relu");
            c.layer(after, inner, out, 1, 1, "relu");
            ++c.ops["add"];
            if (in != out || stride != 1) c.layer(after, in, out, 1, 1, ""), ++c.ops["pool"];
            in = out;
            side = after;
        }
        block += std::size_t(least[s]) + 2;
    }
    c.macs += in * 1000;
    return c;
}

}  // namespace

TEST_CASE("architectures of every space have the multiply-adds and operators of the reference code") {
    check_space("fbnet", fbnet);
    check_space("nasbench201", nasbench201);
    check_space("transformer", transformer);
    check_space("ofa", ofa);
    check_space("ofa-resnet", ofa_resnet);
}
