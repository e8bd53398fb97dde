#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

/// Puts dimensions of the input where the target of a reshape has 0.
void copy_zeros(const Node& n, Dims& target) {
    if (n.integer("allowzero", 0) != 0) return;
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (!n.math().is_constant(target[i], 0)) continue;
        if (n.ranked(0) && i >= n.rank(0)) n.fail("dimension {} copies an input dimension that does not exist", i);
        target[i] = n.ranked(0) ? n.dims(0)[i] : unknown_dim;
    }
}

}  // namespace

void reshape(Node& n) {
    ShapeMath& math = n.math();
    std::optional<Dims> target = n.opset < 5 && n.attribute("shape") ? n.constants("shape") : n.target_shape(1);
    if (!target) return n.unknown_output(0, n.dtype(0));
    const bool ranked = n.ranked(0);
    std::optional<std::size_t> inferred;
    copy_zeros(n, *target);
    for (std::size_t i = 0; i < target->size(); ++i) {
        const auto constant = math.constant_value((*target)[i]);
        if (constant == -1) {
            if (inferred) n.fail("two dimensions are -1");
            inferred = i;
        } else if (constant && *constant < 0) {
            n.fail("dimension {} is {}", i, *constant);
        }
    }
    // Without a -1, a single unknown dimension follows from the others.
    if (!inferred && std::ranges::count(*target, unknown_dim) == 1)
        inferred = static_cast<std::size_t>(std::ranges::find(*target, unknown_dim) - target->begin());
    Dims left = ranked ? n.dims(0) : Dims{}, rest = *target;
    if (inferred) rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*inferred));
    cancel(left, rest);
    const Expression total = ranked ? math.product(left) : unknown_dim;
    const Expression divisor = math.product(rest);
    const auto total_value = math.constant_value(total);
    const auto divisor_value = math.constant_value(divisor);
    if (inferred) {
        const bool empty = divisor_value == 0;
        if (total_value && divisor_value && !empty && *total_value % *divisor_value != 0)
            n.fail("{} elements do not divide into {}", *total_value, *divisor_value);
        (*target)[*inferred] = empty ? math.constant(0) : math.floor_divide(total, divisor);
    } else if (total_value && divisor_value && *total_value != *divisor_value) {
        n.fail("{} elements cannot become {}", *total_value, *divisor_value);
    }
    n.output(0, n.dtype(0), std::move(*target));
}

void flatten(Node& n) {
    const Dims& input = n.dims(0);
    const std::int64_t value = n.integer("axis", 1);
    const std::size_t axis = value == std::ssize(input) ? input.size() : n.axis(value, input.size());
    n.output(0, n.dtype(0), {n.math().product(input, 0, axis), n.math().product(input, axis, input.size())});
}

void squeeze(Node& n) {
    const Dims& input = n.dims(0);
    const Node::List axes = n.list("axes", 1);
    if (axes.given && !axes.values) return n.unknown_output(0, n.dtype(0));
    std::vector<std::int64_t> dropped;
    if (axes.given) {
        for (const std::int64_t a : *axes.values) {
            const std::size_t axis = n.axis(a, input.size());
            const auto size = n.math().constant_value(input[axis]);
            if (size && *size != 1) n.fail("axis {} has size {}, not 1", axis, *size);
            dropped.push_back(static_cast<std::int64_t>(axis));
        }
    } else {
        const auto is_one = [&](std::int64_t axis) { return n.math().is_constant(input.at(axis), 1); };
        std::ranges::copy_if(all_axes(input.size()), std::back_inserter(dropped), is_one);
    }
    n.output(0, n.dtype(0), n.reduced(input, dropped, false));
}

void unsqueeze(Node& n) {
    const Node::List axes = n.list("axes", 1);
    if (!axes.given) n.fail("axes are missing");
    if (!axes.values) return n.unknown_output(0, n.dtype(0));
    std::vector<bool> added(n.rank(0) + axes.values->size(), false);
    if (added.size() > max_rank) n.fail("rank above 32");
    for (const std::int64_t a : *axes.values) {
        const std::size_t axis = n.axis(a, added.size());
        if (added[axis]) n.fail("axis {} is given twice", axis);
        added[axis] = true;
    }
    Dims result;
    auto next = n.dims(0).begin();
    for (const bool one : added) result.push_back(one ? n.math().constant(1) : *next++);
    n.output(0, n.dtype(0), std::move(result));
}

void transpose(Node& n) {
    const Dims& input = n.dims(0);
    std::vector<std::int64_t> reversed = all_axes(input.size());
    std::ranges::reverse(reversed);
    std::vector<std::int64_t> perm = n.integers("perm").value_or(std::move(reversed));
    if (std::ranges::any_of(perm, [](std::int64_t at) { return at < 0; })) n.fail("a permutation has no negative axes");
    n.output(0, n.dtype(0), n.permuted(input, perm));
    n.set("perm", std::move(perm));
}

namespace {

/// Exporters write "to the end" as one of several huge numbers.
constexpr std::int64_t open_end = std::numeric_limits<std::int32_t>::max();

/// Number of elements of dim[start:end:step]. A symbolic bound is taken to lie within the dimension.
Expression sliced(ShapeMath& math, Expression dim, Expression start, Expression end, std::int64_t step) {
    const auto size = math.constant_value(dim);
    const auto clamp = [&](Expression bound, std::int64_t low, std::int64_t below_end) -> Expression {
        const auto value = math.constant_value(bound);
        if (value && size) {
            const std::int64_t wrapped = *value < 0 ? std::max(*value, -*size - 1) + *size : *value;
            return math.constant(std::clamp(wrapped, low, std::max(low, *size + below_end)));
        }
        if (!value) return math.at_least(math.multiply(bound, -1), math.constant(1)) ? math.add(dim, bound) : bound;
        if (*value <= -open_end) return math.constant(low);
        if (*value < 0) return math.add(dim, *value);
        if (*value >= open_end) return math.add(dim, below_end);
        return *value == 0 ? bound : math.minimum(bound, math.add(dim, below_end));
    };
    Expression length;
    if (step > 0) {
        length = math.subtract(clamp(end, 0, 0), clamp(start, 0, 0));
    } else {
        // INT_MIN as the end means "through element 0"
        const auto value = math.constant_value(end);
        const bool through = value && (size ? *value < -*size : *value <= -open_end);
        length = math.subtract(clamp(start, size == 0 ? -1 : 0, -1), through ? math.constant(-1) : clamp(end, -1, -1));
        step = -step;
    }
    const Expression count = math.ceil_divide(length, math.constant(step));
    const auto known = math.constant_value(count);
    return known && *known < 0 ? math.constant(0) : count;
}

}  // namespace

void slice(Node& n) {
    const Dims& input = n.dims(0);
    ShapeMath& math = n.math();
    std::optional<Dims> starts, ends;
    std::optional<std::vector<std::int64_t>> axes, steps;
    if (n.opset < 10) {
        for (const char* key : {"starts", "ends"})
            if (!n.attribute(key)) n.fail("required attribute '{}' is missing", key);
        starts = n.constants("starts");
        ends = n.constants("ends");
        axes = n.integers("axes");
    } else {
        starts = n.expressions(1);
        ends = n.expressions(2);
        axes = n.integers_of(3);
        if (n.has(3) && !axes) return n.output(0, n.dtype(0), Dims(input.size(), unknown_dim));
        steps = n.integers_of(4);
    }
    if (!axes) axes = all_axes(starts ? starts->size() : ends ? ends->size() : input.size());
    const auto fits = [&](const auto& list) { return !list || list->size() == axes->size(); };
    if (!fits(starts) || !fits(ends) || !fits(steps)) n.fail("starts, ends, axes and steps differ in length");
    Dims& result = n.result();
    const bool all_known = starts && ends && (steps || !n.has(4));
    if (!steps) steps.emplace(axes->size(), 1);
    for (std::size_t i = 0; i < axes->size(); ++i) {
        const std::size_t axis = n.axis((*axes)[i], input.size());
        (*axes)[i] = static_cast<std::int64_t>(axis);
        if ((*steps)[i] == 0) n.fail("step 0");
        const bool known = all_known && is_known((*starts)[i]) && is_known((*ends)[i]) && is_known(input[axis]);
        result[axis] = known ? sliced(math, input[axis], (*starts)[i], (*ends)[i], (*steps)[i]) : unknown_dim;
    }
    n.set("axes", *axes);
    if (std::ranges::any_of(*steps, [](std::int64_t s) { return s != 1; })) {
        n.set("step", *steps);
        if (std::ranges::any_of(*steps, [](std::int64_t s) { return s < 0; })) n.kind = OpKind::copy;  // flip
    }
}

void split(Node& n) {
    const Dims& input = n.dims(0);
    const std::size_t axis = n.set_axis(n.integer("axis", 0), input.size());
    ShapeMath& math = n.math();
    std::optional<Dims> sizes = n.has(1) ? n.expressions(1) : n.constants("split");
    const bool given = n.has(1) || sizes;
    const auto count = static_cast<std::int64_t>(n.output_count());
    if (sizes && sizes->size() != n.output_count()) n.fail("{} sizes for {} outputs", sizes->size(), count);
    if (!given) {
        if (n.integer("num_outputs", count) != count) n.fail("num_outputs is not the number of outputs");
        // Equal chunks, the last one smaller (opset 18).
        const Expression chunk = math.ceil_divide(input[axis], math.constant(count));
        sizes.emplace(n.output_count(), chunk);
        sizes->back() = math.subtract(input[axis], math.multiply(chunk, count - 1));
    } else if (sizes) {
        const auto sum =
            math.constant_value(std::accumulate(sizes->begin(), sizes->end(), math.constant(0),
                                                [&](Expression a, Expression b) { return math.add(a, b); }));
        const auto whole = math.constant_value(input[axis]);
        if (sum && whole && *sum != *whole) n.fail("parts of {} in all for a dimension of {}", *sum, *whole);
    }
    for (std::size_t i = 0; i < n.output_count(); ++i) {
        Dims part = input;
        part[axis] = sizes ? (*sizes)[i] : unknown_dim;
        n.output(i, n.dtype(0), std::move(part));
    }
}

void concat(Node& n) {
    if (n.rank(0) == 0) n.fail("cannot concatenate scalars");
    const std::size_t axis = n.set_axis(n.opset < 4 ? n.integer("axis", 1) : n.required_integer("axis"), n.rank(0));
    std::vector<const Dims*> parts;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) parts.push_back(&n.dims(i));
    n.output(0, n.dtype(0), n.joined(parts, axis));
    if (n.inputs.size() == 1) n.outputs[0].alias = n.inputs[0];
}

void expand(Node& n) {
    const auto target = n.target_shape(1);
    if (!target) return n.unknown_output(0, n.dtype(0));
    n.output(0, n.dtype(0), n.broadcast(n.dims(0), *target));
}

void tile(Node& n) {
    Dims& result = n.result();
    if (n.opset < 6) {  // inputs tiles, axis
        const auto tiles = n.expressions(1);
        const auto axis = n.integers_of(2);
        if (!tiles || !axis || tiles->size() != 1 || axis->size() != 1) return n.unknown_output(0, n.dtype(0));
        const std::size_t at = n.axis(axis->front(), result.size());
        result[at] = n.math().multiply(result[at], tiles->front());
    } else if (const auto repeats = n.expressions(1)) {
        if (repeats->size() != result.size()) n.fail("repeats does not have one value per axis");
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = n.math().multiply(result[i], (*repeats)[i]);
    } else {
        result.assign(result.size(), unknown_dim);
    }
}

void pad(Node& n) {
    Dims& result = n.result();
    const auto pads = n.opset < 11 ? n.constants(n.opset < 2 ? "paddings" : "pads") : n.expressions(1);
    if (n.opset < 11 && !pads) n.fail("required attribute 'pads' is missing");
    const auto given = n.integers_of(3);
    if (n.has(3) && !given) return n.output(0, n.dtype(0), Dims(result.size(), unknown_dim));
    const std::vector<std::int64_t> axes = given.value_or(all_axes(result.size()));
    if (pads && pads->size() != 2 * axes.size()) n.fail("pads does not have two values per axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        Expression& dim = result[n.axis(axes[i], result.size())];
        dim = pads ? n.math().add(n.math().add(dim, (*pads)[i]), (*pads)[axes.size() + i]) : unknown_dim;
    }
}

void depth_to_space(Node& n) {
    const std::int64_t block = n.required_integer("blocksize");
    if (n.rank(0) != 4) n.fail("input must have rank 4");
    if (block < 1 || block > (1 << 15)) n.fail("blocksize {}", block);
    n.output(0, n.dtype(0), n.shuffled(n.dims(0), 1, block, n.record.op_type == "DepthToSpace"));
}

void center_crop_pad(Node& n) {
    Dims& result = n.result();
    const auto target = n.expressions(1);
    const std::vector<std::int64_t> axes = n.integers("axes").value_or(all_axes(result.size()));
    if (target && target->size() != axes.size()) n.fail("shape does not have one value per axis");
    for (std::size_t i = 0; i < axes.size(); ++i)
        result[n.axis(axes[i], result.size())] = target ? (*target)[i] : unknown_dim;
}

}  // namespace ftax::onnx_import
