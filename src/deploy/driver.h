// The contract between Stoker and whatever runs the work: this machine, Slurm, Kubernetes, a cloud. A driver carries
// out one operation at a time and reports facts; it decides nothing and keeps nothing that a restart would miss.
//
// What every driver keeps, and tests/contract checks on each:
//  1. Every call ends by its deadline: with `unknown` then, never with a hang.
//  2. The same operation twice has the effect of once, also when the engine itself has forgotten the first. cancel and
//     release twice: confirmed twice.
//  3. `rejected` is a definite no. Whatever is doubtful is `unknown`; listing tells later.
//  4. `confirmed` of cancel means that no process of the operation runs any more, nor will: also of one that waited.
//  5. Facts may repeat and never skip; of one operation they come in order. An engine that forgets what has ended
//     (keeps_history_s) loses no end by it: the ranks leave word of their end themselves.
//  6. The engine's own words go into `detail`, at most 4 KiB; the cause is one of ours.
//  7. check() ends by its deadline too, with what it knows by then. It starts no work and ends none, and a check that
//     is cut off leaves nothing behind: it is simply asked again. What could not be measured is `skipped`, never
//     `pass`.
//  8. `accepted` of launch, from an engine that `queues`: it is there, and starts when the engine says so. Until then
//     `waits` tells why, at first and whenever that changes, at most every 30 s; rank_started tells each start, and on
//     an engine that `binds`, where. Once a rank has started, the engine neither puts it back nor starts it again.
//  9. The name of a thing is our operation and nothing else: numbers that an engine gives may come back as another's.
// 10. What an engine cannot tell (questions.h) it answers with `unsupported`, and nobody above asks who it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/cause.h"
#include "base/health.h"
#include "base/ids.h"
#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

inline constexpr std::size_t kMaxDetailBytes = 4096;

// accepted: of launch only, line 8.
enum class Certainty : std::uint8_t { confirmed, rejected, unknown, accepted };

struct Outcome {
    Certainty certainty = Certainty::unknown;
    Cause cause = Cause::none;  // of a rejection, or why it waits
    std::string detail;         // the engine's words
};

// What this engine can do; admission refuses what it cannot.
struct Capabilities {
    bool gang = false;              // all ranks start or none
    bool follows_logs = false;      // logs while the work runs
    bool limits_memory = false;     // a rank that takes more is killed, and said to be out of memory
    bool isolates_devices = false;  // a rank cannot open a GPU that is not its own
    bool runs_images = false;       // GangSpec::image
    bool kills_trees = false;       // processes that left their group are ended too
    double signal_notice_s = 0;     // longest notice before the kill; 0: no signal reaches the work
    bool queues = false;            // accepts what it has no room for yet, and says why it waits
    // Chooses the nodes: then our admission says how much and not where, RankSpec::node is empty, and rank_started
    // tells the node.
    bool binds = false;
    bool topology = false;       // of an engine that binds: keeps GangSpec::one_switch
    bool preempts = false;       // may end work of ours for others by itself, with cause preempted
    bool ranks_here = false;     // rank_started's pid is a process of this machine, and can be watched here
    double keeps_history_s = 0;  // how long the engine remembers what has ended; 0: until it is released
    std::string runs_as;         // "server": its own user, who can read all of its files; empty: nothing is known of it
    std::string detail;          // how, for `stoker describe`: "cgroup v2, pid namespace"
};

struct DeviceInfo {
    std::string id;     // "0", or a UUID
    std::string model;  // name in the catalogue, or as the driver says
    std::int64_t memory_bytes = 0;
    std::string file;  // "/dev/nvidia0"; empty: none is known, so others cannot be kept from it
};
struct NodeInfo {
    std::string name;
    std::int64_t cpu_milli = 0, memory_bytes = 0;
    std::vector<DeviceInfo> devices;
    std::string boot_id;  // another one after a reboot
    // Where it hangs, from the outermost level to the switch: "row-1/rack-3/leaf-7"; empty: nobody said.
    std::string topology;
    std::string doctor;  // HOST:PORT where `stoker doctor serve` listens on it; empty: nowhere
    std::optional<std::int64_t> link_bytes_per_s;  // that its network should have; none: nobody said
    std::string engine;                            // of several, which has it; empty: there is one
};

// How an engine that cannot measure its nodes itself is helped to: ends by the deadline. It may outlive the driver, and
// so may not refer to what goes with it.
using NodeCheckFunction = std::function<HealthReport(const NodeInfo&, HealthLevel, Deadline)>;

// One rank of a gang: a process group on one node.
struct RankSpec {
    std::string node;                    // empty: the engine chooses
    std::vector<std::string> arguments;  // argv; arguments[0] is looked up in PATH
    std::map<std::string, std::string> environment;
    std::int64_t cpu_milli = 0, memory_bytes = 0;  // 0: no limit
    std::vector<std::string> devices;              // ids; CUDA_VISIBLE_DEVICES lists them
    int gpus = 0;                                  // how many, for an engine that chooses which
    int gpu_milli = 1000;                          // of each
    std::string gpu_model;                         // empty: any
};
struct GangSpec {
    AttemptId attempt;
    std::uint64_t epoch = 0;                             // of the server; a lower one than seen before is refused
    std::string folder;                                  // working directory
    std::string log_folder;                              // rank-0.out and so on
    std::int64_t max_log_bytes = std::int64_t{1} << 30;  // of each rank; the oldest go first
    std::vector<RankSpec> ranks;
    // An OCI bundle (a folder with config.json and a root file system), or a pinned name (image_name.h) that was
    // prepared; empty: the machine as it is.
    std::string image;
    // For an engine that chooses the nodes: exactly so many, ranks spread evenly (0: as few as there are), all on one
    // switch, and after how long of running it is sure to be over (0: nobody knows).
    int nodes = 0;
    bool one_switch = false;
    std::int64_t longest_s = 0;
    std::vector<std::string> avoid;  // nodes that may not be chosen: drained here, or not healthy enough for it
    MeasureSpec measure;             // what its ranks are looked at for (Questions::read_measures)
    std::string engine;              // of several, which one it goes to; empty: the one of its nodes, or the first
    std::uint64_t project = 0;       // whose work it is, for an engine that gives each project a user of its own
};

enum class FactKind : std::uint8_t {
    rank_started,  // rank, pid, node
    rank_ended,    // rank, exit_code or signal, cause
    gang_ended,    // every rank is gone; cause is the first that went wrong
    node_lost,     // node
    notice,        // the machine will be taken: seconds; less than 0: that is taken back
    waits,         // at the engine: cause, detail; seconds until it expects to start it, 0: it does not say
};
struct Fact {
    std::uint64_t cursor = 0;  // observe() goes on after it
    FactKind kind = FactKind::rank_started;
    OperationId operation;  // of the launch
    std::uint64_t epoch = 0;
    std::int64_t at_us = 0;  // wall clock, UTC
    // The same moment by this machine's monotonic clock; 0: not known, or on another machine or boot.
    std::int64_t monotonic_us = 0;
    // The same moment on the server's own time (run_clock.h), which the server fills in: an end that is read late is
    // not late, and one told by a clock that was set is neither.
    std::optional<std::int64_t> run_us;
    int rank = -1;
    std::int64_t pid = 0;
    std::optional<int> exit_code, signal;
    Cause cause = Cause::none;
    double seconds = 0;  // of user and system time for rank_ended; else as FactKind says
    std::int64_t peak_memory_bytes = 0;
    std::string node, detail;
};

// Everything out there that carries our mark.
struct Ours {
    OperationId operation;
    std::uint64_t epoch = 0;
    bool ended = false;
    bool waits = false;  // accepted, and not every rank has started
    std::string engine;  // of several, which one has it
};
struct OursListing {
    std::vector<Ours> items;
    bool complete = true;  // false: something could not be read, so absence proves nothing
    // Of several engines, those that did not tell all: of theirs absence proves nothing either way.
    std::vector<std::string> silent;
};

// One of several engines that are driven as one (deploy/engines/several.h).
struct EngineState {
    std::string name, kind;
    Capabilities can;
    std::string fault;  // why it does not answer; empty: it did when it was asked last
};

class Driver : public Questions {
public:
    virtual Capabilities capabilities() const = 0;
    // In the order of the configuration, the first first; none: this is one engine.
    virtual std::vector<EngineState> engines() const { return {}; }
    // Which of several an earlier server sent a launch to, as its journal has it: told before any call about it.
    virtual void belongs(const OperationId& launched, const std::string& engine) { (void)launched, (void)engine; }
    virtual Result<std::vector<NodeInfo>> discover(Deadline deadline) = 0;

    // Brings a pinned image (image_name.h) here, before anything is held for the run that wants it. Asked again and
    // again. confirmed: it can be launched. unknown: under way, or tried again later; `detail` says how far it is.
    // rejected: it cannot be had.
    virtual Outcome prepare(const std::string& image, Deadline deadline) {
        (void)image, (void)deadline;
        return {.certainty = Certainty::confirmed};
    }
    // How well the node is: asked for while nothing of ours runs on it. An empty report: this engine cannot tell.
    virtual HealthReport check(const std::string& node, HealthLevel level, Deadline deadline) {
        (void)node, (void)level, (void)deadline;
        return {};
    }
    // Starts the gang: all ranks or none. Returns when each runs or one could not; an engine that queues, as soon as it
    // has it.
    virtual Outcome launch(const OperationId& operation, const GangSpec& gang, Deadline deadline) = 0;
    // "Write a checkpoint and go on", without ending anything: to each process of every rank that handles the signal.
    // Those that do not would die of it, and are left alone.
    virtual Outcome notify(const OperationId& launched, std::uint64_t epoch, int signal_number, Deadline deadline) = 0;
    // TERM, then after `grace_s` KILL for the whole tree.
    virtual Outcome cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) = 0;
    // Forgets an ended gang: its folder may go. Confirmed also when there is nothing.
    virtual Outcome release(const OperationId& launched, Deadline deadline) = 0;

    // One that list_checkpoints() told, with all that is in it. unsupported: whoever wrote it removes it.
    virtual Status remove_checkpoint(const std::string& folder, Deadline deadline) {
        (void)folder, (void)deadline;
        return Error(ErrorKind::unsupported, "this engine removes no checkpoints");
    }

    virtual Result<OursListing> list_ours(const std::string& site, Deadline deadline) = 0;
    // Facts after `cursor`, oldest first; waits until there is one or the deadline.
    virtual Result<std::vector<Fact>> observe(std::uint64_t cursor, Deadline deadline) = 0;
    // observe() returns soon: the one under way, or else the next; and so do checks under way. A driver without it ends
    // at the deadline.
    virtual void interrupt() {}
};

}  // namespace stoker
