# Turns datasheets and profiles into C++ tables (src/io/embedded/generate.cpp), so that the program parses none of them: an
# invalid one fails the build. The layer above holds the tables and finds in them what is asked for.

ftax_sources(generate_sources src/io/embedded/ generate.cpp)
add_executable(ftax_generate_tables ${generate_sources})
target_include_directories(ftax_generate_tables PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(ftax_generate_tables PRIVATE ftax_io fmt::fmt nlohmann_json::nlohmann_json ftax_options)
file(GLOB_RECURSE table_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/devices/*.json
     ${PROJECT_SOURCE_DIR}/data/profiles/*.json)
set(generated_tables ${PROJECT_BINARY_DIR}/embedded/profile_tables.cpp)
add_custom_command(OUTPUT ${generated_tables} DEPENDS ftax_generate_tables ${table_files} VERBATIM
                   COMMAND ftax_generate_tables ${PROJECT_SOURCE_DIR}/data ${generated_tables})
ftax_sources(profiles_sources
    src/io/embedded/
        devices.cpp profiles.cpp)
ftax_layer(ftax_profiles SOURCES ${generated_tables} ${profiles_sources} LINK ftax_core
           PRIVATE_LINK ftax_io ftax_embedded fmt::fmt nlohmann_json::nlohmann_json)
