#include "deploy/local/image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/document.h"
#include "base/paths.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kMaxEntries = 1'000'000;  // of a root file system; a large CUDA image has 100,000

std::int64_t integer_of(const Node* node) {
    return node != nullptr && node->kind == NodeKind::number ? static_cast<std::int64_t>(node->number) : 0;
}

Error unreadable(const std::string& path, int code) {
    return Error(code == ENOENT ? ErrorKind::not_found : ErrorKind::unavailable,
                 "cannot read " + printable(path) + ": " + std::strerror(code));
}

Status add_content(Sha256& digest, const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return unreadable(path, errno);
    std::vector<char> block(1 << 20);
    for (ssize_t got = 0; (got = ::read(file.get(), block.data(), block.size())) != 0;) {
        if (got < 0 && errno != EINTR) return unreadable(path, errno);
        if (got > 0) digest.add({block.data(), static_cast<std::size_t>(got)});
    }
    return done();
}

struct Entry {
    std::string path;  // relative to the root
    struct stat status {};
};

Result<std::vector<Entry>> entries_below(const std::string& root) {
    std::vector<Entry> entries;
    std::error_code code;
    fs::recursive_directory_iterator it(root, code);
    for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
        if (entries.size() == kMaxEntries)
            return Error(ErrorKind::exhausted,
                         printable(root) + " has more than " + std::to_string(kMaxEntries) + " files");
        Entry& entry = entries.emplace_back();
        entry.path = it->path().string().substr(root.size());
        if (::lstat(it->path().c_str(), &entry.status) != 0) return unreadable(it->path().string(), errno);
    }
    if (code) return unreadable(root, code.value());
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
    return entries;
}

Json texts(const std::vector<std::string>& list) {
    Json json = Json::array();
    for (const std::string& each : list) json.push(each);
    return json;
}

Json mount_of(const std::string& to, const char* type, const std::string& from,
              const std::vector<std::string>& options) {
    return Json::object().set("destination", to).set("type", type).set("source", from).set("options", texts(options));
}

Json mounts_of(const std::vector<std::string>& folders, const std::string& hostfile, bool rootless) {
    Json mounts = Json::array();
    // Processes are the machine's, as for ranks without an image: signals, NCCL and debuggers work the same.
    mounts.push(mount_of("/proc", "bind", "/proc", {"rbind", "nosuid", "nodev", "noexec"}));
    // A fresh one belongs to whoever owns the network, which a user without rights does not.
    if (rootless)
        mounts.push(mount_of("/sys", "bind", "/sys", {"rbind", "ro", "nosuid", "nodev", "noexec"}));
    else
        mounts.push(mount_of("/sys", "sysfs", "sysfs", {"ro", "nosuid", "nodev", "noexec"}));
    mounts.push(mount_of("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}));
    mounts.push(
        mount_of("/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}));
    mounts.push(mount_of("/dev/shm", "bind", "/dev/shm", {"rbind", "nosuid", "nodev"}));  // ranks share it
    mounts.push(mount_of("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777"}));
    for (const char* file : {"/etc/resolv.conf", "/etc/hosts"})
        if (::access(file, R_OK) == 0) mounts.push(mount_of(file, "bind", file, {"bind", "ro", "nosuid", "nodev"}));
    for (const std::string& folder : folders) mounts.push(mount_of(folder, "bind", folder, {"rbind", "rw"}));
    if (!hostfile.empty() && ::access(hostfile.c_str(), R_OK) == 0)
        mounts.push(mount_of(hostfile, "bind", hostfile, {"bind", "ro"}));
    return mounts;
}

Json capabilities() {
    // What container engines grant without being asked, less raw sockets and device nodes.
    const std::vector<std::string> granted = {"CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",    "CAP_FSETID",
                                              "CAP_KILL",    "CAP_SETGID",           "CAP_SETUID",    "CAP_SETPCAP",
                                              "CAP_SETFCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT"};
    Json json = Json::object();
    for (const char* set : {"bounding", "effective", "permitted"}) json.set(set, texts(granted));
    return json;
}

// Root inside is the user outside; nobody else is there.
void map_user(Json& linux, std::int64_t uid, std::int64_t gid) {
    const auto only = [](std::int64_t id) {
        return Json::array().push(Json::object().set("containerID", 0).set("hostID", id).set("size", 1));
    };
    linux.set("uidMappings", only(uid)).set("gidMappings", only(gid));
}

Json linux_of(const std::vector<std::string>& files, const std::string& id, bool rootless) {
    Json nodes = Json::array(), rules = Json::array();
    rules.push(Json::object().set("allow", false).set("access", "rwm"));
    for (const std::string& file : files) {
        const auto numbers = device_numbers(file);
        if (!numbers) continue;  // the control group of the rank has said so already
        const std::string type(1, numbers->type);
        nodes.push(Json::object()
                       .set("path", file)
                       .set("type", type)
                       .set("major", numbers->major)
                       .set("minor", numbers->minor)
                       .set("fileMode", 0666));
        rules.push(Json::object()
                       .set("allow", true)
                       .set("type", type)
                       .set("major", numbers->major)
                       .set("minor", numbers->minor)
                       .set("access", "rwm"));
    }
    Json namespaces = Json::array().push(Json::object().set("type", "mount"));
    Json linux = Json::object();
    if (rootless) {
        namespaces.push(Json::object().set("type", "user"));
        map_user(linux, ::geteuid(), ::getegid());
    } else {
        linux.set("cgroupsPath", id);  // relative: below the group of the rank, which has the limits
        linux.set("resources", Json::object().set("devices", std::move(rules)));
    }
    return linux.set("namespaces", std::move(namespaces))
        .set("devices", std::move(nodes))
        .set("maskedPaths", texts({"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"}))
        .set("readonlyPaths", texts({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}));
}

}  // namespace

Result<Bundle> read_bundle(const std::string& folder) {
    std::error_code code;
    Bundle bundle;
    bundle.folder = fs::canonical(folder, code).string();
    const std::string what = "the image " + printable(folder) + " is no OCI bundle: ";
    if (code)
        return Error(ErrorKind::not_found, what + code.message(), {},
                     "name a folder with config.json and a root file system, or an image of a registry");
    const std::string path = bundle.folder + "/config.json";
    const auto text = read_file(path, kMaxConfigBytes);
    if (!text) return Error(text.error().kind(), what + text.error().message());
    const auto document = Document::parse_json(*text, path);
    if (!document) return Error(ErrorKind::invalid, what + "config.json: " + document.error().message());
    const Node& top = document->root();
    const Node* root = top.is_mapping() ? top.find("root") : nullptr;
    const Node* place = root != nullptr && root->is_mapping() ? root->find("path") : nullptr;
    if (place == nullptr || place->kind != NodeKind::string || place->text.empty())
        return Error(ErrorKind::invalid, what + "config.json has no root.path");
    bundle.root = fs::canonical(fs::path(bundle.folder) / place->text, code).string();
    if (code || !fs::is_directory(bundle.root, code))
        return Error(ErrorKind::not_found, what + "its root " + printable(place->text) + " is no folder");
    if (bundle.root == "/") return Error(ErrorKind::invalid, what + "its root is that of this machine");
    const Node* process = top.find("process");
    if (process == nullptr || !process->is_mapping()) return bundle;
    if (const Node* environment = process->find("env"); environment != nullptr)
        for (const auto& item : environment->items)
            if (item->text.find('=') != std::string::npos) bundle.environment.push_back(item->text);
    if (const Node* user = process->find("user"); user != nullptr && user->is_mapping()) {
        bundle.uid = integer_of(user->find("uid"));
        bundle.gid = integer_of(user->find("gid"));
        if (const Node* groups = user->find("additionalGids"); groups != nullptr)
            for (const auto& item : groups->items) bundle.groups.push_back(integer_of(item.get()));
    }
    return bundle;
}

Result<std::string> bundle_digest(const Bundle& bundle, std::int64_t max_bytes) {
    TRY(const std::vector<Entry> entries, entries_below(bundle.root));
    std::int64_t bytes = 0;
    for (const Entry& entry : entries) bytes += S_ISREG(entry.status.st_mode) ? entry.status.st_size : 0;
    const bool whole = bytes <= max_bytes;
    Sha256 digest;
    TRY_VOID(add_content(digest, bundle.folder + "/config.json"));
    for (const Entry& entry : entries) {
        const struct stat& status = entry.status;
        std::string line = "\n" + entry.path + std::string(1, '\0') + std::to_string(status.st_mode) + " " +
                           std::to_string(status.st_uid) + ":" + std::to_string(status.st_gid);
        if (S_ISREG(status.st_mode)) line += " " + std::to_string(status.st_size);
        if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) line += " " + std::to_string(status.st_rdev);
        if (S_ISREG(status.st_mode) && !whole)
            line += " " + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
        if (S_ISLNK(status.st_mode)) {
            std::array<char, 4096> target{};
            const ssize_t size = ::readlink((bundle.root + entry.path).c_str(), target.data(), target.size());
            line.append(" ").append(target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        }
        digest.add(line + "\n");
        if (S_ISREG(status.st_mode) && whole) TRY_VOID(add_content(digest, bundle.root + entry.path));
    }
    return (whole ? "sha256:" : "sha256-listing:") + hex(digest.finish());
}

std::vector<std::string> folders_of_rank(const std::string& work,
                                         const std::map<std::string, std::string>& environment) {
    std::vector<std::string> wanted = {work};
    for (const char* key :
         {"STOKER_RUN_DIR", "STOKER_CHECKPOINT_DIR", "STOKER_ARTIFACT_DIR", "STOKER_GRAPH_DIR", "STOKER_RESUME_FROM"})
        if (const auto it = environment.find(key); it != environment.end()) wanted.push_back(it->second);
    if (const auto it = environment.find("STOKER_METRICS_FILE"); it != environment.end())
        wanted.push_back(fs::path(it->second).parent_path().string());
    std::vector<std::string> sound;
    for (const std::string& folder : wanted) {
        std::string path = fs::path(folder).lexically_normal().string();
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        std::error_code code;
        // The root of the machine would hide the image.
        if (path.size() > 1 && path[0] == '/' && fs::is_directory(path, code)) sound.push_back(std::move(path));
    }
    std::sort(sound.begin(), sound.end());
    std::vector<std::string> folders;
    for (const std::string& path : sound) {
        const bool inside =
            std::any_of(folders.begin(), folders.end(), [&](const std::string& each) { return lies_in(path, each); });
        if (!inside) folders.push_back(path);
    }
    return folders;
}

Json runc_config(const Bundle& bundle, const LaunchOrder& order, std::size_t rank,
                 const std::map<std::string, std::string>& environment, const std::string& root,
                 const std::string& id) {
    // The image's own first: its PATH says where its programs are.
    std::map<std::string, std::string> merged;
    for (const std::string& entry : bundle.environment) {
        const std::size_t equals = entry.find('=');
        merged[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    const RankSpec& spec = order.gang.ranks[rank];
    for (const auto& [key, value] : environment)
        if (key != "PATH" || !merged.contains("PATH") || spec.environment.contains("PATH")) merged[key] = value;
    std::vector<std::string> entries;
    for (const auto& [key, value] : merged) entries.push_back(key + "=" + value);
    const bool rootless = ::geteuid() != 0;
    Json groups = Json::array();
    for (const std::int64_t group : bundle.groups)
        if (!rootless) groups.push(group);
    const auto hostfile = environment.find("STOKER_HOSTFILE");
    const Json no_cores = Json::object().set("type", "RLIMIT_CORE").set("soft", 0).set("hard", 0);
    return Json::object()
        .set("ociVersion", "1.0.2")
        .set("process", Json::object()
                            .set("terminal", false)
                            .set("user", Json::object()
                                             .set("uid", rootless ? 0 : bundle.uid)
                                             .set("gid", rootless ? 0 : bundle.gid)
                                             .set("additionalGids", std::move(groups)))
                            .set("args", texts(spec.arguments))
                            .set("env", texts(entries))
                            .set("cwd", order.gang.folder)
                            .set("capabilities", capabilities())
                            .set("rlimits", Json::array().push(no_cores))
                            .set("oomScoreAdj", 0)
                            .set("noNewPrivileges", true))
        .set("root", Json::object().set("path", root).set("readonly", false))
        .set("mounts", mounts_of(folders_of_rank(order.gang.folder, environment),
                                 hostfile == environment.end() ? "" : hostfile->second, rootless))
        .set("linux", linux_of(rank < order.device_files.size() ? order.device_files[rank] : std::vector<std::string>(),
                               id, rootless));
}

}  // namespace stoker
