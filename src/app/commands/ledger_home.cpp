#include "app/commands/ledger_home.h"

#include <fmt/format.h>

#include "app/commands/journal_home.h"
#include "app/commands/serve_account.h"
#include "govern/ledger/segment_folder.h"
#include "io/postgres/connection.h"
#include "io/postgres/postgres_segments.h"

namespace stoker {
namespace {

Result<std::unique_ptr<PostgresSegments>> open_segments(const gateway::GatewayOptions& options,
                                                        std::function<void(const Error&)> on_lost = {}) {
    TRY(std::string name, postgres_name(options.ledger_database, true));
    return PostgresSegments::open({.url = options.ledger_database,
                                   .name = std::move(name),
                                   .holder = this_process(),
                                   .writer = options.name,
                                   .on_lost = std::move(on_lost)});
}

}  // namespace

Result<LedgerPlace> ledger_place(Session& session, const Args& args) {
    if (const auto named = args.get("ledger"))
        return LedgerPlace{.home = segment_folder({.folder = *named}), .name = *named};
    TRY(const gateway::GatewayOptions options, gateway_options(session, args));
    if (options.ledger_database.empty())
        return LedgerPlace{.home = segment_folder({.folder = options.ledger_folder}), .name = options.ledger_folder};
    TRY(std::shared_ptr<SegmentHome> home, open_segments(options));
    return LedgerPlace{.home = std::move(home), .name = options.ledger_database};
}

Result<std::shared_ptr<SegmentHome>> lead_ledger(Session& session, const Args& args, StopSignal& stop) {
    TRY(const gateway::GatewayOptions options, gateway_options(session, args));
    if (options.ledger_database.empty() || args.has("no-ledger")) return std::shared_ptr<SegmentHome>();
    TRY(auto home, open_segments(options, end_without_place));
    TRY_VOID(home->lead([&](double seconds) { return stop.wait_for(seconds).has_value(); },
                        [&](const std::string& holder) {
                            if (!session.quiet) tell_standing_by(holder);
                        }));
    return std::shared_ptr<SegmentHome>(std::move(home));
}

}  // namespace stoker
