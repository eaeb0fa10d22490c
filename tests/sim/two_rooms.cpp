#include "two_rooms.h"

#include <algorithm>

#include <fmt/format.h>

#include "deploy/engine_node.h"

namespace stoker::sim {
namespace {

const char* name_of(int at) {
    return at == 0 ? kNear : kFar;
}

}  // namespace

TwoRooms::TwoRooms(std::uint64_t seed, const Faults& faults, std::vector<NodeInfo> nodes, const BesideOptions& beside,
                   std::int64_t now_us)
    : FakeDriver(seed, faults, std::move(nodes), now_us),
      far_(seed ^ 0xfa4, beside.faults, beside.nodes, now_us),
      options_(beside),
      chance_(SplitMix::mix(seed ^ 0x2)) {
    far_.share_programs(*this);
    for (Absence& each : absence_)
        if (options_.away_every_s > 0)
            each.changes_us = now_us + static_cast<std::int64_t>(chance_.exponential() * options_.away_every_s * 1e6);
}

// What both have told, in one row; of one that is away nothing comes.
void TwoRooms::collect() {
    for (int at = 0; at < 2; ++at) {
        if (is_away(at)) continue;
        const std::uint64_t last = at == 0 ? FakeDriver::last_cursor() : far_.last_cursor();
        for (const Fact& fact : room(at).facts_after(from_[at])) {
            told_.push_back(fact);
            told_.back().cursor = told_.size();
            if (at == 1 && !fact.node.empty()) told_.back().node = node_of_engine(fact.node, kFar);
        }
        from_[at] = last;
    }
}

void TwoRooms::advance(std::int64_t to_us) {
    FakeDriver::advance(to_us);
    far_.advance(to_us);
    for (Absence& each : absence_)
        while (each.changes_us != 0 && each.changes_us <= to_us) {
            each.away = !each.away;
            const double mean = each.away ? options_.away_s : options_.away_every_s;
            each.changes_us += 1 + static_cast<std::int64_t>(chance_.exponential() * mean * 1e6);
        }
    collect();
}

std::int64_t TwoRooms::next_event_us() const {
    std::int64_t next = 0;
    for (const std::int64_t at : {FakeDriver::next_event_us(), far_.next_event_us()})
        if (at != 0 && (next == 0 || at < next)) next = at;
    // Coming back brings facts; with nothing left to tell it is no event.
    const bool waits = FakeDriver::last_cursor() > from_[0] || far_.last_cursor() > from_[1];
    for (const Absence& each : absence_)
        if (waits && each.away && (next == 0 || each.changes_us < next)) next = each.changes_us;
    return next;
}

void TwoRooms::belongs(const OperationId& launched, const std::string& engine) {
    owners_[launched] = engine == kFar ? 1 : 0;
}

std::vector<EngineState> TwoRooms::engines() const {
    return {{.name = kNear, .kind = "local", .can = FakeDriver::capabilities(), .fault = is_away(0) ? "away" : ""},
            {.name = kFar, .kind = "queue", .can = far_.capabilities(), .fault = is_away(1) ? "away" : ""}};
}

Result<std::vector<NodeInfo>> TwoRooms::discover(Deadline deadline) {
    std::vector<NodeInfo> all;
    for (int at = 0; at < 2; ++at) {
        if (is_away(at)) continue;
        auto nodes = at == 0 ? FakeDriver::discover(deadline) : far_.discover(deadline);
        for (NodeInfo& node : *nodes) {
            node.engine = name_of(at);
            if (at == 1) node.name = node_of_engine(node.name, kFar);
            all.push_back(std::move(node));
        }
    }
    return all;
}

template <class Call>
Outcome TwoRooms::ask(int at, const Call& call) {
    if (!is_away(at)) return call();
    ++unheard_;
    if (chance_.below(2) == 0) (void)call();
    return {.certainty = Certainty::unknown, .cause = Cause::engine_away, .detail = "away"};
}

Outcome TwoRooms::launch(const OperationId& operation, const GangSpec& asked, Deadline deadline) {
    if (asked.engine != kNear && asked.engine != kFar) {
        broken_.push_back(operation.text() + " goes to no engine");
        return {.certainty = Certainty::rejected};
    }
    const int at = asked.engine == kFar ? 1 : 0;
    const auto known = owners_.emplace(operation, at).first;
    if (known->second != at) broken_.push_back(operation.text() + " is launched on both engines");
    if (room(1 - at).has_running(asked.attempt.run))
        broken_.push_back(fmt::format("{} is launched as {} on {} while it runs on {}", asked.attempt.run.text(),
                                      operation.text(), name_of(at), name_of(1 - at)));
    return ask(at, [&] {
        return at == 0 ? FakeDriver::launch(operation, asked, deadline) : far_.launch(operation, asked, deadline);
    });
}

template <class Call>
Outcome TwoRooms::wherever(const OperationId& launched, const Call& call) {
    const auto known = owners_.find(launched);
    std::optional<Outcome> worst;
    for (int at = 0; at < 2; ++at) {
        if (known != owners_.end() && known->second != at) continue;
        Outcome outcome = ask(at, [&] { return call(at); });
        if (!worst || worst->certainty == Certainty::confirmed) worst = std::move(outcome);
    }
    return *worst;
}

Outcome TwoRooms::notify(const OperationId& launched, std::uint64_t epoch, int signal, Deadline deadline) {
    return wherever(launched, [&](int at) {
        return at == 0 ? FakeDriver::notify(launched, epoch, signal, deadline)
                       : far_.notify(launched, epoch, signal, deadline);
    });
}
Outcome TwoRooms::cancel(const OperationId& launched, std::uint64_t epoch, double grace_s, Deadline deadline) {
    return wherever(launched, [&](int at) {
        return at == 0 ? FakeDriver::cancel(launched, epoch, grace_s, deadline)
                       : far_.cancel(launched, epoch, grace_s, deadline);
    });
}
Outcome TwoRooms::release(const OperationId& launched, Deadline deadline) {
    return wherever(launched, [&](int at) {
        return at == 0 ? FakeDriver::release(launched, deadline) : far_.release(launched, deadline);
    });
}

Result<OursListing> TwoRooms::list_ours(const std::string& site, Deadline deadline) {
    OursListing all;
    for (int at = 0; at < 2; ++at) {
        auto listing = is_away(at) ? Result<OursListing>(OursListing{.items = {}, .complete = false})
                       : at == 0   ? FakeDriver::list_ours(site, deadline)
                                   : far_.list_ours(site, deadline);
        if (!listing->complete) all.silent.emplace_back(name_of(at));
        for (const Ours& item : listing->items) {
            all.items.push_back(item);
            if (chance_.uniform() >= options_.doubled) continue;
            ++doubled_;
            all.items.push_back(item);
        }
    }
    return all;
}

Result<std::vector<Fact>> TwoRooms::observe(std::uint64_t cursor, Deadline) {
    const std::uint64_t from = chance_.below(10) == 0 ? cursor - std::min<std::uint64_t>(cursor, 3) : cursor;
    return std::vector<Fact>(told_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(from, told_.size())),
                             told_.end());
}

CheckpointView TwoRooms::look_at_checkpoints(RunId run) const {
    return FakeDriver::look_at_checkpoints(run);  // the folder is shared
}

std::vector<std::string> TwoRooms::violations() const {
    std::vector<std::string> all = FakeDriver::violations();
    for (const std::string& each : far_.violations()) all.push_back("far: " + each);
    all.insert(all.end(), broken_.begin(), broken_.end());
    return all;
}

const std::map<OperationId, FakeDriver::Ran>& TwoRooms::ran() const {
    ran_of_both_ = FakeDriver::ran();
    ran_of_both_.insert(far_.ran().begin(), far_.ran().end());
    return ran_of_both_;
}

}  // namespace stoker::sim
