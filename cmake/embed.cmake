# stoker_embed(TARGET FOLDER CONSOLE): puts the files below FOLDER into TARGET, and those of CONSOLE as console/NAME, behind
# src/base/embedded.h.
# The assembler copies them with .incbin, which costs nothing to compile however large they are.
function(stoker_embed target folder console)
  file(GLOB_RECURSE paths CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
  # Notes and scripts about the data are not data; scripts that Stoker runs are.
  list(FILTER paths EXCLUDE REGEX "(^|/)\\.|(^|/)README\\.md$|^catalog/.*\\.py$|^validation/|\\.pyc$")
  file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${console} ${console}/*)
  list(TRANSFORM pages PREPEND "console/")
  list(APPEND paths ${pages})
  list(SORT paths COMPARE STRING)

  set(assembly ".section .rodata\n")
  set(declarations "")
  set(rows "")
  set(files "")
  set(index 0)
  foreach(path IN LISTS paths)
    set(file ${folder}/${path})
    if(path MATCHES "^console/(.*)$")
      set(file ${console}/${CMAKE_MATCH_1})
    endif()
    set(symbol stoker_embedded_${index})
    string(APPEND assembly
      ".global ${symbol}\n.global ${symbol}_end\n"
      "${symbol}:\n.incbin \"${file}\"\n${symbol}_end:\n.byte 0\n")
    string(APPEND declarations "extern const char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "        {\"${path}\", {${symbol}, static_cast<std::size_t>(${symbol}_end - ${symbol})}},\n")
    list(APPEND files ${file})
    math(EXPR index "${index} + 1")
  endforeach()
  string(APPEND assembly ".section .note.GNU-stack,\"\",@progbits\n")

  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/embedded.S CONTENT "${assembly}" @ONLY)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/embedded.cpp @ONLY CONTENT
"#include \"base/embedded.h\"

#include <cstddef>
#include <vector>

extern \"C\" {
${declarations}}

namespace stoker {

std::span<const EmbeddedFile> embedded_files() {
    static const std::vector<EmbeddedFile> files{
${rows}    };
    return files;
}

}  // namespace stoker
")
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded.S ${PROJECT_BINARY_DIR}/embedded.cpp)
  set_source_files_properties(${PROJECT_BINARY_DIR}/embedded.S PROPERTIES OBJECT_DEPENDS "${files}")
  set_source_files_properties(${PROJECT_BINARY_DIR}/embedded.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
