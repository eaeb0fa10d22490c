// stoker journal: looks after the file in which everything stands that ever happened.
#include <filesystem>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/commands/journal_export.h"
#include "app/commands/journal_home.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "io/store/object_store_url.h"
#include "run/engine/journal_care.h"
#include "run/engine/upload_journal.h"
#include "run/state/records.h"
#include "server/server.h"

namespace stoker {

namespace {

constexpr double kMostOlderS = 100 * 365.25 * 86400;

Result<std::string> one_file(const Args& args, std::string_view verb) {
    if (args.positional.size() == 2) return args.positional[1];
    return Error(ErrorKind::invalid, fmt::format("stoker journal {} needs one file", verb), {},
                 fmt::format("stoker journal {} FILE", verb));
}

// A copy of the journal has none of its archives.
std::string where_archived(const Journal& journal) {
    if (journal.archived() == 0) return "";
    return fmt::format("  records 1 to {} are not in it but in {}, which never change: copy them once\n",
                       journal.archived(), std::filesystem::path(journal.archives()[0].path).parent_path().string());
}

// To a store, or to a file.
Result<CommandOutput> back_up(const Args& args, const std::string& folder) {
    if (const auto to = args.get("to")) {
        if (args.positional.size() > 1)
            return Error(ErrorKind::invalid, "stoker journal backup takes a file or --to URL, not both");
        TRY(const int keep, args.whole_number("keep", 0, 0, 1'000'000));
        TRY(const StoredJournal stored, upload_journal(folder, *to, keep));
        TRY(const auto journal, Journal::open_read_only(folder));
        return CommandOutput{fmt::format("{}/{}.db below {}\n  holds the journal up to record {} at least, {} bytes, "
                                         "SHA-256 {}\n",
                                         stored.site, stored.name, *to, stored.seq, stored.bytes, stored.sha256) +
                             where_archived(*journal)};
    }
    TRY(const std::string file, one_file(args, "backup"));
    TRY(const JournalHead head, back_up_journal(folder, file));
    TRY(const auto journal, Journal::open_read_only(folder));
    return CommandOutput{fmt::format("{} holds the journal up to record {} at least\n", file, head.seq) +
                         where_archived(*journal)};
}

std::string megabytes(std::uint64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string records_of(const Journal::Archive& archive) {
    return fmt::format("records {} to {}", archive.first, archive.last);
}

Result<CommandOutput> verify(const std::string& folder) {
    TRY(const VerifiedJournal verified, verify_journal(folder));
    std::string text =
        fmt::format("{} records, each follows from the one before; the last is\n{}\n",
                    verified.seq - (verified.away.empty() ? 0 : verified.away.back().last), hex(verified.hash));
    for (const Journal::Archive& archive : verified.archives)
        text += fmt::format("{} are in {}{}\n", records_of(archive), archive.path,
                            archive.here ? verified.away.empty() || archive.first > verified.away.back().last
                                               ? ", checked too"
                                               : ", not checked: an archive behind it is away"
                                         : ", which is not there: not checked");
    return CommandOutput{text};
}

Result<CommandOutput> compact(Session& session, const Args& args, const std::string& folder) {
    std::int64_t older_s = 0;
    if (const auto older = args.get("older")) {
        const auto seconds = parse_seconds(*older);
        if (!seconds || !(seconds->value() >= 0 && seconds->value() <= kMostOlderS))
            return Error(ErrorKind::invalid,
                         "--older takes a time up to a hundred years, not '" + printable(*older, 80) + "'", {},
                         "--older 30d keeps what happened in the last thirty days in stoker.db");
        older_s = static_cast<std::int64_t>(seconds->value());
    }
    TRY(const CompactedJournal compacted, compact_journal(folder, wall_clock_us() - older_s * 1'000'000));
    const Journal::Archive& archive = compacted.archive;
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("first", archive.first)
                                               .set("last", archive.last)
                                               .set("archive", archive.path)
                                               .set("archive_bytes", compacted.archive_bytes)
                                               .set("bytes_before", compacted.bytes_before)
                                               .set("bytes", compacted.bytes_now))};
    return CommandOutput{
        fmt::format("{} are in {} now, {}\n  {}/stoker.db has {}, and had {}. Both are checked by stoker journal "
                    "verify;\n  the archive never changes: copy it once, or move it to where it is kept\n",
                    records_of(archive), archive.path, megabytes(compacted.archive_bytes), folder,
                    megabytes(compacted.bytes_now), megabytes(compacted.bytes_before))};
}

Result<CommandOutput> restore(const Args& args, const std::string& folder) {
    TRY(std::string file, one_file(args, "restore"));
    if (!looks_like_object_url(file)) {
        TRY(const std::string site, restore_journal(file, folder));
        return CommandOutput{fmt::format("{} is restored under the new name {}; stoker up starts it\n", folder, site)};
    }
    // Refused before anything is fetched.
    std::error_code code;
    if (std::filesystem::exists(folder, code) && !std::filesystem::is_empty(folder, code))
        return Error(ErrorKind::conflict, folder + " is not empty", {},
                     "restore into a folder that is empty or does not exist");
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), code);
    const std::string copy = folder + "-restore-" + random_hex(6) + ".db";
    auto stored = fetch_journal(file, copy);
    Result<std::string> site = stored ? restore_journal(copy, folder) : Result<std::string>(stored.error());
    for (const char* end : {"", ".part"}) std::filesystem::remove(copy + end, code);
    if (!site) return site.error();
    return CommandOutput{
        fmt::format("{} is restored from {}, up to record {} at least, under the new name {}; stoker up "
                    "starts it\n",
                    folder, stored->name, stored->seq, *site)};
}

Result<CommandOutput> show(Session& session, const Args& args, const std::string& folder) {
    TRY(const int after, args.whole_number("after", 0, 0, 2'000'000'000));
    TRY(const int limit, args.whole_number("limit", 100, 1, 100'000));
    const std::string object = args.get_or("object", "");
    TRY(const auto journal, Journal::open_read_only(folder));
    Json items = Json::array();
    std::vector<std::vector<std::string>> rows;
    int found = 0;
    const Status read =
        journal->read(static_cast<std::uint64_t>(after), [&](const JournalRecord& record) -> Result<bool> {
            if (!object.empty() && record.object != object) return true;
            const std::string kind(name_of_kind(record.kind));
            if (session.format == Format::text)
                rows.push_back({std::to_string(record.seq), record.object, kind, record.actor, record.cause,
                                printable(shown_body(record.kind, record.body), 60)});
            else
                items.push(Json::object()
                               .set("seq", record.seq)
                               .set("at_us", record.at_us)
                               .set("epoch", record.epoch)
                               .set("object", record.object)
                               .set("version", record.version)
                               .set("kind", kind)
                               .set("actor", record.actor)
                               .set("cause", record.cause)
                               .set("operation", record.operation)
                               .set("body", record.redacted
                                                ? Json()
                                                : Json(printable(shown_body(record.kind, record.body), kMaxBodyBytes)))
                               .set("hash", hex(record.hash)));
            return ++found < limit;
        });
    if (!read) return read.error();
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object().set("items", std::move(items)))};
    return CommandOutput{table_text(
        session.style, {{"record", Align::right}, {"about"}, {"what"}, {"who"}, {"cause"}, {"body"}}, rows, 0)};
}

// Whole, or not at all: what does not follow from what stood before is no evidence.
Result<CommandOutput> export_lines(const Args& args, const std::string& folder) {
    TRY(const int after, args.whole_number("after", 0, 0, 2'000'000'000));
    TRY(const int limit, args.whole_number("limit", 100'000, 1, 1'000'000));
    const bool cef = args.get_or("as", "json") == "cef";
    const std::string object = args.get_or("object", "");
    TRY(const VerifiedJournal head, verify_journal(folder));
    TRY(const auto journal, Journal::open_read_only(folder));
    std::string text;
    int found = 0;
    std::uint64_t last = static_cast<std::uint64_t>(after);
    const Status read = journal->read(last, [&](const JournalRecord& record) -> Result<bool> {
        last = record.seq;
        if (!object.empty() && record.object != object) return true;
        text += (cef ? audit_cef(record) : audit_json(record)) + "\n";
        return ++found < limit;
    });
    if (!read) return read.error();
    fmt::print(stderr, "{} records up to {} of {}, each follows from the one before; the last is {}\n", found, last,
               head.seq, hex(head.hash));
    return CommandOutput{text};
}

Result<CommandOutput> run_journal(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    TRY(const std::string folder, state_folder(folder_option(args)));
    const bool with_database = verb == "push" || verb == "pull" || verb == "verify";
    if (with_database && (verb != "verify" || args.positional.size() > 1)) {
        const auto where =
            args.positional.size() > 1 ? std::optional(JournalUrl{args.positional[1], true}) : journal_url(args);
        if (!where)
            return Error(ErrorKind::invalid, fmt::format("stoker journal {} needs the address of a database", verb), {},
                         fmt::format("stoker journal {} postgresql://user@host/database, or STOKER_JOURNAL", verb));
        TRY(std::string text, verb == "push"   ? push_folder(*where, folder)
                              : verb == "pull" ? pull_folder(*where, folder)
                                               : verify_database(*where));
        return CommandOutput{std::move(text)};
    }
    const bool wants_file = verb == "backup" || verb == "restore";
    if (!wants_file && args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("stoker journal {} takes no file", verb));
    if (verb == "verify") return verify(folder);
    if (verb == "compact") return compact(session, args, folder);
    if (verb == "show") return show(session, args, folder);
    if (verb == "export") return export_lines(args, folder);
    if (verb == "backup") return back_up(args, folder);
    if (verb == "restore") return restore(args, folder);
    if (verb == "cut") {
        if (!args.has("at") || !args.has("i-know"))
            return Error(ErrorKind::invalid, "cutting forgets what happened from a record on", {},
                         "stoker journal verify names the damaged record; then: stoker journal cut --at SEQ --i-know");
        TRY(const int at, args.whole_number("at", 0, 1, 2'000'000'000));
        TRY(const std::string kept, cut_journal(folder, static_cast<std::uint64_t>(at)));
        return CommandOutput{
            fmt::format("record {} and all after it are gone; {} has the journal as it was\n", at, kept)};
    }
    return Error(ErrorKind::invalid, "stoker journal knows no " + printable(verb, 40), {},
                 "verify, show, export, backup, restore, push, pull, compact or cut");
}

}  // namespace

CliCommand journal_command() {
    return {
        .name = "journal",
        .summary = "check, show, back up, restore, archive or cut the record of everything",
        .usage = "stoker journal verify|show|export|backup FILE|restore FILE|push URL|pull URL|compact|cut [options]",
        .description =
            "verify reads every record and checks that each follows from the one before; show prints records; "
            "export verifies, and prints a line a record for other programs: JSON, or CEF for a SIEM; "
            "backup writes a copy to a file, or to an object store with --to (s3://, az://, file://; keys come from "
            "the environment). These four work beside a running server and change nothing.\n\n"
            "restore makes an empty folder from a copy, or from the newest one below a URL, under a name of its own, "
            "so that it and the original can "
            "be told apart. push copies the folder's records into a PostgreSQL database, pull the database's into a "
            "folder, "
            "each what is missing; verify URL checks the chain there. compact moves records into a file of "
            "FOLDER/archive, when no server runs (work goes on "
            "meanwhile), and makes stoker.db small again; nothing is lost, and what reads records reads them there. "
            "cut removes a damaged record and all after it, when no server runs; the file as it "
            "was is kept.",
        .examples = {"stoker journal verify", "stoker journal export --as cef > audit.cef",
                     "stoker journal show --object run/r-7", "stoker journal backup stoker-backup.db",
                     "stoker journal backup --to s3://backups/stoker --keep 24",
                     "stoker journal restore s3://backups/stoker --folder /srv/stoker",
                     "stoker journal push postgresql://stoker@db.example.org/stoker",
                     "stoker journal compact --older 30d"},
        .options = {{.name = "folder", .value = "DIR", .help = "where the journal is", .completes = "dir"},
                    {.name = "after", .value = "SEQ", .help = "show, export: records after this one"},
                    {.name = "limit", .value = "N", .help = "show, export: at most so many (100; 100000)"},
                    {.name = "object", .value = "NAME", .help = "show, export: records about it, such as run/r-7"},
                    {.name = "as", .value = "FORM", .help = "export: json or cef (json)", .choices = {"json", "cef"}},
                    {.name = "to", .value = "URL", .help = "backup: into this object store"},
                    {.name = "keep", .value = "N", .help = "backup --to: only the newest so many stay (all)"},
                    {.name = "older",
                     .value = "TIME",
                     .help = "compact: what is older than this (0s: all but the newest)"},
                    {.name = "at", .value = "SEQ", .help = "cut: the first record that goes"},
                    {.name = "i-know", .help = "cut: yes, forget what happened since"}},
        .min_positional = 1,
        .max_positional = 2,
        .subcommands = {"verify", "show", "export", "backup", "restore", "push", "pull", "compact", "cut"},
        .run = run_journal};
}

}  // namespace stoker
