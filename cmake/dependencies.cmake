# Libraries of the distribution, under short names of our own: fmt, yaml, zlib, sqlite, argon2, crypto, ssl, pcre2, nghttp2, llhttp, asio,
# Threads::Threads.
find_package(Threads REQUIRED)

# Debian has no static libfmt, so the portable build compiles one from its headers.
find_package(fmt 9 REQUIRED)
if(STOKER_PORTABLE)
  add_library(stoker_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
  get_target_property(include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(stoker_fmt SYSTEM PUBLIC ${include})
else()
  add_library(stoker_fmt INTERFACE)
  target_link_libraries(stoker_fmt INTERFACE fmt::fmt)
endif()
add_library(fmt ALIAS stoker_fmt)

# stoker_library(NAME FILE HEADER): the library FILE of the distribution as target NAME, static in the portable build.
function(stoker_library name file header)
  string(TOUPPER ${name} upper)
  if(STOKER_PORTABLE)
    find_library(STOKER_${upper}_LIBRARY NAMES lib${file}.a ${file} REQUIRED)
  else()
    find_library(STOKER_${upper}_LIBRARY NAMES ${file} REQUIRED)
  endif()
  find_path(STOKER_${upper}_INCLUDE ${header} REQUIRED)
  add_library(${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${STOKER_${upper}_LIBRARY}
                                           INTERFACE_INCLUDE_DIRECTORIES ${STOKER_${upper}_INCLUDE})
endfunction()

stoker_library(yaml yaml yaml.h)
stoker_library(zlib z zlib.h)
stoker_library(sqlite sqlite3 sqlite3.h)
stoker_library(argon2 argon2 argon2.h)
stoker_library(crypto crypto openssl/evp.h)
stoker_library(ssl ssl openssl/ssl.h)
stoker_library(pcre2 pcre2-8 pcre2.h)
stoker_library(nghttp2 nghttp2 nghttp2/nghttp2.h)

# Debian ships llhttp as C sources (node-llhttp).
find_path(STOKER_LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp REQUIRED)
find_path(STOKER_LLHTTP_SOURCE llhttp.c PATHS /usr/share/llhttp REQUIRED)
add_library(llhttp STATIC ${STOKER_LLHTTP_SOURCE}/llhttp.c ${STOKER_LLHTTP_SOURCE}/api.c ${STOKER_LLHTTP_SOURCE}/http.c)
target_compile_definitions(llhttp PRIVATE LLHTTP_STRICT_MODE=1)
target_include_directories(llhttp SYSTEM PUBLIC ${STOKER_LLHTTP_INCLUDE})

# toml++, headers only: only check/check_config.cpp includes it.
find_path(STOKER_TOML_INCLUDE toml++/toml.h REQUIRED)

# Asio, headers only.
find_path(STOKER_BOOST_INCLUDE boost/asio.hpp REQUIRED)
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE ${STOKER_BOOST_INCLUDE})
target_compile_definitions(asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)

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
