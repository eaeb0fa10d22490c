// A ledger read from its files: what is open, what was charged to whom, and whether every record is where it has to be.
// Nothing is written.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "govern/ledger/ledger_record.h"
#include "io/segment_home.h"

namespace stoker {

__extension__ using PicoSum = __int128;

// Of one key with one model.
struct AccountRow {
    std::uint64_t requests = 0, in = 0, cached_in = 0, out = 0, partial = 0, drift = 0, recovered = 0, uncounted = 0;
    PicoSum picousd = 0;
    std::array<std::uint64_t, enum_names(LedgerOutcome{}).size()> outcomes{};
};
using AccountKey = std::pair<std::uint64_t, std::uint64_t>;  // key, model

struct OpenReservation {
    ReserveRecord record;
    std::uint32_t in = 0, out = 0;  // the mark
    bool marked = false;
};

struct LedgerScan {
    bool empty = true;
    SegmentHeader last;              // of the newest segment
    std::uint64_t last_end = 0;      // where its valid records end, in bytes
    std::uint64_t first_lsn = 1;     // of the records that were looked at
    std::uint64_t next_lsn = 1;      // that follows
    std::uint64_t torn_records = 0;  // behind the end, of a commit that was never acknowledged
    std::uint64_t records = 0, reserves = 0, settles = 0, segments = 0, bytes = 0;
    std::map<std::uint64_t, OpenReservation> open;  // by lsn
    std::map<AccountKey, AccountRow> accounts;
    std::map<std::uint64_t, std::pair<NameKind, std::string>> names;
};

struct ScanOptions {
    // Segments that ended before this are passed over, as long as those that are left say all that is open.
    std::int64_t since_unix_ns = 0;
    // The same of those that hold no record behind this one.
    std::uint64_t after_lsn = 0;
    // Settlements that finished before this are not in the accounts.
    std::int64_t account_from_unix_us = 0;
    // Told of each settlement with its reservation, in the order of the ledger.
    std::function<void(const ReserveRecord&, const SettleRecord&)> each{};
    // The same, with the number of its record.
    std::function<void(std::uint64_t lsn, const ReserveRecord&, const SettleRecord&)> numbered{};
};
// not_found: there is no such home. conflict: a record that was durable is damaged or missing, is settled twice, or
// belongs to another gateway; with file and offset.
Result<LedgerScan> scan_ledger(SegmentHome& home, const ScanOptions& options = {});
Result<LedgerScan> scan_ledger(const std::string& folder, const ScanOptions& options = {});
// Of one that a gateway may be writing: what looks like damage is read once more before it is believed. `again`: before
// each reading, for whoever gathers what it is told.
Result<LedgerScan> scan_ledger_in_use(SegmentHome& home, const ScanOptions& options = {},
                                      const std::function<void()>& again = {});
// What an id of the records stands for; in hex where nothing says.
std::string name_in(const LedgerScan& scan, std::uint64_t id);

}  // namespace stoker
