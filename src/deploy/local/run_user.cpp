#include "deploy/local/run_user.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

// "Unused" in the table of systemd.io/UIDS-GIDS (2025-11): above containers, below 2^31.
constexpr std::uint64_t kFirstProjectUser = 1'879'048'192, kProjectUsers = 1u << 27;
constexpr int kDeepest = 32;

Error cannot(const std::string& what) {
    return Error(ErrorKind::denied, fmt::format("{}: {}", what, std::strerror(errno)));
}

// Of a container with numbers of its own, only those that it was given exist.
bool is_mapped(const char* map, std::uint64_t number) {
    const auto text = read_file(map, 1 << 16);
    if (!text) return true;
    for (const std::string_view line : split_lines(*text)) {
        const auto words = split_words(line);
        if (words.size() != 3) continue;
        const std::uint64_t first = std::strtoull(std::string(words[0]).c_str(), nullptr, 10);
        const std::uint64_t count = std::strtoull(std::string(words[2]).c_str(), nullptr, 10);
        if (number >= first && number - first < count) return true;
    }
    return false;
}

Result<RunUser> account(const std::string& name) {
    std::array<char, 16384> room{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
        return Error(ErrorKind::not_found, fmt::format("there is no user '{}' on this machine", printable(name, 80)),
                     {}, "runs_as: project gives each project a user of its own, which needs no account");
    RunUser user{.uid = found->pw_uid, .gid = found->pw_gid, .groups = {}, .name = name, .home = found->pw_dir};
    int count = 256;
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    if (::getgrouplist(name.c_str(), user.gid, groups.data(), &count) > 0)
        user.groups.assign(groups.begin(), groups.begin() + count);
    return user;
}

// What Stoker made in a folder of the run becomes its user's: files and folders of root, never what has a second name.
void give_below(int folder, const RunUser& user, int depth) {
    DIR* const list = ::fdopendir(folder);  // takes it
    if (list == nullptr) {
        ::close(folder);
        return;
    }
    while (const dirent* entry = ::readdir(list)) {
        const std::string_view name = entry->d_name;
        struct stat status {};
        if (name == "." || name == ".." || ::fstatat(::dirfd(list), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            status.st_uid != 0)
            continue;
        if (S_ISREG(status.st_mode) && status.st_nlink == 1)
            (void)(::fchownat(::dirfd(list), entry->d_name, user.uid, user.gid, AT_SYMLINK_NOFOLLOW) == 0);
        if (!S_ISDIR(status.st_mode) || depth >= kDeepest) continue;
        const int next = ::openat(::dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (next < 0) continue;
        (void)(::fchown(next, user.uid, user.gid) == 0);
        give_below(next, user, depth + 1);
    }
    ::closedir(list);
}

// The folder and all of ours in it.
Status give_tree(const std::string& path, const RunUser& user) {
    UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!folder) return errno == ENOENT ? done() : Status(cannot("cannot give " + printable(path) + " to its user"));
    struct stat status {};
    if (::fstat(folder.get(), &status) != 0 || (status.st_uid != 0 && status.st_uid != user.uid)) return done();
    if (::fchown(folder.get(), user.uid, user.gid) != 0 || ::fchmod(folder.get(), 0700) != 0)
        return cannot("cannot give " + printable(path) + " to its user");
    give_below(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0), user, 0);
    return done();
}

// Root's, with the user's group: what root puts in there nobody else can rename or remove (the sticky bit).
Status share(const std::string& path, gid_t group, mode_t mode) {
    const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!folder || ::fchown(folder.get(), 0, group) != 0 || ::fchmod(folder.get(), mode) != 0)
        return cannot("cannot open " + printable(path) + " to its user");
    return done();
}

}  // namespace

bool is_other_user(const std::string& choice) {
    return !choice.empty() && choice != "server";
}

Result<std::optional<RunUser>> user_of_runs(const std::string& choice, std::uint64_t project) {
    if (!is_other_user(choice)) return std::optional<RunUser>();
    if (choice != "project") {
        TRY(RunUser user, account(choice));
        return std::optional(std::move(user));
    }
    const auto number = static_cast<uid_t>(kFirstProjectUser + project % kProjectUsers);
    return std::optional(
        RunUser{.uid = number, .gid = number, .groups = {}, .name = fmt::format("project p-{}", project), .home = {}});
}

Status check_runs_as(const std::string& choice, const std::string& folder) {
    if (!is_other_user(choice)) return done();
    if (::geteuid() != 0)
        return Error(ErrorKind::denied,
                     fmt::format("runs_as {}: only a server that is root can start work as somebody else",
                                 printable(choice, 80)),
                     {}, "start it as root, or leave runs_as out: work runs as the server's own user");
    TRY(const auto user, user_of_runs(choice, 1));
    if (user->uid == 0)
        return Error(ErrorKind::invalid, fmt::format("runs_as {}: that is root itself", printable(choice, 80)), {},
                     "name a user without rights, or write project");
    if (!is_mapped("/proc/self/uid_map", user->uid) || !is_mapped("/proc/self/gid_map", user->gid))
        return Error(ErrorKind::unsupported,
                     fmt::format("runs_as {}: this container has no user number {}", printable(choice, 80), user->uid),
                     {}, "name an account of it: runs_as: nobody");
    for (std::filesystem::path at = std::filesystem::path(folder).parent_path(); at.has_relative_path();
         at = at.parent_path()) {
        struct stat status {};
        if (::stat(at.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) != 0 || status.st_uid == user->uid) continue;
        return Error(ErrorKind::denied,
                     fmt::format("runs_as {}: nobody but its owner can pass through {}, and runs work below it",
                                 printable(choice, 80), printable(at.string())),
                     {}, fmt::format("--folder /var/lib/stoker, or chmod o+x {}", printable(at.string())));
    }
    return done();
}

Status become(const RunUser& user, const std::vector<std::string>& device_files) {
    std::vector<gid_t> groups = user.groups;
    for (const std::string& file : device_files) {
        struct stat status {};
        // GPUs of some vendors are their group's alone (render, video).
        if (::stat(file.c_str(), &status) == 0 && S_ISCHR(status.st_mode) && status.st_gid != 0 &&
            (status.st_mode & S_IRGRP) != 0)
            groups.push_back(status.st_gid);
    }
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return cannot("cannot become the user of the run, " + user.name);
    return done();
}

Status give_run_folder(const RunUser& user, const std::string& log_folder, const std::vector<std::string>& shared) {
    const std::filesystem::path run = std::filesystem::path(log_folder).parent_path();
    TRY_VOID(share(run.string(), user.gid, 01770));
    TRY_VOID(share(log_folder, user.gid, 0750));
    // Written by the program and read by the server, which must find the file and no link to another.
    const std::string metrics = (run / "metrics.jsonl").string();
    const UniqueFd file(::open(metrics.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660));
    if (!file || ::fchown(file.get(), 0, user.gid) != 0 || ::fchmod(file.get(), 0660) != 0)
        return cannot("cannot make " + printable(metrics));
    const std::string runs = run.parent_path().string() + "/";
    std::vector<std::string> own = shared;
    for (const char* name : {"artifacts", "checkpoints", "shared"}) own.push_back((run / name).string());
    for (const std::string& path : own) {
        const std::string at = std::filesystem::path(path).lexically_normal().string();
        if (!at.starts_with(runs)) continue;  // what people name elsewhere is theirs to open
        // What leads there from the run that it belongs to: FOLDER/runs/r-5 of FOLDER/runs/r-5/shared.
        const std::string holder = at.substr(0, at.find('/', runs.size()));
        if (holder != at && holder != run.string()) TRY_VOID(share(holder, user.gid, 01770));
        TRY_VOID(give_tree(at, user));
    }
    return done();
}

void open_the_way(const std::string& folder) {
    for (const char* part : {"", "/runs", "/run"}) (void)(::chmod((folder + part).c_str(), 0711) == 0);
}

}  // namespace stoker
