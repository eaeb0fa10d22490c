#include "io/machine/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "io/files.h"
#include "io/machine/device_program.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Controllers of version 1 that we use.
constexpr const char* kControllers[] = {"memory", "cpu", "pids", "freezer", "devices"};

Status write_value(const std::string& path, std::string_view value) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file && ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size())) return done();
    const ErrorKind kind = errno == EACCES || errno == EPERM || errno == EROFS ? ErrorKind::denied
                           : errno == ENOENT                                   ? ErrorKind::not_found
                                                                               : ErrorKind::unavailable;
    return Error(kind, "cannot write " + path + ": " + std::strerror(errno));
}

std::string value_of(const std::string& path) {
    auto text = read_file(path, 1u << 20);
    return text ? std::move(text).value() : std::string();
}

// SIGKILL waits for it, or it is gone.
bool is_killed(pid_t pid) {
    constexpr std::string_view kPending = "ShdPnd:";  // proc(5): signals for the whole process, as a mask
    const std::string status = value_of("/proc/" + std::to_string(pid) + "/status");
    const std::size_t at = status.find(kPending);
    if (at == std::string::npos) return status.empty();
    return (std::strtoull(status.c_str() + at + kPending.size(), nullptr, 16) >> (SIGKILL - 1) & 1) != 0;
}

std::int64_t number_in(std::string_view text) {
    text = trim(text);
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// The number after `key` in lines of "key number".
std::int64_t field_of(const std::string& path, std::string_view key) {
    const std::string text = value_of(path);
    for (const std::string_view line : split_lines(text)) {
        const auto words = split_words(line);
        if (words.size() == 2 && words[0] == key) return number_in(words[1]);
    }
    return 0;
}

bool make_folders(const std::string& path) {
    std::error_code code;
    // Again, because another process may remove an empty parent in between.
    for (int tries = 0; tries < 20; ++tries) {
        fs::create_directories(path, code);
        if (!code) return true;
        if (code != std::errc::no_such_file_or_directory) break;
    }
    return false;
}

void enable_controllers(const std::string& group) {
    for (const char* controller : {"+memory", "+cpu", "+pids"})
        (void)write_value(group + "/cgroup.subtree_control", controller).ok();
}

constexpr std::string_view kTrial = "stoker-try-";  // with the pid of who tries

// What a process left that was killed while it tried.
void remove_old_trials(const std::string& base) {
    std::error_code code;
    std::vector<std::string> old;
    for (fs::directory_iterator it(base, code), end; !code && it != end; it.increment(code)) {
        const std::string name = it->path().filename().string();
        if (name.starts_with(kTrial) && !start_ticks(static_cast<pid_t>(number_in(name.substr(kTrial.size())))))
            old.push_back(it->path().string());
    }
    for (const std::string& group : old) ::rmdir(group.c_str());
}

// Whether a process can be moved into a new group below `base`, as a child that ends at once.
bool can_use(const std::string& base) {
    remove_old_trials(base);
    const std::string group = base + "/" + std::string(kTrial) + std::to_string(::getpid());
    if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) return false;
    const std::string procs = group + "/cgroup.procs";
    const pid_t child = ::fork();
    if (child == 0) {
        const int file = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
        ::_exit(file >= 0 && ::write(file, "0", 1) == 1 ? 0 : 1);
    }
    const auto status =
        child > 0 ? reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(5)) : std::nullopt;
    // The group of a process that has just ended may be busy for a moment.
    for (int tries = 0; ::rmdir(group.c_str()) != 0 && errno == EBUSY && tries < 100; ++tries) ::poll(nullptr, 0, 1);
    return status && *status == 0;
}

struct Hierarchies {
    std::string unified;                     // mount point of version 2
    std::map<std::string, std::string> v1;   // mount point by controller
    std::map<std::string, std::string> own;  // our group by controller; "" is version 2
};

Hierarchies read_hierarchies(const std::string& root, const std::string& process = "self") {
    Hierarchies found;
    const std::string mounts = value_of(root + "proc/self/mountinfo"),
                      own = value_of(root + "proc/" + process + "/cgroup");
    for (const std::string_view line : split_lines(mounts)) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        const auto before = split_words(line.substr(0, dash)), after = split_words(line.substr(dash + 3));
        if (before.size() < 5 || after.size() < 3) continue;
        const std::string place = root + std::string(before[4].substr(1));
        if (after[0] == "cgroup2" && found.unified.empty()) found.unified = place;
        if (after[0] != "cgroup") continue;
        for (const std::string_view option : split(after[2], ',')) found.v1.emplace(option, place);
    }
    for (const std::string_view line : split_lines(own)) {
        const auto parts = split(line, ':');
        if (parts.size() < 3) continue;
        const std::string group(line.substr(parts[0].size() + parts[1].size() + 2));
        for (const std::string_view controller : split(parts[1], ',')) found.own[std::string(controller)] = group;
    }
    return found;
}

// Where to try, best first: below our own group, then at the top of what is mounted.
std::vector<std::string> candidates(const std::string& mount, const std::string& own) {
    std::vector<std::string> places;
    if (!own.empty() && own != "/") places.push_back(mount + own);
    places.push_back(mount);
    return places;
}

std::vector<std::string> groups_in(const Hierarchies& here) {
    std::set<std::string> groups;  // controllers may share a tree
    const auto add = [&](const std::string& mount, const std::string& controller) {
        const auto own = here.own.find(controller);
        groups.insert(own == here.own.end() || own->second == "/" ? mount : mount + own->second);
    };
    if (!here.unified.empty()) add(here.unified, "");
    for (const auto& [controller, mount] : here.v1) add(mount, controller);
    return {groups.begin(), groups.end()};
}

}  // namespace

std::string CgroupHost::text() const {
    std::vector<std::string> controllers;
    for (const auto& [controller, folder] : v1) controllers.push_back(controller);
    std::string text;
    if (!unified.empty())
        text = std::string("cgroup v2 (") + (unified_limits ? "limits, " : "") + (unified_devices ? "devices, " : "") +
               "kill)";
    if (!v1.empty()) text += (text.empty() ? "cgroup v1 (" : ", v1 (") + join(controllers, ", ") + ")";
    return text;
}

CgroupHost discover_cgroups(const std::string& root) {
    const Hierarchies here = read_hierarchies(root);
    const auto own = [&](const std::string& controller) {
        const auto it = here.own.find(controller);
        return it == here.own.end() ? std::string() : it->second;
    };
    CgroupHost host;
    if (!here.unified.empty()) {
        for (const std::string& place : candidates(here.unified, own(""))) {
            if (!can_use(place)) continue;
            enable_controllers(place);
            // A group whose own processes keep it from passing controllers on still serves to kill.
            const bool limits = value_of(place + "/cgroup.subtree_control").find("memory") != std::string::npos;
            if (host.unified.empty() || limits) host = {.unified = place, .unified_limits = limits};
            if (limits) break;
        }
    }
    for (const std::string controller : kControllers) {
        const auto mount = here.v1.find(controller);
        if (mount == here.v1.end()) continue;
        for (const std::string& place : candidates(mount->second, own(controller))) {
            if (!can_use(place)) continue;
            host.v1[controller] = place;
            break;
        }
    }
    host.unified_devices = !host.unified.empty() && !host.v1.contains("devices") && device_programs_work();
    return host;
}

std::vector<std::string> groups_of_process(pid_t pid, const std::string& root) {
    std::vector<std::string> files = groups_in(read_hierarchies(root, std::to_string(pid)));
    for (std::string& file : files) file += "/cgroup.procs";
    return files;
}

std::vector<std::string> own_groups(const std::string& root) {
    return groups_in(read_hierarchies(root));
}

std::vector<std::string> Cgroup::folders() const {
    std::set<std::string> folders;  // controllers may share a tree ("cpu,cpuacct")
    if (!host_->unified.empty()) folders.insert(host_->unified + "/" + name_);
    for (const auto& [controller, base] : host_->v1) folders.insert(base + "/" + name_);
    return {folders.begin(), folders.end()};
}

Status Cgroup::create() const {
    for (const std::string& folder : folders()) {
        if (!make_folders(folder))
            return Error(ErrorKind::denied, "cannot make the control group " + folder + ": " + std::strerror(errno));
    }
    if (host_->unified_limits) {
        fs::path group = host_->unified;
        for (const auto& part : fs::path(name_).parent_path()) enable_controllers((group /= part).string());
    }
    return done();
}

Result<DeviceNumbers> device_numbers(const std::string& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0)
        return Error(ErrorKind::not_found, "the device " + printable(file) + " is not there: " + std::strerror(errno));
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))
        return Error(ErrorKind::invalid, printable(file) + " is no device file");
    return DeviceNumbers{.type = S_ISBLK(status.st_mode) ? 'b' : 'c',
                         .major = static_cast<std::int64_t>(major(status.st_rdev)),
                         .minor = static_cast<std::int64_t>(minor(status.st_rdev))};
}

std::vector<std::string> usual_devices() {
    // Documentation/admin-guide/devices.txt: null, zero, full, random, urandom, tty, ptmx, pts, fuse, tun. Making a
    // node (m) gives no access to it.
    std::vector<std::string> rules = {"c 1:3 rwm",    "c 1:5 rwm",    "c 1:7 rwm", "c 1:8 rwm",
                                      "c 1:9 rwm",    "c 5:0 rwm",    "c 5:2 rwm", "c 136:* rwm",
                                      "c 10:229 rwm", "c 10:200 rwm", "c *:* m",   "b *:* m"};
    std::error_code code;
    for (fs::directory_iterator it("/dev/infiniband", code), end; !code && it != end; it.increment(code))
        if (const auto numbers = device_numbers(it->path().string()))
            rules.push_back(std::string(1, numbers->type) + " " + std::to_string(numbers->major) + ":" +
                            std::to_string(numbers->minor) + " rwm");
    return rules;
}

Status Cgroup::limit_devices(const std::vector<std::string>& files) const {
    std::vector<std::string> rules = usual_devices();
    for (const std::string& file : files) {
        TRY(const DeviceNumbers numbers, device_numbers(file));
        rules.push_back(std::string(1, numbers.type) + " " + std::to_string(numbers.major) + ":" +
                        std::to_string(numbers.minor) + " rwm");
    }
    const auto base = host_->v1.find("devices");
    if (base == host_->v1.end()) return attach_device_program(host_->unified + "/" + name_, rules);
    const std::string group = base->second + "/" + name_;
    TRY_VOID(write_value(group + "/devices.deny", "a"));
    // One that the group above does not have cannot be given; a program that needs it is told so by its open().
    for (const std::string& rule : rules)
        if (Status given = write_value(group + "/devices.allow", rule); !given && rule.ends_with("rwm")) return given;
    return done();
}

Status Cgroup::limit(const CgroupLimits& limits) const {
    if (limits.devices) TRY_VOID(limit_devices(*limits.devices));
    // 100 ms, the kernel's own default period.
    constexpr std::int64_t kPeriodUs = 100'000;
    // The kernel refuses less than 1 ms.
    const std::string quota = std::to_string(std::max<std::int64_t>(limits.cpu_milli * kPeriodUs / 1000, 1000));
    const std::string memory = std::to_string(limits.memory_bytes), processes = std::to_string(limits.processes);
    if (host_->unified_limits) {
        const std::string group = host_->unified + "/" + name_;
        if (limits.memory_bytes > 0) {
            TRY_VOID(write_value(group + "/memory.max", memory));
            // Absent on kernels without swap. A rank that swaps is a rank that thrashes its neighbours' disk.
            (void)write_value(group + "/memory.swap.max", "0").ok();
            (void)write_value(group + "/memory.oom.group", "1").ok();
        }
        if (limits.cpu_milli > 0) TRY_VOID(write_value(group + "/cpu.max", quota + " " + std::to_string(kPeriodUs)));
        if (limits.processes > 0) TRY_VOID(write_value(group + "/pids.max", processes));
        return done();
    }
    const auto place = [&](const char* controller) {
        const auto it = host_->v1.find(controller);
        return it == host_->v1.end() ? std::string() : it->second + "/" + name_;
    };
    if (const std::string group = place("memory"); !group.empty() && limits.memory_bytes > 0) {
        TRY_VOID(write_value(group + "/memory.limit_in_bytes", memory));
        (void)write_value(group + "/memory.memsw.limit_in_bytes", memory).ok();
    }
    if (const std::string group = place("cpu"); !group.empty() && limits.cpu_milli > 0) {
        TRY_VOID(write_value(group + "/cpu.cfs_period_us", std::to_string(kPeriodUs)));
        TRY_VOID(write_value(group + "/cpu.cfs_quota_us", quota));
    }
    if (const std::string group = place("pids"); !group.empty() && limits.processes > 0)
        TRY_VOID(write_value(group + "/pids.max", processes));
    return done();
}

Status Cgroup::join() const {
    for (const std::string& folder : folders()) TRY_VOID(write_value(folder + "/cgroup.procs", "0"));
    return done();
}

std::int64_t Cgroup::oom_kills() const {
    if (host_->unified_limits) return field_of(host_->unified + "/" + name_ + "/memory.events", "oom_kill");
    const auto memory = host_->v1.find("memory");
    if (memory == host_->v1.end()) return 0;
    // Version 1 counts a kill in the group of who was killed only.
    const std::string group = memory->second + "/" + name_;
    std::int64_t kills = field_of(group + "/memory.oom_control", "oom_kill");
    std::error_code code;
    for (fs::recursive_directory_iterator it(group, code), end; !code && it != end; it.increment(code))
        if (it->is_directory(code)) kills += field_of(it->path().string() + "/memory.oom_control", "oom_kill");
    return kills;
}

std::vector<pid_t> Cgroup::processes() const {
    std::set<pid_t> found;
    for (const std::string& folder : folders()) {
        std::error_code code;
        std::vector<std::string> groups = {folder};
        for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
            if (it->is_directory(code)) groups.push_back(it->path().string());
        for (const std::string& group : groups) {
            const std::string pids = value_of(group + "/cgroup.procs");
            for (const std::string_view line : split_lines(pids))
                if (const auto pid = static_cast<pid_t>(number_in(line)); pid > 0) found.insert(pid);
        }
    }
    return {found.begin(), found.end()};
}

void Cgroup::kill() const {
    if (!host_->unified.empty() && write_value(host_->unified + "/" + name_ + "/cgroup.kill", "1")) return;
    // Who has been told needs time, and gets none while it is frozen: asked again and again, none would ever die.
    const std::vector<pid_t> there = processes();
    if (std::all_of(there.begin(), there.end(), [](pid_t pid) { return is_killed(pid); })) return;
    // Frozen, so that nobody forks while the list is read. A frozen process of version 1 dies when it is thawed.
    const auto freezer = host_->v1.find("freezer");
    const std::string state =
        freezer == host_->v1.end() ? std::string() : freezer->second + "/" + name_ + "/freezer.state";
    if (!state.empty()) (void)write_value(state, "FROZEN").ok();
    for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
    if (!state.empty()) (void)write_value(state, "THAWED").ok();
}

bool Cgroup::remove() const {
    bool gone = true;
    for (const std::string& folder : folders()) {
        std::error_code code;
        std::vector<std::string> groups = {folder};
        for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
            if (it->is_directory(code)) groups.push_back(it->path().string());
        // The deepest first.
        std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
        for (const std::string& group : groups)
            if (::rmdir(group.c_str()) != 0 && errno != ENOENT) gone = false;
        // The common parent goes with the last group in it.
        ::rmdir(fs::path(folder).parent_path().c_str());
    }
    return gone;
}

}  // namespace stoker
