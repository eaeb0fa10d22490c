#include "base/text.h"
#include "run/engine.h"
#include "run/load_state.h"

namespace stoker {
namespace {

Error no_runs(const std::string& folder) {
    return Error(ErrorKind::not_found, "no runs yet in " + printable(folder), {},
                 "stoker run FILE.yaml starts one; --folder names another place");
}

}  // namespace

Result<OfflineView> read_offline(const std::string& folder) {
    auto journal = Journal::open_read_only(folder);
    if (!journal) return journal.error().kind() == ErrorKind::not_found ? no_runs(folder) : journal.error();
    OfflineView view;
    TRY_VOID(load_state(**journal, view.state));
    if (view.state.seq == 0) return no_runs(folder);
    view.last_record_us = view.state.at_us;
    return view;
}

}  // namespace stoker
