// The binary: finds the command, runs it, prints its answer in one piece, and ends with the exit code that says what
// happened.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "app/cli.h"

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves early is seen by the write, and no reason to be killed
    std::signal(SIGXFSZ, SIG_IGN);  // as is a file that may not grow
    try {
        return stoker::run_cli({argv + 1, argv + argc});
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "error: out of memory\n");
        return 3;
    } catch (const std::exception& e) {
        fmt::print(stderr, "error: a bug in stoker: {}\n  please report it with the command line and the input\n",
                   e.what());
        return 4;
    }
}
