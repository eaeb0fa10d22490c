#include "deploy/local/box.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/document.h"
#include "base/text.h"
#include "deploy/local/image.h"
#include "io/files.h"
#include "io/machine/namespaces.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A box is made in 0.1 s; this is for a machine that swaps.
constexpr auto kRuncLimit = std::chrono::seconds(25);
constexpr auto kRemovalLimit = std::chrono::seconds(5);
constexpr auto kGroupRemovalLimit = std::chrono::seconds(1);

std::string runc_path() {
    for (const char* path :
         {"/usr/bin/runc", "/usr/sbin/runc", "/usr/local/bin/runc", "/usr/local/sbin/runc", "/sbin/runc"})
        if (::access(path, X_OK) == 0) return path;
    return {};
}

std::string box_folder(const std::string& run_folder, std::size_t rank) {
    return run_folder + "/box-" + std::to_string(rank);
}

// runc with these arguments; the status of waitpid(). `quiet`: its output is thrown away.
std::optional<int> run_runc(const std::string& run_folder, std::vector<std::string> arguments, bool quiet,
                            Clock::duration limit) {
    const std::string path = runc_path();
    arguments.insert(arguments.begin(), {"runc", "--root", run_folder + "/runc"});
    std::vector<char*> words;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    std::string search = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    std::array<char*, 2> environment = {search.data(), nullptr};
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const pid_t child = ::fork();
    if (child == 0) {
        // No other call than those that are safe after fork() in a program with threads.
        if (quiet)
            for (int fd = 0; fd < 3; ++fd) ::dup2(nothing, fd);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::execve(path.c_str(), words.data(), environment.data());
        ::_exit(127);
    }
    if (nothing >= 0) ::close(nothing);
    if (child < 0) return std::nullopt;
    const auto status = reap(child, Clock::now() + limit);
    if (status) return status;
    ::kill(child, SIGKILL);
    reap(child, Clock::now() + std::chrono::seconds(1));
    return std::nullopt;
}

// The last message of level "error" in a log of JSON lines.
std::string complaint(const std::string& log) {
    const auto text = read_file(log, 1 << 20);
    std::string message = "it said nothing";
    if (!text) return message;
    for (const std::string_view line : split_lines(*text)) {
        const auto entry = Document::parse_json(line, "runc.log");
        if (!entry || !entry->root().is_mapping()) continue;
        const Node* level = entry->root().find("level");
        const Node* said = entry->root().find("msg");
        if (level != nullptr && said != nullptr && (level->text == "error" || level->text == "fatal"))
            message = said->text;
    }
    return printable(message, 600);
}

Status mount_failed(const std::string& what) {
    return Error(ErrorKind::denied, "cannot mount " + what + ": " + std::strerror(errno));
}

// Changes go to the folder of the box, or to memory where its file system cannot carry them.
Status mount_root(const std::string& box, const std::string& root) {
    if (::geteuid() != 0) TRY_VOID(enter_new_user_namespace());
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
        return mount_failed("anything in a namespace of its own");
    std::error_code code;
    for (const char* name : {"lower", "layer", "root"}) fs::create_directories(fs::path(box) / name, code);
    if (code) return Error(ErrorKind::unavailable, "cannot make folders in " + box + ": " + code.message());
    // Relative, since commas and colons in a path would mean something in the options.
    if (::chdir(box.c_str()) != 0) return mount_failed(box);
    if (::mount(root.c_str(), "lower", nullptr, MS_BIND | MS_REC, nullptr) != 0)
        return mount_failed("the root of the image");
    for (const bool in_memory : {false, true}) {
        if (in_memory && ::mount("tmpfs", "layer", "tmpfs", MS_NOSUID | MS_NODEV, "mode=700") != 0) break;
        ::mkdir("layer/upper", 0755);
        ::mkdir("layer/work", 0700);
        if (::mount("overlay", "root", "overlay", 0, "lowerdir=lower,upperdir=layer/upper,workdir=layer/work") == 0)
            return done();
    }
    return mount_failed("a writable layer over the image (overlayfs)");
}

// Tried once in a child: a namespace of its own, and in it an overlay over a folder of ours.
std::string why_no_boxes() {
    std::error_code code;
    std::string folder = (fs::temp_directory_path(code) / "stoker-box-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return "images need a temporary folder, and none can be made";
    enum Exit : std::uint8_t { works, no_user_namespace, no_overlay, no_mount_point };
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() != 0 && !enter_new_user_namespace()) ::_exit(no_user_namespace);
        if (mount_root(folder, "/usr")) ::_exit(works);
        ::_exit(errno == EINVAL ? no_mount_point : no_overlay);
    }
    const auto status = child < 0 ? std::nullopt : reap(child, Clock::now() + std::chrono::seconds(5));
    remove_tree(folder);
    if (status && *status == 0) return {};
    if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == no_mount_point)
        return "images need a root that is a mount point, and this one is a plain chroot: bind it onto itself first "
               "(mount --bind FOLDER FOLDER)";
    if (::geteuid() == 0)
        return "images need mount namespaces and overlayfs, which this machine forbids: leave them out";
    if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == no_overlay)
        return "images without root need overlayfs in user namespaces (Linux 5.11 or newer): start the server as root, "
               "or leave the image out";
    return "images without root need user namespaces, which this machine forbids: start the server as root, or let an "
           "administrator allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
           "kernel.apparmor_restrict_unprivileged_userns=0)";
}

}  // namespace

std::string why_no_images(TreeKind tree) {
    if (runc_path().empty()) return "images need runc here: apt-get install runc";
    if (::geteuid() == 0 && tree != TreeKind::cgroup) return "images need control groups, which cannot be made here";
    static const std::string problem = why_no_boxes();
    return problem;
}

std::string box_id(const LaunchOrder& order, std::size_t rank) {
    return "stoker-" + order.operation.text() + "-" + std::to_string(rank);
}

Result<pid_t> create_box(const std::string& run_folder, const LaunchOrder& order, std::size_t rank,
                         const std::map<std::string, std::string>& environment) {
    TRY(const Bundle bundle, read_bundle(order.gang.image));
    const std::string box = box_folder(run_folder, rank), id = box_id(order, rank);
    if (::mkdir(box.c_str(), 0700) != 0 && errno != EEXIST)
        return Error(ErrorKind::unavailable, "cannot make " + box + ": " + std::strerror(errno));
    TRY_VOID(mount_root(box, bundle.root));
    const Json config = runc_config(bundle, order, rank, environment, box + "/root", id);
    TRY_VOID(replace_file(box + "/config.json", config.dump(), false));
    const std::string log = box + "/runc.log", pid_file = box + "/pid";
    const auto status = run_runc(run_folder,
                                 {"--log", log, "--log-format", "json", "create", "--no-new-keyring", "--bundle", box,
                                  "--pid-file", pid_file, id},
                                 false, kRuncLimit);
    if (!status) return Error(ErrorKind::timed_out, "runc did not make the container in time");
    if (*status != 0) return Error(ErrorKind::invalid, "runc: " + complaint(log));
    TRY(const std::string text, read_file(pid_file, 64));
    pid_t pid = 0;
    std::from_chars(text.data(), text.data() + text.size(), pid);
    if (pid <= 1) return Error(ErrorKind::unavailable, "runc named no process");
    return pid;
}

Status start_box(const std::string& run_folder, const LaunchOrder& order, std::size_t rank) {
    const std::string log = box_folder(run_folder, rank) + "/runc.log";
    const auto status =
        run_runc(run_folder, {"--log", log, "--log-format", "json", "start", box_id(order, rank)}, false, kRuncLimit);
    if (status && *status == 0) return done();
    return Error(ErrorKind::invalid, "runc: " + (status ? complaint(log) : std::string("it did not start in time")));
}

namespace {

// Where runc makes groups of its own: below ours or above, in every tree that is mounted.
std::vector<std::string> groups_of_box(const CgroupHost& host, const std::string& id) {
    std::vector<std::string> places = own_groups(), groups;
    if (!host.unified.empty()) places.push_back(host.unified);
    for (const auto& [controller, folder] : host.v1) places.push_back(folder);
    for (const std::string& place : places) {
        std::error_code code;
        for (fs::path at = place; at.has_relative_path() && fs::exists(at / "cgroup.procs", code);
             at = at.parent_path())
            if (fs::exists(at / id, code)) groups.push_back((at / id).string());
    }
    return groups;
}

}  // namespace

bool remove_box_groups(const LaunchOrder& order) {
    if (order.gang.image.empty() || order.tree != TreeKind::cgroup) return true;
    bool gone = true;
    for (std::size_t rank = 0; rank < order.gang.ranks.size(); ++rank)
        for (const std::string& group : groups_of_box(order.cgroups, box_id(order, rank)))
            if (::rmdir(group.c_str()) != 0 && errno != ENOENT) gone = false;
    return gone;
}

void remove_boxes(const std::string& run_folder, const LaunchOrder& order) {
    // Without control groups the pid namespace has taken everything along, and pids in there mean others out here.
    if (order.gang.image.empty() || order.tree != TreeKind::cgroup) return;
    std::error_code code;
    for (std::size_t rank = 0; rank < order.gang.ranks.size(); ++rank) {
        const std::string id = box_id(order, rank);
        if (fs::exists(run_folder + "/runc/" + id, code))
            run_runc(run_folder, {"delete", "--force", id}, true, kRemovalLimit);
    }
    // runc gives up on a group whose last process is still being taken apart.
    const auto until = Clock::now() + kGroupRemovalLimit;
    while (!remove_box_groups(order) && Clock::now() < until) ::usleep(5000);
}

std::vector<std::string> files_of_devices(const std::vector<NodeInfo>& nodes, const RankSpec& rank) {
    std::vector<std::string> files;
    bool nvidia = false;
    for (const NodeInfo& node : nodes) {
        if (node.name != rank.node) continue;
        for (const DeviceInfo& device : node.devices) {
            if (device.file.empty() ||
                std::find(rank.devices.begin(), rank.devices.end(), device.id) == rank.devices.end())
                continue;
            files.push_back(device.file);
            nvidia = nvidia || device.file.starts_with("/dev/nvidia");
        }
    }
    for (const char* shared : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"})
        if (nvidia && ::access(shared, F_OK) == 0) files.emplace_back(shared);
    return files;
}

}  // namespace stoker
