// stoker journal: looks after the file in which everything stands that ever happened.
#include <filesystem>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "io/store/object_store_url.h"
#include "run/engine/journal_care.h"
#include "run/engine/upload_journal.h"
#include "run/state/records.h"
#include "server/server.h"

namespace stoker {

namespace {

Result<std::string> one_file(const Args& args, std::string_view verb) {
    if (args.positional.size() == 2) return args.positional[1];
    return Error(ErrorKind::invalid, fmt::format("stoker journal {} needs one file", verb), {},
                 fmt::format("stoker journal {} FILE", verb));
}

// To a store, or to a file.
Result<CommandOutput> back_up(const Args& args, const std::string& folder) {
    if (const auto to = args.get("to")) {
        if (args.positional.size() > 1)
            return Error(ErrorKind::invalid, "stoker journal backup takes a file or --to URL, not both");
        TRY(const int keep, args.whole_number("keep", 0, 0, 1'000'000));
        TRY(const StoredJournal stored, upload_journal(folder, *to, keep));
        return CommandOutput{
            fmt::format("{}/{}.db below {}\n  holds the journal up to record {} at least, {} bytes, "
                        "SHA-256 {}\n",
                        stored.site, stored.name, *to, stored.seq, stored.bytes, stored.sha256)};
    }
    TRY(const std::string file, one_file(args, "backup"));
    TRY(const JournalHead head, back_up_journal(folder, file));
    return CommandOutput{fmt::format("{} holds the journal up to record {} at least\n", file, head.seq)};
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
                                printable(record.body, 60)});
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
                               .set("body", record.redacted ? Json() : Json(printable(record.body, kMaxBodyBytes)))
                               .set("hash", hex(record.hash)));
            return ++found < limit;
        });
    if (!read) return read.error();
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object().set("items", std::move(items)))};
    return CommandOutput{table_text(
        session.style, {{"record", Align::right}, {"about"}, {"what"}, {"who"}, {"cause"}, {"body"}}, rows, 0)};
}

Result<CommandOutput> run_journal(Session& session, const Args& args) {
    const std::string& verb = args.positional[0];
    TRY(const std::string folder, state_folder(folder_option(args)));
    const bool wants_file = verb == "backup" || verb == "restore";
    if (!wants_file && args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("stoker journal {} takes no file", verb));
    if (verb == "verify") {
        TRY(const JournalHead head, verify_journal(folder));
        return CommandOutput{
            fmt::format("{} records, each follows from the one before; the last is\n{}\n", head.seq, hex(head.hash))};
    }
    if (verb == "show") return show(session, args, folder);
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
                 "verify, show, backup, restore or cut");
}

}  // namespace

CliCommand journal_command() {
    return {
        .name = "journal",
        .summary = "check, show, back up, restore or cut the record of everything",
        .usage = "stoker journal verify|show|backup FILE|restore FILE|cut [options]",
        .description =
            "verify reads every record and checks that each follows from the one before; show prints records; "
            "backup writes a copy to a file, or to an object store with --to (s3://, az://, file://; keys come from "
            "the environment). These three work beside a running server and change nothing.\n\n"
            "restore makes an empty folder from a copy, or from the newest one below a URL, under a name of its own, "
            "so that it and the original can "
            "be told apart. cut removes a damaged record and all after it, when no server runs; the file as it "
            "was is kept.",
        .examples = {"stoker journal verify", "stoker journal show --object run/r-7",
                     "stoker journal backup stoker-backup.db",
                     "stoker journal backup --to s3://backups/stoker --keep 24",
                     "stoker journal restore s3://backups/stoker --folder /srv/stoker"},
        .options = {{.name = "folder", .value = "DIR", .help = "where the journal is", .completes = "dir"},
                    {.name = "after", .value = "SEQ", .help = "show: records after this one"},
                    {.name = "limit", .value = "N", .help = "show: at most so many (100)"},
                    {.name = "object", .value = "NAME", .help = "show: records about it, such as run/r-7"},
                    {.name = "to", .value = "URL", .help = "backup: into this object store"},
                    {.name = "keep", .value = "N", .help = "backup --to: only the newest so many stay (all)"},
                    {.name = "at", .value = "SEQ", .help = "cut: the first record that goes"},
                    {.name = "i-know", .help = "cut: yes, forget what happened since"}},
        .min_positional = 1,
        .max_positional = 2,
        .subcommands = {"verify", "show", "backup", "restore", "cut"},
        .run = run_journal};
}

}  // namespace stoker
