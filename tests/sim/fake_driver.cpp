#include "fake_driver.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stoker::sim {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kCheckpointEveryUs = 600 * kSecond;

std::int64_t number_in(const std::map<std::string, std::string>& environment, const char* key, std::int64_t otherwise) {
    const auto found = environment.find(key);
    return found == environment.end() ? otherwise : std::stoll(found->second);
}

Outcome sure(Certainty certainty, Cause cause = Cause::none, std::string detail = {}) {
    return {.certainty = certainty, .cause = cause, .detail = std::move(detail)};
}

}  // namespace

Faults Faults::common() {
    return {.answer_lost = 0.05,
            .call_lost = 0.05,
            .launch_refused = 0.02,
            .listing_cut = 0.05,
            .fact_repeated = 0.1,
            .folder_slow = 0.05,
            .device_fault = 0.03,
            .node_lost_per_hour = 0.05,
            .notice_per_hour = 0.05};
}

Faults Faults::queueing() {
    Faults faults = common();
    faults.queue_mean_s = 400;
    faults.part_starts = 0.08;
    faults.forgets_waiting = 0.05;
    faults.end_forgotten = 0.05;
    return faults;
}

FakeDriver::FakeDriver(std::uint64_t seed, const Faults& faults, std::vector<NodeInfo> nodes, std::int64_t now_us)
    : random_(SplitMix::mix(seed)), faults_(faults), now_us_(now_us) {
    for (NodeInfo& node : nodes) {
        node.boot_id = node.name + "-boot-1";
        nodes_[node.name] = {.info = node};
    }
    draw_node_events();
}

// Now and then a measurement is noisy, or could not be made.
HealthReport FakeDriver::check(const std::string& node, HealthLevel, Deadline) {
    const auto found = nodes_.find(node);
    HealthCheck link{.layer = HealthLayer::network,
                     .name = "link-bandwidth",
                     .node = node,
                     .verdict = HealthVerdict::pass,
                     .measured = 1.25e9,
                     .expected = 1e9,
                     .unit = "bytes/s",
                     .source = "simulated"};
    const std::uint64_t noise = measuring_.below(20);
    if (found == nodes_.end() || !found->second.up || noise == 0) {
        link.verdict = HealthVerdict::skipped;
        link.measured.reset();
        link.detail = "no answer";
    } else if (slow_.contains(node)) {
        link.verdict = HealthVerdict::fail;
        link.measured = 6e6;
    } else if (noise == 1) {
        link.verdict = HealthVerdict::warn;
    }
    return {{link}};
}

void FakeDriver::draw_node_events() {
    const auto next = [&](double per_hour, std::int64_t& at) {
        const double rate = per_hour * static_cast<double>(nodes_.size()) / 3600;
        if (rate > 0 && at <= now_us_) at = now_us_ + 1 + static_cast<std::int64_t>(random_.exponential() / rate * 1e6);
    };
    next(faults_.node_lost_per_hour, next_loss_us_);
    next(faults_.notice_per_hour, next_notice_us_);
}

std::int64_t FakeDriver::next_event_us() const {
    std::int64_t next = ends_.empty() ? 0 : ends_.begin()->first;
    const auto by = [&](std::int64_t at) {
        if (at > 0 && (next == 0 || at < next)) next = at;
    };
    by(next_loss_us_);
    by(next_notice_us_);
    for (const auto& [name, node] : nodes_) by(node.up ? node.lost_us : node.back_us);
    if (queues())
        for (const auto& [id, gang] : gangs_)
            if (gang.start_us != 0) by(gang.lost_us != 0 ? std::min(gang.lost_us, gang.start_us) : gang.start_us);
    return next;
}

void FakeDriver::advance(std::int64_t to_us) {
    for (std::int64_t at = FakeDriver::next_event_us(); at != 0 && at <= to_us; at = FakeDriver::next_event_us()) {
        now_us_ = std::max(now_us_, at);
        while (!ends_.empty() && ends_.begin()->first <= now_us_) {
            const OperationId id = ends_.begin()->second;
            ends_.erase(ends_.begin());
            const auto found = gangs_.find(id);
            if (found == gangs_.end()) continue;
            FakeGang& gang = found->second;
            for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
                FakeRank& rank = gang.ranks[i];
                if (rank.alive && rank.end_us != 0 && rank.end_us <= now_us_)
                    end_rank(id, gang, i, rank.exit_code, rank.cause, true);
            }
            close_if_ended(id, gang, true);
        }
        for (auto& [name, node] : nodes_) {
            if (node.up && node.lost_us != 0 && node.lost_us <= now_us_) lose_node(name, "taken by the cloud");
            if (!node.up && node.back_us <= now_us_) reboot(name);
        }
        if (queues()) {
            for (auto each = gangs_.begin(); each != gangs_.end();) {
                FakeGang& gang = each->second;
                if (gang.lost_us != 0 && gang.lost_us <= now_us_) {
                    ++counts_.lost;
                    each = gangs_.erase(each);
                    continue;
                }
                if (gang.start_us != 0 && gang.start_us <= now_us_) start_in_queue(each->first, gang);
                ++each;
            }
        }
        const auto any_node = [&] {
            return std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(random_.below(nodes_.size())))->first;
        };
        if (next_loss_us_ != 0 && next_loss_us_ <= now_us_) lose_node(any_node());
        if (next_notice_us_ != 0 && next_notice_us_ <= now_us_) give_notice(any_node(), 30);
        draw_node_events();
    }
    now_us_ = std::max(now_us_, to_us);
}

bool FakeDriver::has_running(RunId run) const {
    return std::any_of(gangs_.begin(), gangs_.end(),
                       [&](const auto& each) { return !each.second.ended && run_of(each.second) == run; });
}

Capabilities FakeDriver::capabilities() const {
    return {.gang = !queues(),
            .follows_logs = false,
            .limits_memory = true,
            .kills_trees = true,
            .signal_notice_s = 3600,
            .queues = queues(),
            .binds = queues()};
}

Result<std::vector<NodeInfo>> FakeDriver::discover(Deadline) {
    std::vector<NodeInfo> up;
    for (const auto& [name, node] : nodes_)
        if (node.up) up.push_back(node.info);
    return up;
}

void FakeDriver::tell(Fact fact) {
    fact.cursor = facts_.size() + 1;
    fact.at_us = now_us_;
    fact.run_us = now_us_;  // as the engine fills it in
    facts_.push_back(std::move(fact));
}

// How this attempt will end if nobody interferes.
void FakeDriver::plan(FakeGang& gang) {
    const auto& environment = gang.spec.ranks.front().environment;
    Program& program = (*programs_)[run_of(gang)];
    program.done_us = program.saved_us;
    const std::int64_t work = number_in(environment, "SIM_SECONDS", 60) * kSecond - program.saved_us;
    std::int64_t end = now_us_ + std::max<std::int64_t>(work, 1);
    const std::size_t unlucky = random_.below(gang.ranks.size());
    if (program.failures < number_in(environment, "SIM_FAILS", 0)) {
        gang.ranks[unlucky].end_us = now_us_ + std::max<std::int64_t>(work / 3, 1);
        gang.ranks[unlucky].exit_code = static_cast<int>(number_in(environment, "SIM_CODE", 1));
        gang.ranks[unlucky].cause = Cause::user_error;
        return;
    }
    if (lucky(faults_.device_fault)) {
        gang.ranks[unlucky].end_us = now_us_ + std::max<std::int64_t>(work / 2, 1);
        gang.ranks[unlucky].exit_code = 1;
        gang.ranks[unlucky].cause = Cause::device_fault;
        return;
    }
    for (FakeRank& rank : gang.ranks) rank.end_us = end;
}

Outcome FakeDriver::launch(const OperationId& id, const GangSpec& spec, Deadline) {
    if (spec.epoch < highest_epoch_) return sure(Certainty::rejected, Cause::platform, "an older server");
    highest_epoch_ = spec.epoch;
    if (const auto found = gangs_.find(id); found != gangs_.end()) {
        found->second.epoch = spec.epoch;
        return sure(queues() ? Certainty::accepted : Certainty::confirmed, Cause::capacity_busy);
    }
    if (released_.contains(id)) violations_.push_back(id.text() + " launched after its release");
    if (lucky(faults_.launch_refused)) return sure(Certainty::rejected, Cause::platform, "no");
    if (lucky(faults_.call_lost)) return sure(Certainty::unknown);
    for (const RankSpec& rank : spec.ranks) {
        if (queues() != rank.node.empty()) violations_.push_back(id.text() + " says where, or does not");
        const auto node = nodes_.find(rank.node);
        if (queues()) continue;
        if (node == nodes_.end() || !node->second.up)
            return sure(Certainty::rejected, Cause::node_lost, rank.node + " is not there");
    }
    for (const auto& [other, gang] : gangs_)
        if (!gang.ended && run_of(gang) == spec.attempt.run)
            violations_.push_back(
                fmt::format("{} launched as {} while {} still runs", spec.attempt.run.text(), id.text(), other.text()));
    FakeGang& gang = gangs_[id];
    gang.spec = spec;
    gang.epoch = spec.epoch;
    gang.ranks.resize(spec.ranks.size());
    ++launched_;
    if (queues()) {
        const auto after = [&](double mean_s) {
            return now_us_ + 1 + static_cast<std::int64_t>(random_.exponential() * mean_s * 1e6);
        };
        for (FakeRank& rank : gang.ranks) rank.waits = true;
        gang.start_us = after(faults_.queue_mean_s);
        if (lucky(faults_.forgets_waiting)) gang.lost_us = now_us_ + (gang.start_us - now_us_) / 2;
        gang.told = !lucky(faults_.end_forgotten);
        ++counts_.waited;
        tell({.kind = FactKind::waits,
              .operation = id,
              .epoch = gang.epoch,
              .cause = Cause::capacity_busy,
              .seconds = faults_.queue_mean_s,
              .detail = "(Resources)"});
        return sure(lucky(faults_.answer_lost) ? Certainty::unknown : Certainty::accepted, Cause::capacity_busy);
    }
    begin(id, gang);
    return sure(lucky(faults_.answer_lost) ? Certainty::unknown : Certainty::confirmed);
}

void FakeDriver::begin(const OperationId& id, FakeGang& gang) {
    gang.started_us = now_us_;
    ran_[id] = {.from_us = now_us_};
    plan(gang);
    for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
        const FakeRank& rank = gang.ranks[i];
        if (rank.waits) continue;
        if (rank.end_us != 0) ends_.emplace(rank.end_us, id);
        tell({.kind = FactKind::rank_started,
              .operation = id,
              .epoch = gang.epoch,
              .rank = static_cast<int>(i),
              .pid = static_cast<std::int64_t>(1000 + i),
              .node = queues() ? gang.spec.ranks[i].node : ""});
    }
    check_capacity();
}

// The first so many ranks, where there is room; false: there is none.
bool FakeDriver::place(FakeGang& gang, std::size_t ranks) const {
    struct Room {
        std::int64_t cpu = 0, memory = 0;
        std::vector<std::int64_t> milli;
    };
    std::map<std::string, Room> rooms;
    for (const auto& [name, node] : nodes_)
        if (node.up && node.lost_us == 0)
            rooms[name] = {node.info.cpu_milli, node.info.memory_bytes,
                           std::vector<std::int64_t>(node.info.devices.size(), 1000)};
    for (const auto& [id, other] : gangs_) {
        for (std::size_t i = 0; i < other.ranks.size(); ++i) {
            const RankSpec& rank = other.spec.ranks[i];
            const auto room = rooms.find(rank.node);
            if (!other.ranks[i].alive || other.ranks[i].waits || room == rooms.end()) continue;
            room->second.cpu -= rank.cpu_milli;
            room->second.memory -= rank.memory_bytes;
            for (const std::string& device : rank.devices)
                room->second.milli[std::stoul(device)] -= number_in(rank.environment, "SIM_GPU_MILLI", 1000);
        }
    }
    for (std::size_t i = 0; i < ranks; ++i) {
        RankSpec& rank = gang.spec.ranks[i];
        const std::int64_t milli = rank.gpus == 0 ? 0 : rank.gpu_milli;
        bool placed = false;
        for (auto& [name, room] : rooms) {
            std::vector<std::string> devices;
            for (std::size_t d = 0; d < room.milli.size() && static_cast<int>(devices.size()) < rank.gpus; ++d)
                if (room.milli[d] >= milli) devices.push_back(std::to_string(d));
            if (room.cpu < rank.cpu_milli || room.memory < rank.memory_bytes ||
                static_cast<int>(devices.size()) < rank.gpus)
                continue;
            room.cpu -= rank.cpu_milli;
            room.memory -= rank.memory_bytes;
            for (const std::string& device : devices) room.milli[std::stoul(device)] -= milli;
            rank.node = name;
            rank.devices = std::move(devices);
            placed = true;
            break;
        }
        if (!placed) return false;
    }
    return true;
}

void FakeDriver::start_in_queue(const OperationId& id, FakeGang& gang) {
    const bool part = gang.ranks.size() > 1 && lucky(faults_.part_starts);
    const std::size_t ranks = part ? 1 + random_.below(gang.ranks.size() - 1) : gang.ranks.size();
    if (!place(gang, ranks)) {
        gang.start_us = now_us_ + 30 * kSecond;
        return;
    }
    if (part) ++counts_.parts;
    gang.start_us = gang.lost_us = 0;
    for (std::size_t i = 0; i < ranks; ++i) gang.ranks[i].waits = false;
    begin(id, gang);
    // Those that run wait for the others, and would for ever.
    if (part)
        for (FakeRank& rank : gang.ranks) {
            if (rank.end_us != 0) ends_.erase({rank.end_us, id});
            rank.end_us = 0;
        }
}

void FakeDriver::note_end(const OperationId& id) {
    if (const auto found = ran_.find(id); found != ran_.end()) found->second.to_us = now_us_;
}

void FakeDriver::check_capacity() {
    struct Used {
        std::int64_t cpu = 0, memory = 0;
        std::map<std::string, std::int64_t> devices;
    };
    std::map<std::string, Used> used;
    for (const auto& [id, gang] : gangs_) {
        for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
            if (!gang.ranks[i].alive || gang.ranks[i].waits) continue;
            const RankSpec& rank = gang.spec.ranks[i];
            Used& node = used[rank.node];
            node.cpu += rank.cpu_milli;
            node.memory += rank.memory_bytes;
            for (const std::string& device : rank.devices)
                node.devices[device] += number_in(rank.environment, "SIM_GPU_MILLI", 1000);
        }
    }
    for (const auto& [name, node] : used) {
        const NodeInfo& info = nodes_.at(name).info;
        if (node.cpu > info.cpu_milli) violations_.push_back(fmt::format("{} milli CPU on {}", node.cpu, name));
        if (node.memory > info.memory_bytes) violations_.push_back(fmt::format("{} bytes on {}", node.memory, name));
        for (const auto& [device, milli] : node.devices)
            if (milli > 1000)
                violations_.push_back(fmt::format("{} thousandths of device {} on {}", milli, device, name));
    }
}

void FakeDriver::save_progress(const FakeGang& gang, bool now) {
    Program& program = (*programs_)[run_of(gang)];
    const std::int64_t before = program.done_us;
    const std::int64_t worked = now_us_ - gang.started_us;
    const std::int64_t saved = now ? worked : worked / kCheckpointEveryUs * kCheckpointEveryUs;
    program.saved_us = std::max(program.saved_us, before + saved);
}

void FakeDriver::end_rank(const OperationId& id, FakeGang& gang, std::size_t at, int code, Cause cause, bool told) {
    FakeRank& rank = gang.ranks[at];
    rank.alive = false;
    rank.exit_code = code;
    rank.cause = cause;
    if (cause == Cause::user_error && code != 143) ++(*programs_)[run_of(gang)].failures;
    if (told && gang.told && !rank.waits)
        tell({.kind = FactKind::rank_ended,
              .operation = id,
              .epoch = gang.epoch,
              .rank = static_cast<int>(at),
              .exit_code = code,
              .cause = cause});
}

void FakeDriver::close_if_ended(const OperationId& id, FakeGang& gang, bool told) {
    if (gang.ended || std::any_of(gang.ranks.begin(), gang.ranks.end(), [](const FakeRank& r) { return r.alive; }))
        return;
    gang.ended = true;
    note_end(id);
    if (!gang.told) ++counts_.forgotten;
    Cause cause = Cause::ok;
    for (const FakeRank& rank : gang.ranks)
        if (rank.cause != Cause::ok) cause = rank.cause;
    if (cause == Cause::ok)
        (*programs_)[run_of(gang)].done = true;
    else
        save_progress(gang, false);
    for (const FakeRank& rank : gang.ranks) ends_.erase({rank.end_us, id});
    if (told && gang.told) tell({.kind = FactKind::gang_ended, .operation = id, .epoch = gang.epoch, .cause = cause});
}

Outcome FakeDriver::notify(const OperationId& id, std::uint64_t epoch, int, Deadline) {
    if (epoch < highest_epoch_) return sure(Certainty::rejected, Cause::platform, "an older server");
    const auto found = gangs_.find(id);
    if (found == gangs_.end() || found->second.ended) return sure(Certainty::rejected, Cause::platform, "it has ended");
    if (found->second.start_us != 0) return sure(Certainty::rejected, Cause::platform, "it has not started");
    if (number_in(found->second.spec.ranks.front().environment, "SIM_DEAF", 0) != 0)
        return sure(Certainty::rejected, Cause::platform, "no process handles the signal");
    save_progress(found->second, true);
    return sure(Certainty::confirmed);
}

Outcome FakeDriver::cancel(const OperationId& id, std::uint64_t epoch, double, Deadline) {
    if (epoch < highest_epoch_) return sure(Certainty::rejected, Cause::platform, "an older server");
    highest_epoch_ = epoch;
    if (lucky(faults_.call_lost)) return sure(Certainty::unknown);
    if (const auto found = gangs_.find(id); found != gangs_.end()) {
        FakeGang& gang = found->second;
        if (gang.start_us != 0) {  // nothing of it ran
            gang.start_us = gang.lost_us = 0;
            gang.ended = true;
            for (FakeRank& rank : gang.ranks) rank.alive = false;
        }
        for (std::size_t i = 0; i < gang.ranks.size(); ++i)
            if (gang.ranks[i].alive) end_rank(id, gang, i, 143, Cause::user_error, true);
        close_if_ended(id, gang, true);
    }
    return sure(lucky(faults_.answer_lost) ? Certainty::unknown : Certainty::confirmed);
}

Outcome FakeDriver::release(const OperationId& id, Deadline) {
    if (lucky(faults_.call_lost)) return sure(Certainty::unknown);
    if (const auto found = gangs_.find(id); found != gangs_.end()) {
        if (!found->second.ended) violations_.push_back(id.text() + " released while it runs");
        gangs_.erase(found);
    }
    released_.insert(id);
    return sure(lucky(faults_.answer_lost) ? Certainty::unknown : Certainty::confirmed);
}

Result<OursListing> FakeDriver::list_ours(const std::string&, Deadline) {
    OursListing listing;
    const bool cut = lucky(faults_.listing_cut);
    listing.complete = !cut;
    for (const auto& [id, gang] : gangs_)
        if (!cut || lucky(0.5))
            listing.items.push_back({.operation = id,
                                     .epoch = gang.epoch,
                                     .ended = gang.ended,
                                     .waits = !gang.ended && std::any_of(gang.ranks.begin(), gang.ranks.end(),
                                                                         [](const FakeRank& r) { return r.waits; })});
    return listing;
}

Result<std::vector<Fact>> FakeDriver::observe(std::uint64_t cursor, Deadline) {
    std::uint64_t from = std::min<std::uint64_t>(cursor, facts_.size());
    if (lucky(faults_.fact_repeated)) from -= std::min<std::uint64_t>(from, random_.below(5));
    return std::vector<Fact>(facts_.begin() + static_cast<std::ptrdiff_t>(from), facts_.end());
}

void FakeDriver::lose_node(const std::string& name, const std::string& why) {
    FakeNode& node = nodes_.at(name);
    if (!node.up) return;
    node.up = false;
    node.lost_us = 0;
    node.back_us = now_us_ + static_cast<std::int64_t>(faults_.node_away_s * 1e6);
    // Its processes are gone without a word; what runs elsewhere waits for them in vain.
    for (auto& [id, gang] : gangs_) {
        if (gang.ended) continue;
        bool here = false;
        for (std::size_t i = 0; i < gang.ranks.size(); ++i)
            here = here || (gang.spec.ranks[i].node == name && gang.ranks[i].alive && !gang.ranks[i].waits);
        if (!here) continue;
        for (std::size_t i = 0; i < gang.ranks.size(); ++i) {
            FakeRank& rank = gang.ranks[i];
            if (gang.spec.ranks[i].node == name && rank.alive) {
                end_rank(id, gang, i, 0, Cause::node_lost, false);
            } else if (rank.alive && gang.ranks.size() > 1) {
                rank.end_us = rank.cause == Cause::ok ? 0 : rank.end_us;
            }
        }
        close_if_ended(id, gang, false);
    }
    tell({.kind = FactKind::node_lost, .epoch = 0, .cause = Cause::node_lost, .node = name, .detail = why});
}

void FakeDriver::give_notice(const std::string& name, double seconds) {
    FakeNode& node = nodes_.at(name);
    if (!node.up || node.lost_us != 0) return;
    node.lost_us = now_us_ + static_cast<std::int64_t>(seconds * 1e6);
    tell({.kind = FactKind::notice, .cause = Cause::evicted, .seconds = seconds, .node = name});
}

void FakeDriver::take_notice_back(const std::string& name) {
    FakeNode& node = nodes_.at(name);
    if (!node.up || node.lost_us == 0) return;
    node.lost_us = 0;
    tell({.kind = FactKind::notice, .seconds = -1, .node = name});
}

void FakeDriver::reboot(const std::string& name) {
    FakeNode& node = nodes_.at(name);
    node.up = true;
    node.back_us = 0;
    node.info.boot_id = fmt::format("{}-boot-{}", name, ++node.boots);
}

void FakeDriver::plant(const OperationId& stranger) {
    FakeGang& gang = gangs_[stranger];
    gang.spec.attempt = {{999'999}, 1};
    gang.spec.ranks.push_back({.node = nodes_.begin()->first});
    gang.started_us = now_us_;
    gang.ranks.resize(1);
}

CheckpointView FakeDriver::look_at_checkpoints(RunId run) const {
    const auto found = programs_->find(run);
    if (found == programs_->end()) return {};
    const std::int64_t step = found->second.saved_us / kSecond;
    return {.newest = step > 0 ? fmt::format("/ck/step-{:06}", step) : "", .step = step, .done = found->second.done};
}

std::size_t FakeDriver::alive() const {
    return static_cast<std::size_t>(
        std::count_if(gangs_.begin(), gangs_.end(), [](const auto& each) { return !each.second.ended; }));
}

}  // namespace stoker::sim
