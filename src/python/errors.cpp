#include <array>
#include <regex>
#include <string>
#include <utility>

#include "ftax/error.hpp"
#include "graphs/base/interruption.hpp"
#include "graphs/files/escape.hpp"
#include "src/python/bindings.hpp"

namespace ftax::python {
namespace {

constexpr std::array<std::pair<ErrorCode, const char*>, 5> classes{{{ErrorCode::usage, "UsageError"},
                                                                    {ErrorCode::model, "ModelError"},
                                                                    {ErrorCode::limit, "LimitError"},
                                                                    {ErrorCode::refused, "RefusedError"},
                                                                    {ErrorCode::profile, "ProfileError"}}};

/// The classes live as long as the interpreter, hence these references are never given back.
std::array<PyObject*, classes.size()> types{};

void translate(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const Error& error) {
        const std::string message = escape_terminal(in_python_terms(error.what()));
        for (std::size_t i = 0; i < classes.size(); ++i)
            if (classes[i].first == error.code()) PyErr_SetString(types[i], message.c_str());
    } catch (const Interrupted&) {  // of another thread, which the same Ctrl-C ends
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
}

}  // namespace

std::string in_python_terms(std::string text) {
    static const std::array<std::pair<std::regex, const char*>, 5> terms{
        {{std::regex("`ftax (devices|frameworks|models)( list)?`"), "ftax.$1()"},
         {std::regex("`ftax (compare|generate)`"), "ftax.$1"},
         {std::regex("--shapes [^ ]+ lets it vary"), "load_graph(…, vary_batch=True) lets it vary"},
         {std::regex("--dim "), ""},
         {std::regex("--batch N"), "batch=N"}}};
    for (const auto& [of_program, of_python] : terms) text = std::regex_replace(text, of_program, of_python);
    // "--device-profile" is the argument device_profile.
    static const std::regex flag("--([a-z]+)(-([a-z]+))?(-([a-z]+))?");
    for (std::smatch found; std::regex_search(text, found, flag);) {
        std::string argument = found[1];
        for (const int more : {3, 5}) argument += found[more].matched ? "_" + found[more].str() : "";
        text = found.prefix().str() + argument + found.suffix().str();
    }
    return text;
}

void bind_errors(nb::module_& module) {
    PyObject* const base = PyErr_NewExceptionWithDoc(
        "ftax.Error", "What ftax raises. `code` is the exit code of the program ftax for the same failure.",
        PyExc_Exception, nullptr);
    module.attr("Error") = nb::handle(base);
    nb::handle(base).attr("code") = 1;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const auto& [code, name] = classes[i];
        types[i] = PyErr_NewException((std::string("ftax.") + name).c_str(), base, nullptr);
        nb::handle(types[i]).attr("code") = static_cast<int>(code);
        module.attr(name) = nb::handle(types[i]);
    }
    nb::register_exception_translator(translate);
}

}  // namespace ftax::python
