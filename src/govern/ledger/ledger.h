// The ledger of one gateway: what is set aside, how far it has come, what was charged; each durable before somebody is
// shown that it was. Records gather until somebody waits for one of them; those that arrive while a commit is under way
// go to disk together with the next one. So the size of a batch follows the load, and nobody waits for a timer.
//
//     open()     reads what is there, settles what the last process left open, begins a segment
//     reserve()  before an answer is shown      mark()  while it streams      settle()  exactly once, at its end
//     commit()   what was taken so far is to become durable now
//
// Once a write or a sync has failed nothing is taken any more: whether those bytes are on disk, nobody can say.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "govern/ledger/ledger_record.h"
#include "govern/ledger/ledger_scan.h"
#include "io/segment_home.h"

namespace stoker {

struct LedgerOptions {
    std::string folder;                       // is made
    std::shared_ptr<SegmentHome> home;        // in place of the folder
    std::array<std::uint8_t, 16> gateway{};   // whose it is
    std::uint64_t segment_bytes = 16u << 20;  // pre-written with zeros
    std::vector<NameRecord> names;            // written at the begin of each segment
    std::int64_t account_from_unix_us = 0;    // what Opened::accounts counts
    bool sync = true;                         // false: for measurements, and said in words
};

class Ledger {
public:
    struct Recovery {
        std::uint64_t recovered = 0;  // requests that the last process left open, settled now
        std::uint64_t torn_records = 0;
        std::map<AccountKey, AccountRow> accounts;
    };
    struct Stats {
        std::uint64_t records = 0, commits = 0, bytes = 0, open = 0, commit_us = 0;
    };

    // conflict: the ledger is damaged (ledger_scan.h), or another process writes it. unavailable: its home.
    static Result<std::unique_ptr<Ledger>> open(LedgerOptions options);
    ~Ledger();  // what was taken is written
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;

    const Recovery& recovery() const;

    // Any thread. The lsn, or 0: the ledger has failed and nothing was taken.
    std::uint64_t reserve(const ReserveRecord& record);
    std::uint64_t mark(const std::vector<MarkEntry>& marks);
    // CHECKs that it is reserved and was not settled before.
    std::uint64_t settle(const SettleRecord& record);
    // Names that came after it was opened: what is new of them is written.
    void name(std::vector<NameRecord> names);
    // Does not wait. A commit costs the processor as much as a request: one for many records, not one for each.
    void commit();

    std::uint64_t durable() const;  // all up to here is on disk
    bool failed() const;
    std::string failure() const;
    Stats stats() const;
    // Called on the commit thread after each commit, and when it fails. Before the first record.
    void on_commit(std::function<void()> listener);

private:
    struct State;
    explicit Ledger(std::unique_ptr<State> state);
    const std::unique_ptr<State> state_;
};

}  // namespace stoker
