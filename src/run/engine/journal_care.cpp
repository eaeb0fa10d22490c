#include "run/engine/journal_care.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "run/engine/engine_site.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

Status replay_all(Journal& journal, JournalHead& head) {
    State state;
    return journal.read(0, [&](const JournalRecord& entry) -> Result<bool> {
        head = {.seq = entry.seq, .hash = entry.hash};
        // What was erased on purpose has no body; from there on only the chain can be checked.
        if (entry.redacted || state.seq + 1 != entry.seq) return true;
        TRY_VOID(apply_entry(state, entry));
        return true;
    });
}

}  // namespace

Result<JournalHead> verify_journal(const std::string& folder) {
    TRY(const auto journal, Journal::open_read_only(folder));
    JournalHead head;
    TRY_VOID(replay_all(*journal, head));
    // And as a start reads it: from the snapshot.
    State state;
    TRY_VOID(load_state(*journal, state));
    TRY(Statement check, journal->database().prepare("PRAGMA integrity_check(1)"));
    TRY(const bool told, check.step());
    if (!told || check.text(0) != "ok")
        return Error(ErrorKind::invalid,
                     fmt::format("{}/stoker.db is damaged: {}", printable(folder),
                                 told ? printable(check.text(0), 300) : "SQLite says nothing of it"),
                     {}, "restore a backup");
    // A server may have written more meanwhile, never less.
    if (head.seq < journal->head().seq)
        return Error(ErrorKind::invalid, fmt::format("record {} is missing", head.seq + 1), {}, "restore a backup");
    return head;
}

Result<JournalHead> back_up_journal(const std::string& folder, const std::string& file) {
    TRY(const auto journal, Journal::open_read_only(folder));
    TRY_VOID(journal->back_up(file));
    return journal->head();
}

Result<std::string> restore_journal(const std::string& file, const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code code;
    if (!fs::is_regular_file(file, code))
        return Error(ErrorKind::not_found, "there is no file " + printable(file), {},
                     "stoker journal backup FILE writes one");
    if (fs::exists(folder, code) && !fs::is_empty(folder, code))
        return Error(ErrorKind::conflict, printable(folder) + " is not empty", {},
                     "restore into a folder that is empty or does not exist");
    fs::create_directories(folder, code);
    const std::string target = folder + "/stoker.db";
    if (!code) fs::copy_file(file, target, code);
    if (code) return Error(ErrorKind::denied, fmt::format("cannot write {}: {}", printable(target), code.message()));
    const auto head = verify_journal(folder);
    if (!head) {
        fs::remove(target, code);
        return head.error();
    }
    const std::string site = draw_site();
    TRY_VOID(write_file_atomic(folder + "/site", site + "\n"));
    return site;
}

Result<std::string> cut_journal(const std::string& folder, std::uint64_t at) {
    TRY(const auto journal, Journal::open(folder, {.create = false}));
    if (at < 1 || at > journal->head().seq)
        return Error(ErrorKind::invalid,
                     fmt::format("there is no record {}: the journal has 1 to {}", at, journal->head().seq));
    const std::string kept = fmt::format("{}/before-cut-at-{}.db", folder, at);
    TRY_VOID(journal->back_up(kept));
    Database& database = journal->database();
    TRY(Transaction transaction, Transaction::begin(database));
    for (const char* table : {"journal", "snapshot"})
        TRY_VOID(database.execute(fmt::format("DELETE FROM {} WHERE seq >= {}", table, at)));
    TRY_VOID(transaction.commit());
    TRY_VOID(journal->admit_cut());
    return kept;
}

}  // namespace stoker
