#include "app/client/submission.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "app/client/typed.h"
#include "base/api_time.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "govern/price_book.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "run/spec/repeat.h"
#include "workload/run_section.h"

namespace stoker {
namespace {

constexpr std::int64_t kLatestBeginUs = std::int64_t{10} * 366 * 86'400 * 1'000'000;

template <class T>
std::optional<T> given(const Args& args, std::string_view name, Result<T>& value, Problems& problems) {
    if (!args.has(name)) return std::nullopt;
    if (value) return *value;
    problems.insert(problems.end(), value.error().problems().begin(), value.error().problems().end());
    return std::nullopt;
}

Result<RunOverrides> overrides_of(const Args& args) {
    Problems problems;
    const auto whole = [&](const char* name, int low, int high) {
        auto value = args.whole_number(name, 0, low, high);
        return given(args, name, value, problems);
    };
    const auto number = [&](const char* name, double high) {
        auto value = args.number(name, 0, 0, high);
        return given(args, name, value, problems);
    };
    RunOverrides overrides;
    overrides.name = args.get("name");
    overrides.folder = args.get("chdir");
    overrides.image = args.get("image");
    overrides.gpu = args.get("gpu");
    overrides.run_class = args.get("class");
    overrides.engine = args.get("engine");
    overrides.ranks = whole("ranks", 1, kMostRanks);
    overrides.nodes = whole("nodes", 0, kMostRanks);
    overrides.priority = whole("priority", -100, 100);
    overrides.parallel = whole("parallel", 1, 10'000);
    overrides.cpus = number("cpus", 100'000);
    overrides.gpus = number("gpus", 16);
    overrides.memory = args.get("memory");
    overrides.lease = args.get("lease");
    overrides.timeout = args.get("timeout");
    overrides.sweep = args.all("sweep");
    overrides.environment = args.all("env");
    overrides.labels = args.all("label");
    overrides.prices = args.get_or("prices", "");
    overrides.predict = !args.has("no-plan");
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return overrides;
}

void tell_dropped(const LoadedRun& loaded) {
    if (!loaded.report.dropped.empty())
        fmt::print(stderr, "read as {}; {} of it cannot be had and {} dropped:\n", loaded.report.tool,
                   loaded.report.dropped.size(), loaded.report.dropped.size() == 1 ? "was" : "were");
    for (const auto& dropped : loaded.report.dropped)
        fmt::print(stderr, "  {}: {}: {}\n", dropped.pos.text(), printable(dropped.what, 60), dropped.reason);
    for (const std::string& warning : loaded.warnings) fmt::print(stderr, "warning: {}\n", warning);
}

}  // namespace

const std::vector<OptionSpec>& override_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "name", .letter = 'n', .value = "NAME", .help = "name of the run"},
        {.name = "ranks", .value = "N", .help = "so many processes, all of them or none"},
        {.name = "nodes", .value = "N", .help = "on so many nodes"},
        {.name = "cpus", .value = "N", .help = "processors of each rank: 2, 0.5"},
        {.name = "memory", .value = "SIZE", .help = "memory of each rank: 16GiB"},
        {.name = "gpus", .value = "N", .help = "GPUs of each rank: 1, 0.5"},
        {.name = "gpu", .value = "MODEL", .help = "which: h100"},
        {.name = "image",
         .value = "IMAGE",
         .help = "run inside this image: a registry's name, an archive or an OCI bundle",
         .completes = "dir"},
        {.name = "chdir", .letter = 'C', .value = "DIR", .help = "working folder", .completes = "dir"},
        {.name = "env",
         .letter = 'e',
         .value = "KEY=VALUE",
         .help = "environment; KEY alone: with the value it has here, kept secret",
         .repeats = true},
        {.name = "label", .value = "KEY=VALUE", .help = "label; may be repeated", .repeats = true},
        {.name = "sweep",
         .value = "NAME=A,B",
         .help = "one run for each value; several: for each combination",
         .repeats = true},
        {.name = "parallel", .value = "N", .help = "of a sweep, an array or steps at most so many at once"},
        {.name = "after",
         .value = "RUN[:END]",
         .help = "start when that run has ended: ok (as by default), any or failed; may be repeated",
         .repeats = true,
         .completes = "run"},
        {.name = "begin", .value = "TIME", .help = "do not start before: 22:00, 2h (from now), 2026-12-01T08:00"},
        {.name = "every",
         .value = "TIME",
         .help = "again and again: 6h, or cron in UTC (\"0 2 * * 1-5\"); never two of a row at once"},
        {.name = "times", .value = "N", .help = "with --every: so many in all (for ever)"},
        {.name = "notify",
         .value = "WHOM[,END]",
         .help = "when it has ended: https://..., mailto:ADDRESS or program; END: ok, failed or any",
         .repeats = true},
        {.name = "lease", .value = "TIME", .help = "checkpoint and stop after this long: 4h"},
        {.name = "stop-when-done", .help = "give the place back when the work ends, as always"},
        {.name = "timeout", .value = "TIME", .help = "all attempts together at most this long"},
        {.name = "engine",
         .value = "NAME",
         .help = "on this one of the server's engines; any: where it starts first, as by default"},
        {.name = "class", .value = "CLASS", .help = "who goes first", .choices = {"guaranteed", "interactive", "spot"}},
        {.name = "priority", .value = "N", .help = "-100 to 100; a step weighs as much as an hour of waiting"},
        {.name = "no-plan", .help = "leave out the prediction"},
        {.name = "dry-run", .help = "say what would happen, and do nothing"},
    };
    return options;
}

Result<LoadedRun> load_submission(Session& session, const Args& args) {
    if (args.positional.empty() == args.program.empty())
        return Error(ErrorKind::invalid,
                     args.program.empty() ? "what is to be run? Neither a file nor a program is given"
                                          : "a file and a program behind -- are both given",
                     {}, "stoker run FILE, or stoker run -- PROGRAM ARGUMENTS");
    TRY(const RunOverrides overrides, overrides_of(args));
    if (!overrides.prices.empty()) {
        TRY(const std::string text, session.read_source(overrides.prices));
        TRY([[maybe_unused]] const PriceBook book, PriceBook::read(text, overrides.prices));
    }
    auto loaded = args.program.empty() ? load_run_file(session, args.positional[0], overrides)
                                       : load_command_line(session, args.program, overrides);
    if (!loaded) return loaded;
    tell_dropped(*loaded);
    if (loaded->summary && !session.quiet && session.format == Format::text) {
        bool first = true;
        for (const std::string_view line : split_lines(*loaded->summary)) {
            fmt::print(stderr, "{:<8} {}\n", first ? "plan" : "", line);
            first = false;
        }
    }
    return loaded;
}

Result<std::int64_t> parse_begin(std::string_view text, std::int64_t now_us, std::string_view option) {
    const auto wrong = [&](std::string_view what) {
        return Error(ErrorKind::invalid, fmt::format("--{} {}: {}", option, printable(text, 60), what), {},
                     "write 22:00, 2h for two hours from now, 2026-12-01 or 2026-12-01T08:00");
    };
    const std::string word(trim(text));
    const std::time_t now = static_cast<std::time_t>(now_us / 1'000'000);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::int64_t at_us = 0;
    if (const auto exact = parse_rfc3339(word); exact && word.size() > std::string_view("2026-12-01").size()) {
        at_us = *exact;
    } else if (const auto in = parse_seconds(word.starts_with('+') ? word.substr(1) : word)) {
        at_us = now_us + static_cast<std::int64_t>(in->v * 1e6);
    } else {
        // strptime fills what the text says and leaves the rest.
        std::tm at{};
        const auto reads = [&](const char* format) {
            at = std::tm{};
            const char* end = ::strptime(word.c_str(), format, &at);
            return end != nullptr && *end == '\0';
        };
        const bool time_of_day = reads("%H:%M") || reads("%H:%M:%S");
        if (time_of_day) {
            at.tm_year = local.tm_year, at.tm_mon = local.tm_mon, at.tm_mday = local.tm_mday;
        } else if (!reads("%Y-%m-%dT%H:%M") && !reads("%Y-%m-%dT%H:%M:%S") && !reads("%Y-%m-%d %H:%M") &&
                   !reads("%Y-%m-%d")) {
            return wrong("that is no time");
        }
        const int day = at.tm_mday;
        at.tm_isdst = -1;
        std::time_t then = std::mktime(&at);
        if (!time_of_day && at.tm_mday != day) return wrong("there is no such day");
        if (time_of_day && then <= now) {
            ++at.tm_mday;
            at.tm_isdst = -1;
            then = std::mktime(&at);
        }
        at_us = static_cast<std::int64_t>(then) * 1'000'000;
    }
    if (at_us <= now_us) return wrong("that has passed");
    if (at_us - now_us > kLatestBeginUs) return wrong("that is more than ten years from now");
    return at_us;
}

Status set_start(Client& client, const Args& args, RunSpec& spec) {
    for (const std::string& word : args.all("after")) {
        const std::size_t colon = word.rfind(':');
        AfterRun after;
        const std::string end = colon == std::string::npos ? "ok" : word.substr(colon + 1);
        const auto named = enum_named<AfterEnd>(end);
        if (!named)
            return Error(ErrorKind::invalid,
                         fmt::format("--after {}: '{}' is no end", printable(word, 60), printable(end, 20)), {},
                         "write r-5, r-5:any or r-5:failed; without a word it has to end well");
        after.end = *named;
        TRY(const RunId id, find_run(client, word.substr(0, colon)));
        after.run = id.text();
        if (!spec.after) spec.after.emplace();
        spec.after->push_back(std::move(after));
    }
    if (const auto begin = args.get("begin")) {
        TRY(spec.begin_at_us, parse_begin(*begin, wall_clock_us()));
    }
    if (const auto every = args.get("every")) {
        TRY(const RepeatTimes times, parse_repeat(*every).while_doing("reading --every"));
        spec.repeat = RepeatSpec{.every = *every};
        // An interval counts from the first, which begins at once; cron says when that is.
        if (times.interval_us == 0 && !spec.begin_at_us) spec.begin_at_us = next_time(times, 0, wall_clock_us());
    }
    if (args.has("times")) {
        if (!spec.repeat) return Error(ErrorKind::invalid, "--times: of what? There is no --every");
        TRY(const int times, args.whole_number("times", 1, 1, 1'000'000));
        spec.repeat->times = times;
    }
    return set_notify(args, spec);
}

Status set_notify(const Args& args, RunSpec& spec) {
    for (const std::string& word : args.all("notify")) {
        NotifySpec notify{.to = word};
        const std::size_t comma = word.rfind(',');
        const auto end = comma == std::string::npos ? std::nullopt : enum_named<NotifyOn>(word.substr(comma + 1));
        if (end) notify = {.to = word.substr(0, comma), .on = *end};
        const bool bare = notify.to.find('@') != std::string::npos && notify.to.find(':') == std::string::npos;
        if (bare) notify.to.insert(0, kNotifyMail);
        if (!spec.notify) spec.notify.emplace();
        spec.notify->push_back(std::move(notify));
    }
    return done();
}

std::string new_key() {
    return random_hex(16);
}

Result<api::Submitted> submit(Client& client, const RunSpec& spec, const std::string& key, bool held,
                              const std::string& query) {
    HttpHeaders headers;
    headers.add("Idempotency-Key", key);
    std::string target = held ? "/api/v1/runs?hold=true" : "/api/v1/runs";
    if (!query.empty()) target += (held ? "&" : "?") + query;
    return post<api::Submitted>(client, target, to_json(spec), headers);
}

namespace {

constexpr std::size_t kMostStepLines = 20;

// The steps of a graph or an array: which start and where, and why the others wait.
std::string steps_text(const api::WhatIfView& answer, const std::string& name) {
    std::vector<std::pair<std::string, std::string>> starting;  // step, where
    for (const api::PlaceView& place : answer.places) {
        std::string where = place.node + (place.devices.empty() ? "" : ", GPU " + join(place.devices, ","));
        if (starting.empty() || starting.back().first != place.step)
            starting.emplace_back(place.step, "on " + where);
        else
            starting.back().second += fmt::format("; rank {} on {}", place.rank, where);
    }
    std::string text = fmt::format("{} would start now with {} of {} steps\n", name, starting.size(), answer.steps);
    for (std::size_t i = 0; i < starting.size() && i < kMostStepLines; ++i)
        text += fmt::format("  {} {}\n", printable(starting[i].first), starting[i].second);
    if (starting.size() > kMostStepLines) text += fmt::format("  and {} more\n", starting.size() - kMostStepLines);
    // One line a reason.
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const api::WaitingStep& step : answer.waiting) {
        const std::string reason = !step.needs.empty() ? "after " + join(step.needs, ", ")
                                   : step.why          ? step.why->text
                                                       : "for a place";
        auto found =
            std::find_if(reasons.begin(), reasons.end(), [&](const auto& each) { return each.first == reason; });
        if (found == reasons.end()) found = reasons.insert(reasons.end(), {reason, {}});
        found->second.push_back(printable(step.step));
    }
    const auto told = starting.size() + answer.waiting.size();
    for (std::size_t i = 0; i < reasons.size() && i < kMostStepLines; ++i) {
        std::vector<std::string> names = reasons[i].second;
        const std::size_t more = names.size() > 6 ? names.size() - 6 : 0;
        names.resize(names.size() - more);
        text += fmt::format("  then {}{}: {}\n", join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "",
                            reasons[i].first);
    }
    if (static_cast<std::int64_t>(told) < answer.steps)
        text += fmt::format("  {} further steps wait\n", answer.steps - static_cast<std::int64_t>(told));
    return text;
}

}  // namespace

Result<CommandOutput> dry_run(Session& session, Client& client, const LoadedRun& loaded) {
    TRY(const Document document, client.post("/api/v1/runs?dry_run=true", to_json(loaded.spec)));
    TRY(const auto answer, typed<api::WhatIfView>(document));
    if (session.format != Format::text)
        return CommandOutput{dump(session, json_of(document.root())), answer.starts_now ? 0 : 1};
    std::string text;
    if (answer.starts_now && answer.steps > 0 && !answer.places.empty() && !answer.places.front().node.empty()) {
        text = steps_text(answer, printable(loaded.spec.name));
    } else if (answer.starts_now) {
        // Without nodes: an engine with a queue of its own chooses them, and others may be before it there.
        const bool chosen = answer.places.empty() || !answer.places.front().node.empty();
        text = fmt::format("{} would {}\n", printable(loaded.spec.name),
                           chosen ? "start now" : "be given to the engine now, which starts it when its queue lets it");
        if (!answer.chosen.empty())
            text += "  " + answer.chosen + "\n";
        else if (!answer.engine.empty())
            text += "  on " + answer.engine + "\n";
        for (const api::PlaceView& place : answer.places)
            if (chosen)
                text += fmt::format("  rank {} on {}{}\n", place.rank, place.node,
                                    place.devices.empty() ? "" : ", GPU " + join(place.devices, ","));
    } else {
        text = fmt::format("{} would wait{}\n", printable(loaded.spec.name), answer.why ? ": " + answer.why->text : "");
        if (answer.why)
            for (const std::string& unblock : answer.why->unblock)
                text += fmt::format("  would start it now: {}\n", unblock);
        if (answer.eta && answer.eta->p50_s)
            text += fmt::format("  starts in {} (half of the futures), {} (nine of ten)\n",
                                format_seconds(Seconds(*answer.eta->p50_s)),
                                format_seconds(Seconds(answer.eta->p90_s.value_or(0))));
        else if (answer.eta && !answer.eta->text.empty())
            text += "  " + answer.eta->text + "\n";
    }
    return CommandOutput{text, answer.starts_now ? 0 : 1};
}

}  // namespace stoker
