#include "run/decide/recover.h"

#include <algorithm>

namespace stoker {
namespace {

using Found = std::map<OperationId, const Ours*>;

// Whether what is not in it is not there: of one engine of several, when that one told all; of what belongs to nobody,
// when all did.
bool proves_absence(const OursListing& listing, const Attempt* attempt) {
    if (!listing.complete) return false;
    if (attempt == nullptr) return listing.silent.empty();
    // One that was launched before there were several has no name; it went to the first of them.
    return attempt->engine.empty()
               ? listing.silent.empty()
               : std::find(listing.silent.begin(), listing.silent.end(), attempt->engine) == listing.silent.end();
}

// Nothing while the listing cannot tell.
std::optional<RecordBody> settle_operation(const State& state, const OperationId& id, const Operation& operation,
                                           const Ours* found, bool complete) {
    const auto answered = [&](Answer answer) -> std::optional<RecordBody> {
        return OperationAnswered{.operation = id, .answer = answer};
    };
    switch (operation.verb) {
        case Verb::notify: return answered(Answer::absent);
        case Verb::launch: {
            if (found != nullptr) return answered(found->waits ? Answer::accepted : Answer::confirmed);
            if (!complete) return {};
            const Attempt* attempt = state.find(operation.attempt);
            if (attempt == nullptr || attempt->end_us != 0) return answered(Answer::absent);
            return OperationResent{id};
        }
        case Verb::cancel:
            if (found != nullptr ? found->ended : complete) return answered(Answer::confirmed);
            return found != nullptr ? std::optional<RecordBody>(OperationResent{id}) : std::nullopt;
        case Verb::release:
            if (found == nullptr && complete) return answered(Answer::confirmed);
            return found != nullptr ? std::optional<RecordBody>(OperationResent{id}) : std::nullopt;
    }
    return {};
}

bool has_our_mark(const State& state, const OperationId& id) {
    return id.site == state.site || std::find(state.sites.begin(), state.sites.end(), id.site) != state.sites.end();
}

// Runs, as far as we know, and a complete listing does not show it running: facts should have told.
void find_missing(const State& state, const Listing& listing, const Found& found, std::int64_t now_us,
                  std::map<OperationId, std::int64_t>& since, std::vector<RecordBody>& out) {
    std::map<OperationId, std::int64_t> missing;
    for (const RunId run : state.live) {
        const Attempt& attempt = state.find(run)->attempts.back();
        if (attempt.end_us != 0 || !proves_absence(listing.ours, &attempt)) continue;
        const auto seen = found.find(attempt.launch);
        if (seen != found.end() && !seen->second->ended) continue;
        // A launch that is not confirmed may be missing; but when it has ended already, its facts are due as well.
        const bool confirmed = attempt.is_there();
        if (!confirmed && seen == found.end()) continue;
        const auto before = since.find(attempt.launch);
        const std::int64_t first = before == since.end() ? now_us : before->second;
        missing.emplace(attempt.launch, first);
        if (confirmed && now_us - first >= kMissingGraceUs)
            out.push_back(AttemptMoved{
                {run, attempt.number}, AttemptEvent::end, Cause::lost_contact, "the engine does not know it any more"});
    }
    since = std::move(missing);
}

void find_orphans(const State& state, const Listing& listing, std::int64_t now_us,
                  std::map<OperationId, std::int64_t>& since, std::vector<RecordBody>& out) {
    std::map<OperationId, std::int64_t> orphans;
    for (const Ours& item : listing.ours.items) {
        const OperationId& id = item.operation;
        if (!has_our_mark(state, id) || state.launches.contains(id)) continue;
        const auto before = since.find(id);
        const std::int64_t first = before == since.end() ? now_us : before->second;
        orphans.emplace(id, first);
        if (now_us - first < kOrphanGraceUs) continue;
        const bool in_hand = std::any_of(state.operations.begin(), state.operations.end(),
                                         [&](const auto& each) { return each.second.target == id; });
        if (in_hand) continue;
        out.push_back(OperationIntended{.verb = item.ended ? Verb::release : Verb::cancel, .target = id});
    }
    since = std::move(orphans);
}

}  // namespace

std::vector<RecordBody> recover(const State& state, const Listing& listing, std::int64_t now_us,
                                ListingMemory& memory) {
    Found found;
    for (const Ours& item : listing.ours.items) found.emplace(item.operation, &item);
    std::vector<RecordBody> out;
    for (const auto& [id, operation] : state.operations) {
        if (!operation.unknown || operation.changed_seq > listing.asked_seq) continue;
        const auto at = found.find(operation.target);
        const Attempt* attempt = operation.attempt ? state.find(operation.attempt) : nullptr;
        auto record = settle_operation(state, id, operation, at == found.end() ? nullptr : at->second,
                                       proves_absence(listing.ours, attempt));
        if (record) out.push_back(std::move(*record));
    }
    find_missing(state, listing, found, now_us, memory.missing_since, out);
    find_orphans(state, listing, now_us, memory.orphan_since, out);
    return out;
}

std::int64_t listing_due_us(const State& state, const ListingMemory& memory) {
    std::int64_t due = 0;
    for (const auto& [id, since] : memory.missing_since)
        due = due == 0 ? since + kMissingGraceUs : std::min(due, since + kMissingGraceUs);
    for (const auto& [id, operation] : state.operations) {
        if (!operation.unknown) continue;
        const std::int64_t at = std::max<std::int64_t>(operation.next_us, 1);
        due = due == 0 ? at : std::min(due, at);
    }
    return due;
}

}  // namespace stoker
