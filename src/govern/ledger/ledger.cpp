#include "govern/ledger/ledger.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::uint64_t kLeastSegment = 64u << 10;
constexpr std::size_t kLargestMarks = 100'000;
constexpr std::size_t kMostGathered = 256u << 10;  // bytes of one segment that nobody has asked for

Error disk(const std::string& doing, const std::string& path) {
    return Error(ErrorKind::unavailable, fmt::format("cannot {} {}: {}", doing, path, std::strerror(errno)));
}

Status write_at(int fd, std::string_view text, std::uint64_t at, const std::string& path) {
    while (!text.empty()) {
        const ssize_t size = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(at));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return disk("write", path);
        text.remove_prefix(static_cast<std::size_t>(size));
        at += static_cast<std::uint64_t>(size);
    }
    return done();
}

Status sync_folder(const std::string& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return disk("sync", folder);
    return done();
}

// A file of zeros: what is overwritten later costs no change of the file's metadata.
Result<UniqueFd> zeros(const std::string& path, std::uint64_t bytes) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return disk("make", path);
    const std::string block(std::min<std::uint64_t>(bytes, 1u << 20), '\0');
    for (std::uint64_t at = 0; at < bytes; at += block.size())
        TRY_VOID(write_at(
            fd.get(), std::string_view(block).substr(0, std::min<std::uint64_t>(block.size(), bytes - at)), at, path));
    if (::fsync(fd.get()) != 0) return disk("sync", path);
    return fd;
}

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
    UniqueFd lock;
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
    UniqueFd file;  // of the commit thread
    std::uint64_t file_first_lsn = 0;
    std::thread thread, preparer;

    std::string path(std::uint64_t first_lsn) const { return options.folder + "/" + segment_name(first_lsn); }
    std::string spare_path() const { return options.folder + "/spare.tmp"; }

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

    Status open_segment(const SegmentHeader& header) {
        if (preparer.joinable()) preparer.join();
        if (file && options.sync && ::fdatasync(file.get()) != 0) return disk("sync", path(file_first_lsn));
        const std::string spare = spare_path();
        std::error_code unknown;
        UniqueFd next;
        if (std::filesystem::file_size(spare, unknown) == header.bytes && !unknown)
            next.reset(::open(spare.c_str(), O_RDWR | O_CLOEXEC));
        if (!next) {
            TRY(next, zeros(spare, header.bytes));
        }
        // The header is on disk before the name says that this is a segment.
        TRY_VOID(write_at(next.get(), payload_of(header), 0, spare));
        if (::fdatasync(next.get()) != 0) return disk("sync", spare);
        if (::rename(spare.c_str(), path(header.first_lsn).c_str()) != 0) return disk("rename", spare);
        TRY_VOID(sync_folder(options.folder));
        file = std::move(next);
        file_first_lsn = header.first_lsn;
        // The next one, ahead of its time; that it could not be made is told when it is needed.
        preparer = masked_thread("ledger-next", [spare, bytes = std::max(options.segment_bytes, kLeastSegment)] {
            const auto made = zeros(spare, bytes);
            if (!made) ::unlink(spare.c_str());
        });
        return done();
    }

    Status commit(const std::deque<Piece>& pieces) {
        for (const Piece& piece : pieces) {
            if (!file || file_first_lsn != piece.segment.first_lsn) TRY_VOID(open_segment(piece.segment));
            TRY_VOID(write_at(file.get(), piece.bytes, piece.at, path(file_first_lsn)));
        }
        if (options.sync && ::fdatasync(file.get()) != 0) return disk("sync", path(file_first_lsn));
        return done();
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
    if (state_->preparer.joinable()) state_->preparer.join();
    if (state_->lock) ::unlink(state_->spare_path().c_str());
}

Result<std::unique_ptr<Ledger>> Ledger::open(LedgerOptions options) {
    auto state = std::make_unique<State>();
    std::error_code failed;
    std::filesystem::create_directories(options.folder, failed);
    if (failed)
        return Error(ErrorKind::unavailable,
                     fmt::format("cannot make the folder of the ledger {}: {}", options.folder, failed.message()));
    const std::string lock = options.folder + "/lock";
    state->lock.reset(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!state->lock) return disk("open", lock);
    if (::flock(state->lock.get(), LOCK_EX | LOCK_NB) != 0) {
        state->lock.reset();
        return Error(ErrorKind::conflict, fmt::format("another process writes the ledger {}", options.folder), {},
                     "give each gateway a folder of its own");
    }
    TRY(LedgerScan scan,
        scan_ledger(options.folder, {.since_unix_ns = std::max<std::int64_t>(1, options.account_from_unix_us) * 1000,
                                     .account_from_unix_us = options.account_from_unix_us}));
    if (!scan.empty && scan.last.gateway != options.gateway)
        return Error(ErrorKind::conflict, fmt::format("the ledger {} belongs to another gateway", options.folder), {},
                     "give each gateway a folder of its own, or the name that it had");
    if (!scan.empty) {
        // Behind the end may stand a part of a commit that nobody was told of.
        if (::truncate(scan.last_path.c_str(), static_cast<off_t>(scan.last_end)) != 0)
            return disk("cut", scan.last_path);
        const UniqueFd file(::open(scan.last_path.c_str(), O_RDWR | O_CLOEXEC));
        if (!file || ::fsync(file.get()) != 0) return disk("sync", scan.last_path);
    }
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
