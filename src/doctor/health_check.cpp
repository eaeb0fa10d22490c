#include "doctor/health_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "base/units.h"
#include "doctor/health_device.h"
#include "doctor/health_gpu.h"
#include "doctor/measure/disk_speed.h"
#include "doctor/measure/link_speed.h"
#include "io/machine/machine.h"
#include "observe/health_judge.h"
#include "observe/health_lines.h"

namespace stoker {

namespace {

constexpr std::size_t kQuickPeers = 3;
constexpr double kBurnInS = 20;  // heat and power settle within some ten seconds
constexpr const char* kGentleReason = "left out: it would take from the run that goes on here";

Deadline seconds_from_now(double seconds) {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

std::string rate_words(double bytes_per_s) {
    return fmt::format("{:.3g} Gbit/s", 8e-9 * bytes_per_s);
}

// Collects the checks of one node.
class NodeLook {
public:
    NodeLook(const HealthTarget& target, HealthLevel level, Deadline deadline)
        : target_(target), level_(level), quick_(level == HealthLevel::quick), deadline_(deadline) {}

    HealthReport run() {
        if (target_.network) look_at_network();
        if (target_.device) look_at_device();
        return std::move(report_);
    }

private:
    HealthCheck check(HealthLayer layer, const char* name, const char* unit) const {
        return {.layer = layer, .name = name, .node = target_.node.name, .unit = unit};
    }
    void tell(std::string_view what) const {
        if (target_.progress) target_.progress(what);
    }
    bool late() const { return std::chrono::steady_clock::now() >= deadline_; }

    // Held against `declared`, else against what this machine did before.
    void judge(HealthCheck found, std::optional<Expectation> declared) {
        if (!declared) {
            const auto kept = target_.usual.find(usual_key(level_, found, target_.folder));
            if (kept != target_.usual.end()) declared = {.value = kept->second, .source = target_.usual_source};
        }
        judge_check(found, declared);
        if (found.verdict == HealthVerdict::skipped) {
            found.detail += (found.detail.empty() ? "" : "; ") + std::string("nobody says what it should be");
        }
        if (found.verdict != HealthVerdict::fail && found.verdict != HealthVerdict::warn) found.fix.clear();
        report_.checks.push_back(std::move(found));
    }
    void skip(HealthCheck found, std::string why, std::string fix = {}) {
        found.verdict = HealthVerdict::skipped;
        found.detail = std::move(why);
        found.fix = std::move(fix);
        report_.checks.push_back(std::move(found));
    }

    void look_at_network() {
        const std::vector<std::string>& peers = target_.peers;
        if (peers.empty()) {
            skip(check(HealthLayer::network, "link-bandwidth", "bytes/s"), "no peer was named",
                 "at another node: stoker doctor serve; here: stoker doctor --peer HOST:PORT");
            return;
        }
        for (std::size_t i = 0; i < peers.size(); ++i) {
            HealthCheck link = check(HealthLayer::network, "link-bandwidth", "bytes/s");
            link.peer = peers[i];
            if (quick_ && i >= kQuickPeers)
                skip(link, fmt::format("quick looks at {} peers", kQuickPeers), "--full");
            else if (late())
                skip(link, "no time was left");
            else
                look_at_link(std::move(link), quick_ ? std::min(peers.size(), kQuickPeers) : peers.size());
        }
    }

    LinkTest link_test(const std::string& peer, std::size_t peers) const {
        const double share = (quick_ ? 1.2 : 30.0) / static_cast<double>(peers);
        LinkTest test{.address = peer, .token = target_.token, .bandwidth = !target_.gentle};
        test.latency_s = std::min(0.5, share * 0.15);
        // Quick: several streams at once alone, both ways. Full: one stream as well.
        test.one_stream = !quick_;
        const double window = share * 0.85 / (quick_ ? 2 : 4);
        test.warm_up_s = std::min(0.3, window * 0.25);
        test.seconds = std::min(2.0, window - test.warm_up_s);
        return test;
    }

    void look_at_link(HealthCheck link, std::size_t peers) {
        tell("measuring the link to " + link.peer);
        auto speed = measure_link(link_test(link.peer, peers), deadline_);
        const auto slower_way = [](const LinkSpeed& each) {
            return std::min(each.best_to_peer(), each.best_from_peer());
        };
        // What looks slow is measured once more and the better counts: a second in which one of the two machines was
        // busy is no slow link, and would take a node out of service.
        if (speed && !target_.gentle && slower_way(*speed) < 0.85 * target_.link_bytes_per_s && !late())
            if (auto second = measure_link(link_test(link.peer, peers), deadline_);
                second && slower_way(*second) > slower_way(*speed))
                speed = std::move(second);
        if (!speed) {
            const Problem& problem = speed.error().problems().front();
            // Whoever does not answer cannot be reached; a refusal has been reached and says nothing of the network.
            if (speed.error().kind() == ErrorKind::timed_out) {
                link.name = "link-reach";
                link.unit.clear();
                link.verdict = HealthVerdict::fail;
                link.detail = problem.message;
                link.fix = problem.remedy;
                report_.checks.push_back(std::move(link));
            } else {
                skip(std::move(link), problem.message, problem.remedy);
            }
            return;
        }
        const LinkPath& path = speed->path;
        const std::string over = path.interface.empty() ? "" : " over " + path.interface;
        const std::string way = path.gateway.empty() ? "" : " through " + path.gateway;
        const std::string device = path.interface.empty() ? "DEVICE" : path.interface;
        HealthCheck latency = link, mtu = link, again = link;
        if (target_.gentle) {
            skip(link, kGentleReason);
        } else {
            link.measured = slower_way(*speed);
            link.detail = fmt::format("{} there, {} back{}{}", rate_words(speed->best_to_peer()),
                                      rate_words(speed->best_from_peer()), over, way);
            if (speed->one.streams > 0 && speed->many.streams > 0)
                link.detail += fmt::format("; one stream: {} and {}", rate_words(speed->one.to_peer),
                                           rate_words(speed->one.from_peer));
            link.fix = fmt::format(
                "ethtool {0} (speed, duplex), tc qdisc show dev {0} (a limit) at both ends; in Azure: stoker explain "
                "accelerated-networking",
                device);
            std::optional<Expectation> expected;
            if (target_.link_bytes_per_s > 0)
                expected = {.value = target_.link_bytes_per_s, .source = target_.link_source};
            else if (!target_.usual.contains(usual_key(level_, link, target_.folder)) && path.hardware &&
                     path.interface_bytes_per_s > 0)
                expected = {
                    .value = path.interface_bytes_per_s,
                    .source = fmt::format("speed of {} ({})", path.interface, rate_words(path.interface_bytes_per_s))};
            judge(link, expected);
        }
        latency.name = "link-latency";
        latency.unit = "s";
        latency.measured = speed->rtt_p50_s;
        latency.detail = fmt::format("round trip, 99 % within {}, of {} messages",
                                     format_seconds(Seconds(speed->rtt_p99_s)), speed->messages);
        latency.fix = "same region and placement group (stoker explain placement); a busy peer answers late too";
        judge(std::move(latency), std::nullopt);

        mtu.name = "link-mtu";
        mtu.unit = "bytes";
        if (path.path_mtu > 0) {
            mtu.measured = path.path_mtu;
            mtu.detail = path.interface_mtu > 0 ? fmt::format("{} has {}", device, path.interface_mtu) : "";
            mtu.fix = fmt::format("the same MTU at both ends and at every switch between: ip link set dev {} mtu {}",
                                  device, target_.mtu > 0 ? target_.mtu : path.interface_mtu);
            std::optional<Expectation> expected;
            if (target_.mtu > 0)
                expected = {.value = static_cast<double>(target_.mtu), .source = "--mtu"};
            else if (path.interface_mtu > 0)
                // A packet has 65,535 bytes at most; loopback says one more.
                expected = {.value = std::min(65535.0, static_cast<double>(path.interface_mtu)),
                            .source = "MTU of " + device};
            judge(std::move(mtu), expected);
        } else {
            skip(std::move(mtu), "the kernel does not say");
        }
        if (target_.gentle || speed->segments == 0) return;
        again.name = "link-retransmits";
        again.unit = "share";
        again.measured = static_cast<double>(speed->retransmits) / static_cast<double>(speed->segments);
        again.detail = fmt::format("{} of {} segments that we sent", speed->retransmits, speed->segments);
        again.fix = fmt::format(
            "ip -s link show {0} and ethtool -S {0}: errors and drops; a link that is cut by tc or a "
            "VM size's limit drops too",
            device);
        judge(std::move(again), std::nullopt);
        // Losses matter by what they take from the bandwidth: where that is all there, a fast link drops some.
        const bool full = std::any_of(report_.checks.begin(), report_.checks.end(), [&](const HealthCheck& each) {
            return each.name == "link-bandwidth" && each.peer == link.peer && each.verdict == HealthVerdict::pass;
        });
        if (full) report_.checks.back().verdict = HealthVerdict::pass;
    }

    void look_at_device() {
        const Machine machine = discover_machine(target_.root);
        if (target_.machine) {
            tell("counting what the machine has");
            for (DeviceCheck& each : look_at_parts(target_, machine, level_, deadline_)) {
                if (each.check.measured)
                    judge(std::move(each.check), std::move(each.expected));
                else
                    report_.checks.push_back(std::move(each.check));
            }
        }
        if (target_.cpu) look_at_speed(machine);
        if (target_.disk) look_at_disk();
        if (target_.gpus || (!quick_ && target_.machine && !target_.node.devices.empty())) look_at_gpu_speed();
    }

    void look_at_gpu_speed() {
        if (target_.gentle || late()) {
            skip(check(HealthLayer::device, "gpu-works", "count"), target_.gentle ? kGentleReason : "no time was left");
            return;
        }
        tell("measuring copies and products of the GPUs");
        const GpuSpeedOptions options{.level = level_,
                                      .burn_s = target_.burn_in_s > 0 ? target_.burn_in_s
                                                : quick_              ? 0.0
                                                                      : kBurnInS,
                                      .root = {}};
        const auto speeds =
            target_.measure_gpus ? target_.measure_gpus(options, deadline_) : measure_gpus_apart(options, deadline_);
        if (!speeds) {
            report_.checks.push_back(gpus_not_measured(speeds.error(), target_.node.name));
            return;
        }
        for (GpuCheck& each : checks_of_gpus(*speeds, target_.size, target_.node.name)) {
            DeviceCheck& part = each.part;
            if (!part.expected && !target_.usual.contains(usual_key(level_, part.check, target_.folder)))
                part.expected = by_model_or_others(each);
            if (part.check.measured)
                judge(std::move(part.check), std::move(part.expected));
            else
                report_.checks.push_back(std::move(part.check));
        }
    }

    void look_at_speed(const Machine& machine) {
        HealthCheck memory = check(HealthLayer::device, "memory-bandwidth", "bytes/s");
        HealthCheck matmul = check(HealthLayer::device, "matmul", "FLOP/s");
        if (target_.gentle || late()) {
            const std::string why = target_.gentle ? kGentleReason : "no time was left";
            skip(std::move(memory), why);
            skip(std::move(matmul), why);
            return;
        }
        tell("measuring matrix products and memory");
        std::optional<Expectation> published;
        if (quick_) {
            const CoreSpeed speed = measure_core(machine, 0.35);
            memory.measured = speed.triad_bytes;
            matmul.measured = speed.matmul_flops;
            memory.detail = matmul.detail =
                fmt::format("one core by its processor time, of which it got {:.0f} %", 100 * speed.share_of_core);
        } else {
            const MachineSpeed speed = measure_machine(machine, true);
            memory.measured = speed.triad_bytes.max;
            matmul.measured = speed.matmul_flops.max;
            memory.detail = matmul.detail =
                fmt::format("{} threads by their processor time, {}", speed.threads, speed.kernel);
            if (!target_.size.empty())
                if (const auto facts = facts_of_size(target_.size))
                    for (const SizeFact& fact : *facts)
                        if (fact.name == "memory-bandwidth")
                            published = {.value = fact.value, .source = fact.source, .is_line = fact.is_line};
        }
        memory.fix = "other programs on the machine (top), memory modules (dmidecode -t memory), NUMA (numactl -H)";
        matmul.fix =
            "clocks (turbostat, cpupower frequency-info), thermal throttling (dmesg), a limit of the control group";
        judge(std::move(memory), published);
        judge(std::move(matmul), std::nullopt);
    }

    void look_at_disk() {
        HealthCheck room = check(HealthLayer::device, "disk-free", "bytes");
        if (target_.folder.empty()) {
            skip(std::move(room), "no folder was named", "stoker doctor --disk FOLDER");
            return;
        }
        const std::string where = printable(target_.folder, 60);
        if (const auto found = room_of_disk(target_.folder)) {
            room.measured = static_cast<double>(found->free_bytes);
            room.detail =
                fmt::format("of {} at {}", format_bytes_gib(Bytes(static_cast<double>(found->total_bytes))), where);
            room.fix = "make room at " + where;
            judge(std::move(room), std::nullopt);
        } else {
            skip(std::move(room), found.error().message());
        }
        HealthCheck write = check(HealthLayer::device, "disk-write", "bytes/s");
        HealthCheck read = check(HealthLayer::device, "disk-read", "bytes/s");
        HealthCheck small = check(HealthLayer::device, "disk-small-files", "1/s");
        if (target_.gentle || late()) {
            skip(std::move(write), target_.gentle ? kGentleReason : "no time was left");
            return;
        }
        tell("measuring the disk at " + where);
        const DiskTest test{.folder = target_.folder,
                            .bytes = std::int64_t{quick_ ? 64 : 1024} << 20,
                            .seconds = quick_ ? 0.6 : 9,
                            .small_files = quick_ ? 2000 : 50'000};
        const auto speed = measure_disk(test, std::min(deadline_, seconds_from_now(test.seconds + (quick_ ? 1 : 15))));
        if (!speed) {
            write.detail = speed.error().message();
            write.fix = speed.error().problems().front().remedy;
            if (speed.error().kind() != ErrorKind::timed_out) {
                skip(std::move(write), speed.error().message(), speed.error().problems().front().remedy);
                return;
            }
            // Within a second or so it may only be busy.
            write.verdict = quick_ ? HealthVerdict::warn : HealthVerdict::fail;
            report_.checks.push_back(std::move(write));
            return;
        }
        const std::string how = fmt::format("{}{}", speed->file_system, speed->direct ? ", past the page cache" : "") +
                                (speed->note.empty() ? "" : "; " + speed->note);
        write.measured = speed->write_bytes_per_s;
        write.detail = fmt::format("{} MiB to {}, synced; {}", speed->written >> 20, where, how);
        write.fix =
            "another disk for checkpoints and data (stoker catalog disks), fewer writers, or a VM size whose disk "
            "limit is higher";
        read.measured = speed->read_bytes_per_s;
        read.detail = fmt::format("{} MiB from {}; {}", speed->read >> 20, where, how);
        read.fix = "another disk for the data, or a copy on the local one before training";
        small.measured = speed->small_files_per_s;
        small.detail = fmt::format("4 KiB each, {} of them at {}, not synced", speed->small_files, where);
        small.fix = "pack small samples into larger files";
        for (HealthCheck* each : {&write, &read, &small}) {
            // A busy processor makes a slow tmpfs, and no disk is at fault.
            if (speed->in_memory)
                skip(std::move(*each), each->detail);
            else
                judge(std::move(*each), std::nullopt);
        }
    }

    const HealthTarget& target_;
    const HealthLevel level_;
    const bool quick_;
    const Deadline deadline_;
    HealthReport report_;
};

}  // namespace

HealthReport check_node(const HealthTarget& target, HealthLevel level, Deadline deadline) {
    return NodeLook(target, level, deadline).run();
}

std::string usual_key(HealthLevel level, const HealthCheck& check, const std::string& folder) {
    std::string key = std::string(level == HealthLevel::quick ? "quick/" : "full/") + check.name;
    if (!check.peer.empty()) key += "/" + check.peer;
    if (check.name.starts_with("disk-")) key += "/" + folder;
    return key;
}

}  // namespace stoker
