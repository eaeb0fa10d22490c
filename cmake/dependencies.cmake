# Libraries of the distribution, under short names of our own: fmt, yaml, zlib, Threads::Threads.
find_package(Threads REQUIRED)

# Debian has no static libfmt, so the portable build compiles it in.
find_package(fmt 9 REQUIRED)
add_library(stoker_fmt INTERFACE)
target_link_libraries(stoker_fmt INTERFACE $<IF:$<BOOL:${STOKER_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>)
add_library(fmt ALIAS stoker_fmt)

if(STOKER_PORTABLE)
  find_library(STOKER_YAML_LIBRARY NAMES libyaml.a yaml REQUIRED)
else()
  find_library(STOKER_YAML_LIBRARY NAMES yaml REQUIRED)
endif()
find_path(STOKER_YAML_INCLUDE yaml.h REQUIRED)
add_library(yaml UNKNOWN IMPORTED)
set_target_properties(yaml PROPERTIES IMPORTED_LOCATION ${STOKER_YAML_LIBRARY}
                                      INTERFACE_INCLUDE_DIRECTORIES ${STOKER_YAML_INCLUDE})

if(STOKER_PORTABLE)
  find_library(STOKER_ZLIB_LIBRARY NAMES libz.a z REQUIRED)
else()
  find_library(STOKER_ZLIB_LIBRARY NAMES z REQUIRED)
endif()
find_path(STOKER_ZLIB_INCLUDE zlib.h REQUIRED)
add_library(zlib UNKNOWN IMPORTED)
set_target_properties(zlib PROPERTIES IMPORTED_LOCATION ${STOKER_ZLIB_LIBRARY}
                                      INTERFACE_INCLUDE_DIRECTORIES ${STOKER_ZLIB_INCLUDE})

set(STOKER_TEST_LIBRARIES)
if(STOKER_TESTS)
  find_package(GTest QUIET)
  if(GTest_FOUND)
    set(STOKER_TEST_LIBRARIES GTest::gtest_main GTest::gmock)
    find_library(STOKER_RAPIDCHECK rapidcheck)
    if(STOKER_RAPIDCHECK)
      list(APPEND STOKER_TEST_LIBRARIES ${STOKER_RAPIDCHECK})
    endif()
  else()
    message(WARNING "GoogleTest is missing (libgtest-dev, libgmock-dev): the unit tests are left out")
  endif()
endif()
