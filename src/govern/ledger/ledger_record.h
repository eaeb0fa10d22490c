// The records of the ledger as they lie on disk: little-endian, multiples of 8 bytes, each with a checksum of its own.
//
//     RESERVE  set aside before anything of an answer is shown       MARKS  how far live streams have come
//     SETTLE   what was charged and why, once for each RESERVE       CHECK  a segment begins; so many RESERVEs are
//     carried NAME     what an id of the records stands for                  ADJUST a person's correction of a settled
//     request
//
// Money is pico-dollars: tokens times micro-dollars per million tokens, without rounding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the ledger is written as it lies in memory");

using RequestKey = std::array<std::uint8_t, 16>;  // 48 bits of milliseconds, 16 of the gateway, 64 at random

enum class LedgerType : std::uint8_t { reserve = 1, marks = 2, settle = 3, check = 6, adjust = 7, name = 8 };
// Why a request ended.
enum class LedgerOutcome : std::uint8_t {
    ok,
    client_cancel,
    upstream_error,
    upstream_timeout,
    slow_consumer,
    key_revoked,
    budget_cut,
    rejected,
    gateway_crash,
    drained
};
// Whose figures were charged.
enum class SettledBy : std::uint8_t { none, upstream_usage, counted, recovery };

constexpr std::array<std::pair<LedgerOutcome, std::string_view>, 10> enum_names(LedgerOutcome) {
    return {{{LedgerOutcome::ok, "ok"},
             {LedgerOutcome::client_cancel, "client_cancel"},
             {LedgerOutcome::upstream_error, "upstream_error"},
             {LedgerOutcome::upstream_timeout, "upstream_timeout"},
             {LedgerOutcome::slow_consumer, "slow_consumer"},
             {LedgerOutcome::key_revoked, "key_revoked"},
             {LedgerOutcome::budget_cut, "budget_cut"},
             {LedgerOutcome::rejected, "rejected"},
             {LedgerOutcome::gateway_crash, "gateway_crash"},
             {LedgerOutcome::drained, "drained"}}};
}
constexpr std::array<std::pair<SettledBy, std::string_view>, 4> enum_names(SettledBy) {
    return {{{SettledBy::none, "none"},
             {SettledBy::upstream_usage, "upstream_usage"},
             {SettledBy::counted, "counted"},
             {SettledBy::recovery, "recovery"}}};
}
std::string_view to_string(LedgerOutcome outcome);
std::string_view to_string(SettledBy by);

inline constexpr std::uint16_t kReserveStream = 1, kReserveCarried = 2, kReserveClientAskedUsage = 4;
inline constexpr std::uint8_t kSettlePartial = 1, kSettleDrift = 2, kSettleUncounted = 4;
// Uncounted: of images or sound in the prompt nobody said what they are, and they were not charged.

struct SegmentHeader {
    std::array<char, 8> magic = {'S', 'T', 'K', 'L', 'E', 'D', 'G', '1'};
    std::uint16_t version = 1, size = 64;
    std::uint32_t crc = 0;  // of all but itself
    std::array<std::uint8_t, 16> gateway{};
    std::uint64_t first_lsn = 1, epoch = 1;
    std::int64_t created_unix_ns = 0;
    std::uint64_t bytes = 0;  // of the whole segment
};
static_assert(sizeof(SegmentHeader) == 64);

struct RecordHeader {
    std::uint32_t size = 0;  // of the whole record
    std::uint32_t crc = 0;   // of what follows, seeded with the segment
    std::uint64_t lsn = 0;
    std::uint8_t type = 0, flags = 0;
    std::uint16_t schema = 1;
    std::uint32_t behind = 0;  // lsn less the last one known durable when this was written
};
static_assert(sizeof(RecordHeader) == 24);

struct ReserveRecord {
    RequestKey request{};
    std::uint64_t tenant = 0, project = 0, key = 0, model = 0;
    std::uint32_t price_version = 0;
    std::uint8_t endpoint = 0, request_class = 0;
    std::uint16_t flags = 0;
    std::uint32_t in_estimate = 0, out_reserve = 0;
    std::uint64_t reserve_picousd = 0;
    std::int64_t started_unix_us = 0;
    // At recovery the price is asked of nobody: what is charged for a token in and out.
    std::uint64_t in_picousd = 0, out_picousd = 0;
    std::uint64_t own_lsn = 0;  // of the first writing, where this one is carried
    friend bool operator==(const ReserveRecord&, const ReserveRecord&) = default;
};
static_assert(sizeof(ReserveRecord) == 104);

struct MarkEntry {
    std::uint64_t reserve_lsn = 0;
    std::uint32_t in = 0, out = 0;
};
static_assert(sizeof(MarkEntry) == 16);

struct SettleRecord {
    RequestKey request{};
    std::uint64_t reserve_lsn = 0;
    std::uint32_t in = 0, cached_in = 0, out = 0, reasoning = 0;
    std::uint64_t other_units = 0, charge_picousd = 0;
    std::uint32_t counted_out = 0, ttft_ms = 0, duration_ms = 0;
    std::uint16_t status = 0;
    std::uint8_t outcome = 0, settled_by = 0, attempts = 0, flags = 0;
    std::array<std::uint8_t, 6> pad{};
    std::uint64_t replica = 0;
    std::int64_t finished_unix_us = 0;
    friend bool operator==(const SettleRecord&, const SettleRecord&) = default;
};
static_assert(sizeof(SettleRecord) == 96);

struct CheckRecord {
    std::uint64_t carried = 0;  // RESERVEs that follow
    std::uint64_t boot = 0;     // of the process that wrote it
};

struct AdjustRecord {
    RequestKey request{};
    std::int64_t picousd = 0;
    std::int64_t at_unix_us = 0;
};

enum class NameKind : std::uint8_t { key = 1, model = 2, project = 3, replica = 4 };
struct NameRecord {
    NameKind kind = NameKind::key;
    std::uint64_t id = 0;
    std::string text;
};

// One record as read.
struct LedgerEntry {
    RecordHeader header;
    std::string_view payload;  // of the segment
    LedgerType type() const { return static_cast<LedgerType>(header.type); }
    template <class T>
    std::optional<T> as() const;
    std::vector<MarkEntry> marks() const;
    std::optional<NameRecord> name() const;
};

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);
std::uint32_t record_seed(const SegmentHeader& segment);

// The whole record, with its header; the payload is padded to 8 bytes.
void append_record(std::string& out, LedgerType type, std::uint64_t lsn, std::uint64_t durable, std::uint32_t seed,
                   std::string_view payload);
std::string marks_payload(const std::vector<MarkEntry>& marks);
std::string name_payload(const NameRecord& name);
template <class T>
std::string_view payload_of(const T& record) {
    return {reinterpret_cast<const char*>(&record), sizeof record};
}

// A header whose checksum holds.
std::optional<SegmentHeader> read_segment_header(std::string_view bytes);
void seal(SegmentHeader& header);
// The record at `at`, if size, checksum and (unless 0) lsn fit.
std::optional<LedgerEntry> read_record(std::string_view segment, std::size_t at, std::uint32_t seed, std::uint64_t lsn);

std::string request_text(const RequestKey& request);  // "req_01ARZ3NDEKTSV4RRFFQ69G5FAV"
std::uint64_t name_id(std::string_view text);         // the same in every process: FNV-1a, never 0

template <class T>
std::optional<T> LedgerEntry::as() const {
    if (payload.size() < sizeof(T)) return std::nullopt;
    T record;
    __builtin_memcpy(&record, payload.data(), sizeof record);
    return record;
}

}  // namespace stoker
