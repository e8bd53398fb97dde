// LibTorch's dispatch for a machine that has neither ftax nor Debian's packages, only a Python with torch: campaign.sh
// builds this with LibTorch's headers (fmt among them), campaign.py calls it. One network at a time; a function that
// can fail returns why, or nullptr.

#include <memory>
#include <string>

#include "calibration/bench/libtorch/libtorch_device.hpp"
#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"

namespace {

using namespace ftax;
using namespace ftax::bench;

std::unique_ptr<LibtorchDevice> device;
std::string problem;

template <class Action>
const char* reason_why_not(Action action) {
    try {
        problem = action();
    } catch (const std::exception& error) {
        problem = error.what();
    }
    return problem.empty() ? nullptr : problem.c_str();
}

}  // namespace

#define FTAX_EXPORT extern "C" __attribute__((visibility("default")))

/// Opens "cpu" or "cuda"; an operator's tensors get this precision.
FTAX_EXPORT const char* ftax_open(const char* name, const char* precision) {
    return reason_why_not([&] {
        const auto known = precision_from_name(precision);
        if (!known) return "no precision is called " + std::string(precision);
        device = std::make_unique<LibtorchDevice>(name, *known, 1);
        return std::string();
    });
}

/// Readies a text graph without symbols for host_dispatch samples of `calls` calls each.
FTAX_EXPORT const char* ftax_prepare(const char* graph, int calls) {
    return reason_why_not([&] {
        const auto failure =
            device->prepare({.id = "operator",
                             .graph = std::make_shared<const Graph>(parse_text_graph(graph, "operator")),
                             .mode = Mode::host_dispatch,
                             .warm_ups = 5,
                             .calls = calls});
        return failure ? std::string(name_of(failure->kind)) + ": " + failure->message : std::string();
    });
}

/// Takes one sample: host seconds of a call.
FTAX_EXPORT const char* ftax_sample(double* seconds) {
    return reason_why_not([&] {
        const auto outcome = device->sample();
        if (const auto* failure = std::get_if<Failure>(&outcome)) return failure->message;
        *seconds = std::get<Sample>(outcome).seconds;
        return std::string();
    });
}
