#include "deploy/local/gang_files.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/document.h"
#include "base/text.h"
#include "deploy/shared_words.h"
#include "io/files.h"
#include "io/machine/namespaces.h"
#include "io/process.h"

namespace stoker {
namespace {

// What a driver may write into launch.json, and the most that is read back.
constexpr std::size_t kMaxGangFile = 16u << 20;

constexpr std::array kTreeKinds = {"cgroup", "pid_namespace", "process_group"};
constexpr std::array kGangStates = {"starting", "running", "stopping", "ended"};
static_assert(kTreeKinds.size() == static_cast<std::size_t>(TreeKind::process_group) + 1);
static_assert(kGangStates.size() == static_cast<std::size_t>(GangState::ended) + 1);

template <typename Enum, std::size_t n>
std::optional<Enum> named(const std::array<const char*, n>& names, std::string_view name) {
    for (std::size_t i = 0; i < n; ++i)
        if (names[i] == name) return static_cast<Enum>(i);
    return std::nullopt;
}

// Reads members and remembers whether one was missing or of another type.
class Fields {
public:
    explicit Fields(const Node& node) : node_(node), sound_(node.is_mapping()) {}

    std::string text(std::string_view key) {
        const Node* found = of_kind(key, NodeKind::string);
        return found ? found->text : std::string();
    }
    template <typename Integer>
    Integer integer(std::string_view key) {
        const Node* found = of_kind(key, NodeKind::number);
        Integer value{};
        if (!found) return value;
        // From the digits: a double holds only 53 bits.
        const std::string& digits = found->text;
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        sound_ = sound_ && code == std::errc() && end == digits.data() + digits.size();
        return value;
    }
    double real(std::string_view key) {
        const Node* found = of_kind(key, NodeKind::number);
        return found ? found->number : 0;
    }
    bool boolean(std::string_view key) {
        const Node* found = of_kind(key, NodeKind::boolean);
        return found && found->boolean;
    }
    // Of a member that keepers of an earlier Stoker, which may still run, do not write.
    std::int64_t later_integer(std::string_view key) { return node_.find(key) ? integer<std::int64_t>(key) : 0; }
    bool later_boolean(std::string_view key) { return node_.find(key) != nullptr && boolean(key); }
    std::string later_text(std::string_view key) { return node_.find(key) ? text(key) : std::string(); }
    std::optional<int> maybe_integer(std::string_view key) {
        return node_.find(key) ? std::optional(integer<int>(key)) : std::nullopt;
    }
    Cause cause(std::string_view key) {
        const auto value = parse_cause(text(key));
        sound_ = sound_ && value;
        return value.value_or(Cause::none);
    }
    template <typename Enum, std::size_t n>
    Enum choice(std::string_view key, const std::array<const char*, n>& names) {
        const auto value = named<Enum>(names, text(key));
        sound_ = sound_ && value;
        return value.value_or(Enum{});
    }
    std::vector<std::string> texts(std::string_view key) {
        std::vector<std::string> list;
        const Node* found = of_kind(key, NodeKind::sequence);
        for (std::size_t i = 0; found && i < found->items.size(); ++i) {
            sound_ = sound_ && found->items[i]->kind == NodeKind::string;
            list.push_back(found->items[i]->text);
        }
        return list;
    }
    std::map<std::string, std::string> map(std::string_view key) {
        std::map<std::string, std::string> values;
        const Node* found = of_kind(key, NodeKind::mapping);
        for (std::size_t i = 0; found && i < found->members.size(); ++i) {
            sound_ = sound_ && found->members[i].value->kind == NodeKind::string;
            values[found->members[i].key] = found->members[i].value->text;
        }
        return values;
    }
    // As later_text().
    MeasureSpec measure(std::string_view key) {
        const Node* found = node_.find(key);
        if (found == nullptr) return {};
        Fields fields(*found);
        MeasureSpec spec{.lines = fields.text("lines"),
                         .heartbeat = fields.text("heartbeat"),
                         .step_pattern = fields.text("step_pattern"),
                         .folders = fields.texts("folders"),
                         .interface = fields.text("interface")};
        require(fields.sound());
        return spec;
    }
    // As later_text().
    std::optional<RunUser> user(std::string_view key) {
        const Node* found = node_.find(key);
        if (found == nullptr) return std::nullopt;
        Fields fields(*found);
        RunUser user{.uid = fields.integer<uid_t>("uid"),
                     .gid = fields.integer<gid_t>("gid"),
                     .groups = {},
                     .name = fields.text("name"),
                     .home = fields.text("home")};
        const Node* groups = fields.of_kind("groups", NodeKind::sequence);
        for (std::size_t i = 0; groups && i < groups->items.size(); ++i)
            user.groups.push_back(static_cast<gid_t>(groups->items[i]->number));
        fields.require(user.uid != 0 && user.gid != 0);
        require(fields.sound());
        return user;
    }
    const Node* of_kind(std::string_view key, NodeKind kind) {
        const Node* found = sound_ ? node_.find(key) : nullptr;
        sound_ = sound_ && found && found->kind == kind;
        return sound_ ? found : nullptr;
    }
    void require(bool condition) { sound_ = sound_ && condition; }
    bool sound() const { return sound_; }

private:
    const Node& node_;
    bool sound_;
};

Error damaged(const std::string& file) {
    return Error(ErrorKind::invalid, file + " is damaged: it is not what this Stoker writes");
}

template <typename Texts>
Json list_of(const Texts& texts) {
    Json list = Json::array();
    for (const auto& text : texts) list.push(text);
    return list;
}

Json map_of(const std::map<std::string, std::string>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object.set(key, value);
    return object;
}

Json json_of(const MeasureSpec& spec) {
    return Json::object()
        .set("lines", spec.lines)
        .set("heartbeat", spec.heartbeat)
        .set("step_pattern", spec.step_pattern)
        .set("folders", list_of(spec.folders))
        .set("interface", spec.interface);
}

Json json_of(const RunUser& user) {
    Json groups = Json::array();
    for (const gid_t group : user.groups) groups.push(static_cast<std::int64_t>(group));
    return Json::object()
        .set("uid", static_cast<std::int64_t>(user.uid))
        .set("gid", static_cast<std::int64_t>(user.gid))
        .set("groups", std::move(groups))
        .set("name", user.name)
        .set("home", user.home);
}

// Numbers up to 2^63: epochs and ticks count from 0.
Json number(std::uint64_t value) {
    return Json(static_cast<std::int64_t>(value));
}

Result<std::string> content(const std::string& path) {
    // Told apart here, because read_file() lists the folder to offer a name that is near.
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT)
        return Error(ErrorKind::not_found, "there is no file " + path);
    return read_file(path, kMaxGangFile);
}

// `alike`: what all ranks are given; orders of before say it for each rank.
RankSpec parse_rank(const Node& node, const RankSpec& alike, std::vector<std::string>& device_files, bool& sound) {
    Fields rank(node);
    RankSpec spec{.node = rank.text("node"),
                  .arguments = node.find("arguments") ? rank.texts("arguments") : alike.arguments,
                  .environment = rank.map("environment"),
                  .cpu_milli = rank.integer<std::int64_t>("cpu_milli"),
                  .memory_bytes = rank.integer<std::int64_t>("memory_bytes"),
                  .devices = rank.texts("devices"),
                  .gpus = static_cast<int>(rank.later_integer("gpus"))};
    device_files = rank.texts("device_files");
    spec.environment.insert(alike.environment.begin(), alike.environment.end());
    sound = sound && rank.sound() && !spec.arguments.empty();
    return spec;
}

KeptRank parse_rank_status(const Node& node, bool& sound) {
    Fields rank(node);
    KeptRank status{.pid = rank.integer<std::int64_t>("pid"),
                    .started_at_us = rank.integer<std::int64_t>("started_at_us"),
                    .ended_at_us = rank.integer<std::int64_t>("ended_at_us"),
                    .ended_monotonic_us = rank.later_integer("ended_monotonic_us"),
                    .ended_as = rank.integer<int>("ended_as"),
                    .exit_code = rank.maybe_integer("exit_code"),
                    .signal = rank.maybe_integer("signal"),
                    .cause = rank.cause("cause"),
                    .detail = rank.text("detail"),
                    .seconds = rank.real("seconds"),
                    .peak_memory_bytes = rank.integer<std::int64_t>("peak_memory_bytes"),
                    .node = rank.later_text("node")};
    sound = sound && rank.sound();
    return status;
}

}  // namespace

Result<TreeKind> choose_tree(std::optional<TreeKind> wanted, const CgroupHost& cgroups) {
    if (wanted == TreeKind::cgroup && !cgroups.kills())
        return Error(ErrorKind::denied, "control groups cannot be made here");
    if (wanted == TreeKind::pid_namespace && !pid_namespaces_work())
        return Error(ErrorKind::denied, "pid namespaces cannot be made here");
    if (wanted) return *wanted;
    if (cgroups.kills()) return TreeKind::cgroup;
    return pid_namespaces_work() ? TreeKind::pid_namespace : TreeKind::process_group;
}

std::string_view to_string(TreeKind kind) {
    return kTreeKinds[static_cast<std::size_t>(kind)];
}

Json to_json(const LaunchOrder& order) {
    Json ranks = Json::array(), alike = Json::object();
    std::map<std::string, std::string> shared;
    const bool same_words = !order.gang.ranks.empty() && words_are_shared(order.gang);
    if (!order.gang.ranks.empty()) shared = shared_environment(order.gang);
    if (same_words) alike.set("arguments", list_of(order.gang.ranks[0].arguments));
    alike.set("environment", map_of(shared));
    for (std::size_t i = 0; i < order.gang.ranks.size(); ++i) {
        const RankSpec& rank = order.gang.ranks[i];
        const std::vector<std::string> none;
        std::map<std::string, std::string> own = rank.environment;
        for (const auto& [key, value] : shared) own.erase(key);
        Json json = Json::object().set("node", rank.node);
        if (!same_words) json.set("arguments", list_of(rank.arguments));
        ranks.push(json.set("environment", map_of(own))
                       .set("cpu_milli", rank.cpu_milli)
                       .set("memory_bytes", rank.memory_bytes)
                       .set("devices", list_of(rank.devices))
                       .set("gpus", rank.gpus)
                       .set("device_files", list_of(i < order.device_files.size() ? order.device_files[i] : none)));
    }
    Json json = Json::object();
    if (order.user) json.set("user", json_of(*order.user));
    if (order.own_network) json.set("own_network", true);  // orders of before have none
    return json.set("operation", order.operation.text())
        .set("attempt", order.gang.attempt.text())
        .set("epoch", number(order.gang.epoch))
        .set("folder", order.gang.folder)
        .set("log_folder", order.gang.log_folder)
        .set("max_log_bytes", order.gang.max_log_bytes)
        .set("image", order.gang.image)
        .set("image_digest", order.image_digest)
        .set("isolate_devices", order.isolate_devices)
        .set("tree", to_string(order.tree))
        .set("cgroup_unified", order.cgroups.unified)
        .set("cgroup_unified_limits", order.cgroups.unified_limits)
        .set("cgroup_unified_devices", order.cgroups.unified_devices)
        .set("cgroup_v1", map_of(order.cgroups.v1))
        .set("max_processes", order.max_processes)
        .set("measure", json_of(order.gang.measure))
        .set("status_retry_s", order.status_retry_s)
        .set("alike", std::move(alike))
        .set("ranks", std::move(ranks));
}

Json to_json(const KeeperId& keeper) {
    return Json::object()
        .set("pid", static_cast<std::int64_t>(keeper.pid))
        .set("start_ticks", number(keeper.start_ticks))
        .set("boot_id", keeper.boot_id);
}

Json to_json(const GangStatus& status) {
    Json ranks = Json::array();
    for (const KeptRank& rank : status.ranks) {
        Json json = Json::object()
                        .set("pid", rank.pid)
                        .set("started_at_us", rank.started_at_us)
                        .set("ended_at_us", rank.ended_at_us)
                        .set("ended_monotonic_us", rank.ended_monotonic_us)
                        .set("ended_as", rank.ended_as)
                        .set("cause", to_string(rank.cause))
                        .set("detail", rank.detail)
                        .set("seconds", rank.seconds)
                        .set("peak_memory_bytes", rank.peak_memory_bytes);
        if (rank.exit_code) json.set("exit_code", *rank.exit_code);
        if (rank.signal) json.set("signal", *rank.signal);
        if (!rank.node.empty()) json.set("node", rank.node);
        ranks.push(std::move(json));
    }
    return Json::object()
        .set("state", kGangStates[static_cast<std::size_t>(status.state)])
        .set("started", status.started)
        .set("epoch", number(status.epoch))
        .set("cause", to_string(status.cause))
        .set("detail", status.detail)
        .set("ended_at_us", status.ended_at_us)
        .set("ended_monotonic_us", status.ended_monotonic_us)
        .set("boot_id", status.boot_id)
        .set("ranks", std::move(ranks));
}

Result<LaunchOrder> parse_launch_order(std::string_view text, const std::string& file) {
    TRY(const Document document, Document::parse_json(text, file));
    Fields fields(document.root());
    const auto operation = OperationId::parse(fields.text("operation"));
    const auto attempt = AttemptId::parse(fields.text("attempt"));
    LaunchOrder order{.tree = fields.choice<TreeKind>("tree", kTreeKinds),
                      .cgroups = {.unified = fields.text("cgroup_unified"),
                                  .unified_limits = fields.boolean("cgroup_unified_limits"),
                                  .unified_devices = fields.boolean("cgroup_unified_devices"),
                                  .v1 = fields.map("cgroup_v1")},
                      .max_processes = fields.integer<std::int64_t>("max_processes"),
                      .isolate_devices = fields.boolean("isolate_devices"),
                      .image_digest = fields.text("image_digest"),
                      .status_retry_s = fields.real("status_retry_s")};
    order.gang.epoch = fields.integer<std::uint64_t>("epoch");
    order.gang.folder = fields.text("folder");
    order.gang.log_folder = fields.text("log_folder");
    order.gang.max_log_bytes = fields.integer<std::int64_t>("max_log_bytes");
    order.gang.image = fields.text("image");
    order.gang.measure = fields.measure("measure");
    order.user = fields.user("user");
    order.own_network = fields.later_boolean("own_network");
    RankSpec alike;
    if (const Node* found = document.root().find("alike")) {
        Fields given(*found);
        alike.environment = given.map("environment");
        if (found->find("arguments")) alike.arguments = given.texts("arguments");
        fields.require(given.sound());
    }
    const Node* ranks = fields.of_kind("ranks", NodeKind::sequence);
    bool sound = operation && attempt && ranks && !ranks->items.empty();
    for (std::size_t i = 0; sound && i < ranks->items.size(); ++i)
        order.gang.ranks.push_back(parse_rank(*ranks->items[i], alike, order.device_files.emplace_back(), sound));
    if (!sound || !fields.sound()) return damaged(file);
    order.operation = *operation;
    order.gang.attempt = *attempt;
    return order;
}

Result<KeeperId> parse_keeper_id(std::string_view text, const std::string& file) {
    TRY(const Document document, Document::parse_json(text, file));
    Fields fields(document.root());
    KeeperId keeper{.pid = fields.integer<pid_t>("pid"),
                    .start_ticks = fields.integer<std::uint64_t>("start_ticks"),
                    .boot_id = fields.text("boot_id")};
    fields.require(keeper.pid > 0);
    if (!fields.sound()) return damaged(file);
    return keeper;
}

Result<GangStatus> parse_gang_status(std::string_view text, const std::string& file) {
    TRY(const Document document, Document::parse_json(text, file));
    Fields fields(document.root());
    GangStatus status{.state = fields.choice<GangState>("state", kGangStates),
                      .started = fields.boolean("started"),
                      .epoch = fields.integer<std::uint64_t>("epoch"),
                      .cause = fields.cause("cause"),
                      .detail = fields.text("detail"),
                      .ended_at_us = fields.integer<std::int64_t>("ended_at_us"),
                      .ended_monotonic_us = fields.later_integer("ended_monotonic_us"),
                      .boot_id = fields.later_text("boot_id")};
    const Node* ranks = fields.of_kind("ranks", NodeKind::sequence);
    bool sound = ranks != nullptr;
    for (std::size_t i = 0; sound && i < ranks->items.size(); ++i)
        status.ranks.push_back(parse_rank_status(*ranks->items[i], sound));
    if (!sound || !fields.sound()) return damaged(file);
    return status;
}

Result<LaunchOrder> read_launch_order(const std::string& folder) {
    TRY(const std::string text, content(folder + "/launch.json"));
    return parse_launch_order(text, folder + "/launch.json");
}

Result<KeeperId> read_keeper_id(const std::string& folder) {
    TRY(const std::string text, content(folder + "/keeper.json"));
    return parse_keeper_id(text, folder + "/keeper.json");
}

Result<GangStatus> read_gang_status(const std::string& folder) {
    TRY(const std::string text, content(folder + "/status.json"));
    return parse_gang_status(text, folder + "/status.json");
}

Status replace_file(const std::string& path, std::string_view text, bool durable) {
    const auto failed = [&](int code) {
        const ErrorKind kind = code == ENOSPC || code == EDQUOT || code == EFBIG  ? ErrorKind::exhausted
                               : code == EACCES || code == EPERM || code == EROFS ? ErrorKind::denied
                               : code == ENOENT                                   ? ErrorKind::not_found
                                                                                  : ErrorKind::unavailable;
        return Error(kind, "cannot write " + printable(path) + ": " + std::strerror(code));
    };
    const std::string temporary = path + ".tmp";
    UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return failed(errno);
    while (!text.empty()) {
        const ssize_t put = ::write(file.get(), text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            const int code = errno;
            ::unlink(temporary.c_str());
            return failed(code);
        }
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    if (durable && ::fsync(file.get()) != 0) return failed(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return failed(errno);
    if (!durable) return done();
    const std::string parent = std::filesystem::path(path).parent_path().string();
    const UniqueFd folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) return failed(errno);
    return done();
}

bool remove_tree(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code code;
    fs::remove_all(folder, code);
    if (!code) return true;
    // Opened from the top, so that each can be listed when its turn comes.
    std::vector<std::string> open = {folder};
    for (std::size_t i = 0; i < open.size(); ++i) {
        fs::permissions(open[i], fs::perms::owner_all, fs::perm_options::add, code);
        for (fs::directory_iterator it(open[i], code), end; !code && it != end; it.increment(code)) {
            std::error_code ignored;
            if (it->is_directory(ignored) && !it->is_symlink(ignored)) open.push_back(it->path().string());
        }
    }
    fs::remove_all(folder, code);
    return !code;
}

void end_ranks_with(GangStatus& status) {
    int ended = 0;
    for (const KeptRank& rank : status.ranks) ended = std::max(ended, rank.ended_as);
    for (KeptRank& rank : status.ranks) {
        if (rank.ended_as != 0 || rank.pid == 0) continue;
        rank.ended_as = ++ended;
        rank.ended_at_us = status.ended_at_us;
        rank.ended_monotonic_us = status.ended_monotonic_us;
        rank.cause = status.cause;
        rank.detail = status.detail;
    }
}

}  // namespace stoker
