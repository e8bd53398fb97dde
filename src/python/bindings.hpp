#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

/// The extension module ftax._ftax. It converts types and releases the interpreter lock; users see src/python/ftax.
namespace ftax::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

using Release = nb::call_guard<nb::gil_scoped_release>;
/// Passes numbers to numpy; the array owns them.
template <class T, std::size_t dimensions>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>;

/// Moves a vector of `rows` × `columns` numbers into an array with shared ownership.
template <class T>
Array<T, 2> to_array(std::vector<T> values, std::size_t rows, std::size_t columns) {
    auto* const owned = new std::vector<T>(std::move(values));
    const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<T, 2>(owned->data(), {rows, columns}, owner);
}

/// Translates a message of the program to the module's terms: functions and arguments instead of verbs and flags.
[[nodiscard]] std::string in_python_terms(std::string text);

void bind_errors(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_profiles(nb::module_& module);
void bind_predictor(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_nas(nb::module_& module);

}  // namespace ftax::python
