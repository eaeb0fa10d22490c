#include "run/engine/journal_care.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "run/engine/engine_site.h"
#include "run/state/load_state.h"

namespace stoker {
namespace {

Status replay(Journal& journal, std::uint64_t after, JournalHead& head) {
    State state;
    return journal.read(after, [&](const JournalRecord& entry) -> Result<bool> {
        head = {.seq = entry.seq, .hash = entry.hash};
        // What was erased on purpose has no body; from there on, and behind an archive that is away, only the chain can
        // be checked.
        if (entry.redacted || state.seq + 1 != entry.seq) return true;
        TRY_VOID(apply_entry(state, entry));
        return true;
    });
}

Status check_integrity(Journal& journal, const std::string& folder) {
    TRY(Statement check, journal.database().prepare("PRAGMA integrity_check(1)"));
    TRY(const bool told, check.step());
    if (told && check.text(0) == "ok") return done();
    return Error(ErrorKind::invalid,
                 fmt::format("{}/stoker.db is damaged: {}", printable(folder),
                             told ? printable(check.text(0), 300) : "SQLite says nothing of it"),
                 {}, "restore a backup");
}

Result<VerifiedJournal> verify(Journal& journal, const std::string& folder) {
    VerifiedJournal verified;
    verified.archives = journal.archives();
    std::uint64_t after = 0;
    for (const Journal::Archive& archive : verified.archives) {
        if (archive.here) continue;
        verified.away.push_back(archive);
        after = archive.last;
    }
    TRY_VOID(replay(journal, after, verified));
    // And as a start reads it: from the snapshot.
    State state;
    TRY_VOID(load_state(journal, state));
    TRY_VOID(check_integrity(journal, folder));
    // A server may have written more meanwhile, never less.
    if (verified.seq < journal.head().seq)
        return Error(ErrorKind::invalid, fmt::format("record {} is missing", verified.seq + 1), {}, "restore a backup");
    return verified;
}

}  // namespace

Result<VerifiedJournal> verify_journal(const std::string& folder) {
    TRY(const auto journal, Journal::open_read_only(folder));
    return verify(*journal, folder);
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
    if (at <= journal->archived() + 1 && journal->archived() > 0)
        return Error(ErrorKind::invalid,
                     fmt::format("records up to {} are archived, and the one behind them stays", journal->archived()),
                     {}, fmt::format("cut at a record from {} on, or restore a backup", journal->archived() + 2));
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

Result<CompactedJournal> compact_journal(const std::string& folder, std::int64_t at_us) {
    std::error_code code;
    const auto size_of = [&](const std::string& path) -> std::uint64_t {
        const std::uintmax_t bytes = std::filesystem::file_size(path, code);
        return code ? 0 : bytes;
    };
    const std::string file = folder + "/stoker.db";
    CompactedJournal compacted;
    {
        TRY(const auto journal, Journal::open(folder, {.create = false}));
        if (journal->loss())
            return Error(ErrorKind::conflict, "the journal was cut, and no server has seen it since", {},
                         "stoker up --accept-loss goes on with it; compact it after that");
        TRY(std::uint64_t last, journal->last_until(at_us));
        last = std::min(last, journal->head().seq - (journal->head().seq > 0 ? 1 : 0));
        if (last <= journal->archived())
            return Error(ErrorKind::not_found, "there is nothing to archive: no record is that old", {},
                         "a smaller --older takes more; the newest record always stays");
        compacted.bytes_before = size_of(file) + size_of(file + "-wal");
        TRY_VOID(verify(*journal, folder));
        State state;
        TRY_VOID(load_state(*journal, state));
        TRY_VOID(journal->save_snapshot({.seq = state.seq, .format = kStateFormat, .state = encode_state(state)}));
        // Whose journal it is stands in a record that may go now.
        TRY(const std::string site, site_of(*journal, folder));
        TRY_VOID(write_file_atomic(folder + "/site", site + "\n"));
        TRY(compacted.archive, journal->archive_until(last));
    }
    compacted.bytes_now = size_of(file);
    compacted.archive_bytes = size_of(compacted.archive.path);
    return compacted;
}

}  // namespace stoker
