# The rooms of src/layers.tsv, bottom to top. A library and a test program are made for each first-level folder
# ("module"): libstoker_NAME.a from src/NAME, NAME_test from the *_test.cpp files in it. Rooms inside a module
# ("run/state") share its library; which of them may include which is checked by tests/layers_test.cpp.
# A build in batches (release, asan, fuzz) that reports "redefinition of ...{anonymous}::f" has met two helpers of the
# same name in one batch: share or rename them.

# stoker_modules(FILE): all modules of the table.
function(stoker_modules file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines)
  set(modules "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^#" OR line MATCHES "^room\t")
      continue()
    endif()
    string(REPLACE "\t" ";" cells "${line}")
    list(GET cells 0 room)
    list(GET cells 1 uses)
    list(GET cells 2 test_uses)
    list(GET cells 3 links)
    string(REGEX REPLACE "/.*" "" module ${room})
    list(APPEND modules ${module})
    foreach(kind uses test_uses links)
      if(NOT "${${kind}}" STREQUAL "-")
        string(REPLACE " " ";" words "${${kind}}")
        list(APPEND ${kind}_of_${module} ${words})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES modules)
  foreach(module IN LISTS modules)
    foreach(kind uses test_uses)
      list(TRANSFORM ${kind}_of_${module} REPLACE "/.*" "")
      list(REMOVE_DUPLICATES ${kind}_of_${module})
      list(REMOVE_ITEM ${kind}_of_${module} ${module})
    endforeach()
    stoker_module(${module} USES ${uses_of_${module}} TEST_USES ${test_uses_of_${module}} LINKS ${links_of_${module}})
  endforeach()
endfunction()

# stoker_module(NAME [USES MODULE...] [TEST_USES MODULE...] [LINKS TARGET...]); one without files is passed over.
function(stoker_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;TEST_USES;LINKS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/app/main.cpp)
  if(NOT sources)
    return()
  endif()

  add_library(stoker_${name} STATIC ${sources})
  target_include_directories(stoker_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(stoker_${name} PUBLIC ${arg_LINKS})
  foreach(module IN LISTS arg_USES)
    if(TARGET stoker_${module})
      target_link_libraries(stoker_${name} PUBLIC stoker_${module})
    endif()
  endforeach()
  if(STOKER_UNITY)
    set_target_properties(stoker_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  if(name STREQUAL base)
    target_precompile_headers(stoker_base PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)
  else()
    stoker_reuse_pch(stoker_${name})
  endif()

  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*_test.cpp)
  if(tests AND STOKER_TEST_LIBRARIES)
    set_property(GLOBAL APPEND PROPERTY STOKER_TESTED_MODULES ${name})
    set_property(GLOBAL PROPERTY STOKER_TESTS_OF_${name} ${tests})
    set_property(GLOBAL PROPERTY STOKER_TEST_USES_OF_${name} ${arg_TEST_USES})
  endif()
endfunction()

# Compiles `target` with the header that stoker_base has precompiled.
function(stoker_reuse_pch target)
  if(TARGET stoker_base)
    target_precompile_headers(${target} REUSE_FROM stoker_base)
  endif()
endfunction()

# Adds the generated version.cpp. The commit is looked up in every build, and the file is only written when it changed.
function(stoker_version target)
  set(output ${PROJECT_BINARY_DIR}/version.cpp)
  add_custom_target(stoker_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -DNUMBER=${PROJECT_VERSION}
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
            -P ${PROJECT_SOURCE_DIR}/cmake/version.cmake
    BYPRODUCTS ${output}
    COMMENT "Looking up the commit")
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(${target} stoker_commit)
endfunction()
