#include "run/spec/source.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"

namespace stoker {
namespace {

using SourceDeadline = std::chrono::steady_clock::time_point;

constexpr std::size_t kMostSourceBytes = 64u << 20;  // of the diff, and of the untracked files together
constexpr std::size_t kMostUntracked = 20'000;
constexpr std::size_t kMostGitWords = 16u << 20;

// Empty when it is nowhere in PATH.
std::string program_in_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* path = std::getenv("PATH");
    for (const std::string_view folder : split(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, ':')) {
        const std::string file = std::string(folder) + "/" + name;
        std::error_code error;
        if (!folder.empty() && ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, error))
            return file;
    }
    return "";
}

std::vector<std::string> source_environment() {
    // No prompt, no lock that a git of the user's would wait for, messages that can be recognised.
    std::vector<std::string> out = {"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat"};
    for (const char* key : {"PATH", "HOME", "USER", "XDG_CONFIG_HOME", "GIT_CEILING_DIRECTORIES"})
        if (const char* value = std::getenv(key)) out.push_back(std::string(key) + "=" + value);
    return out;
}

class GitWorkTree {
public:
    GitWorkTree(std::string folder, SourceDeadline deadline) : folder_(std::move(folder)), deadline_(deadline) {}

    Result<ProgramOutput> git(std::vector<std::string> words, bool with_errors, std::size_t max_bytes) const {
        // Nothing that the repository's own settings name is run.
        std::vector<std::string> command = {
            "git", "-C", folder_, "-c", "core.fsmonitor=false", "-c", "core.hooksPath="};
        command.insert(command.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
        return output_of(command, with_errors, deadline_, max_bytes);
    }

    SourceState look() {
        SourceState source;
        const auto top = git({"rev-parse", "--show-toplevel"}, true, 1u << 16);
        if (!top) return missing(top.error());
        if (top->exit_code != 0) {
            if (top->text.find("dubious ownership") != std::string::npos)
                source.note = fmt::format(
                    "the commit is not recorded: {} belongs to somebody else, and git refuses to look at it "
                    "(git config --global --add safe.directory {} allows it)",
                    printable(folder_), printable(folder_));
            return source;
        }
        const auto head = git({"rev-parse", "--verify", "-q", "HEAD"}, false, 1u << 16);
        if (!head) return missing(head.error());
        if (head->exit_code != 0) return source;  // no commit yet
        const std::string commit(trim(head->text));
        folder_ = std::string(trim(top->text));
        Sha256 hash;
        bool dirty = false;
        if (auto status = changes(hash, dirty, source.note); !status) {
            source.note = "what was changed since the commit is not recorded: " + status.error().message();
            dirty = false;
        }
        source.commit = commit;
        if (dirty) source.dirty_sha256 = hex(hash.finish());
        return source;
    }

private:
    static SourceState missing(const Error& error) {
        if (error.kind() == ErrorKind::not_found) return {};
        return {.note = "the commit is not recorded: " + error.message()};
    }

    Status changes(Sha256& hash, bool& dirty, std::string& note) const {
        TRY(const ProgramOutput diff,
            git({"diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color"}, false, kMostSourceBytes));
        if (diff.exit_code != 0 && !diff.cut)
            return Error(ErrorKind::unavailable, fmt::format("git diff ended with {}", diff.exit_code));
        if (!diff.text.empty()) dirty = true;
        hash.add("diff").add(std::string_view("\0", 1)).add(diff.text);
        TRY(const ProgramOutput list, git({"ls-files", "--others", "--exclude-standard", "-z"}, false, kMostGitWords));
        std::vector<std::string_view> names;
        for (const std::string_view name : split(list.text, '\0'))
            if (!name.empty()) names.push_back(name);
        std::sort(names.begin(), names.end());
        bool whole = !diff.cut && !list.cut;
        if (names.size() > kMostUntracked) {
            names.resize(kMostUntracked);
            whole = false;
        }
        std::size_t left = kMostSourceBytes;
        for (const std::string_view name : names) {
            dirty = true;
            if (std::chrono::steady_clock::now() > deadline_)
                return Error(ErrorKind::timed_out, "reading the untracked files takes too long");
            hash.add(std::string_view("\0untracked\0", 11)).add(name).add(std::string_view("\0", 1));
            namespace fs = std::filesystem;
            const fs::path path = fs::path(folder_) / name;
            std::error_code error;
            const fs::file_status status = fs::symlink_status(path, error);
            if (fs::is_symlink(status)) {
                hash.add(fs::read_symlink(path, error).string());
            } else if (fs::is_regular_file(status)) {
                const auto text = read_file(path.string(), left);
                whole = whole && text.ok();
                if (text) {
                    hash.add(*text);
                    left -= text->size();
                } else {
                    hash.add(std::to_string(fs::file_size(path, error)));
                }
            }
        }
        if (!whole)
            note = "what was changed since the commit is more than 64 MiB or cannot be read: its hash covers a part";
        return done();
    }

    std::string folder_;
    SourceDeadline deadline_;
};

}  // namespace

Result<ProgramOutput> output_of(const std::vector<std::string>& command, bool with_errors,
                                std::chrono::steady_clock::time_point deadline, std::size_t max_bytes) {
    const std::string path = program_in_path(command.front());
    if (path.empty()) return Error(ErrorKind::not_found, "no program named " + printable(command.front()) + " in PATH");
    TRY(PipePair pipe, make_pipe());
    // Opened in the child, where 1 is the pipe already.
    TRY(const pid_t child, start_detached({.path = path,
                                           .arguments = command,
                                           .environment = source_environment(),
                                           .standard_output = pipe.write.get(),
                                           .error_file = with_errors ? "/proc/self/fd/1" : "/dev/null"}));
    pipe.write.reset();
    ProgramOutput out;
    bool in_time = true, ended = false;
    while (!ended && in_time && !out.cut) {
        pollfd ready{.fd = pipe.read.get(), .events = POLLIN, .revents = 0};
        const int wait = milliseconds_until(deadline);
        in_time = wait > 0;
        if (::poll(&ready, 1, wait) <= 0) continue;
        char buffer[65536];
        const ssize_t got = ::read(pipe.read.get(), buffer, sizeof buffer);
        if (got > 0)
            out.text.append(buffer, static_cast<std::size_t>(got));
        else if (got == 0 || (errno != EINTR && errno != EAGAIN))
            ended = true;
        if (out.text.size() > max_bytes) {
            out.text.resize(max_bytes);
            out.cut = true;
        }
    }
    std::optional<int> status = ended ? reap(child, deadline) : std::nullopt;
    if (!status) {
        ::kill(-child, SIGKILL);  // it leads a session of its own
        status = reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(5));
        if (!out.cut) return Error(ErrorKind::timed_out, printable(command.front()) + " did not answer in time");
    }
    out.exit_code = status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
    return out;
}

SourceState source_of(const std::string& folder, std::chrono::steady_clock::time_point deadline) {
    return GitWorkTree(folder, deadline).look();
}

}  // namespace stoker
