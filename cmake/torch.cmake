# LibTorch, once for everybody who links it: the target ftax_torch. Taken from the folder FTAX_TORCH (that of the Python
# package torch or of an unpacked libtorch) or from the torch of FTAX_PYTHON. Only the CPU library and the core are
# linked, so that neither the CUDA toolkit nor torch's CUDA libraries need to be there; find_package(Torch) insists on
# both. Fails loudly when asked for and missing.
set(FTAX_PYTHON "" CACHE STRING "Python whose torch is used (default: python3)")
set(FTAX_TORCH "" CACHE PATH "Folder of LibTorch, with include/ and lib/ (default: the torch of FTAX_PYTHON)")

set(torch_folder "${FTAX_TORCH}")
if(NOT torch_folder)
    set(torch_python "${FTAX_PYTHON}")
    if(NOT torch_python)
        set(torch_python python3)
    endif()
    # The package is only located, not imported: that takes seconds.
    execute_process(COMMAND ${torch_python} -c
                            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT EXISTS "${torch_folder}/include/torch/csrc/api/include/torch/torch.h")
    message(FATAL_ERROR "FTAX_BUILD_TORCH: no LibTorch found; give -DFTAX_PYTHON=… (a Python that has torch) or "
                        "-DFTAX_TORCH=… (its folder), or leave it out with -DFTAX_BUILD_TORCH=OFF")
endif()
message(STATUS "LibTorch: ${torch_folder}")
set(CMAKE_SKIP_RPATH ON) # CMake's paths end with an empty one, which is the current folder; the one below is enough

add_library(ftax_torch INTERFACE)
target_include_directories(ftax_torch SYSTEM INTERFACE ${torch_folder}/include
                                                       ${torch_folder}/include/torch/csrc/api/include)
target_link_directories(ftax_torch INTERFACE ${torch_folder}/lib)
# What libtorch_cpu.so itself links (CUDA's runtime, CUPTI) lies where its own search path says.
target_link_options(ftax_torch INTERFACE -Wl,--allow-shlib-undefined -Wl,-rpath,${torch_folder}/lib)
target_link_libraries(ftax_torch INTERFACE torch_cpu c10)
