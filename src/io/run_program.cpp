#include "io/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "io/process.h"
#include "io/processor_time.h"

namespace stoker {
namespace {

// In the call's own PATH, which need not be ours.
std::string program_in_path(const ProgramCall& call) {
    const std::string& name = call.arguments.front();
    if (name.find('/') != std::string::npos) return name;
    for (const std::string& entry : call.environment) {
        if (!entry.starts_with("PATH=")) continue;
        for (const std::string_view folder : split(std::string_view(entry).substr(5), ':')) {
            const std::string path = std::string(folder.empty() ? "." : folder) + "/" + name;
            if (::access(path.c_str(), X_OK) == 0) return path;
        }
    }
    return {};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

// A file of its own in memory: however slowly the program reads, nobody waits for it.
Result<UniqueFd> input_of(const std::string& text) {
    UniqueFd file(::memfd_create("stoker-input", MFD_CLOEXEC));
    bool whole = static_cast<bool>(file);
    for (std::string_view rest = text; whole && !rest.empty();) {
        const ssize_t put = ::write(file.get(), rest.data(), rest.size());
        whole = put > 0;
        if (whole) rest.remove_prefix(static_cast<std::size_t>(put));
    }
    if (!whole || ::lseek(file.get(), 0, SEEK_SET) != 0)
        return Error(ErrorKind::exhausted, std::string("cannot keep the input of a program: ") + std::strerror(errno));
    return file;
}

Result<pid_t> spawn(const std::string& path, const ProgramCall& call, int input, int output, int complaint) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    if (input >= 0)
        ::posix_spawn_file_actions_adddup2(&actions, input, 0);
    else
        ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions, complaint, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    pid_t child = -1;
    const auto arguments = pointers(call.arguments), environment = pointers(call.environment);
    const int code = ::posix_spawn(&child, path.c_str(), &actions, &attributes, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (code == 0) return child;
    return Error(code == ENOENT ? ErrorKind::not_found : ErrorKind::unavailable,
                 "cannot run " + printable(path) + ": " + std::strerror(code));
}

}  // namespace

Result<ProgramResult> run_program(const ProgramCall& call, std::chrono::steady_clock::time_point deadline) {
    const std::string path = program_in_path(call);
    if (path.empty())
        return Error(ErrorKind::not_found, "there is no program " + printable(call.arguments.front()) + " in PATH");
    TRY(PipePair output, make_pipe());
    TRY(PipePair complaint, make_pipe());
    UniqueFd input;
    if (!call.input.empty()) {
        TRY(input, input_of(call.input));
    }
    TRY(const pid_t child, spawn(path, call, input.get(), output.write.get(), complaint.write.get()));
    output.write.reset();
    complaint.write.reset();
    ProgramResult result;
    std::array<std::pair<UniqueFd*, std::string*>, 2> streams{
        {{&output.read, &result.output}, {&complaint.read, &result.complaint}}};
    bool late = false;
    while ((output.read || complaint.read) && !late) {
        std::array<pollfd, 2> waits{};
        for (std::size_t i = 0; i < 2; ++i) waits[i] = {.fd = streams[i].first->get(), .events = POLLIN, .revents = 0};
        const int left = milliseconds_until(deadline);
        const int ready = ::poll(waits.data(), waits.size(), left);
        late = ready == 0 && left == 0;
        for (std::size_t i = 0; i < 2 && ready > 0; ++i) {
            if (waits[i].revents == 0) continue;
            std::array<char, 65536> block{};
            const ssize_t got = ::read(streams[i].first->get(), block.data(), block.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) {
                streams[i].first->reset();
                continue;
            }
            std::string& text = *streams[i].second;
            const std::size_t room = call.most_bytes - std::min(call.most_bytes, text.size());
            text.append(block.data(), std::min(static_cast<std::size_t>(got), room));
            result.cut = result.cut || static_cast<std::size_t>(got) > room;
        }
    }
    // Not waited for yet, so that the number is still its own.
    result.processor_s = processor_s_of(child);
    auto status = late ? std::nullopt : reap(child, deadline);
    if (!status) {
        ::kill(-child, SIGKILL);
        int ignored = 0;
        while (::waitpid(child, &ignored, 0) < 0 && errno == EINTR) {
        }
        return Error(ErrorKind::timed_out, printable(call.arguments.front()) + " did not answer in time");
    }
    result.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    return result;
}

}  // namespace stoker
