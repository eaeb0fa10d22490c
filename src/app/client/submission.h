// From the words of `stoker run` and `stoker submit` to a submitted run.
#pragma once

#include <string>
#include <vector>

#include "app/client/client.h"
#include "app/run_file.h"
#include "app/session.h"
#include "server/views.h"

namespace stoker {

// Options that change what the file says: --name, --ranks, --lease, --sweep, ...
const std::vector<OptionSpec>& override_options();
// The file or the program behind --, with these options applied. What was dropped, and what the planner says of it,
// goes to stderr.
Result<LoadedRun> load_submission(Session& session, const Args& args);

// --after, --begin, --every and --notify, which name runs of that server and times of here.
Status set_start(Client& client, const Args& args, RunSpec& spec);
Status set_notify(const Args& args, RunSpec& spec);  // --notify alone
// "22:00" is the next such time of day; "2h" from now; a day or a time without an offset is of this machine's time
// zone. UTC, microseconds.
Result<std::int64_t> parse_begin(std::string_view text, std::int64_t now_us, std::string_view option = "begin");

// Sent under an idempotency key, so that it is never taken twice, however often the connection breaks.
Result<api::Submitted> submit(Client& client, const RunSpec& spec, const std::string& key, bool held = false,
                              const std::string& query = {});
std::string new_key();

// What would happen, without doing it.
Result<CommandOutput> dry_run(Session& session, Client& client, const LoadedRun& loaded);

}  // namespace stoker
