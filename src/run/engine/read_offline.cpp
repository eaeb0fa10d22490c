#include <filesystem>

#include "base/text.h"
#include "run/engine/engine.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

Error no_runs(const std::string& folder) {
    return Error(ErrorKind::not_found, "no runs yet in " + printable(folder), {},
                 "stoker run FILE.yaml starts one; --folder names another place");
}

}  // namespace

Result<OfflineView> read_offline(const std::string& folder) {
    for (int tries = 0;; ++tries) {
        std::error_code ignored;
        const bool at_rest = !std::filesystem::exists(folder + "/stoker.db-wal", ignored);
        auto journal = Journal::open_read_only(folder);
        if (!journal) return journal.error().kind() == ErrorKind::not_found ? no_runs(folder) : journal.error();
        OfflineView view;
        const auto loaded = load_state(**journal, view.state);
        // A server began to write while the file was taken to be at rest: what was read may be torn.
        if (at_rest && std::filesystem::exists(folder + "/stoker.db-wal", ignored) && tries < 3) continue;
        if (!loaded) return loaded.error();
        if (view.state.seq == 0) return no_runs(folder);
        view.last_record_us = view.state.at_us;
        return view;
    }
}

}  // namespace stoker
