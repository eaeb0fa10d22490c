// stoker prepare: a data set cleaned, ordered and cut into shards, before GPUs wait for it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/client/client.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/document.h"
#include "base/text.h"
#include "base/units.h"
#include "io/terminal.h"
#include "prepare/prepare_data.h"

namespace stoker {

namespace {

Result<std::int64_t> whole(const Args& args, const char* name, std::int64_t otherwise, std::int64_t least) {
    const auto text = args.get(name);
    if (!text) return otherwise;
    const auto value = parse_count(*text);
    if (!value || *value < static_cast<double>(least) || *value > 1e15 || *value != std::floor(*value))
        return Error(ErrorKind::invalid, fmt::format("--{} '{}' is no whole number from {} on", name, *text, least));
    return static_cast<std::int64_t>(*value);
}

// By the names of the sources: lines of JSON, CSV, text, or else whole files.
Result<std::string> format_of(const Args& args) {
    if (const auto named = args.get("format")) return *named;
    for (const std::string& source : args.positional) {
        std::string name = lower(source);
        if (name.ends_with(".gz")) name.resize(name.size() - 3);
        for (const char* ending : {".jsonl", ".ndjson", ".json"})
            if (name.ends_with(ending)) return std::string("jsonl");
        if (name.ends_with(".csv")) return std::string("csv");
        if (name.ends_with(".txt")) return std::string("text");
    }
    return Error(ErrorKind::invalid, "the names of the sources do not say what is in them", {},
                 "--format jsonl, csv, text, or files (each file is a sample: images, audio)");
}

Result<PrepareOptions> options_of(const Args& args) {
    PrepareOptions options;
    options.sources = args.positional;
    options.to = args.get_or("to", "");
    while (options.to.size() > 1 && options.to.ends_with('/')) options.to.pop_back();
    if (options.to.empty())
        return Error(ErrorKind::invalid, "where the shards go is missing", {}, "--to FOLDER, which is made");
    TRY(const std::string format, format_of(args));
    options.files = format == "files";
    options.rules.format = format == "csv"    ? RecordFormat::csv
                           : format == "text" ? RecordFormat::text
                                              : RecordFormat::jsonl;
    options.rules.required = args.all("require");
    const std::string order = args.get_or("order", "input");
    if (order.starts_with("key:")) {
        options.order = RecordOrder::key;
        options.rules.key = order.substr(4);
    } else if (order == "shuffle" || order == "length") {
        options.order = order == "shuffle" ? RecordOrder::shuffle : RecordOrder::length;
    } else if (order == "name" && options.files) {
        options.order = RecordOrder::key;
    } else if (order != "input") {
        return Error(ErrorKind::invalid, fmt::format("--order '{}' is unknown", order), {},
                     "input, shuffle, length, or key:NAME");
    }
    const bool lines = format == "text" || options.files;
    if (lines && (!options.rules.required.empty() || !options.rules.key.empty()))
        return Error(ErrorKind::invalid, fmt::format("{} has no members that could be named", format), {},
                     "--require and --order key:NAME are for jsonl and csv");
    if (args.has("shards") && args.has("shard-size"))
        return Error(ErrorKind::invalid, "--shards and --shard-size exclude each other");
    TRY(options.shards, whole(args, "shards", 0, 1));
    if (const auto size = args.get("shard-size")) {
        const auto bytes = parse_bytes(*size);
        if (!bytes || bytes->v < 1)
            return Error(ErrorKind::invalid, fmt::format("--shard-size '{}' is no size", *size), {}, "256MiB, or 1GB");
        options.shard_bytes = static_cast<std::int64_t>(bytes->v);
    }
    TRY(const std::int64_t seed, whole(args, "seed", 1, 0));
    options.seed = static_cast<std::uint64_t>(seed);
    TRY(options.max_records, whole(args, "max-records", options.max_records, 1));
    options.keep_duplicates = args.has("keep-duplicates");
    options.replace = args.has("replace");
    options.rejects = args.get_or("rejects", "");
    return options;
}

Result<CommandOutput> check_folder(Session& session, const std::string& folder) {
    ProgressLine progress(!session.quiet);
    TRY(const auto problems,
        check_prepared(folder, [&](double share, std::string_view what) { progress.update(share, what); }));
    progress.clear();
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const std::string& each : problems) list.push(each);
        return CommandOutput{dump(session, Json::object().set("folder", folder).set("problems", std::move(list))),
                             problems.empty() ? 0 : 1};
    }
    std::string text;
    for (const std::string& each : problems) text += each + "\n";
    if (problems.empty()) text = folder + ": every shard is as it was written\n";
    return CommandOutput{text, problems.empty() ? 0 : 1};
}

std::string size_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (value >= kGiB) return fmt::format("{:.1f} GiB", value / kGiB);
    return value >= kMiB ? fmt::format("{:.1f} MiB", value / kMiB) : fmt::format("{} bytes", bytes);
}

std::string report_page(const Session& session, const PrepareReport& report, const std::string& to, double seconds) {
    std::string text = fmt::format("{} of {} records kept, in {} shard{} in {}\n", report.kept, report.read,
                                   report.shards.size(), report.shards.size() == 1 ? "" : "s", to);
    const auto line = [&](std::int64_t count, const char* what) {
        if (count > 0) text += fmt::format("  {:>12}  {}\n", count, what);
    };
    line(report.malformed, "malformed, left out");
    line(report.blank, "blank, left out");
    line(report.duplicates, "duplicates of an earlier one, left out");
    for (const LeftOut& each : report.examples)
        text += session.style.dim(fmt::format("      {}: {}", each.place, each.reason)) + "\n";
    if (report.malformed > static_cast<std::int64_t>(report.examples.size()))
        text += session.style.dim("      ... (--rejects FILE has them all)") + "\n";
    std::int64_t least = INT64_MAX, most = 0, all = 0;
    for (const PreparedShard& shard : report.shards) {
        least = std::min(least, shard.bytes);
        most = std::max(most, shard.bytes);
        all += shard.bytes;
    }
    text += fmt::format("  {} in all, {} to {} a shard; checksums in {}/manifest.json\n", size_text(all),
                        size_text(least), size_text(most), to);
    if (report.was_there)
        text += "  made earlier from the same sources: nothing was done\n";
    else if (seconds > 0.5)
        text += fmt::format("  {:.1f} s, {}/s read\n", seconds,
                            size_text(static_cast<std::int64_t>(static_cast<double>(report.source_bytes) / seconds)));
    return text;
}

Result<CommandOutput> run_prepare(Session& session, const Args& args) {
    if (args.has("check")) {
        if (args.positional.size() != 1) return Error(ErrorKind::invalid, "--check takes one prepared folder");
        return check_folder(session, args.positional[0]);
    }
    TRY(const PrepareOptions options, options_of(args));
    ProgressLine progress(!session.quiet);
    const auto began = std::chrono::steady_clock::now();
    TRY(const PrepareReport report,
        prepare_data(options, [&](double share, std::string_view what) { progress.update(share, what); }));
    progress.clear();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (session.format != Format::text) {
        TRY(const Document document, Document::parse_json(report_text(report), "report"));
        return CommandOutput{dump(session, json_of(document.root()))};
    }
    return CommandOutput{report_page(session, report, options.to, seconds)};
}

}  // namespace

CliCommand prepare_command() {
    return {
        .name = "prepare",
        .summary = "clean a data set and cut it into shards, before GPUs wait for it",
        .usage = "stoker prepare SOURCE... --to FOLDER [options]",
        .description =
            "Reads files and folders (plain or gzip), leaves out what is malformed, blank or there already, and "
            "writes shards of equal size with checksums and a manifest. What is left out is counted and told. The "
            "folder appears whole or not at all; the same command again finds its work done, so it is safe as a "
            "step of a run that may be repeated.\n"
            "--format files makes tar shards of whole files (images, audio): few large reads for the loader where "
            "there were many tiny ones. Files of one sample share their name up to its first dot, as WebDataset "
            "reads them.",
        .examples = {"stoker prepare raw/*.jsonl.gz --to data/clean --require text --order shuffle",
                     "stoker prepare photos/ --format files --to data/photos --shard-size 512MiB",
                     "stoker prepare log.csv --to data/log --order key:time --rejects bad.tsv",
                     "stoker prepare --check data/clean"},
        .options = {{.name = "to", .value = "FOLDER", .help = "where the shards go; it is made", .completes = "dir"},
                    {.name = "format",
                     .value = "FORMAT",
                     .help = "what is in the sources (by their names)",
                     .choices = {"jsonl", "csv", "text", "files"}},
                    {.name = "require",
                     .value = "NAME",
                     .help = "a member or column without which a record is malformed; repeatable",
                     .repeats = true},
                    {.name = "order",
                     .value = "ORDER",
                     .help = "input (as read), shuffle, length, or key:NAME (by a member or column)"},
                    {.name = "seed", .value = "N", .help = "of shuffle (1)"},
                    {.name = "shards", .value = "N", .help = "so many shards"},
                    {.name = "shard-size", .value = "SIZE", .help = "shards of about this size (256MiB)"},
                    {.name = "keep-duplicates", .help = "equal records stay"},
                    {.name = "rejects",
                     .value = "FILE",
                     .help = "writes the place and the reason of each malformed record there",
                     .completes = "file"},
                    {.name = "replace", .help = "makes the folder anew where an earlier one was made of other sources"},
                    {.name = "max-records", .value = "N", .help = "most records, 48 bytes of memory each (100M)"},
                    {.name = "check", .help = "reads a prepared folder and holds it against its checksums"}},
        .min_positional = 1,
        .max_positional = 100000,
        .run = run_prepare};
}

}  // namespace stoker
