# The layers of the program, a static library each: src/{cli,python} → src/scenario → src/report, {graphs, predictors, calibration/bench,
# calibration/fit} → src/io → src/core. tests/arrows.txt has the arrows between all folders; tests/arrows_test.cpp holds the sources to it.

function(ftax_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "FOLDERS;LINK;PRIVATE_LINK")
    set(sources)
    foreach(folder IN LISTS layer_FOLDERS)
        file(GLOB folder_sources CONFIGURE_DEPENDS ${folder}/*.cpp)
        list(APPEND sources ${folder_sources})
    endforeach()
    if(NOT sources)
        set(sources ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
    endif()
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                       PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_features(${name} PUBLIC cxx_std_20)
    target_link_libraries(${name} PUBLIC ${layer_LINK} PRIVATE ${layer_PRIVATE_LINK} $<BUILD_INTERFACE:ftax_options>)
endfunction()

include(cmake/embed.cmake)

ftax_layer(ftax_core FOLDERS src/core src/core/canonical src/core/rewriting PRIVATE_LINK fmt::fmt)
ftax_layer(ftax_io FOLDERS src/io LINK ftax_core PRIVATE_LINK ftax_embedded fmt::fmt nlohmann_json::nlohmann_json)
# LibTorch's include folder holds copies of fmt and protobuf, which must not meet those of the system, and loading it takes
# longer than most commands: what is linked with it is a module that the importers open when a file needs it.
if(FTAX_BUILD_TORCH)
    file(GLOB torchscript_sources CONFIGURE_DEPENDS graphs/torchscript/libtorch/*.cpp)
    add_library(ftax_torchscript MODULE ${torchscript_sources})
    target_include_directories(ftax_torchscript PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(ftax_torchscript PRIVATE NDEBUG) # as LibTorch was built: its headers check more otherwise
    target_link_libraries(ftax_torchscript PRIVATE ftax_core ftax_torch ftax_options)
endif()
ftax_layer(ftax_graphs FOLDERS graphs graphs/onnx graphs/pt2 graphs/torchscript graphs/aten LINK ftax_core
           PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json PkgConfig::libzip ${FTAX_ONNX_PROTO}
                        protobuf::libprotobuf ${CMAKE_DL_LIBS})
if(FTAX_BUILD_TORCH)
    add_dependencies(ftax_graphs ftax_torchscript)
    set_source_files_properties(graphs/torchscript/load_program.cpp PROPERTIES COMPILE_DEFINITIONS
                                "FTAX_TORCHSCRIPT_MODULE=\"$<TARGET_FILE:ftax_torchscript>\"")
endif()
ftax_layer(ftax_predictors FOLDERS predictors predictors/lowering predictors/kernels predictors/host predictors/timeline
           predictors/frameworks predictors/analysis predictors/nas LINK ftax_core
           PRIVATE_LINK ftax_io fmt::fmt)
if(FTAX_BUILD_FIT)
    ftax_layer(ftax_fit FOLDERS calibration/fit LINK ftax_core ftax_predictors ftax_io Ceres::ceres Eigen3::Eigen
               PRIVATE_LINK fmt::fmt)
    # Scores on rows that the fit has not seen; writes framework profiles and the ledger.
    file(GLOB folds_sources CONFIGURE_DEPENDS calibration/crossvalidation/*.cpp)
    add_executable(ftax_folds ${folds_sources})
    target_include_directories(ftax_folds PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_folds PRIVATE ftax_scenario ftax_fit fmt::fmt ftax_options)
    # Fits the hosts of the architecture-search campaigns and scores the search spaces on them.
    ftax_layer(ftax_nas_scores FOLDERS calibration/nas LINK ftax_fit PRIVATE_LINK fmt::fmt)
    add_executable(ftax_nas_study calibration/nas/study/main.cpp)
    target_include_directories(ftax_nas_study PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_nas_study PRIVATE ftax_nas_scores fmt::fmt ftax_options)
endif()
ftax_layer(ftax_bench FOLDERS calibration/bench LINK ftax_core
           PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json)
if(FTAX_BUILD_CUDA)
    ftax_layer(ftax_cupti FOLDERS calibration/bench/cuda LINK CUDA::cupti PRIVATE_LINK CUDA::cudart)
    add_executable(ftax_cuda_probe calibration/bench/cuda/probe.cu calibration/bench/nvml.cpp
                                   calibration/bench/kernel_record.cpp)
    set_target_properties(ftax_cuda_probe PROPERTIES CUDA_ARCHITECTURES "75;80;90")
    # CMake 3.25 does not know that nvcc 13 has C++20: neither the target's property nor a library's may ask for it.
    set_property(TARGET ftax_cuda_probe PROPERTY CXX_STANDARD)
    target_include_directories(ftax_cuda_probe PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_cuda_probe PRIVATE $<LINK_ONLY:ftax_cupti> CUDA::cupti CUDA::cudart)
endif()
if(FTAX_BUILD_TORCH)
    # Loaded when it is asked for: LibTorch takes longer to start than ftax to predict.
    file(GLOB libtorch_sources CONFIGURE_DEPENDS calibration/bench/libtorch/*.cpp)
    add_library(ftax_libtorch MODULE ${libtorch_sources})
    set_target_properties(ftax_libtorch PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
    target_include_directories(ftax_libtorch PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(ftax_libtorch PRIVATE ftax_core ftax_bench ftax_torch ftax_options)
    if(FTAX_BUILD_CUDA)
        target_link_libraries(ftax_libtorch PRIVATE ftax_cupti)
        target_compile_definitions(ftax_libtorch PRIVATE FTAX_WITH_CUPTI)
    endif()
    # LibTorch's warnings are not ours; its own copy of fmt must not meet the system's.
    target_compile_options(ftax_libtorch PRIVATE -O1 -Wno-unused-parameter)
endif()
ftax_layer(ftax_report FOLDERS src/report LINK ftax_core PRIVATE_LINK ftax_io fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(ftax_report PRIVATE <fmt/format.h> <nlohmann/json.hpp>)

# Everything a program that predicts needs, under one name: find_package(ftax), link ftax::ftax.
add_library(ftax INTERFACE)
target_link_libraries(ftax INTERFACE ftax_graphs ftax_predictors ftax_io ftax_core)
add_library(ftax::ftax ALIAS ftax)

if(NOT FTAX_BUILD_FIT)
    set_source_files_properties(src/cli/fit.cpp src/cli/calibrate.cpp src/scenario/model_rows.cpp
                                src/scenario/machine_rows.cpp PROPERTIES HEADER_FILE_ONLY ON)
endif()
# What the command line, Python and the cross-validation share.
ftax_layer(ftax_scenario FOLDERS src/scenario LINK ftax ftax_report
           PRIVATE_LINK ftax_bench $<$<BOOL:${FTAX_BUILD_FIT}>:ftax_fit> fmt::fmt)
ftax_layer(ftax_cli FOLDERS src/cli LINK ftax_scenario CLI11::CLI11
           PRIVATE_LINK ftax_bench $<$<BOOL:${FTAX_BUILD_FIT}>:ftax_fit> fmt::fmt nlohmann_json::nlohmann_json)
# Options are parsed once per run: CLI11 is neither worth the optimiser's time nor reading anew for each verb.
target_compile_options(ftax_cli PRIVATE ${FTAX_QUICK_BUILD})
target_precompile_headers(ftax_cli PRIVATE <CLI/CLI.hpp> <fmt/format.h> <nlohmann/json.hpp>)
target_compile_definitions(ftax_cli PRIVATE FTAX_VERSION="${PROJECT_VERSION}"
                                            $<$<BOOL:${FTAX_BUILD_FIT}>:FTAX_WITH_FIT>
                                            $<$<BOOL:${FTAX_BUILD_TORCH}>:FTAX_WITH_TORCH>
                                            $<$<BOOL:${FTAX_BUILD_CUDA}>:FTAX_WITH_CUDA>)
add_executable(ftax_program src/main.cpp)
set_target_properties(ftax_program PROPERTIES OUTPUT_NAME ftax)
target_include_directories(ftax_program PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(ftax_program PRIVATE ${FTAX_QUICK_BUILD})
target_link_libraries(ftax_program PRIVATE ftax_cli fmt::fmt ftax_options)
if(FTAX_BUILD_TORCH)
    add_dependencies(ftax_program ftax_libtorch)
endif()
if(FTAX_BUILD_CUDA)
    add_dependencies(ftax_program ftax_cuda_probe)
endif()
