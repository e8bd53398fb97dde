#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/measurement.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::scenario {

/// Conditions a framework's host and a card on measured rows of that framework and card, those of `model` also on what
/// is wrong about it. Rows of others are left out; without any that fits nothing changes and a warning says so.
/// Throws Error for a row whose model nobody knows.
void anchor_on(FrameworkProfile& framework, DeviceProfile& device, std::span<const LanguageMeasurement> rows,
               std::string_view model);

/// Predicts rows of measured language models. Graphs and generators are kept.
class LanguagePredictor {
  public:
    /// The profile of a framework by its name as rows spell it; the built-in one by default.
    using Profile = std::function<FrameworkProfile(const std::string& framework)>;

    explicit LanguagePredictor(std::string device_profile_path = {}, Profile profile = {});

    /// Rows that predictions are conditioned on from now on.
    void anchor(std::vector<LanguageMeasurement> rows) { anchors_ = std::move(rows); }
    /// Throws Error for what the row asks for and ftax does not have.
    [[nodiscard]] Generation predict(const LanguageMeasurement& row);
    /// The profiles that predict() has used.
    [[nodiscard]] std::set<report::UsedProfile> profiles() const;

  private:
    struct Entry {
        std::unique_ptr<Graph> graph;
        std::unique_ptr<Generator> generator;
    };

    std::string device_profile_path_;
    Profile profile_;
    std::vector<LanguageMeasurement> anchors_;
    std::map<std::tuple<std::string, std::string, std::string, Precision, std::int64_t>, Entry> entries_;
};

}  // namespace ftax::scenario
