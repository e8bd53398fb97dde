#include <array>
#include <utility>

#include "ftax/error.hpp"
#include "src/python/bindings.hpp"

namespace ftax::python {
namespace {

struct ErrorClass {
    ErrorCode code;
    const char* name;
};
constexpr std::array<ErrorClass, 5> classes{{{ErrorCode::usage, "UsageError"},
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
        for (std::size_t i = 0; i < classes.size(); ++i) {
            if (classes[i].code == error.code()) PyErr_SetString(types[i], error.what());
        }
    }
}

}  // namespace

void bind_errors(nb::module_& module) {
    PyObject* const base = PyErr_NewExceptionWithDoc(
        "ftax.Error", "What ftax raises. `code` is the exit code of the program ftax for the same failure.",
        PyExc_Exception, nullptr);
    module.attr("Error") = nb::handle(base);
    nb::handle(base).attr("code") = 1;
    for (std::size_t i = 0; i < classes.size(); ++i) {
        types[i] = PyErr_NewException((std::string("ftax.") + classes[i].name).c_str(), base, nullptr);
        nb::handle(types[i]).attr("code") = static_cast<int>(classes[i].code);
        module.attr(classes[i].name) = nb::handle(types[i]);
    }
    nb::register_exception_translator(translate);
}

}  // namespace ftax::python
