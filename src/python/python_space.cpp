#include "src/python/python_space.hpp"

#include <fmt/format.h>

#include <limits>

#include "ftax/error.hpp"

namespace ftax::python {
namespace {

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
        throw Error(ErrorCode::usage,
                    fmt::format("{}: parse() must return {} choices, not {}", name_, options_.size(), choices.size()));
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
        if (fields.size() > result.fields.size()) {
            throw Error(ErrorCode::usage, fmt::format("{}: a block has at most {} numbers, not {}", name_,
                                                      result.fields.size(), fields.size()));
        }
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i] < -most || fields[i] > most) {
                throw Error(ErrorCode::usage,
                            fmt::format("{}: a number of a block must be at most {}, not {}", name_, most, fields[i]));
            }
            result.fields[i] = static_cast<std::int16_t>(fields[i]);
        }
        return result;
    }

    [[nodiscard]] std::vector<TensorId> checked(const nb::object& tensors, std::string_view method) const {
        auto live = nb::cast<std::vector<TensorId>>(tensors);
        if (live.empty())
            throw Error(ErrorCode::model, fmt::format("{}: {}() must return the live tensors", name_, method));
        return live;
    }

    nb::object space_;
    std::string name_;
    std::vector<int> options_;
};

}  // namespace

SpaceHandle::SpaceHandle(nb::object space) {
    if (nb::isinstance<nb::str>(space)) {
        built_in_ = &nas::space(nb::cast<std::string>(space));
    } else {
        own_ = std::make_shared<PythonSpace>(std::move(space));
    }
}

}  // namespace ftax::python
