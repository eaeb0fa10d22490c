// Where the account of a gateway is, as its file says: a folder, or a database in which another gateway may stand by.
#pragma once

#include <memory>
#include <string>

#include "app/args.h"
#include "app/session.h"
#include "io/segment_home.h"
#include "io/stop_signal.h"
#include "server/token_accounts.h"

namespace stoker {

struct LedgerPlace {
    std::shared_ptr<SegmentHome> home;
    std::string name;  // for people
};
// To read: of --ledger, or of the gateway's file.
Result<LedgerPlace> ledger_place(Session& session, const Args& args);

// To read, of a database that the configuration of a server names.
Result<std::shared_ptr<SegmentHome>> open_token_account(const TokenAccount& account);

// To write: when it comes back, this process does; meanwhile whoever does is told on standard error. From then on the
// process ends with exit 3 when its place is taken. Null: the account is in a folder. denied: it was told to stop
// first.
Result<std::shared_ptr<SegmentHome>> lead_ledger(Session& session, const Args& args, StopSignal& stop);

}  // namespace stoker
