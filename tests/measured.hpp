#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/approx.hpp"

namespace ftax::test {

/// What was measured and published, with how far a prediction may be from it: a row of tests/regression/measured.tsv.
/// Prints the error of every comparison where the environment names FTAX_MEASURED.
class Measured {
  public:
    explicit Measured(const std::string& name) : name_(name) {
        static const std::map<std::string, std::pair<double, double>> rows = read();
        REQUIRE_MESSAGE(rows.contains(name), "tests/regression/measured.tsv has no row " << name);
        std::tie(value_, gate_percent_) = rows.at(name);
    }
    friend bool operator==(double predicted, const Measured& m) {
        const double percent = 100 * (predicted / m.value_ - 1);
        if (std::getenv("FTAX_MEASURED")) fmt::print("{}\t{:+.1f}\n", m.name_, percent);
        return percent <= m.gate_percent_ && percent >= -m.gate_percent_;
    }
    friend std::ostream& operator<<(std::ostream& out, const Measured& m) {
        return out << m.value_ << " within " << m.gate_percent_ << " % (" << m.name_ << ")";
    }

  private:
    static std::map<std::string, std::pair<double, double>> read() {
        std::ifstream file(std::string(FTAX_SOURCE_DIR) + "/tests/regression/measured.tsv");
        std::map<std::string, std::pair<double, double>> rows;
        for (std::string line, name; std::getline(file, line);) {
            std::istringstream cells(line);
            std::string value, gate;
            if (line.starts_with('#') || !std::getline(cells, name, '\t')) continue;
            std::getline(cells, value, '\t');
            std::getline(cells, gate, '\t');
            rows[name] = {std::stod(value), std::stod(gate)};
        }
        return rows;
    }

    std::string name_;
    double value_ = 0, gate_percent_ = 0;
};

}  // namespace ftax::test
