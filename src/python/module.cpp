#include "src/python/bindings.hpp"
#include "src/scenario/scenario.hpp"

NB_MODULE(_ftax, module) {
    // Searches keep cost functions in globals that the interpreter never clears (pymoo does): no cause for alarm.
    nanobind::set_leak_warnings(false);
    module.doc() = "Analytical latency model for neural-network inference on GPUs: the compiled part of ftax.";
    ftax::scenario::limit_notices(ftax::scenario::Notices::none);  // warnings are Python's here, and in the results
    module.attr("__version__") = FTAX_VERSION;
    ftax::python::bind_errors(module);
    ftax::python::bind_graph(module);
    ftax::python::bind_profiles(module);
    ftax::python::bind_predictor(module);
    ftax::python::bind_reports(module);
    ftax::python::bind_nas(module);
}
