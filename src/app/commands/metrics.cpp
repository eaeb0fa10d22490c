// stoker metrics: pages of metrics, read as strictly as their formats are written.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/session.h"
#include "base/text.h"
#include "io/files.h"
#include "observe/gpu/exposition_check.h"

namespace stoker {

namespace {

constexpr std::size_t kMostBytes = 64 << 20;

Result<CommandOutput> run_metrics(Session& session, const Args& args) {
    if (args.positional[0] != "check")
        return Error(ErrorKind::invalid, "stoker metrics knows no " + printable(args.positional[0], 40), {},
                     "stoker metrics check FILE");
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, "stoker metrics check needs a file", {},
                     "stoker metrics check FILE, or - for what is piped into it");
    TRY(const std::string text, read_file(args.positional[1], kMostBytes));
    const std::string format = args.get_or("format", "auto");
    const bool open = format == "openmetrics" || (format == "auto" && text.find("\n# EOF") != std::string::npos);
    const ExpositionReport report = check_exposition(text, open, args.has("dcgm"));
    const int exit = report.problems.empty() ? 0 : 1;
    if (session.format != Format::text) {
        Json problems = Json::array();
        for (const ExpositionProblem& problem : report.problems)
            problems.push(Json::object()
                              .set("line", problem.line)
                              .set("column", problem.column)
                              .set("message", problem.message)
                              .set("lint", problem.lint));
        return CommandOutput{dump(session, Json::object()
                                               .set("format", open ? "openmetrics" : "prometheus")
                                               .set("families", report.families)
                                               .set("samples", report.samples)
                                               .set("problems", std::move(problems))),
                             exit};
    }
    std::string out;
    for (const ExpositionProblem& problem : report.problems)
        out += fmt::format("{}:{}:{}: {}: {}\n", args.positional[1], problem.line, problem.column,
                           problem.lint ? "lint" : "error", problem.message);
    return CommandOutput{
        out +
            fmt::format("{}: {} families, {} samples, {}\n", open ? "OpenMetrics" : "Prometheus text", report.families,
                        report.samples,
                        report.problems.empty() ? "nothing wrong" : fmt::format("{} problems", report.problems.size())),
        exit};
}

}  // namespace

CliCommand metrics_command() {
    return {.name = "metrics",
            .summary = "check a page of metrics strictly",
            .usage = "stoker metrics check FILE [options]",
            .description =
                "Reads what an exporter serves (Prometheus' text, or OpenMetrics when it ends with # EOF) and reports "
                "with line and column what is wrong: what "
                "promtool finds, and what it passes over: the same sample twice, families that are torn apart, buckets "
                "that fall or lack +Inf, NaN, a missing "
                "# EOF, an empty page. --dcgm allows the names of dcgm-exporter, which break the naming rules.",
            .examples = {"curl -s 127.0.0.1:9400/metrics | stoker metrics check -",
                         "stoker metrics check page.txt -o json"},
            .options = {{.name = "format",
                         .value = "FORMAT",
                         .help = "what it is (auto)",
                         .choices = {"auto", "prometheus", "openmetrics"}},
                        {.name = "dcgm", .help = "names of dcgm-exporter are as they are"}},
            .min_positional = 1,
            .max_positional = 2,
            .subcommands = {"check"},
            .run = run_metrics};
}

}  // namespace stoker
