#include "io/machine/beside_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "io/machine/cgroup.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr std::size_t kMostEnvironment = 8u << 20;

struct Space {
    const char* name;
    int type;
};
// The user namespace first, which gives the right to the others; the folders' last, since /proc goes with it.
constexpr std::array<Space, 7> kSpaces = {{{"user", CLONE_NEWUSER},
                                           {"cgroup", CLONE_NEWCGROUP},
                                           {"ipc", CLONE_NEWIPC},
                                           {"uts", CLONE_NEWUTS},
                                           {"net", CLONE_NEWNET},
                                           {"pid", CLONE_NEWPID},
                                           {"mnt", CLONE_NEWNS}}};

UniqueFd open_at(pid_t pid, const std::string& name, int flags) {
    return UniqueFd(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), flags | O_CLOEXEC));
}

bool is_ours(const UniqueFd& space, const char* name) {
    struct stat theirs {
    }, own{};
    const std::string path = fmt::format("/proc/self/ns/{}", name);
    return ::fstat(space.get(), &theirs) == 0 && ::stat(path.c_str(), &own) == 0 && theirs.st_ino == own.st_ino &&
           theirs.st_dev == own.st_dev;
}

// What is opened before anything is entered.
struct Surroundings {
    std::vector<std::pair<Space, UniqueFd>> spaces;  // other than ours
    std::vector<std::string> groups;                 // files to write a pid into
    UniqueFd root, folder;
};

Result<Surroundings> surroundings_of(pid_t pid) {
    Surroundings all;
    for (const Space& space : kSpaces) {
        UniqueFd fd = open_at(pid, std::string("ns/") + space.name, O_RDONLY);
        if (!fd && (errno == EACCES || errno == EPERM))
            return Error(ErrorKind::denied, fmt::format("process {} belongs to another user", pid), {},
                         "be the user that the server runs as, or root");
        if (!fd && errno != ENOENT) return Error(ErrorKind::not_found, fmt::format("there is no process {}", pid));
        if (fd && !is_ours(fd, space.name)) all.spaces.emplace_back(space, std::move(fd));
    }
    all.root = open_at(pid, "root", O_PATH | O_DIRECTORY);
    all.folder = open_at(pid, "cwd", O_PATH | O_DIRECTORY);
    if (!all.root || !all.folder) return Error(ErrorKind::not_found, fmt::format("process {} has ended", pid));
    all.groups = groups_of_process(pid);
    return all;
}

void say_and_leave(const char* what, int code) {
    std::fprintf(stderr, "error: %s: %s\n", what, std::strerror(errno));
    ::_exit(code);
}

// In a child that has one thread. Never returns.
void become(const Surroundings& all, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment) {
    bool own_pids = false;
    for (const auto& [space, fd] : all.spaces) {
        if (::setns(fd.get(), space.type) != 0) say_and_leave("cannot join the surroundings of the rank", 126);
        own_pids = own_pids || space.type == CLONE_NEWPID;
    }
    if (!all.spaces.empty() && (::fchdir(all.root.get()) != 0 || ::chroot(".") != 0) && errno != EPERM)
        say_and_leave("cannot join the folders of the rank", 126);
    if (::fchdir(all.folder.get()) != 0) say_and_leave("cannot enter the folder of the rank", 126);
    // A process joins a pid namespace by being born in it.
    const pid_t child = own_pids ? ::fork() : 0;
    if (child < 0) say_and_leave("cannot make a process", 126);
    if (child > 0) {
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<char*> argv, envp;
    for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
    for (const std::string& each : environment) {
        envp.push_back(const_cast<char*>(each.c_str()));
        // execvpe looks in our PATH, and theirs is meant.
        if (each.starts_with("PATH=")) ::setenv("PATH", each.c_str() + 5, 1);
    }
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    ::execvpe(argv[0], argv.data(), envp.data());
    say_and_leave(("cannot run " + printable(arguments[0])).c_str(), errno == ENOENT ? 127 : 126);
}

}  // namespace

Result<std::vector<std::string>> environment_of(pid_t pid) {
    const UniqueFd file = open_at(pid, "environ", O_RDONLY);
    if (!file && (errno == EACCES || errno == EPERM))
        return Error(ErrorKind::denied, fmt::format("process {} belongs to another user", pid), {},
                     "be the user that the server runs as, or root");
    if (!file) return Error(ErrorKind::not_found, fmt::format("there is no process {} here", pid));
    std::string text;
    std::array<char, 65536> block{};
    while (text.size() < kMostEnvironment) {
        const ssize_t got = ::read(file.get(), block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error(ErrorKind::denied, fmt::format("process {} may not be looked at", pid));
        if (got == 0) break;
        text.append(block.data(), static_cast<std::size_t>(got));
    }
    std::vector<std::string> entries;
    for (const std::string_view entry : split(text, '\0'))
        if (!entry.empty()) entries.emplace_back(entry);
    return entries;
}

Result<BesideResult> run_beside(pid_t pid, const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment) {
    TRY(const Surroundings all, surroundings_of(pid));
    TRY(PipePair go, make_pipe());
    const pid_t child = ::fork();
    if (child < 0) return Error(ErrorKind::exhausted, std::string("cannot make a process: ") + std::strerror(errno));
    if (child == 0) {
        // Its groups are joined for it, from outside of its namespaces.
        char byte = 0;
        go.write.reset();  // ours alone would keep it open for ever
        while (::read(go.read.get(), &byte, 1) < 0 && errno == EINTR) {
        }
        become(all, arguments, environment);
    }
    BesideResult result;
    for (const std::string& group : all.groups) {
        const UniqueFd file(::open(group.c_str(), O_WRONLY | O_CLOEXEC));
        const std::string text = std::to_string(child);
        if (file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) continue;
        result.note = "it runs outside of the run's control group, and its limits do not hold for it";
    }
    // The terminal tells both; the program is the one to decide.
    const auto interrupt = ::signal(SIGINT, SIG_IGN), quit = ::signal(SIGQUIT, SIG_IGN);
    go.write.reset();
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ::signal(SIGINT, interrupt);
    ::signal(SIGQUIT, quit);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (result.exit_code == 127)
        return Error(ErrorKind::not_found, fmt::format("there is no program {} there", printable(arguments[0])));
    return result;
}

}  // namespace stoker
