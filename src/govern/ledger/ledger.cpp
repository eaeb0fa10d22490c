#include "govern/ledger/ledger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "govern/ledger/segment_folder.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::uint64_t kLeastSegment = 64u << 10;
constexpr std::size_t kLargestMarks = 100'000;
constexpr std::size_t kMostGathered = 256u << 10;  // bytes of one segment that nobody has asked for

}  // namespace

struct Ledger::State {
    // What goes to one segment in one commit.
    struct Piece {
        SegmentHeader segment;
        std::uint64_t at = 0;  // offset; the header itself when it begins
        std::string bytes;
    };

    LedgerOptions options;
    Recovery recovery;
    std::function<void()> listener;

    mutable std::mutex mutex;  // guards all up to the blank line
    std::condition_variable wake;
    std::deque<Piece> pending;
    SegmentHeader segment;   // that is being filled
    std::uint64_t tail = 0;  // its bytes so far
    std::uint64_t next_lsn = 1;
    std::unordered_map<std::uint64_t, OpenReservation> open;
    bool stopping = false, wanted = false;
    std::string failure;
    Stats stats;

    std::atomic<std::uint64_t> durable{0};
    std::atomic<bool> failed{false};
    std::thread thread;

    // With the mutex held, as are the next three.
    void put(LedgerType type, std::string_view payload) {
        Piece& piece = pending.back();
        const std::size_t before = piece.bytes.size();
        append_record(piece.bytes, type, next_lsn++, durable, record_seed(segment), payload);
        tail += piece.bytes.size() - before;
        ++stats.records;
    }
    void begin_segment(std::uint64_t epoch) {
        segment = {};
        segment.gateway = options.gateway;
        segment.first_lsn = next_lsn;
        segment.epoch = epoch;
        segment.created_unix_ns = wall_clock_us() * 1000;
        std::uint64_t names = 0;
        for (const NameRecord& name : options.names) names += name.text.size() + 64;
        segment.bytes = std::max(options.segment_bytes, kLeastSegment) + 2 * (open.size() * 160 + names);
        seal(segment);
        pending.push_back({segment, 0, std::string(payload_of(segment))});
        tail = sizeof(SegmentHeader);
        const CheckRecord check{.carried = open.size(), .boot = static_cast<std::uint64_t>(::getpid())};
        put(LedgerType::check, payload_of(check));
        std::vector<MarkEntry> marks;
        for (auto& [lsn, each] : open) {
            ReserveRecord record = each.record;
            record.own_lsn = lsn;
            record.flags |= kReserveCarried;
            put(LedgerType::reserve, payload_of(record));
            if (each.marked) marks.push_back({lsn, each.in, each.out});
        }
        if (!open.empty()) put(LedgerType::marks, marks_payload(marks));
        for (const NameRecord& name : options.names) put(LedgerType::name, name_payload(name));
    }
    std::uint64_t take(LedgerType type, std::string_view payload) {
        if (tail + payload.size() + sizeof(RecordHeader) + 8 > segment.bytes) begin_segment(segment.epoch);
        if (pending.empty()) pending.push_back({segment, tail, {}});
        const std::uint64_t lsn = next_lsn;
        put(type, payload);
        if (pending.size() > 1 || pending.back().bytes.size() >= kMostGathered) want();
        return lsn;
    }
    void want() {
        if (pending.empty() || std::exchange(wanted, true)) return;
        wake.notify_one();
    }

    Status commit(const std::deque<Piece>& pieces) {
        std::vector<SegmentPiece> texts;
        texts.reserve(pieces.size());
        for (const Piece& piece : pieces)
            texts.push_back({piece.segment.first_lsn, piece.at, piece.segment.bytes, piece.bytes});
        return options.home->write(texts);
    }

    void run() {
        std::unique_lock guard(mutex);
        while (true) {
            wake.wait(guard, [&] { return stopping || wanted; });
            wanted = false;
            if (pending.empty()) return;
            std::deque<Piece> pieces;
            pieces.swap(pending);
            const std::uint64_t upto = next_lsn - 1;
            guard.unlock();
            const std::int64_t began = monotonic_clock_us();
            const Status written = commit(pieces);
            const std::int64_t took = monotonic_clock_us() - began;
            guard.lock();
            if (written) {
                ++stats.commits;
                stats.commit_us += static_cast<std::uint64_t>(took);
                for (const Piece& piece : pieces) stats.bytes += piece.bytes.size();
                durable = upto;
            } else {
                failure = written.error().message();
                failed = true;
                pending.clear();
            }
            guard.unlock();
            if (listener) listener();
            guard.lock();
            if (failed) return;
        }
    }
};

Ledger::Ledger(std::unique_ptr<State> state) : state_(std::move(state)) {}

Ledger::~Ledger() {
    {
        const std::lock_guard guard(state_->mutex);
        state_->stopping = true;
    }
    state_->wake.notify_all();
    if (state_->thread.joinable()) state_->thread.join();
}

Result<std::unique_ptr<Ledger>> Ledger::open(LedgerOptions options) {
    auto state = std::make_unique<State>();
    if (!options.home)
        options.home = segment_folder({.folder = options.folder,
                                       .usual_room = std::max(options.segment_bytes, kLeastSegment),
                                       .sync = options.sync});
    TRY_VOID(options.home->claim());
    TRY(LedgerScan scan,
        scan_ledger(*options.home, {.since_unix_ns = std::max<std::int64_t>(1, options.account_from_unix_us) * 1000,
                                    .account_from_unix_us = options.account_from_unix_us}));
    if (!scan.empty && scan.last.gateway != options.gateway)
        return Error(
            ErrorKind::conflict,
            fmt::format("the ledger of {} belongs to another gateway", options.home->place(scan.last.first_lsn)), {},
            "give each gateway a folder of its own, or the name that it had");
    // Behind the end may stand a part of a commit that nobody was told of.
    if (!scan.empty) TRY_VOID(options.home->cut(scan.last.first_lsn, scan.last_end));
    state->options = std::move(options);
    state->recovery = {
        .recovered = scan.open.size(), .torn_records = scan.torn_records, .accounts = std::move(scan.accounts)};
    state->next_lsn = scan.next_lsn;
    state->durable = scan.next_lsn - 1;
    for (const auto& [lsn, each] : scan.open) state->open.emplace(lsn, each);
    {
        const std::lock_guard guard(state->mutex);
        state->begin_segment(scan.empty ? 1 : scan.last.epoch + 1);
    }
    auto ledger = std::unique_ptr<Ledger>(new Ledger(std::move(state)));
    State& own = *ledger->state_;
    // What was shown of an answer is charged as far as the last mark says; what was not shown costs nothing.
    for (const auto& [lsn, each] : scan.open) {
        SettleRecord settle{.request = each.record.request, .reserve_lsn = lsn};
        if (each.marked && each.out > 0) {
            settle.in = each.in;
            settle.out = settle.counted_out = each.out;
            settle.charge_picousd = each.in * each.record.in_picousd + each.out * each.record.out_picousd;
            settle.flags = kSettlePartial;
        }
        settle.outcome = static_cast<std::uint8_t>(LedgerOutcome::gateway_crash);
        settle.settled_by = static_cast<std::uint8_t>(SettledBy::recovery);
        settle.finished_unix_us = wall_clock_us();
        AccountRow& row = own.recovery.accounts[{each.record.key, each.record.model}];
        row.picousd += settle.charge_picousd;
        ledger->settle(settle);
    }
    std::deque<State::Piece> pieces;
    pieces.swap(own.pending);
    TRY_VOID(own.commit(pieces));
    own.durable = own.next_lsn - 1;
    own.thread = masked_thread("ledger", [&own] { own.run(); });
    return ledger;
}

const Ledger::Recovery& Ledger::recovery() const {
    return state_->recovery;
}

std::uint64_t Ledger::reserve(const ReserveRecord& record) {
    const std::lock_guard guard(state_->mutex);
    if (state_->failed || state_->stopping) return 0;
    const std::uint64_t lsn = state_->take(LedgerType::reserve, payload_of(record));
    state_->open.emplace(lsn, OpenReservation{.record = record});
    return lsn;
}

std::uint64_t Ledger::mark(const std::vector<MarkEntry>& marks) {
    if (marks.empty()) return durable();
    CHECK(marks.size() <= kLargestMarks);
    const std::lock_guard guard(state_->mutex);
    if (state_->failed || state_->stopping) return 0;
    for (const MarkEntry& mark : marks)
        if (const auto open = state_->open.find(mark.reserve_lsn); open != state_->open.end()) {
            open->second.in = mark.in;
            open->second.out = mark.out;
            open->second.marked = true;
        }
    return state_->take(LedgerType::marks, marks_payload(marks));
}

std::uint64_t Ledger::settle(const SettleRecord& record) {
    const std::lock_guard guard(state_->mutex);
    if (state_->failed || state_->stopping) return 0;
    const auto open = state_->open.find(record.reserve_lsn);
    CHECK(open != state_->open.end() && open->second.record.request == record.request);
    // In this order: a segment that begins between the two carries what is settled in it.
    const std::uint64_t lsn = state_->take(LedgerType::settle, payload_of(record));
    state_->open.erase(record.reserve_lsn);
    return lsn;
}

void Ledger::name(std::vector<NameRecord> names) {
    const std::lock_guard guard(state_->mutex);
    if (state_->failed || state_->stopping) return;
    std::vector<NameRecord>& known = state_->options.names;
    for (NameRecord& name : names) {
        const bool there = std::any_of(known.begin(), known.end(), [&](const NameRecord& each) {
            return each.id == name.id && each.text == name.text;
        });
        if (there) continue;
        known.push_back(std::move(name));
        state_->take(LedgerType::name, name_payload(known.back()));
    }
}

void Ledger::commit() {
    const std::lock_guard guard(state_->mutex);
    if (!state_->failed) state_->want();
}

std::uint64_t Ledger::durable() const {
    return state_->durable;
}
bool Ledger::failed() const {
    return state_->failed;
}
std::string Ledger::failure() const {
    const std::lock_guard guard(state_->mutex);
    return state_->failure;
}
Ledger::Stats Ledger::stats() const {
    const std::lock_guard guard(state_->mutex);
    Stats stats = state_->stats;
    stats.open = state_->open.size();
    return stats;
}
void Ledger::on_commit(std::function<void()> listener) {
    state_->listener = std::move(listener);
}

}  // namespace stoker
