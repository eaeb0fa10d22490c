#include "io/machine/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "io/process.h"

namespace stoker {
namespace {

bool put_text(const char* path, const std::string& text) {
    const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
    return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Error refused(const char* what) {
    return Error(ErrorKind::denied, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

Status enter_new_pid_namespace() {
    // Root needs no user namespace, and in one it would lose what it may do outside (cgroups, devices).
    if (::geteuid() != 0) TRY_VOID(enter_new_user_namespace());
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return refused("cannot make a pid namespace");
    return done();
}

Status enter_new_user_namespace() {
    const std::string u = std::to_string(::geteuid()), g = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER) != 0) return refused("cannot make a user namespace");
    if (!put_text("/proc/self/setgroups", "deny") || !put_text("/proc/self/uid_map", u + " " + u + " 1") ||
        !put_text("/proc/self/gid_map", g + " " + g + " 1"))
        return refused("cannot map the user into a namespace");
    return done();
}

Status mount_own_proc() {
    // A slave still sees what is mounted outside later (home folders by autofs), and shows nothing of its own.
    if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return refused("cannot detach the mounts");
    if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
        return refused("cannot mount /proc for a pid namespace");
    return done();
}

bool pid_namespaces_work() {
    const pid_t child = ::fork();
    if (child < 0) return false;
    if (child == 0) {
        if (!enter_new_pid_namespace()) ::_exit(1);
        const pid_t first = ::fork();
        if (first == 0) ::_exit(mount_own_proc() ? 0 : 1);
        int status = 1;
        while (first > 0 && ::waitpid(first, &status, 0) < 0 && errno == EINTR) {
        }
        ::_exit(first > 0 && status == 0 ? 0 : 1);
    }
    const auto status = reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    return status && *status == 0;
}

}  // namespace stoker
