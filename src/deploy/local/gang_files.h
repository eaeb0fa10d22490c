// What a gang leaves on disk, in a folder named after the operation that launched it:
//   launch.json  what to start; written by the driver before the keeper exists
//   lock         held by the keeper (flock) as long as it lives
//   keeper.json  who the keeper is: pid, start, boot
//   status.json  how the gang does; replaced as a whole. The last one says `ended`
//   control      Unix socket of the keeper
//   hostfile     for mpirun
//   reserve      room for the last status on a full disk
//   keeper.log   what the keeper had to say
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/local/run_user.h"
#include "io/machine/cgroup.h"

namespace stoker {

// What ends every process of a gang, whatever it did to its groups and parents.
enum class TreeKind : std::uint8_t { cgroup, pid_namespace, process_group };
std::string_view to_string(TreeKind kind);
// The one that is wanted, or else the best that works here. denied: it cannot be made here.
Result<TreeKind> choose_tree(std::optional<TreeKind> wanted, const CgroupHost& cgroups);

// Keepers leave the control group of the server: a service manager that restarts the server ends what is in there.
inline constexpr std::string_view kKeeperGroup = "stoker/keepers";

struct LaunchOrder {
    OperationId operation;
    GangSpec gang;
    TreeKind tree = TreeKind::process_group;
    CgroupHost cgroups;
    std::int64_t max_processes = 0;  // of a rank; 0: no limit
    bool isolate_devices = false;    // ranks open the usual devices and their own
    bool own_network = false;        // the gang has a loopback, and no way out
    // By rank: what belongs to RankSpec::devices.
    std::vector<std::vector<std::string>> device_files;
    std::string image_digest;     // of gang.image
    std::optional<RunUser> user;  // as whom its ranks run; none: as the keeper. Not in images, which name one
    double status_retry_s = 600;  // how long the keeper goes on trying to write the last status on a full disk

    std::string cgroup_name() const { return "stoker/" + operation.text(); }
    std::string cgroup_name(std::size_t rank) const { return cgroup_name() + "/rank-" + std::to_string(rank); }
};

struct KeeperId {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
    std::string boot_id;
};

struct KeptRank {
    std::int64_t pid = 0;  // as seen outside of a pid namespace; 0: never started
    std::int64_t started_at_us = 0, ended_at_us = 0;
    std::int64_t ended_monotonic_us = 0;  // 0: written by a keeper that did not look
    int ended_as = 0;                     // 1: the first to end; 0: has not
    std::optional<int> exit_code, signal;
    Cause cause = Cause::none;
    std::string detail;
    double seconds = 0;  // user and system time
    std::int64_t peak_memory_bytes = 0;
    std::string node;  // of an engine that chooses it; empty: as in the order
};

enum class GangState : std::uint8_t { starting, running, stopping, ended };
struct GangStatus {
    GangState state = GangState::starting;
    bool started = false;     // every rank has run its program
    std::uint64_t epoch = 0;  // the highest that was obeyed
    std::vector<KeptRank> ranks;
    Cause cause = Cause::none;  // of the whole gang, when it has ended
    std::string detail;
    std::int64_t ended_at_us = 0;
    std::int64_t ended_monotonic_us = 0;
    std::string boot_id;  // that the monotonic times are of
};

Json to_json(const LaunchOrder& order);
Json to_json(const KeeperId& keeper);
Json to_json(const GangStatus& status);
// These also serve for answers over the socket. `file` is told in errors.
Result<LaunchOrder> parse_launch_order(std::string_view text, const std::string& file);
Result<KeeperId> parse_keeper_id(std::string_view text, const std::string& file);
Result<GangStatus> parse_gang_status(std::string_view text, const std::string& file);

// not_found: there is no such file (yet).
Result<LaunchOrder> read_launch_order(const std::string& folder);
Result<KeeperId> read_keeper_id(const std::string& folder);
Result<GangStatus> read_gang_status(const std::string& folder);

// Beside the file, renamed over it. `durable`: also after a power loss, which costs two writes to the disk.
// Also folders whose owner, which we are, may not look into them: an overlay makes such, and programs in images do.
bool remove_tree(const std::string& folder);
Status replace_file(const std::string& path, std::string_view text, bool durable);

// Ranks that were started, and of whose end nobody left word, ended when their gang did, and of the same cause.
void end_ranks_with(GangStatus& status);

}  // namespace stoker
