# The layers of the program, a static library each. Folders depend on one another in one direction: src → calibration → predictors →
# graphs → include. tests/arrows.txt has the arrows between all folders; tests/arrows_test.cpp holds the sources to it.

# Lists sources: a word that ends in / is the folder of the files behind it. check_sources.cmake asks for all of them.
function(ftax_sources result)
    set(sources "")
    foreach(word IN LISTS ARGN)
        if(word MATCHES "/$")
            set(folder ${word})
        else()
            list(APPEND sources ${PROJECT_SOURCE_DIR}/${folder}${word})
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY FTAX_LISTED_SOURCES ${sources})
    set(${result} ${sources} PARENT_SCOPE)
endfunction()

# ALONE: sources that are never compiled together with others: those that have names in common with another, and those that
# need a layer that not every program of this one links.
function(ftax_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;LINK;PRIVATE_LINK;ALONE")
    add_library(${name} STATIC ${layer_SOURCES})
    if(FTAX_UNITY)
        set_source_files_properties(${layer_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        # GCC takes sources that another includes for headers, and warns of classes there that hold types of one source.
        target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                       PRIVATE ${PROJECT_SOURCE_DIR})
    # GCC derives these three from inlined code: false alarms come and go.
    target_compile_options(${name} PRIVATE $<$<BOOL:${FTAX_WERROR}>:-Wconversion;-Werror;-Wno-error=maybe-uninitialized;-Wno-error=stringop-overflow;-Wno-error=array-bounds>)
    target_compile_features(${name} PUBLIC cxx_std_20)
    target_link_libraries(${name} PUBLIC ${layer_LINK} PRIVATE ${layer_PRIVATE_LINK} $<BUILD_INTERFACE:ftax_options>)
endfunction()

include(cmake/embed.cmake)

ftax_sources(core_sources
    graphs/base/
        near_names.cpp precision.cpp types.cpp
    graphs/ir/
        control_flow.cpp einsum.cpp expression.cpp expression_parser.cpp factors.cpp graph.cpp graph_builder.cpp operands.cpp
        size_checks.cpp splice.cpp strides.cpp symbol_names.cpp text_graph.cpp work.cpp work_polynomial.cpp
    graphs/ir/canonical/
        activations.cpp canonical.cpp layers.cpp norms.cpp
    graphs/ir/rewriting/
        graph_edits.cpp rewriter.cpp
    predictors/profiles/
        parameters.cpp)
ftax_layer(ftax_core SOURCES ${core_sources} PRIVATE_LINK ftax_embedded fmt::fmt)
target_include_directories(ftax_core PRIVATE ${embedded_dir}) # parameters.inc
ftax_sources(io_sources
    graphs/files/
        child_process.cpp csv.cpp escape.cpp file.cpp json_document.cpp machine.cpp number.cpp
    predictors/profiles/
        architecture_file.cpp device_file.cpp profile_file.cpp stack_file.cpp
    calibration/rows/
        kineto_trace.cpp measurement_file.cpp)
ftax_layer(ftax_io SOURCES ${io_sources} LINK ftax_core PRIVATE_LINK ftax_embedded fmt::fmt nlohmann_json::nlohmann_json
           ALONE ${PROJECT_SOURCE_DIR}/graphs/files/machine.cpp)
ftax_sources(profiles_sources
    predictors/profiles/embedded/
        devices.cpp profiles.cpp)
ftax_layer(ftax_profiles SOURCES ${profiles_sources} LINK ftax_core PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(ftax_profiles PRIVATE ${embedded_dir}) # profiles.inc

# LibTorch's include folder holds copies of fmt and protobuf, which must not meet those of the system, and loading it takes
# longer than most commands: what is linked with it is a module that the importers open when a file needs it.
ftax_sources(torchscript_sources
    graphs/torchscript/libtorch/
        confine.cpp load_program.cpp)
if(FTAX_BUILD_TORCH)
    pkg_check_modules(libseccomp REQUIRED IMPORTED_TARGET libseccomp)
    add_library(ftax_torchscript MODULE ${torchscript_sources})
    target_include_directories(ftax_torchscript PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(ftax_torchscript PRIVATE NDEBUG) # as LibTorch was built: its headers check more otherwise
    target_link_libraries(ftax_torchscript PRIVATE ftax_core ftax_torch PkgConfig::libseccomp ftax_options)
endif()
ftax_sources(graphs_sources
    graphs/
        import_pipeline.cpp load_graph.cpp loading.cpp vary_batch.cpp
    graphs/aten/
        aten_attributes.cpp aten_call.cpp aten_decompositions.cpp aten_shapes.cpp aten_shapes_elementwise.cpp aten_shapes_layers.cpp
        aten_shapes_movement.cpp aten_table.cpp
    graphs/config/
        attention.cpp families.cpp feed_forward.cpp gguf.cpp import_config.cpp network.cpp networks.cpp quantization.cpp read_config.cpp
        state_mixers.cpp transformer.cpp vision.cpp
    graphs/onnx/
        control_flow.cpp evaluate.cpp external_data.cpp importer.cpp module_paths.cpp node.cpp
        node_order.cpp op_table.cpp records.cpp rules_contraction.cpp rules_elementwise.cpp rules_fill.cpp
        rules_index.cpp rules_movement.cpp rules_norm.cpp rules_sequence.cpp rules_transformer.cpp rules_window.cpp
        scalar.cpp symbols.cpp wire_reader.cpp
    graphs/pt2/
        archive.cpp import_pt2.cpp
    graphs/torchscript/
        host_operators.cpp import_torchscript.cpp interpreter.cpp load_program.cpp)
ftax_layer(ftax_graphs SOURCES ${graphs_sources} LINK ftax_core
           PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
if(NOT FTAX_LINK_LIBZIP AND NOT CMAKE_CROSSCOMPILING) # WASI loads no library
    file(REAL_PATH ${pkgcfg_lib_libzip_zip} libzip_file)
    string(REGEX MATCH "libzip\\.so\\.[0-9]+" libzip_name ${libzip_file})
endif()
if(libzip_name)
    set_source_files_properties(graphs/pt2/archive.cpp PROPERTIES COMPILE_DEFINITIONS FTAX_LIBZIP="${libzip_name}")
    target_include_directories(ftax_graphs SYSTEM PRIVATE ${libzip_INCLUDE_DIRS})
else()
    target_link_libraries(ftax_graphs PRIVATE PkgConfig::libzip)
endif()
if(FTAX_BUILD_TORCH)
    add_dependencies(ftax_graphs ftax_torchscript)
    set_source_files_properties(graphs/torchscript/load_program.cpp PROPERTIES COMPILE_DEFINITIONS
                                "FTAX_TORCHSCRIPT_MODULE=\"$<TARGET_FILE:ftax_torchscript>\"")
endif()

ftax_sources(predictors_sources
    predictors/
        memory.cpp operator_model.cpp predictor.cpp
    predictors/steps/
        evidence.cpp kernel_plans.cpp launch_times.cpp prepared_model.cpp summary.cpp
    predictors/lowering/
        autocast.cpp kernel_shapes.cpp launch_rules.cpp library_behaviour.cpp lowering.cpp math_path.cpp
        rewrite_eliminations.cpp rewrite_engine.cpp rewrite_exports.cpp rewrite_fusions.cpp rewrite_inductor.cpp
        rewrite_quantization.cpp rewrite_serving.cpp type_assignment.cpp
    predictors/kernels/
        bind_memory.cpp bind_products.cpp device_model.cpp kernel_detail.cpp kernel_models.cpp layout.cpp
    predictors/host/
        host_costs.cpp
    predictors/timeline/
        timeline.cpp
    predictors/frameworks/
        framework_model.cpp onnxruntime_cuda.cpp pytorch.cpp serving.cpp tensorrt.cpp torch_compile.cpp
    predictors/analysis/
        anchor.cpp crossings.cpp generation.cpp headroom.cpp log_posterior.cpp serving.cpp step_table.cpp widen.cpp
    predictors/nas/
        calibrate.cpp cost_function.cpp fbnet.cpp nasbench201.cpp network.cpp ofa.cpp ofa_resnet.cpp
        once_for_all.cpp spaces.cpp transformer.cpp)
# Each framework has its own passes and prior costs, each search space its own stages and kinds of blocks.
set(predictors_alone ${predictors_sources})
list(FILTER predictors_alone INCLUDE REGEX "/frameworks/[^/]*$|/nas/(fbnet|nasbench201|ofa|ofa_resnet|transformer)\\.cpp$")
ftax_layer(ftax_predictors SOURCES ${predictors_sources} LINK ftax_core PRIVATE_LINK ftax_io fmt::fmt $<BUILD_INTERFACE:Eigen3::Eigen>
           ALONE ${predictors_alone})

# Kernel models read numbers, no files: protected stacks would cost 4 % of a prediction's instructions.
target_compile_options(ftax_predictors PRIVATE -fno-stack-protector)

ftax_sources(fit_sources
    calibration/fit/
        call_fit.cpp dispatch_fit.cpp framework_fit.cpp kernel_fit.cpp log_fit.cpp
        machine_fit.cpp memory_fit.cpp model_fit.cpp operator_fit.cpp scoped_fit.cpp)
ftax_sources(folds_sources
    calibration/crossvalidation/
        device_folds.cpp evidence_folds.cpp framework_folds.cpp main.cpp operator_folds.cpp serving_folds.cpp)
ftax_sources(nas_scores_sources
    calibration/nas/
        nas_study.cpp)
set(fit_alone ${fit_sources})
list(FILTER fit_alone INCLUDE REGEX "/(call|kernel|machine|memory|scoped)_fit\\.cpp$")
if(FTAX_BUILD_FIT)
    ftax_layer(ftax_fit SOURCES ${fit_sources} LINK ftax_core ftax_predictors ftax_io Ceres::ceres Eigen3::Eigen
               PRIVATE_LINK fmt::fmt ALONE ${fit_alone})
    # Fits the hosts of the architecture-search campaigns and scores the search spaces on them.
    ftax_layer(ftax_nas_scores SOURCES ${nas_scores_sources} LINK ftax_fit
               PRIVATE_LINK ftax_predictors ftax_profiles fmt::fmt Ceres::ceres)
    # Scores on rows that the fit has not seen; writes framework profiles and what ledger.py makes ledgers of.
    add_executable(ftax_folds ${folds_sources})
    target_include_directories(ftax_folds PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_folds PRIVATE ftax_scenario ftax_nas_scores ftax_fit fmt::fmt Eigen3::Eigen ftax_options)
endif()

ftax_sources(bench_sources
    calibration/bench/
        host_probe.cpp machine.cpp operator_cases.cpp python_device.cpp)
ftax_layer(ftax_bench SOURCES ${bench_sources} LINK ftax_core
           PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json
           ALONE ${PROJECT_SOURCE_DIR}/calibration/bench/host_probe.cpp)
# Its time is compared with that of the reference machine, in whatever build.
set_source_files_properties(calibration/bench/host_probe.cpp PROPERTIES COMPILE_OPTIONS -O2)
if(FTAX_BUILD_CUDA)
    add_executable(ftax_cuda_probe calibration/bench/cuda/probe.cu)
    set_target_properties(ftax_cuda_probe PROPERTIES CUDA_ARCHITECTURES "75;80;90")
    # CMake 3.25 does not know that nvcc 13 has C++20.
    set_property(TARGET ftax_cuda_probe PROPERTY CXX_STANDARD)
    target_include_directories(ftax_cuda_probe PRIVATE ${PROJECT_SOURCE_DIR})
endif()
ftax_sources(libtorch_sources
    calibration/bench/libtorch/
        libtorch_device.cpp network.cpp)
if(FTAX_BUILD_TORCH)
    # Loaded when it is asked for: LibTorch takes longer to start than ftax to predict.
    add_library(ftax_libtorch MODULE ${libtorch_sources})
    set_target_properties(ftax_libtorch PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
    target_include_directories(ftax_libtorch PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_libtorch PRIVATE ftax_core ftax_torch ftax_options)
    # LibTorch's warnings are not ours; its own copy of fmt must not meet the system's.
    target_compile_options(ftax_libtorch PRIVATE -O1 -Wno-unused-parameter)
endif()

ftax_sources(report_sources
    src/report/
        chart.cpp charts.cpp choice.cpp columns.cpp comparison_report.cpp device_report.cpp
        generation_report.cpp headroom_report.cpp launch_report.cpp model_report.cpp page.cpp pages.cpp
        prediction_pages.cpp prediction_report.cpp quantities.cpp serving_report.cpp
        table.cpp timeline_trace.cpp trace_comparison.cpp trace_report.cpp
        validation_report.cpp)
ftax_layer(ftax_report SOURCES ${report_sources} LINK ftax_core
           PRIVATE_LINK ftax_io ftax_profiles ftax_embedded fmt::fmt nlohmann_json::nlohmann_json)
target_compile_options(ftax_report PRIVATE ${FTAX_QUICK_BUILD})
target_precompile_headers(ftax_report PRIVATE <fmt/format.h> <nlohmann/json.hpp>)

# Everything a program that predicts needs, under one name: find_package(ftax), link ftax::ftax.
add_library(ftax INTERFACE)
target_link_libraries(ftax INTERFACE ftax_graphs ftax_predictors ftax_profiles ftax_io ftax_core)
add_library(ftax::ftax ALIAS ftax)

if(NOT FTAX_BUILD_FIT)
    set_source_files_properties(src/cli/fit.cpp src/cli/calibrate.cpp src/scenario/machine_rows.cpp
                                PROPERTIES HEADER_FILE_ONLY ON)
endif()
# What the command line, Python and the cross-validation share.
ftax_sources(scenario_sources
    src/scenario/
        alternatives.cpp arguments.cpp benchmark_run.cpp combinations.cpp comparison.cpp cpu.cpp generation.cpp language_rows.cpp machine_rows.cpp row_predictor.cpp
        scenario.cpp serving.cpp validation.cpp)
ftax_layer(ftax_scenario SOURCES ${scenario_sources} LINK ftax ftax_report
           PRIVATE_LINK ftax_bench $<$<BOOL:${FTAX_BUILD_FIT}>:ftax_fit> fmt::fmt $<BUILD_INTERFACE:Eigen3::Eigen>
           ALONE ${PROJECT_SOURCE_DIR}/src/scenario/machine_rows.cpp)

ftax_sources(cli_sources
    src/cli/
        bench_session.cpp calibrate.cpp command_tree.cpp compare.cpp completion.cpp convert.cpp crossover.cpp devices.cpp
        doctor.cpp explore.cpp fit.cpp frameworks.cpp generate.cpp headroom.cpp in_process.cpp inspect.cpp manual.cpp
        mcp.cpp measure.cpp models.cpp nas.cpp output.cpp parse.cpp predict.cpp profiles.cpp scenario_options.cpp schema.cpp serve.cpp validate.cpp
        verbs.cpp)
set(cli_alone ${cli_sources})
list(FILTER cli_alone INCLUDE REGEX "/(calibrate|fit|verbs)\\.cpp$")
ftax_layer(ftax_cli SOURCES ${cli_sources} LINK ftax_scenario CLI11::CLI11
           PRIVATE_LINK ftax_bench $<$<BOOL:${FTAX_BUILD_FIT}>:ftax_fit> fmt::fmt nlohmann_json::nlohmann_json
           ALONE ${cli_alone})
# Options are parsed once per run: they are not worth the optimiser's time.
target_compile_options(ftax_cli PRIVATE ${FTAX_QUICK_BUILD})
target_precompile_headers(ftax_cli PRIVATE <CLI/CLI.hpp> <fmt/format.h> <nlohmann/json.hpp>)
target_compile_definitions(ftax_cli PRIVATE FTAX_VERSION="${PROJECT_VERSION}"
                                            $<$<BOOL:${FTAX_BUILD_FIT}>:FTAX_WITH_FIT>
                                            $<$<BOOL:${FTAX_BUILD_TORCH}>:FTAX_WITH_TORCH>
                                            $<$<BOOL:${FTAX_BUILD_CUDA}>:FTAX_WITH_CUDA>)
ftax_sources(program_sources src/ main.cpp)
function(ftax_program name output)
    add_executable(${name} ${program_sources})
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${output})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(${name} PRIVATE ${FTAX_QUICK_BUILD})
    target_link_libraries(${name} PRIVATE ftax_cli fmt::fmt ftax_options)
endfunction()
ftax_program(ftax_program ftax)
if(FTAX_BUILD_FIT)
    # The loader takes as long for the solvers' libraries as a prediction does: `ftax` does without the verbs that fit, and
    # becomes `ftax-fit` where one of them, or all, are asked for.
    target_sources(ftax_program PRIVATE src/cli/verbs.cpp)
    target_compile_definitions(ftax_program PRIVATE FTAX_VERSION="${PROJECT_VERSION}" FTAX_FIT_PROGRAM="ftax-fit")
    target_link_options(ftax_program PRIVATE -Wl,--as-needed)
    ftax_program(ftax_fit_program ftax-fit)
    add_dependencies(ftax_program ftax_fit_program)
endif()
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10 AND NOT FTAX_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    # Nor for libfmt and libstdc++, which is half of the start: what libfmt.so exports (fmt's src/format.cc) is compiled in.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/format.cpp @ONLY CONTENT [[
#include <fmt/format-inl.h>

namespace fmt::inline v9::detail {
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>, locale_ref);
}
]])
    set_source_files_properties(${PROJECT_BINARY_DIR}/format.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(ftax_program PRIVATE ${PROJECT_BINARY_DIR}/format.cpp)
    target_link_options(ftax_program PRIVATE -Wl,--as-needed -static-libstdc++ -static-libgcc)
    if(FTAX_MOLD)
        target_link_options(ftax_program PRIVATE -fuse-ld=bfd) # mold 1.10 counts no relative relocations: the loader takes four times as long for each
    endif()
endif()
if(FTAX_BUILD_TORCH)
    add_dependencies(ftax_program ftax_libtorch)
endif()
if(FTAX_BUILD_CUDA)
    add_dependencies(ftax_program ftax_cuda_probe)
endif()
