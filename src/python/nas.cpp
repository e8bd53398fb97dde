#include "ftax/nas.hpp"

#include <limits>
#include <memory>

#include "graphs/base/throw_error.hpp"
#include "src/cli/in_process.hpp"
#include "src/python/bindings.hpp"
#include "src/report/quantities.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::python {
namespace {

using Choices = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CampaignState = std::tuple<double, double, std::optional<bool>, std::array<double, factor_count>>;
using SampleTuple = std::tuple<std::vector<int>, std::int64_t, double>;

class PythonSpace final : public nas::Space {
  public:
    explicit PythonSpace(nb::object space)
        : space_(std::move(space)),
          name_(nb::cast<std::string>(space_.attr("name"))),
          options_(nb::cast<std::vector<int>>(space_.attr("options"))) {}
    PythonSpace(const PythonSpace&) = delete;
    PythonSpace& operator=(const PythonSpace&) = delete;
    ~PythonSpace() override {
        const nb::gil_scoped_acquire locked;
        space_.reset();
    }

    std::string_view name() const override { return name_; }
    std::vector<int> options() const override { return options_; }

    void parse(std::string_view text, std::vector<int>& choices) const override {
        const nb::gil_scoped_acquire locked;
        choices = nb::cast<std::vector<int>>(space_.attr("parse")(std::string(text)));
        if (choices.size() == options_.size()) return;
        throw_error(ErrorCode::usage, "{}: parse() must return {} choices, not {}", name_, options_.size(),
                    choices.size());
    }

    void blocks(std::span<const int> choices, std::vector<nas::Block>& chain) const override {
        const nb::gil_scoped_acquire locked;
        const auto list = nb::cast<std::vector<std::vector<std::int64_t>>>(
            space_.attr("blocks")(std::vector<int>(choices.begin(), choices.end())));
        for (const std::vector<std::int64_t>& fields : list) chain.push_back(block(fields));
    }

    std::vector<TensorId> inputs(GraphBuilder& net, std::span<const int> choices) const override {
        const nb::gil_scoped_acquire locked;
        return checked(space_.attr("inputs")(nb::cast(net, nb::rv_policy::reference),
                                             std::vector<int>(choices.begin(), choices.end())),
                       "inputs");
    }

    void build(GraphBuilder& net, const nas::Block& block, std::vector<TensorId>& live) const override {
        const nb::gil_scoped_acquire locked;
        const std::vector<int> fields(block.fields.begin(), block.fields.end());
        live = checked(space_.attr("build")(nb::cast(net, nb::rv_policy::reference), nb::tuple(nb::cast(fields)), live),
                       "build");
    }

    ShapeBindings usual_dims() const override {
        const nb::gil_scoped_acquire locked;
        return nb::cast<ShapeBindings>(space_.attr("usual_dims"));
    }

    bool waits_after_blocks() const override {
        const nb::gil_scoped_acquire locked;
        return nb::cast<bool>(space_.attr("waits_after_blocks"));
    }

  private:
    [[nodiscard]] nas::Block block(const std::vector<std::int64_t>& fields) const {
        nas::Block result;
        const auto most = std::numeric_limits<std::int16_t>::max();
        if (fields.size() > result.fields.size())
            throw_error(ErrorCode::usage, "{}: a block has at most {} numbers, not {}", name_, result.fields.size(),
                        fields.size());
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i] < -most || fields[i] > most)
                throw_error(ErrorCode::usage, "{}: a number of a block must be at most {}, not {}", name_, most,
                            fields[i]);
            result.fields[i] = static_cast<std::int16_t>(fields[i]);
        }
        return result;
    }

    [[nodiscard]] std::vector<TensorId> checked(const nb::object& tensors, std::string_view method) const {
        auto live = nb::cast<std::vector<TensorId>>(tensors);
        if (live.empty()) throw_error(ErrorCode::model, "{}: {}() must return the live tensors", name_, method);
        return live;
    }

    nb::object space_;
    std::string name_;
    std::vector<int> options_;
};

/// A search space by name, or a Python object with the methods of ftax.nas.Space. Calls into Python acquire the
/// interpreter lock and are allowed from any thread; Python exceptions propagate through C++ unchanged.
class SpaceHandle {
  public:
    /// Throws Error{usage} for an unknown name.
    explicit SpaceHandle(nb::object space) {
        if (nb::isinstance<nb::str>(space)) {
            built_in_ = &nas::space(nb::cast<std::string>(space));
        } else {
            own_ = std::make_shared<PythonSpace>(std::move(space));
        }
    }

    [[nodiscard]] const nas::Space& get() const { return own_ ? *own_ : *built_in_; }

  private:
    std::shared_ptr<const nas::Space> own_;
    const nas::Space* built_in_ = nullptr;
};

/// A cost function with the space it refers to.
class SharedCost {
  public:
    SharedCost(nb::object space, const std::vector<std::string>& words, const std::vector<std::int64_t>& batches,
               const nas::Campaign& campaign, const std::vector<SampleTuple>& samples, const ShapeBindings& dims)
        : space_(std::move(space)), campaign_(campaign) {
        const nb::gil_scoped_release released;
        const scenario::RunArguments run = cli::run_of(words);
        auto [device, framework, options] = scenario::resolve(run, scenario::parse_precision(run.precision));
        if (!samples.empty()) {
            std::vector<nas::Sample> known;
            for (const auto& [choices, batch, latency_s] : samples) known.push_back({choices, batch, latency_s});
            campaign_ = nas::calibrate(space_.get(), device, framework, options, known, campaign, dims).campaign;
        }
        warnings_ = report::joined(device.warnings, framework.warnings);
        if (samples.empty()) warnings_ = report::joined(warnings_, scenario::nas_assumptions(run, framework));
        cost_ = std::make_unique<nas::CostFunction>(space_.get(), std::move(device), std::move(framework), options,
                                                    batches, campaign_, dims);
    }

    [[nodiscard]] const nas::CostFunction& get() const { return *cost_; }
    [[nodiscard]] const nas::Space& space() const { return space_.get(); }
    [[nodiscard]] const nas::Campaign& campaign() const { return campaign_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    SpaceHandle space_;
    nas::Campaign campaign_;
    std::vector<std::string> warnings_;
    std::unique_ptr<nas::CostFunction> cost_;
};

/// Parses architectures; the message names the first one that does not parse.
Array<int, 2> parse(const SpaceHandle& space, const std::vector<std::string>& texts) {
    std::vector<int> all;
    {
        const nb::gil_scoped_release released;
        std::vector<int> one;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            try {
                space.get().parse(texts[i], one);
            } catch (const Error& error) {
                throw_error(error.code(), "architecture {}: {}", i, error.what());
            }
            all.insert(all.end(), one.begin(), one.end());
        }
    }
    return to_array(std::move(all), texts.size(), space.get().options().size());
}

std::size_t checked_sites(const SharedCost& cost, std::size_t given) {
    const std::size_t sites = cost.space().options().size();
    if (given == sites) return sites;
    throw_error(ErrorCode::usage, "{}: an architecture has {} choices, not {}", cost.space().name(), sites, given);
}

Array<double, 2> cost_of(const SharedCost& cost, const Choices& choices, unsigned threads) {
    const std::size_t rows = choices.shape(0);
    const std::size_t sites = checked_sites(cost, choices.shape(1));
    const std::size_t batches = cost.get().batches().size();
    // A copy: another thread may write into the caller's array while this one runs without the interpreter lock.
    const std::vector<int> own(choices.data(), choices.data() + rows * sites);
    std::vector<double> latency_s(rows * batches);
    {
        const nb::gil_scoped_release released;
        cost.get().cost(own, latency_s, threads);
    }
    return to_array(std::move(latency_s), rows, batches);
}

Array<double, 2> marginal_cost(const SharedCost& cost, const std::vector<int>& choices, std::size_t site) {
    checked_sites(cost, choices.size());
    const std::vector<int> options = cost.space().options();
    if (site >= options.size()) throw_error(ErrorCode::usage, "{}: invalid choice {}", cost.space().name(), site);
    const auto rows = static_cast<std::size_t>(options[site]);
    std::vector<double> latency_s(rows * cost.get().batches().size());
    {
        const nb::gil_scoped_release released;
        cost.get().marginal_cost(choices, site, latency_s);
    }
    return to_array(std::move(latency_s), rows, cost.get().batches().size());
}

Graph build(const SpaceHandle& space, const std::vector<int>& choices) {
    const nb::gil_scoped_release released;
    return nas::build_graph(space.get(), choices);
}

}  // namespace

void bind_nas(nb::module_& module) {
    nb::class_<nas::Campaign>(module, "Campaign", "What sets one measuring campaign apart from the profiles.")
        .def(
            "__init__",
            [](nas::Campaign* self, double host_scale, double device_scale, std::optional<bool> waits_after_blocks) {
                new (self) nas::Campaign{host_scale, device_scale, waits_after_blocks};
            },
            "host_scale"_a = 1.0, "device_scale"_a = 1.0, "waits_after_blocks"_a = nb::none())
        .def_ro("host_scale", &nas::Campaign::host_scale)
        .def_ro("device_scale", &nas::Campaign::device_scale)
        .def_ro("waits_after_blocks", &nas::Campaign::waits_after_blocks)
        .def_ro(
            "class_scale", &nas::Campaign::class_scale,
            "Device time of each class of kernels against device_scale, in the order of the C++ enumeration Factor.")
        .def("__getstate__",
             [](const nas::Campaign& c) {
                 return CampaignState{c.host_scale, c.device_scale, c.waits_after_blocks, c.class_scale};
             })
        .def("__setstate__", [](nas::Campaign& c, const CampaignState& state) {
            new (&c) nas::Campaign{std::get<0>(state), std::get<1>(state), std::get<2>(state), std::get<3>(state)};
        });

    nb::class_<SpaceHandle>(module, "SpaceHandle")
        .def(nb::init<nb::object>(), "space"_a)
        .def_prop_ro("name", [](const SpaceHandle& s) { return std::string(s.get().name()); })
        .def_prop_ro("options", [](const SpaceHandle& s) { return s.get().options(); })
        .def(
            "usual_options", [](const SpaceHandle& s, std::size_t site) { return s.get().usual_options(site); },
            "site"_a)
        .def("parse", parse, "archs"_a)
        .def("build_graph", build, "choices"_a);

    nb::class_<SharedCost>(module, "CostFunction")
        .def(nb::init<nb::object, const std::vector<std::string>&, const std::vector<std::int64_t>&,
                      const nas::Campaign&, const std::vector<SampleTuple>&, const ShapeBindings&>(),
             "space"_a, "options"_a, "batches"_a, "campaign"_a, "samples"_a, "dims"_a)
        .def("cost", cost_of, "choices"_a, "threads"_a)
        .def("marginal_cost", marginal_cost, "choices"_a, "site"_a)
        .def_prop_ro("campaign", &SharedCost::campaign)
        .def_prop_ro("dims", [](const SharedCost& cost) { return cost.get().dims(); })
        .def_prop_ro("warnings", &SharedCost::warnings);

    module.attr("measured_host") = std::string(nas::measured_host);
    module.def("space_names", &nas::space_names);
}

}  // namespace ftax::python
