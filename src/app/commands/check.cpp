// stoker check: mistakes in configurations of GPU infrastructure, before they cost money.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "app/commands/commands.h"
#include "app/commands/own_files.h"
#include "app/rule_view.h"
#include "app/session.h"
#include "app/size_answer.h"
#include "base/table.h"
#include "base/text.h"
#include "check/check_config.h"
#include "check/checklist.h"
#include "check/fix_files.h"
#include "check/project.h"
#include "io/files.h"
#include "io/terminal.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBaselineBytes = 64u << 20;

const std::vector<std::string>& report_formats() {
    static const std::vector<std::string> formats = {"text",  "concise", "grouped", "json",
                                                     "sarif", "junit",   "github",  "gitlab"};
    return formats;
}

struct ReportTarget {
    std::string format, file;  // no file: stdout
};

Result<std::vector<ReportTarget>> targets_of(const Session& session, const Args& args) {
    std::vector<ReportTarget> targets;
    std::vector<std::string> words = args.all("out");
    for (const std::string& word : args.all("format")) words.push_back(word);
    std::size_t to_stdout = 0;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        ReportTarget target{word.substr(0, equals), equals == std::string::npos ? "" : word.substr(equals + 1)};
        if (std::find(report_formats().begin(), report_formats().end(), target.format) == report_formats().end()) {
            const auto near = nearest(target.format, report_formats());
            return Error(ErrorKind::invalid,
                         fmt::format("--out has no format '{}'{}", printable(target.format, 40),
                                     near ? fmt::format(" (did you mean {}?)", *near) : ""),
                         {}, "--out FORMAT or --out FORMAT=FILE; formats: " + join(report_formats(), ", "));
        }
        if (equals != std::string::npos && target.file.empty())
            return Error(ErrorKind::invalid, fmt::format("--out {}= names no file", target.format));
        to_stdout += target.file.empty();
        targets.push_back(std::move(target));
    }
    if (to_stdout > 1)
        return Error(ErrorKind::invalid, "two reports cannot both go to stdout", {}, "name files: --out sarif=a.sarif");
    if (targets.empty()) targets.push_back({session.format == Format::text ? "text" : "json", ""});
    return targets;
}

std::vector<std::string> words_of_lists(const std::vector<std::string>& lists) {
    std::vector<std::string> words;
    for (const std::string& list : lists)
        for (const std::string_view word : split(list, ','))
            if (!trim(word).empty()) words.emplace_back(trim(word));
    return words;
}

Result<CheckConfig> load_config(Session& session, const Args& args) {
    std::string file;
    if (const auto named = args.get("config")) {
        file = *named;
    } else {
        std::string start = args.positional.empty() || args.positional[0] == "-" ? "." : args.positional[0];
        std::error_code code;
        if (!fs::is_directory(start, code)) start = fs::path(start).parent_path().string();
        const auto found = find_check_config(start.empty() ? "." : start);
        if (!found) return CheckConfig{};
        // As a person would name it from here.
        const fs::path relative = fs::path(*found).lexically_relative(fs::current_path(code));
        file = relative.empty() || *relative.begin() == ".." ? *found : relative.string();
    }
    TRY(const std::string text, session.read_source(file));
    TRY(CheckConfig config, parse_check_config(text, file));
    std::error_code code;
    config.folder = fs::absolute(file, code).lexically_normal().parent_path().string();
    return config;
}

Result<std::string> day_of(const std::string& text) {
    if (lint::is_day(text)) return text;
    return Error(ErrorKind::invalid, fmt::format("'{}' is no day", printable(text, 40)), {},
                 "expected YYYY-MM-DD, such as 2026-11-21");
}

struct CheckSetup {
    CheckConfig config;
    CheckRequest request;
    lint::Severity fail_on = lint::Severity::error;
};

Result<lint::Baseline> load_baseline(Session& session, const std::string& file) {
    TRY(const std::string text, stoker::read_file(file, kMostBaselineBytes));
    session.sources[file] = text;
    return lint::parse_baseline(text, file);
}

Result<CheckSetup> set_up(Session& session, const Args& args) {
    CheckSetup setup;
    TRY(setup.config, load_config(session, args));
    const CheckConfig& config = setup.config;
    CheckRequest& request = setup.request;
    request.paths = args.positional.empty() ? std::vector<std::string>{"."} : args.positional;
    request.options = config.options;
    request.options.severity = config.severity;
    const std::string profile = args.get_or("profile", config.profile.value_or(""));
    TRY(request.options.as_of, day_of(args.get_or("as-of", config.as_of.value_or(session.today))));
    const auto select = args.has("select") ? words_of_lists(args.all("select")) : config.select;
    std::vector<std::string> ignore = words_of_lists(args.all("ignore"));
    ignore.insert(ignore.end(), config.ignore.begin(), config.ignore.end());
    TRY(request.options.off, rules_off(select, ignore, profile));
    for (const std::string& rule : config.switched_off) request.options.off.insert(rule);
    request.suppress.reason_needed = profile == "prod";
    request.suppressions = config.suppressions;
    for (lint::ConfigSuppression& suppression : request.suppressions) suppression.path = tidy_path(suppression.path);
    if (const auto kind = args.get("kind")) request.read.kind = lint::kind_from(*kind);
    request.read.workload_problems = own_file_judge(session);
    if (const auto size = args.get("size")) {
        const lint::Knowledge& knowledge = lint::Knowledge::embedded();
        const lint::KnownSize* known = knowledge.size(*size);
        if (!known) known = knowledge.size("Standard_" + *size);
        if (!known) {
            const std::string_view near = knowledge.nearest_size(*size);
            return Error(ErrorKind::invalid,
                         fmt::format("--size names no size of the catalogue: '{}'{}", printable(*size, 60),
                                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near)),
                         {}, "stoker catalog lists sizes");
        }
        request.read.size = known->name;
    }
    if (const auto region = args.get("region")) {
        request.options.region = lower(replace_all(*region, " ", ""));  // "East US" is eastus
        const std::vector<std::string> regions = lint::Knowledge::embedded().regions();
        // One without prices, of a sovereign cloud perhaps, still says which of the answers counts.
        if (!args.has("skus") && std::find(regions.begin(), regions.end(), request.options.region) == regions.end()) {
            const auto near = nearest(request.options.region, regions);
            return Error(ErrorKind::invalid,
                         fmt::format("--region: the catalogue has no prices of '{}'{}", printable(*region, 60),
                                     near ? fmt::format(" (did you mean {}?)", *near) : ""));
        }
    }
    std::error_code code;
    request.root = config.folder.empty() ? fs::current_path(code).string() : config.folder;
    request.walk.exclude = config.exclude;
    request.walk.exclude_root = fs::weakly_canonical(request.root, code).string() + "/";
    for (const char* option : {"skus", "usage"})
        for (const std::string& file : args.all(option)) request.answers.push_back(file);
    TRY(request.threads, args.whole_number("threads", 2, 1, 64));
    setup.fail_on = *lint::severity_from(args.get_or("fail-on", config.fail_on.value_or("error")));
    std::optional<std::string> baseline = args.get("baseline");
    if (!baseline && config.baseline) baseline = (fs::path(config.folder) / *config.baseline).string();
    if (baseline) {
        TRY(request.baseline, load_baseline(session, *baseline));
        request.baseline_file = *baseline;
    }
    return setup;
}

std::string report_of(const Session& session, const Args& args, const lint::Outcome& outcome, const std::string& format,
                      bool to_stdout) {
    if (format == "json")
        return to_stdout && session.format == Format::yaml ? lint::outcome_json(outcome).dump_yaml()
                                                           : lint::json_text(outcome);
    if (format == "sarif") return lint::sarif_text(outcome);
    if (format == "junit") return lint::junit_text(outcome);
    if (format == "github") return lint::github_text(outcome);
    if (format == "gitlab") return lint::gitlab_text(outcome);
    lint::TextLook look;
    look.colour = to_stdout && session.style.colour;
    look.verbose = args.has("verbose");
    look.width = static_cast<std::size_t>(session.style.width);
    if (format == "concise") return lint::concise_text(outcome, look);
    if (format == "grouped") return lint::grouped_text(outcome, look);
    return lint::text_of(outcome, look);
}

void tell_problems(const std::vector<Problem>& problems) {
    if (!problems.empty()) fmt::print(stderr, "{}", Error(ErrorKind::unavailable, problems).text());
}

void tell_fixes(const Project::Fixed& fixed, bool quiet) {
    if (!quiet)
        for (const lint::AppliedFix& fix : fixed.applied)
            fmt::print(stderr, "fixed: {}:{} {} {}\n", fix.path, fix.line, fix.rule, fix.title);
    for (const lint::DroppedFix& fix : fixed.dropped)
        fmt::print(stderr, "a bug in stoker: the fix of {} at {}:{} was not applied: {}\n", fix.rule, fix.path,
                   fix.line, fix.why);
}

Result<CommandOutput> write_new_baseline(const CheckSetup& setup, const Project& project, const std::string& file) {
    lint::Baseline before;
    if (setup.request.baseline) before = *setup.request.baseline;
    std::error_code code;
    if (fs::exists(file, code)) {  // its reasons are somebody's work
        TRY(const std::string text, stoker::read_file(file, kMostBaselineBytes));
        TRY(lint::Baseline kept, lint::parse_baseline(text, file));
        before.entries.insert(before.entries.end(), kept.entries.begin(), kept.entries.end());
    }
    const lint::Baseline baseline =
        lint::baseline_of(project.before_baseline(), project.stable_path(), before, setup.request.options.as_of);
    TRY_VOID(write_file_atomic(file, lint::baseline_text(baseline, "stoker " + project.outcome().tool)));
    return CommandOutput{fmt::format("{}: {} findings\n", file, baseline.entries.size()), 0};
}

Result<CommandOutput> show_rule(const Session& session, const std::string& word) {
    const lint::RulePage* page = find_rule(word);
    if (!page) {
        const auto off = rules_off({word}, {}, "");  // knows the nearest name
        if (!off) return off.error();
        return Error(ErrorKind::invalid, fmt::format("'{}' names several rules", printable(word, 60)), {},
                     "write one id; stoker check --list shows all");
    }
    if (session.format != Format::text) return CommandOutput{dump(session, rule_json(*page)), 0};
    return CommandOutput{rule_text(*page, session.style), 0};
}

Status check_usage(const Args& args) {
    const auto refuse = [](std::string what, std::string remedy) -> Status {
        return Error(ErrorKind::invalid, std::move(what), {}, std::move(remedy));
    };
    if (args.has("catalog"))
        return refuse("stoker check knows sizes from the catalogue of the binary alone", "leave --catalog out");
    if (args.has("watch"))
        for (const char* other : {"fix", "diff", "write-baseline", "checklist"})
            if (args.has(other))
                return refuse(fmt::format("--watch only tells, --{} does more", other), "give one of them");
    if (args.has("fix") && args.has("diff")) return refuse("--fix writes and --diff only shows", "give one of them");
    if (args.has("unsafe-fixes") && !args.has("fix") && !args.has("diff"))
        return refuse("--unsafe-fixes says which fixes --fix and --diff apply", "add --fix or --diff");
    if (args.has("write-baseline") && (args.has("fix") || args.has("diff")))
        return refuse("--write-baseline goes with neither --fix nor --diff", "fix first, then write the baseline");
    const bool reads_stdin = std::find(args.positional.begin(), args.positional.end(), "-") != args.positional.end();
    if (reads_stdin && args.has("fix")) return refuse("--fix cannot write to stdin", "--diff prints the patch");
    return done();
}

// What the files and the folders that are checked were like: another text is a reason to look again.
std::string state_of(const CheckSetup& setup, const Project& project) {
    std::string state;
    std::error_code ignored;
    const auto add = [&](const std::filesystem::path& path) {
        const auto time = std::filesystem::last_write_time(path, ignored);
        state += fmt::format("{} {} ", path.string(), ignored ? 0 : time.time_since_epoch().count());
    };
    for (const std::string& file : project.outcome().files) add(file);
    for (const std::string& path : setup.request.paths) {
        add(path);
        if (!std::filesystem::is_directory(path, ignored)) continue;
        std::size_t seen = 0;
        for (auto it = std::filesystem::recursive_directory_iterator(
                 path, std::filesystem::directory_options::skip_permission_denied, ignored);
             !ignored && it != std::filesystem::recursive_directory_iterator() && ++seen < 20'000;
             it.increment(ignored)) {
            if (it->path().filename().string().starts_with('.')) {
                it.disable_recursion_pending();
                continue;
            }
            if (it->is_directory(ignored)) add(it->path());
        }
    }
    return state;
}

// Checks again whenever a file changes, until it is interrupted.
Result<CommandOutput> watch(const Session& session, const Args& args, CheckSetup setup, const std::string& format) {
    setup.request.progress = nullptr;
    for (;;) {
        Project project(setup.request);
        project.run();
        const std::string before = state_of(setup, project);
        if (session.style.colour && stdout_is_terminal()) fmt::print("\x1b[2J\x1b[H");
        fmt::print("{}waiting for a change; Ctrl-C ends\n", report_of(session, args, project.outcome(), format, true));
        tell_problems(project.unreadable());
        std::fflush(stdout);
        if (std::ferror(stdout)) return CommandOutput{"", 0};  // nobody reads any more
        do {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
        } while (state_of(setup, project) == before);
    }
}

Result<CommandOutput> run_check(Session& session, const Args& args) {
    if (const auto rule = args.get("explain")) return show_rule(session, *rule);
    TRY_VOID(check_usage(args));
    TRY(const std::vector<ReportTarget> targets, targets_of(session, args));
    TRY(CheckSetup setup, set_up(session, args));
    if (args.has("list")) {
        const auto& off = setup.request.options.off;
        return CommandOutput{
            session.format == Format::text ? rules_table(session.style, off) : dump(session, rules_json(off)), 0};
    }
    if (args.has("watch")) return watch(session, args, std::move(setup), targets.front().format);
    ProgressLine line(!session.quiet && stderr_is_terminal());
    setup.request.progress = [&](double share, std::string_view what) { line.update(share, what); };
    Project project(setup.request);
    project.run();
    int exit = 0;
    std::vector<Problem> problems = project.unreadable();
    const Project* shown = &project;
    std::optional<Project> again;
    if (args.has("fix") || args.has("diff")) {
        lint::FixPolicy policy = setup.config.fix;
        policy.unsafe = args.has("unsafe-fixes");
        TRY(const Project::Fixed fixed, project.fix(policy));
        line.clear();
        tell_fixes(fixed, session.quiet || args.has("diff"));
        if (args.has("diff")) {
            tell_problems(problems);
            return CommandOutput{fixed_diff(fixed), problems.empty() ? (fixed.after.empty() ? 0 : 1) : 3};
        }
        for (Problem& problem : write_fixed(fixed)) problems.push_back(std::move(problem));
        if (!fixed.after.empty()) {
            again.emplace(setup.request);  // the exit code and the reports speak of what remains
            again->run();
            shown = &*again;
        }
    }
    line.clear();
    tell_problems(problems);
    if (const auto file = args.get("write-baseline")) {
        TRY(CommandOutput output, write_new_baseline(setup, *shown, *file));
        output.exit = problems.empty() ? 0 : 3;
        return output;
    }
    const lint::Outcome& outcome = shown->outcome();
    if (std::any_of(outcome.findings.begin(), outcome.findings.end(),
                    [&](const lint::Finding& f) { return f.severity >= setup.fail_on; }))
        exit = 1;
    if (args.has("checklist")) {
        const auto points = checklist_of(*shown, args.has("skus"));
        const bool failed = std::any_of(points.begin(), points.end(), [](const ChecklistPoint& p) {
            return p.verdict == ChecklistPoint::Verdict::fail;
        });
        const std::string text = session.format == Format::text ? checklist_text(points, session.style)
                                                                : dump(session, checklist_json(points));
        return CommandOutput{text, problems.empty() ? (failed ? 1 : 0) : 3};
    }
    std::string out;
    // The size and the region are asked about, not only taken for what files leave open.
    if (args.has("skus") && !setup.request.read.size.empty() && !setup.request.options.region.empty()) {
        TRY(const std::vector<SkuOffer> offers, sku_offers(session, args));
        const SizeAnswer answer = answer_size(offers, setup.request.read.size, setup.request.options.region);
        if (!answer.offered) exit = 1;
        const std::string line_of_it = fmt::format("{}{}\n", answer.offered ? "" : "error: ", answer.text);
        if (targets.front().file.empty() && targets.front().format == "text")
            out += line_of_it;
        else
            fmt::print(stderr, "{}", line_of_it);
    }
    for (const ReportTarget& target : targets) {
        std::string report = report_of(session, args, outcome, target.format, target.file.empty());
        if (target.file.empty())
            out += report;
        else
            TRY_VOID(write_file_atomic(target.file, report));
    }
    return CommandOutput{std::move(out), problems.empty() ? exit : 3};
}

std::vector<std::string> kind_names() {
    std::vector<std::string> names;
    for (int i = 0; i < lint::kKinds; ++i) names.emplace_back(to_string(static_cast<lint::Kind>(i)));
    return names;
}

}  // namespace

CliCommand check_command() {
    CliCommand command;
    command.name = "check";
    command.summary =
        "mistakes in Kubernetes, Terraform, Bicep, ARM, shell, Slurm and DeepSpeed files for GPUs, and in files of "
        "Stoker's own";
    command.usage = "stoker check [PATH...|-] [options]";
    command.description =
        "Reads configurations and scripts, and tells what is wrong in them for GPUs: retired sizes, scale sets without "
        "InfiniBand, GPU limits, taints, shared memory, NCCL, launchers, drivers, money that runs on. Folders are "
        "walked, .gitignore is honoured; what a file is is seen from what it says. Without a path: this folder.\n"
        "A finding has a stable rule id; `stoker explain ID` tells why, what ignoring it costs, and the source. A "
        "comment `# stoker: ignore[ID] reason=\"...\"` lives with a finding, a baseline with all that are there now.\n"
        "--fix applies what changes nothing but what the rule names; --unsafe-fixes also what needs a decision. Exit "
        "0: "
        "nothing at or above --fail-on; 1: findings; 2: usage or stoker.toml; 3: something named could not be read.";
    command.examples = {"stoker check",
                        "stoker check infra/ --fail-on warning --out sarif=check.sarif --out github",
                        "helm template chart | stoker check -",
                        "stoker check --fix main.tf",
                        "stoker check --skus skus.json --size Standard_ND96isr_H100_v5 --region eastus",
                        "stoker check --write-baseline .stoker-baseline.json",
                        "stoker check --explain NET001"};
    command.options = {
        {.name = "kind", .value = "KIND", .help = "what the files are, in place of looking", .choices = kind_names()},
        {.name = "profile",
         .value = "NAME",
         .help = "which rules that are off by default run: dev, prod, training, inference",
         .choices = check_profiles()},
        {.name = "select",
         .value = "RULES",
         .help = "only these: ids, beginnings of ids or slugs, with commas: NET,SKU0,K8S003",
         .repeats = true},
        {.name = "ignore", .value = "RULES", .help = "not these", .repeats = true},
        {.name = "fail-on",
         .value = "LEVEL",
         .help = "exit 1 from this severity on (error)",
         .choices = {"error", "warning", "info"}},
        {.name = "fix", .help = "write the safe fixes into the files; then what remains is told"},
        {.name = "unsafe-fixes", .help = "with --fix or --diff: also those that need a decision"},
        {.name = "diff", .help = "print the fixes as a patch and write nothing; exit 1 when there are any"},
        {.name = "out",
         .value = "FORMAT[=FILE]",
         .help = "a report: text, concise, grouped, json, sarif, junit, github, gitlab; several in one run, one of "
                 "them without "
                 "FILE",
         .repeats = true},
        {.name = "format",
         .value = "FORMAT",
         .help = "the same as --out FORMAT",
         .choices = report_formats(),
         .repeats = true},
        {.name = "watch", .help = "check again whenever a file changes, until Ctrl-C"},
        {.name = "baseline",
         .value = "FILE",
         .help = "findings that are known; only new ones are told",
         .completes = "file"},
        {.name = "write-baseline",
         .value = "FILE",
         .help = "write all findings of now into a baseline; reasons in it are kept",
         .completes = "file"},
        {.name = "as-of", .value = "DATE", .help = "judge as on this day, YYYY-MM-DD: retirements, expiry"},
        {.name = "skus",
         .value = "FILE",
         .help = "answer of az vm list-skus -o json: sizes that the region does not offer",
         .repeats = true,
         .completes = "file"},
        {.name = "usage",
         .value = "FILE",
         .help = "answer of az vm list-usage -o json: quota that is too small",
         .repeats = true,
         .completes = "file"},
        {.name = "region",
         .value = "REGION",
         .help = "where it will run: prices of findings, and which of the answers of --skus counts"},
        {.name = "size",
         .value = "SIZE",
         .help = "with --skus and --region: whether it can be had there; and what to take for sizes that a file leaves "
                 "open: a variable without a default"},
        {.name = "checklist", .help = "eleven points to have before a GPU deployment: pass, fail or unknown"},
        {.name = "list", .help = "all rules, and which would run"},
        {.name = "explain", .value = "ID", .help = "the page of a rule, as stoker explain ID"},
        {.name = "config", .value = "FILE", .help = "in place of the nearest stoker.toml", .completes = "file"},
        {.name = "threads", .value = "N", .help = "cores to use (2); the result does not depend on it"},
        {.name = "verbose", .letter = 'v', .help = "also what was suppressed, baselined and skipped"},
    };
    command.max_positional = 1'000'000;
    command.run = run_check;
    command.completes = "file";
    return command;
}

}  // namespace stoker
