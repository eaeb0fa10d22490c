#include "server/token_charges.h"

#include <algorithm>
#include <compare>

#include <fmt/format.h>

#include "govern/ledger/ledger_scan.h"
#include "govern/ledger/segment_folder.h"
#include "io/worker.h"
#include "server/log_events.h"

namespace stoker {
namespace {

constexpr double kLookEveryS = 5;
constexpr std::size_t kMostLines = 500;  // of one record
constexpr std::int64_t kHourUs = std::int64_t{3600} * 1'000'000;

// What one line is about.
struct LineKey {
    std::int64_t from_us = 0;
    std::uint64_t project = 0, key = 0, model = 0;
    std::uint32_t price_version = 0;
    friend auto operator<=>(const LineKey&, const LineKey&) = default;
};
struct Piece {
    std::uint64_t up_to = 0;
    std::map<LineKey, TokensCharged::Line> lines;
};

std::string name_of_account(const SegmentHeader& header) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{header.gateway[i]} << (8 * i);
    return fmt::format("gateway/{}", number);
}

}  // namespace

TokenCharges::TokenCharges(Engine& engine, TokenChargesOptions options)
    : engine_(engine), options_(std::move(options)) {
    if (options_.by_itself) thread_ = masked_thread("stoker-tokens", [this] { run(); });
}

TokenCharges::~TokenCharges() {
    stop();
}

void TokenCharges::stop() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void TokenCharges::use(TokenAccounts accounts) {
    {
        const std::lock_guard guard(mutex_);
        accounts_ = std::move(accounts);
        fresh_ = true;
    }
    changed_.notify_all();
}

std::vector<std::string> TokenCharges::faults() const {
    const std::lock_guard guard(mutex_);
    return faults_;
}

void TokenCharges::run() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            const auto called = [&] { return stopping_ || fresh_; };
            if (accounts_.empty())
                changed_.wait(lock, called);
            else
                changed_.wait_for(lock, std::chrono::duration<double>(kLookEveryS), called);
            if (stopping_) return;
            fresh_ = false;
        }
        look();
    }
}

void TokenCharges::look() {
    const std::lock_guard looking(look_mutex_);
    TokenAccounts accounts;
    std::vector<std::string> before;
    {
        const std::lock_guard guard(mutex_);
        accounts = accounts_;
        before = faults_;
    }
    places_.clear();
    std::vector<std::string> faults;
    for (const TokenAccount& each : accounts) {
        const Status charged = charge(each);
        faults.push_back(charged ? "" : charged.error().message());
        const bool known = std::find(before.begin(), before.end(), faults.back()) != before.end();
        if (!charged && !known && options_.log)
            options_.log->write(log_event("tokens.failed"), {{"account", each.account}, {"error", faults.back()}});
    }
    const std::lock_guard guard(mutex_);
    faults_ = std::move(faults);
}

Status TokenCharges::charge(const TokenAccount& account) {
    std::shared_ptr<SegmentHome> home;
    if (!account.in_database()) {
        home = segment_folder({.folder = account.account});
    } else if (!options_.open_database) {
        return Error(ErrorKind::unsupported, "this server cannot read accounts of databases");
    } else {
        auto& kept = opened_[fmt::format("{} {}", account.account, account.gateway.value_or(0))];
        if (!kept) {
            TRY(kept, options_.open_database(account));
        }
        home = kept;
    }
    // Whose it is stands in each of its segments.
    TRY(const auto numbers, home->segments());
    if (numbers.empty()) return done();
    TRY(const std::string newest, home->read(numbers.back()));
    const auto header = read_segment_header(newest);
    if (!header) return Error(ErrorKind::conflict, home->place(numbers.back()) + " does not begin as a segment");
    const std::string name = name_of_account(*header);
    if (const auto [place, first] = places_.emplace(name, account.account); !first)
        return Error(ErrorKind::conflict,
                     fmt::format("{} and {} are both accounts of {}", place->second, account.account, name), {},
                     "give each gateway a `name` of its own");
    std::uint64_t cursor = 0;
    Tenants tenants;
    TRY_VOID(engine_.read([&](const EngineView& view) {
        const auto found = view.state.token_cursors.find(name);
        if (found != view.state.token_cursors.end()) cursor = found->second;
        tenants.organisations = view.state.tenants.organisations;
        tenants.projects = view.state.tenants.projects;
    }));

    const auto seen = seen_.find(name);
    const std::uint64_t up_to = seen == seen_.end() ? 0 : seen->second;
    std::vector<Piece> pieces;
    const ScanOptions options{
        .after_lsn = cursor,
        .numbered = [&](std::uint64_t lsn, const ReserveRecord& reserve, const SettleRecord& settle) {
            if (lsn <= cursor || lsn > up_to) return;
            const LineKey key{.from_us = settle.finished_unix_us / kHourUs * kHourUs,
                              .project = reserve.project,
                              .key = reserve.key,
                              .model = reserve.model,
                              .price_version = reserve.price_version};
            if (pieces.empty() || (pieces.back().lines.size() >= kMostLines && !pieces.back().lines.contains(key)))
                pieces.emplace_back();
            Piece& piece = pieces.back();
            piece.up_to = lsn;
            TokensCharged::Line& line = piece.lines[key];
            line.from_us = key.from_us;
            line.to_us = key.from_us + kHourUs;
            line.price_version = key.price_version;
            ++line.requests;
            line.tokens_in += settle.in;
            line.cached_in += settle.cached_in;
            line.tokens_out += settle.out;
            line.picousd += static_cast<std::int64_t>(settle.charge_picousd);
        }};
    TRY(const LedgerScan scan, scan_ledger_in_use(*home, options, [&] { pieces.clear(); }));
    seen_[name] = scan.next_lsn - 1;
    if (cursor > scan.next_lsn - 1)
        return Error(ErrorKind::conflict,
                     fmt::format("{} of {} ends with record {}, and was charged up to {}", account.account, name,
                                 scan.next_lsn - 1, cursor),
                     {}, "a new account needs a gateway with another `name`");
    if (cursor > 0 && scan.first_lsn > cursor + 1)
        return Error(ErrorKind::conflict,
                     fmt::format("{}: records {} to {} were taken away before they were charged", account.account,
                                 cursor + 1, scan.first_lsn - 1),
                     {}, "put the files back until the next look");
    for (Piece& piece : pieces) {
        ChargeTokens command{.account = name, .after = cursor, .up_to = piece.up_to};
        for (auto& [key, line] : piece.lines) {
            const std::string& to = account.charged_to(name_in(scan, key.project));
            const auto project = tenants.project_named(to);
            if (!project)
                return Error(ErrorKind::not_found, fmt::format("there is no project {}", to), {},
                             "stoker project make, or another name under tokens: of the configuration");
            line.project = *project;
            line.user = name_in(scan, key.key);
            line.model = name_in(scan, key.model);
            command.lines.push_back(std::move(line));
        }
        cursor = piece.up_to;
        TRY([[maybe_unused]] const Ack ack,
            call(engine_, {.what = std::move(command), .actor = Actor::part("tokens")}));
    }
    return done();
}

}  // namespace stoker
