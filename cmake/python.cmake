# The Python package: the extension module ftax._ftax, its type stubs, and the Python sources of the package.
if(FTAX_PYTHON AND NOT DEFINED Python_EXECUTABLE)
    set(Python_EXECUTABLE ${FTAX_PYTHON})
endif()
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
    message(FATAL_ERROR "FTAX_BUILD_PYTHON: ${Python_EXECUTABLE} has no nanobind; install it (cmake/requirements.txt), give "
                        "-DFTAX_PYTHON=… (a Python that has it), or leave it out with -DFTAX_BUILD_PYTHON=OFF")
endif()

# With Python 3.12 or newer one binary serves all later versions.
nanobind_add_module(ftax_python STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${python_sources})
set_target_properties(ftax_python PROPERTIES OUTPUT_NAME _ftax LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/ftax)
target_include_directories(ftax_python PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(ftax_python PRIVATE FTAX_VERSION="${PROJECT_VERSION}")
target_link_libraries(ftax_python PRIVATE ftax_cli ftax_scenario ftax_report ftax fmt::fmt ftax_options)
target_link_options(ftax_python PRIVATE -Wl,--as-needed) # ftax_scenario knows of libraries that only the program uses
nanobind_add_stub(ftax_python_stub MODULE _ftax OUTPUT ${PROJECT_BINARY_DIR}/python/ftax/_ftax.pyi
                  PYTHON_PATH ${PROJECT_BINARY_DIR}/python/ftax DEPENDS ftax_python)

# The build tree is a package too: PYTHONPATH=build/…/python.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/ftax)
file(GLOB python_files CONFIGURE_DEPENDS src/python/ftax/*.py src/python/ftax/py.typed)
foreach(file IN LISTS python_files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/python/ftax/${name} SYMBOLIC)
endforeach()

install(TARGETS ftax_python LIBRARY DESTINATION ftax COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_BINARY_DIR}/python/ftax/_ftax.pyi DESTINATION ftax COMPONENT python EXCLUDE_FROM_ALL)
