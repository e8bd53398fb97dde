#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "ftax/error.hpp"
#include "ftax/headroom.hpp"
#include "ftax/predict.hpp"
#include "src/python/bindings.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::python {
namespace {

using Bindings = std::map<std::string, std::int64_t>;

/// A prediction as Python holds it: alone, with all that is to be said of it.
struct PredictionHere : Prediction {
    double memory_bytes = 0;
    bool fits = true;
    std::string component;  ///< widest_component, which may come out of a pickle
};

std::map<std::string, double> coverage(const PredictionHere& p) {
    return {{"nodes", p.coverage.nodes}, {"flops", p.coverage.flops}, {"time", p.coverage.time}};
}

nb::dict to_dict(const PredictionHere& p) {
    nb::dict row;
    row["latency_s"] = p.latency_s;
    row["low_s"] = p.low_s;
    row["high_s"] = p.high_s;
    row["host_s"] = p.host_s;
    row["device_s"] = p.device_s;
    row["closed_form_s"] = p.closed_form_s;
    row["widest_component"] = p.component;
    row["bound"] = std::string(name_of(p.bound));
    row["kernels"] = p.kernels;
    row["sm_active"] = p.sm_active;
    row["warp_occupancy"] = p.warp_occupancy;
    row["power_w"] = p.power_w;
    row["coverage"] = coverage(p);
    row["memory_bytes"] = p.memory_bytes;
    row["fits"] = p.fits;
    row["warnings"] = p.warnings;
    return row;
}

using PredictionState =
    std::tuple<std::array<double, 15>, int, std::int64_t, bool, std::string, std::vector<std::string>>;

PredictionState state_of(const PredictionHere& p) {
    return {{p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s, p.host_relative_stddev, p.device_relative_stddev,
             p.closed_form_s, p.sm_active, p.warp_occupancy, p.coverage.nodes, p.coverage.flops, p.coverage.time,
             p.memory_bytes, p.power_w},
            static_cast<int>(p.bound),
            p.kernels,
            p.fits,
            p.component,
            p.warnings};
}

void restore(PredictionHere& p, const PredictionState& state) {
    const auto& [numbers, bound, kernels, fits, component, warnings] = state;
    new (&p) PredictionHere;
    const std::array<double*, 15> members{&p.latency_s,
                                          &p.low_s,
                                          &p.high_s,
                                          &p.host_s,
                                          &p.device_s,
                                          &p.host_relative_stddev,
                                          &p.device_relative_stddev,
                                          &p.closed_form_s,
                                          &p.sm_active,
                                          &p.warp_occupancy,
                                          &p.coverage.nodes,
                                          &p.coverage.flops,
                                          &p.coverage.time,
                                          &p.memory_bytes,
                                          &p.power_w};
    for (std::size_t i = 0; i < members.size(); ++i) *members[i] = numbers[i];
    p.bound = static_cast<Bound>(bound);
    p.kernels = kernels;
    p.fits = fits;
    p.component = component;
    p.warnings = warnings;
}

/// A predictor that threads may share: prediction changes its state.
class SharedPredictor {
  public:
    SharedPredictor(const Graph& graph, const std::string& device, const std::string& framework,
                    const std::string& precision, const std::string& host, const std::string& anchor,
                    const std::string& device_file, const std::string& framework_file, bool channels_last, int cudnn,
                    double padding, bool synchronized, bool framework_given) {
        if (padding < 0 || padding > 1) throw Error(ErrorCode::usage, "padding must be from 0 to 1");
        DeviceProfile on = device_profile(device, device_file);
        LibraryVersions libraries{.cudnn = cudnn};
        FrameworkProfile under = scenario::versioned_profile(framework, host, framework_file, libraries);
        warnings_ = graph.warnings;
        const auto warn = [&](const std::vector<std::string>& more) {
            warnings_.insert(warnings_.end(), more.begin(), more.end());
        };
        warn(scenario::onnx_warnings(graph, framework, framework_given));
        warn(on.warnings);
        warn(under.warnings);
        if (!anchor.empty()) {
            const auto rows = scenario::usable_rows(read_model_measurements(read_csv(anchor)), warn);
            const std::size_t before = under.warnings.size();
            scenario::anchor_on(under, on, rows, {graph.name, {}, {}});
            warnings_.insert(warnings_.end(), under.warnings.begin() + static_cast<std::ptrdiff_t>(before),
                             under.warnings.end());
        }
        options_ = {.precision = scenario::parse_precision(precision),
                    .channels_last = channels_last,
                    .libraries = libraries,
                    .padding = padding,
                    .synchronized = synchronized};
        predictor_ = std::make_unique<Predictor>(graph, std::move(on), std::move(under), options_);
    }

    [[nodiscard]] PredictionHere predict(const Bindings& dims) {
        const std::lock_guard guard(mutex_);
        return predict_alone({dims.begin(), dims.end()});
    }
    [[nodiscard]] std::vector<PredictionHere> sweep(const std::vector<std::int64_t>& batches, const Bindings& dims) {
        const std::lock_guard guard(mutex_);
        ShapeBindings bindings{dims.begin(), dims.end()};
        std::vector<PredictionHere> predictions;
        for (const std::int64_t batch : batches) {
            bindings["batch"] = batch;
            predictions.push_back(predict_alone(bindings));
        }
        return predictions;
    }
    [[nodiscard]] std::vector<Crossover> crossovers(const Bindings& dims, std::int64_t largest) {
        const std::lock_guard guard(mutex_);
        return find_crossovers(*predictor_, {dims.begin(), dims.end()}, largest);
    }
    [[nodiscard]] std::vector<Headroom> headroom(const Bindings& dims, double budget) const {
        if (!(budget > 0)) throw Error(ErrorCode::usage, "the budget must be a share above 0, e.g. 0.05");
        return find_headroom(predictor_->graph(), predictor_->device(), predictor_->framework(), options_,
                             {dims.begin(), dims.end()}, budget);
    }
    [[nodiscard]] Explanation explain(const Bindings& dims) {
        const std::lock_guard guard(mutex_);
        return predictor_->explain({dims.begin(), dims.end()});
    }
    [[nodiscard]] const Predictor& get() const { return *predictor_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    PredictionHere predict_alone(const ShapeBindings& bindings) {
        PredictionHere p{predictor_->predict(bindings)};
        const MemoryUse memory = predictor_->memory(bindings);
        p.memory_bytes = memory.total_bytes();
        p.fits = memory.fits();
        p.component = p.widest_component;
        scenario::warn_of_memory(p, memory);
        p.warnings.insert(p.warnings.begin(), warnings_.begin(), warnings_.end());
        return p;
    }

    PredictOptions options_;
    std::unique_ptr<Predictor> predictor_;
    std::mutex mutex_;
    std::vector<std::string> warnings_;
};

nb::list operators(SharedPredictor& predictor, const Bindings& dims) {
    const Graph& graph = predictor.get().graph();
    Explanation explanation;
    {
        const nb::gil_scoped_release released;
        explanation = predictor.explain(dims);
    }
    nb::list rows;
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) {
        const OpPrediction& op = explanation.launches[i];
        const Span& span = explanation.timeline[i];
        nb::dict row;
        const bool named = op.op < graph.ops.size();  // the forward call itself is no operator
        row["operator"] = named ? graph.ops[op.op].name : std::string();
        row["source"] = named ? graph.ops[op.op].source : std::string();
        row["module"] = named ? graph.ops[op.op].module : std::string();
        row["host_kind"] = std::string(name_of(op.host_kind));
        row["kernels"] = op.kernels;
        row["host_s"] = op.host_s;
        row["device_s"] = op.device_s;
        row["bound"] = std::string(name_of(op.bound));
        row["host_start_s"] = span.host_start_s;
        row["device_start_s"] = span.device_start_s;
        row["device_end_s"] = span.device_end_s;
        rows.append(row);
    }
    return rows;
}

}  // namespace

void bind_predictor(nb::module_& module) {
    nb::class_<PredictionHere>(module, "Prediction", "Latency of one forward pass and what bounds it. Seconds.")
        .def_ro("latency_s", &PredictionHere::latency_s, "End of the simulated timeline: the answer.")
        .def_ro("low_s", &PredictionHere::low_s, "Lower end of the 90 % interval.")
        .def_ro("high_s", &PredictionHere::high_s, "Upper end of the 90 % interval.")
        .def_ro("host_s", &PredictionHere::host_s, "Sum of the host's dispatch times.")
        .def_ro("device_s", &PredictionHere::device_s, "Sum of the kernels' times.")
        .def_ro("closed_form_s", &PredictionHere::closed_form_s, "The larger of the two sums.")
        .def_prop_ro(
            "widest_component", [](const PredictionHere& p) { return p.component; },
            "What the interval allows for most.")
        .def_prop_ro(
            "bound", [](const PredictionHere& p) { return std::string(name_of(p.bound)); },
            "host, compute, memory or floor")
        .def_ro("kernels", &PredictionHere::kernels)
        .def_ro("sm_active", &PredictionHere::sm_active,
                "Share of the latency in which an SM holds work, averaged over the SMs: an estimate.")
        .def_ro("warp_occupancy", &PredictionHere::warp_occupancy, "Likewise, of the warps that the SMs can hold.")
        .def_ro("power_w", &PredictionHere::power_w, "Mean draw of each board over the latency; 0 for a CPU.")
        .def_prop_ro("coverage", coverage, "Shares of nodes, FLOPs and time that are modelled.")
        .def_ro("memory_bytes", &PredictionHere::memory_bytes, "Device memory of the run at its peak.")
        .def_ro("fits", &PredictionHere::fits, "Whether the device has that much.")
        .def_ro("warnings", &PredictionHere::warnings, "Of the model's file, the profiles, the anchors and this run.")
        .def("to_dict", to_dict)
        .def("__getstate__", state_of)
        .def("__setstate__", restore)
        .def("__repr__", [](const PredictionHere& p) {
            return fmt::format("<ftax.Prediction {:.4g} ms, bound by {}>", p.latency_s * 1e3, name_of(p.bound));
        });

    nb::class_<Crossover>(module, "Crossover", "Batch at which the host takes as long as the device.")
        .def_ro("batch", &Crossover::batch)
        .def_ro("low", &Crossover::low)
        .def_ro("high", &Crossover::high)
        .def_ro("host_s", &Crossover::host_s)
        .def_prop_ro(
            "gpu_waits", [](const Crossover& c) { return c.gpu_waits_above ? "above" : "below"; },
            "Side of the crossover on which the GPU waits for the framework: below or above.")
        .def_prop_ro(
            "causes",
            [](const Crossover& c) {
                nb::list causes;
                for (const HostCause& cause : c.causes) {
                    causes.append(nb::make_tuple(std::string(name_of(cause.kind)), cause.operations, cause.host_s));
                }
                return causes;
            },
            "(kind, operations, host seconds) of what costs the host most.")
        .def("__repr__", [](const Crossover& c) { return fmt::format("<ftax.Crossover at batch {:.1f}>", c.batch); });

    nb::class_<Headroom>(module, "Headroom", "How far one property of a model can grow within a latency budget.")
        .def_ro("name", &Headroom::property, "The property: batch, another dimension, width or depth.")
        .def_ro("start", &Headroom::from, "A dimension's value; 1 for width and depth, which are factors.")
        .def_ro("end", &Headroom::to, "The largest value within the budget.")
        .def_ro("latency_s", &Headroom::latency_s, "Latency there.")
        .def_prop_ro(
            "bound", [](const Headroom& h) { return std::string(name_of(h.bound)); }, "host, compute, memory or floor")
        .def_ro("is_open", &Headroom::is_open, "The search ended before the budget did.")
        .def_ro("skipped", &Headroom::skipped, "Why the property cannot grow; empty when it can.")
        .def("__repr__", [](const Headroom& h) {
            return h.skipped.empty() ? fmt::format("<ftax.Headroom {} {:g} to {:g}>", h.property, h.from, h.to)
                                     : fmt::format("<ftax.Headroom {}: {}>", h.property, h.skipped);
        });

    nb::class_<SharedPredictor>(module, "Predictor",
                                "Predicts one graph on one device under one framework. Threads may share it; each "
                                "prediction takes microseconds and releases the interpreter lock.")
        .def(nb::init<const Graph&, const std::string&, const std::string&, const std::string&, const std::string&,
                      const std::string&, const std::string&, const std::string&, bool, int, double, bool, bool>(),
             "graph"_a, "device"_a, "framework"_a = "pytorch-eager", "precision"_a = "fp32", nb::kw_only(),
             "host"_a = "", "anchor"_a = "", "device_profile"_a = "", "framework_profile"_a = "",
             "channels_last"_a = false, "cudnn"_a = 8, "padding"_a = 0.0, "synchronized"_a = false,
             "framework_given"_a = true, nb::keep_alive<1, 2>(), Release())
        .def("predict", &SharedPredictor::predict, "dims"_a, Release())
        .def("sweep", &SharedPredictor::sweep, "batches"_a, "dims"_a, Release())
        .def("crossovers", &SharedPredictor::crossovers, "dims"_a, "largest"_a, Release())
        .def("headroom", &SharedPredictor::headroom, "dims"_a, "budget"_a, Release())
        .def("operators", operators, "dims"_a)
        .def_prop_ro("device", [](const SharedPredictor& p) { return p.get().device().device.slug; })
        .def_prop_ro("framework", [](const SharedPredictor& p) { return p.get().framework().framework; })
        .def_prop_ro("host", [](const SharedPredictor& p) { return p.get().framework().host; })
        .def_prop_ro("warnings", &SharedPredictor::warnings);
}

}  // namespace ftax::python
