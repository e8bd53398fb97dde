# Installs the program, the libraries and headers, and a package file for find_package(ftax).
include(CMakePackageConfigHelpers)

set(ftax_libraries ftax ftax_core ftax_io ftax_graphs ftax_predictors ftax_profiles ftax_embedded)
install(TARGETS ftax_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(FTAX_BUILD_FIT)
    install(TARGETS ftax_fit_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The program writes its own man page and completions; the wheel does without them.
if(NOT SKBUILD)
    set(written)
    foreach(file manual completion-bash completion-fish)
        string(REPLACE "-" ";" words ${file})
        add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/${file} COMMAND ftax_program ${words} > ${PROJECT_BINARY_DIR}/${file}
                           DEPENDS ftax_program VERBATIM)
        list(APPEND written ${PROJECT_BINARY_DIR}/${file})
    endforeach()
    add_custom_target(ftax_manual ALL DEPENDS ${written})
    install(FILES ${PROJECT_BINARY_DIR}/manual DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME ftax.1)
    install(FILES ${PROJECT_BINARY_DIR}/completion-bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
            RENAME ftax)
    install(FILES ${PROJECT_BINARY_DIR}/completion-fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
            RENAME ftax.fish)
endif()
if(FTAX_BUILD_TORCH)
    install(TARGETS ftax_libtorch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ftax)
endif()
if(FTAX_BUILD_CUDA)
    install(TARGETS ftax_cuda_probe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS ${ftax_libraries} EXPORT ftaxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(FTAX_BUILD_TORCH)
    install(TARGETS ftax_torchscript LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY include/ftax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ftaxTargets NAMESPACE ftax:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ftax)
configure_package_config_file(cmake/ftaxConfig.cmake.in ${PROJECT_BINARY_DIR}/ftaxConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ftax)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ftaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ftaxConfig.cmake ${PROJECT_BINARY_DIR}/ftaxConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ftax)
