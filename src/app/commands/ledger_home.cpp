#include "app/commands/ledger_home.h"

#include <fmt/format.h>

#include "app/commands/journal_home.h"
#include "app/commands/serve_account.h"
#include "govern/ledger/segment_folder.h"
#include "io/postgres/connection.h"
#include "io/postgres/postgres_segments.h"

namespace stoker {
namespace {

Result<std::unique_ptr<PostgresSegments>> open_segments(const std::string& url, std::uint64_t gateway,
                                                        std::function<void(const Error&)> on_lost = {}) {
    TRY(std::string name, postgres_name(url, true));
    return PostgresSegments::open(
        {.url = url, .name = std::move(name), .holder = this_process(), .on_lost = std::move(on_lost)}, gateway);
}

}  // namespace

Result<LedgerPlace> ledger_place(Session& session, const Args& args) {
    if (const auto named = args.get("ledger"))
        return LedgerPlace{.home = segment_folder({.folder = *named}), .name = *named};
    TRY(const gateway::GatewayOptions options, gateway_options(session, args));
    if (options.ledger_database.empty())
        return LedgerPlace{.home = segment_folder({.folder = options.ledger_folder}), .name = options.ledger_folder};
    TRY(std::shared_ptr<SegmentHome> home, open_segments(options.ledger_database, options.name));
    return LedgerPlace{.home = std::move(home), .name = options.ledger_database};
}

Result<std::shared_ptr<SegmentHome>> open_token_account(const TokenAccount& account) {
    TRY(std::shared_ptr<SegmentHome> home,
        open_segments(account.account, static_cast<std::uint64_t>(account.gateway.value_or(0))));
    return home;
}

Result<std::shared_ptr<SegmentHome>> lead_ledger(Session& session, const Args& args, StopSignal& stop) {
    TRY(const gateway::GatewayOptions options, gateway_options(session, args));
    if (options.ledger_database.empty() || args.has("no-ledger")) return std::shared_ptr<SegmentHome>();
    TRY(auto home, open_segments(options.ledger_database, options.name, end_without_place));
    TRY_VOID(home->lead([&](double seconds) { return stop.wait_for(seconds).has_value(); },
                        [&](const std::string& holder) {
                            if (!session.quiet) tell_standing_by(holder);
                        }));
    return std::shared_ptr<SegmentHome>(std::move(home));
}

}  // namespace stoker
