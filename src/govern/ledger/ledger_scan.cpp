#include "govern/ledger/ledger_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/text.h"
#include "govern/ledger/segment_folder.h"

namespace stoker {
namespace {

Error damaged(const std::string& path, std::size_t at, std::string what, std::string remedy = {}) {
    if (remedy.empty())
        remedy = "nothing was changed; put the file back from a copy, or move the folder away and begin a new ledger";
    return Error(ErrorKind::conflict, fmt::format("{}, byte {}: {}", path, at, what), {}, std::move(remedy));
}

// A record behind the end that was written when the one that is missing there was already durable.
std::optional<std::size_t> proof_of_loss(std::string_view text, std::size_t from, std::uint32_t seed, std::uint64_t lsn,
                                         std::uint64_t& torn) {
    for (std::size_t at = from; at + sizeof(RecordHeader) <= text.size(); at += 8) {
        RecordHeader header;
        __builtin_memcpy(&header, text.data() + at, sizeof header);
        if (header.size < sizeof header || header.lsn < lsn) continue;
        const auto entry = read_record(text, at, seed, 0);
        if (!entry) continue;
        ++torn;
        if (entry->header.lsn > lsn && entry->header.lsn - entry->header.behind >= lsn) return at;
    }
    return std::nullopt;
}

class Scanner {
public:
    explicit Scanner(const ScanOptions& options) : options_(options) {}

    // The records from `text` on, up to `until` (the lsn with which the next segment begins; 0: the last one).
    Status segment(const std::string& path, std::string_view text, std::uint64_t until) {
        const auto header = read_segment_header(text);
        if (!header) return damaged(path, 0, "it does not begin as a segment");
        if (!scan_.empty && header->gateway != scan_.last.gateway)
            return damaged(path, 16, "it belongs to another gateway than the segment before it",
                           "one folder is the ledger of one gateway: take the foreign file out");
        if (!scan_.empty && header->first_lsn != scan_.next_lsn)
            return damaged(path, 0,
                           fmt::format("it begins with record {}; the one before it ends before {}", header->first_lsn,
                                       scan_.next_lsn),
                           "a segment between them is missing: put it back");
        if (scan_.empty) scan_.next_lsn = scan_.first_lsn = header->first_lsn;
        scan_.empty = false;
        scan_.last = *header;
        ++scan_.segments;
        scan_.bytes += text.size();
        const std::uint32_t seed = record_seed(*header);
        std::size_t at = sizeof(SegmentHeader);
        while (until == 0 || scan_.next_lsn < until) {
            const auto entry = read_record(text, at, seed, scan_.next_lsn);
            if (!entry) break;
            TRY_VOID(take(*entry, path, at));
            at += entry->header.size;
            ++scan_.next_lsn;
            ++scan_.records;
        }
        scan_.last_end = at;
        if (until != 0 && scan_.next_lsn != until)
            return damaged(path, at, fmt::format("record {} is damaged or missing", scan_.next_lsn));
        if (until == 0)
            if (const auto proof = proof_of_loss(text, at, seed, scan_.next_lsn, scan_.torn_records))
                return damaged(path, at,
                               fmt::format("record {} is damaged, and the one at byte {} was written when it was "
                                           "already on disk",
                                           scan_.next_lsn, *proof));
        return done();
    }
    LedgerScan finish() { return std::move(scan_); }

private:
    Status take(const LedgerEntry& entry, const std::string& path, std::size_t at) {
        switch (entry.type()) {
            case LedgerType::reserve: {
                auto record = entry.as<ReserveRecord>();
                if (!record) return damaged(path, at, "a RESERVE is too short");
                const bool carried = (record->flags & kReserveCarried) != 0;
                const std::uint64_t lsn = carried ? record->own_lsn : entry.header.lsn;
                record->own_lsn = lsn;
                if (!carried) ++scan_.reserves;
                scan_.open.try_emplace(lsn, OpenReservation{.record = *record});
                break;
            }
            case LedgerType::marks:
                for (const MarkEntry& mark : entry.marks())
                    if (const auto open = scan_.open.find(mark.reserve_lsn); open != scan_.open.end()) {
                        open->second.in = mark.in;
                        open->second.out = mark.out;
                        open->second.marked = true;
                    }
                break;
            case LedgerType::settle: {
                const auto record = entry.as<SettleRecord>();
                if (!record) return damaged(path, at, "a SETTLE is too short");
                const auto open = scan_.open.find(record->reserve_lsn);
                if (open == scan_.open.end() || open->second.record.request != record->request)
                    return damaged(path, at,
                                   fmt::format("{} is settled, but nothing of it is reserved: twice, or by whom?",
                                               request_text(record->request)));
                count(entry.header.lsn, open->second.record, *record);
                scan_.open.erase(open);
                ++scan_.settles;
                break;
            }
            case LedgerType::name:
                if (auto name = entry.name()) scan_.names[name->id] = {name->kind, std::move(name->text)};
                break;
            case LedgerType::check:
            case LedgerType::adjust: break;
            default: return damaged(path, at, fmt::format("record {} is of an unknown type", entry.header.lsn));
        }
        return done();
    }
    void count(std::uint64_t lsn, const ReserveRecord& reserve, const SettleRecord& settle) {
        if (settle.finished_unix_us < options_.account_from_unix_us) return;
        if (options_.each) options_.each(reserve, settle);
        if (options_.numbered) options_.numbered(lsn, reserve, settle);
        AccountRow& row = scan_.accounts[{reserve.key, reserve.model}];
        ++row.requests;
        row.in += settle.in;
        row.cached_in += settle.cached_in;
        row.out += settle.out;
        row.picousd += settle.charge_picousd;
        row.partial += (settle.flags & kSettlePartial) != 0;
        row.drift += (settle.flags & kSettleDrift) != 0;
        row.uncounted += (settle.flags & kSettleUncounted) != 0;
        row.recovered += settle.settled_by == static_cast<std::uint8_t>(SettledBy::recovery);
        if (settle.outcome < row.outcomes.size()) ++row.outcomes[settle.outcome];
    }

    const ScanOptions options_;
    LedgerScan scan_;
};

// Whether a segment begins with all that was open, so that nothing before it is needed.
bool stands_alone(std::string_view text) {
    const auto header = read_segment_header(text);
    if (!header) return false;
    const std::uint32_t seed = record_seed(*header);
    std::size_t at = sizeof(SegmentHeader);
    auto entry = read_record(text, at, seed, header->first_lsn);
    if (!entry || entry->type() != LedgerType::check) return false;
    const auto check = entry->as<CheckRecord>();
    if (!check) return false;
    // The marks of what is carried follow it.
    const std::uint64_t needed = check->carried == 0 ? 0 : check->carried + 1;
    for (std::uint64_t i = 1; i <= needed; ++i) {
        at += entry->header.size;
        entry = read_record(text, at, seed, header->first_lsn + i);
        if (!entry) return false;
    }
    return true;
}

}  // namespace

Result<LedgerScan> scan_ledger(SegmentHome& home, const ScanOptions& options) {
    TRY(const std::vector<std::uint64_t> numbers, home.segments());
    std::size_t begin = 0;
    if (options.after_lsn > 0) {
        for (begin = numbers.empty() ? 0 : numbers.size() - 1; begin > 0; --begin) {
            if (numbers[begin] > options.after_lsn + 1) continue;
            TRY(const std::string text, home.read(numbers[begin]));
            if (stands_alone(text)) break;
        }
    } else if (options.since_unix_ns > 0) {
        for (begin = numbers.empty() ? 0 : numbers.size() - 1; begin > 0; --begin) {
            TRY(const std::string text, home.read(numbers[begin]));
            const auto header = read_segment_header(text);
            if (!header) return damaged(home.place(numbers[begin]), 0, "it does not begin as a segment");
            if (header->created_unix_ns <= options.since_unix_ns && stands_alone(text)) break;
        }
    }
    Scanner scanner(options);
    for (std::size_t i = begin; i < numbers.size(); ++i) {
        TRY(const std::string text, home.read(numbers[i]));
        const bool last = i + 1 == numbers.size();
        TRY_VOID(scanner.segment(home.place(numbers[i]), text, last ? 0 : numbers[i + 1]));
    }
    return scanner.finish();
}

Result<LedgerScan> scan_ledger(const std::string& folder, const ScanOptions& options) {
    return scan_ledger(*segment_folder({.folder = folder}), options);
}

Result<LedgerScan> scan_ledger_in_use(SegmentHome& home, const ScanOptions& options,
                                      const std::function<void()>& again) {
    constexpr int kTries = 3;
    for (int i = 1;; ++i) {
        if (again) again();
        auto scan = scan_ledger(home, options);
        if (scan || scan.error().kind() != ErrorKind::conflict || i == kTries) return scan;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

std::string name_in(const LedgerScan& scan, std::uint64_t id) {
    const auto found = scan.names.find(id);
    return found == scan.names.end() ? fmt::format("{:016x}", id) : found->second.second;
}

}  // namespace stoker
