#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// The command line without CLI11's headers, which are slow to compile and included only by options.cpp and
/// command_tree.cpp. Names and semantics are CLI11's.
namespace ftax::cli {

class Option {
  public:
    explicit Option(CLI::Option* option) : option_(option) {}

    [[nodiscard]] CLI::Option* get() const { return option_; }
    Option type_name(const std::string& name) const;
    Option required(bool value = true) const;
    Option expected(int count) const;
    Option expected(int fewest, int most) const;
    Option default_str(const std::string& text) const;
    Option capture_default_str() const;
    Option allow_extra_args(bool value) const;
    Option needs(Option other) const;
    Option excludes(Option other) const;
    Option each(const std::function<void(const std::string&)>& visit) const;

    Option one_of(const std::vector<std::string>& values, bool ignores_case = false) const;
    Option positive() const;
    Option range(int low, int high) const;
    Option range(double low, double high) const;
    /// A number with an optional unit, which multiplies it.
    Option with_unit(const std::map<std::string, double>& units) const;

  private:
    CLI::Option* option_;
};

class Verb {
  public:
    explicit Verb(CLI::App* app) : app_(app) {}

    [[nodiscard]] CLI::App* get() const { return app_; }
    [[nodiscard]] Verb add_subcommand(const std::string& name, const std::string& description) const;
    [[nodiscard]] Verb add_option_group(const std::string& name) const;
    /// Instantiated in options.cpp for each type of option.
    template <class T>
    Option add_option(const std::string& name, T& value, const std::string& description,
                      const std::string& type_name = "") const;
    Option add_flag(const std::string& name, bool& value, const std::string& description) const;
    Option add_flag_callback(const std::string& name, const std::function<void()>& set,
                             const std::string& description) const;
    [[nodiscard]] Option get_option(const std::string& name) const;
    [[nodiscard]] std::vector<Option> get_options() const;
    void remove_option(Option option) const;
    void require_subcommand(int count) const;
    void set_version_flag(const std::string& name, const std::string& version) const;
    [[nodiscard]] std::size_t count(const std::string& name) const;
    [[nodiscard]] std::vector<Verb> subcommands() const;
    [[nodiscard]] std::string description() const;
    void description(const std::string& text) const;
    [[nodiscard]] std::string footer() const;
    void footer(const std::string& text) const;
    void callback(const std::function<void()>& run) const;
    /// Accepts any words; runs `run` as soon as the verb is recognised.
    void take_all(const std::function<void()>& run) const;

  private:
    CLI::App* app_;
};

class CommandLine {
  public:
    explicit CommandLine(const std::string& program);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    [[nodiscard]] Verb root() const { return Verb(app_.get()); }
    /// Runs the callbacks of the verb; returns false if help or version were printed. Throws Error{usage} naming an
    /// unknown command or option, with similar names.
    [[nodiscard]] bool parse(std::vector<std::string> words) const;

  private:
    std::unique_ptr<CLI::App> app_;
};

}  // namespace ftax::cli
