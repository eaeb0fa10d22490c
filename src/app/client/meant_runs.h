// The runs that a command is about: named one by one, or chosen by --all, --name, --state, --user.
#pragma once

#include <string_view>
#include <vector>

#include "app/client/client.h"
#include "app/session.h"
#include "base/ids.h"
#include "server/views.h"

namespace stoker {

const std::vector<OptionSpec>& meant_runs_options();
// invalid: neither, or both. `verb` as in "which runs are to VERB?"
Status check_meant_runs(const Args& args, std::string_view verb);
// Those that are named, or all that have not ended and that the options choose; a step goes with its graph.
Result<std::vector<RunId>> meant_runs(Client& client, const Args& args);
// Each of them is told: POST .../ACTION with the body. Of many that were chosen by an option, one that has ended by
// itself meanwhile, or is in no state for it, is passed over.
struct ToldRun {
    RunId run;
    api::Changed changed;
};
Result<std::vector<ToldRun>> tell_runs(Client& client, const Args& args, const std::vector<RunId>& runs,
                                       std::string_view action, const Json& body);
// What is said when the options choose none.
CommandOutput no_runs_meant(const Session& session);

}  // namespace stoker
