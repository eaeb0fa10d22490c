# One set of flags for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Werror>")
# Structs are filled with designated initialisers and leave the rest to its default.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports std::string operator+ as overlapping copies (GCC bug 105651).
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
endif()

if(STOKER_SANITIZE)
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A third of all compiling under sanitizers is these three at each access; what they would find is found: a null
  # pointer ends in AddressSanitizer's report, and no object here has a type that its pointer does not say.
  if(STOKER_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=null,alignment,vptr)
  endif()
  add_link_options(-fsanitize=${STOKER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The instrumentation hides initialisations from the optimiser; the warning is trusted in the other builds.
    # ThreadSanitizer does not know the fences of Asio, which is synchronised by mutexes as well.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-tsan>")
  endif()
endif()

if(STOKER_PORTABLE)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

# Some thirty programs of the tests are linked again after each change: mold does in a tenth of a second what takes
# GNU ld two to five. What is shipped is linked by the distribution's linker.
find_program(STOKER_MOLD mold)
if(STOKER_MOLD AND NOT STOKER_PORTABLE)
  add_link_options(-fuse-ld=mold)
endif()

find_program(STOKER_CCACHE ccache)
if(STOKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/ccache.sh ${PROJECT_SOURCE_DIR})
  # Messages and debug information name files from the tree on, wherever it stands.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
endif()
