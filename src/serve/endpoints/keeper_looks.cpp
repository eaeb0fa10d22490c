// What a keeper finds out about a replica by asking it: whether it is well, what it serves, and what its engine says of
// its work.
#include <fmt/format.h>

#include <algorithm>

#include "serve/endpoints/keeper.h"

namespace stoker {
namespace {

constexpr double kStartProbeS = 0.2, kProbeEveryS = 5, kSignalsEveryS = 1;
constexpr int kFailedProbes = 2;

}  // namespace

void EndpointKeeper::look_at(Kept& replica, double now_s) {
    if (replica.phase == ReplicaPhase::ended) return;
    if (replica.draining) return drain(replica, now_s);
    if (replica.phase != ReplicaPhase::running || replica.url.empty()) return;
    const ServingTemplate& row = how(replica.revision);
    if (!replica.ready && now_s - replica.running_s > cold_start_.budget_s()) {
        gone(replica, fmt::format("not ready within {:.0f} s", cold_start_.budget_s()), now_s);
        if (const auto ended = host_.end(replica.run); !ended) trouble_ = ended.error().message();
        replica.phase = ReplicaPhase::running;
        replica.draining = replica.told_to_end = true;
        return;
    }
    // What it answers is not what it is there for: nothing more goes to it before it has said who it is.
    if (replica.ready && replica.load->doubted() && !replica.failing) {
        replica.failing = true;
        replica.why = replica.url + " answers as another model than before";
        replica.next_probe_s = now_s;
    }
    if (now_s >= replica.next_probe_s) probe(replica, now_s);
    if (replica.ready && !row.metrics.empty() && now_s >= replica.next_signals_s) read_signals(replica, now_s);
}

void EndpointKeeper::probe(Kept& replica, double now_s) {
    const ReplicaProbe seen = host_.probe(how(replica.revision), replica.url);
    replica.next_probe_s = now_s + (replica.ready ? kProbeEveryS * (0.8 + 0.4 * random_.uniform()) : kStartProbeS);
    if (seen.connect_s >= 0) connect_s_ = connect_s_ < 0 ? seen.connect_s : 0.7 * connect_s_ + 0.3 * seen.connect_s;
    if (!seen.well) {
        replica.why = seen.problem;
        if (replica.ready && ++replica.failed_probes >= kFailedProbes) replica.failing = true;
        return;
    }
    if (seen.answer_s >= 0) answer_s_ = seen.answer_s;
    replica.failed_probes = 0;
    const EndpointRevision* revision = endpoint_.find(replica.revision);
    const std::string expected = replica.ready ? replica.model : revision != nullptr ? revision->model : "";
    const bool right = expected.empty()
                           ? !seen.models.empty()
                           : std::find(seen.models.begin(), seen.models.end(), expected) != seen.models.end();
    // It is well and does not say who it is: that is no news of one that was known, unless there is doubt.
    if (replica.ready && seen.models.empty() && !replica.load->doubted()) {
        replica.failing = false;
        return replica.why.clear();
    }
    if (!right) {
        replica.why = fmt::format("{} serves {}", replica.url,
                                  expected.empty() ? "no model that it lists" : "another model than " + expected);
        replica.failing = replica.ready;
        return;
    }
    if (!replica.ready) {
        const auto address = host_.address(replica.url);
        if (!address) {
            replica.why = address.error().message();
            return;
        }
        replica.address = *address;
        replica.model = expected.empty() ? seen.models.front() : expected;
        replica.ready = true;
        replica.ready_s = now_s;
        first_ready_s_.emplace(replica.revision, now_s);
        replica.start_s = now_s - replica.running_s;
        if (!replica.adopted) cold_start_.started(std::max(0.01, now_s - replica.asked_s));
    }
    replica.load->trust();
    replica.failing = false;
    replica.why.clear();
}

void EndpointKeeper::read_signals(Kept& replica, double now_s) {
    replica.next_signals_s = now_s + kSignalsEveryS;
    const auto signals = host_.signals(how(replica.revision), replica.url, replica.model);
    if (!signals) return;
    replica.signals.read(*signals, now_s);
    const AgedSignals::Rates rates = replica.signals.rates(now_s);
    // A share of the way at a time: one second may have had one prompt only.
    const auto follow = [](double& rate, std::optional<double> can, std::optional<double> did) {
        if (can) rate += 0.2 * (*can - rate);
        if (!can && did) rate = std::max(rate, *did);
    };
    follow(replica.prefill_tokens_per_s, rates.prompt_tokens_per_s, rates.seen_prompt_tokens_per_s);
    follow(replica.decode_tokens_per_s, rates.output_tokens_per_s, rates.seen_output_tokens_per_s);
}

}  // namespace stoker
