# Puts data files into the program, so that it predicts without any file beside it: the assembler's .incbin copies each
# file, and a generated table names them. See graphs/base/embedded.hpp for reading them.

file(GLOB_RECURSE embedded_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
     ${PROJECT_SOURCE_DIR}/data/architectures/*.json ${PROJECT_SOURCE_DIR}/data/devices/*.json
     ${PROJECT_SOURCE_DIR}/data/*.csv ${PROJECT_SOURCE_DIR}/data/*.tsv ${PROJECT_SOURCE_DIR}/data/profiles/evidence.csv
     ${PROJECT_SOURCE_DIR}/data/profiles/*.json ${PROJECT_SOURCE_DIR}/data/stacks/*.json
     ${PROJECT_SOURCE_DIR}/graphs/config/*.txt ${PROJECT_SOURCE_DIR}/graphs/zoo/*.txt ${PROJECT_SOURCE_DIR}/graphs/zoo/models.tsv
     ${PROJECT_SOURCE_DIR}/graphs/zoo/names.tsv ${PROJECT_SOURCE_DIR}/graphs/zoo/configs/*.json
     ${PROJECT_SOURCE_DIR}/calibration/bench/python/*.py ${PROJECT_SOURCE_DIR}/calibration/bench/operators.txt
     ${PROJECT_SOURCE_DIR}/src/cli/assets/* ${PROJECT_SOURCE_DIR}/src/report/assets/*)

# The parameters of the built-in profiles become tables, NAME.tsv: as JSON, they would take a quarter of a cold prediction to parse.
set(embedded_dir ${PROJECT_BINARY_DIR}/embedded)
set(profiles ${embedded_files})
list(FILTER profiles INCLUDE REGEX "^data/profiles/(devices|frameworks/.*)\\.json$")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profiles})
foreach(file IN LISTS profiles)
    file(READ ${file} profile)
    string(JSON parameters GET "${profile}" parameters)
    string(JSON profile REMOVE "${profile}" parameters)
    string(JSON count LENGTH "${parameters}")
    math(EXPR last "${count} - 1")
    set(table "name source value relative_stddev scope key\n")
    foreach(index RANGE ${last})
        string(JSON parameter GET "${parameters}" ${index})
        foreach(column name source value relative_stddev)
            string(JSON cell ERROR_VARIABLE missing GET "${parameter}" ${column})
            string(REGEX REPLACE "^.*-NOTFOUND$" "" cell "${cell}")
            string(APPEND table "${cell}\t")
        endforeach()
        set(scope "shared\t")
        foreach(narrower architecture device)
            string(JSON key ERROR_VARIABLE missing GET "${parameter}" ${narrower})
            if(NOT missing)
                set(scope "${narrower}\t${key}")
            endif()
        endforeach()
        string(APPEND table "${scope}\n")
    endforeach()
    string(REGEX REPLACE "json$" "tsv" table_file ${file})
    file(CONFIGURE OUTPUT ${embedded_dir}/${file} CONTENT "@profile@" @ONLY)
    file(CONFIGURE OUTPUT ${embedded_dir}/${table_file} CONTENT "@table@" @ONLY)
    list(APPEND embedded_files ${table_file})
    list(APPEND generated_files ${file} ${table_file})
endforeach()
list(SORT embedded_files)

set(assembly "#ifdef __wasm__\n.section .rodata.files,\"\",@\n#else\n.section .note.GNU-stack,\"\",@progbits\n.section .rodata\n#endif\n")
set(dependencies "")
set(declarations "")
set(entries "")
foreach(file IN LISTS embedded_files)
    list(FIND embedded_files ${file} index)
    set(folder ${PROJECT_SOURCE_DIR})
    if(file IN_LIST generated_files)
        set(folder ${embedded_dir})
    endif()
    list(APPEND dependencies ${folder}/${file})
    string(APPEND assembly ".global ftax_file_${index}\n.global ftax_file_${index}_end\n"
                           ".type ftax_file_${index},@object\n.type ftax_file_${index}_end,@object\n"
                           "ftax_file_${index}: .incbin \"${folder}/${file}\"\nftax_file_${index}_end: .byte 0\n"
                           ".size ftax_file_${index}, ftax_file_${index}_end - ftax_file_${index}\n.size ftax_file_${index}_end, 1\n")
    string(APPEND declarations "extern \"C\" const char ftax_file_${index}[], ftax_file_${index}_end[];\n")
    string(APPEND entries "    {\"${file}\", {ftax_file_${index}, std::size_t(ftax_file_${index}_end - ftax_file_${index})}},\n")
endforeach()

file(CONFIGURE OUTPUT ${embedded_dir}/files.S CONTENT "@assembly@" @ONLY)
file(CONFIGURE OUTPUT ${embedded_dir}/table.cpp @ONLY CONTENT [[
#include "graphs/base/embedded.hpp"

@declarations@
namespace ftax {
std::span<const EmbeddedFile> embedded_files() {
    static const EmbeddedFile files[] = {
@entries@        {{}, {}}};
    return std::span(files).first(std::size(files) - 1);
}
}  // namespace ftax
]])
set_source_files_properties(${embedded_dir}/files.S PROPERTIES OBJECT_DEPENDS "${dependencies}")
add_library(ftax_embedded STATIC ${embedded_dir}/files.S ${embedded_dir}/table.cpp)
target_include_directories(ftax_embedded PRIVATE ${PROJECT_SOURCE_DIR})
