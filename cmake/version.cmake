# Run at build time: fills src/base/version.cpp.in. A source tree without .git (a tarball) has the commit "unknown".
set(COMMIT unknown)
if(EXISTS ${SOURCE}/.git)
  # safe.directory: in containers the tree often belongs to another user, and git would refuse to look at it.
  execute_process(COMMAND git -c safe.directory=${SOURCE} -C ${SOURCE} rev-parse --short=12 --verify HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(COMMIT ${head})
  endif()
endif()
configure_file(${SOURCE}/src/base/version.cpp.in ${OUTPUT} @ONLY)
