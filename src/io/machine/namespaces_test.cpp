#include "io/machine/namespaces.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process.h"

namespace stoker {
namespace {

// The first child is process 1, sees only the new namespace in /proc, and takes everything with it when it is killed.
TEST(Namespaces, FirstChildIsInitOfItsOwnWorld) {
    if (!pid_namespaces_work()) GTEST_SKIP() << "not allowed here";
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.ok());
    const pid_t outer = ::fork();
    if (outer == 0) {
        if (!enter_new_pid_namespace()) ::_exit(2);
        const pid_t first = ::fork();
        if (first == 0) {
            if (::getpid() != 1 || !mount_own_proc() || !descendants_of(1).empty()) ::_exit(3);
            if (::fork() == 0) {
                ::setsid();
                ::pause();  // holds the pipe open
            }
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(first, &status, 0);
        ::_exit(WEXITSTATUS(status));
    }
    pipe->write.reset();
    const auto status = reap(outer, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(WEXITSTATUS(*status), 0);
    char byte = 0;
    EXPECT_EQ(::read(pipe->read.get(), &byte, 1), 0);  // the end: nobody holds the other side any more
}

}  // namespace
}  // namespace stoker
