// stoker validate: predictions of published measurements, and how far off they are.
#include <fmt/format.h>

#include <algorithm>

#include "app/commands/commands.h"
#include "app/session.h"
#include "base/embedded.h"
#include "io/files.h"
#include "validate/campaigns.h"
#include "validate/held_out.h"
#include "validate/report.h"
#include "validate/stated.h"

namespace stoker {

namespace {

constexpr std::size_t kMostRowBytes = 256u << 20;  // some 600,000 rows

// Without a file: the table of the binary.
Result<CommandOutput> run_campaigns(Session& session, const Args& args) {
    namespace v = validate;
    for (const char* other : {"regret", "predictions", "columns", "widths"})
        if (args.has(other))
            return Error(ErrorKind::invalid, fmt::format("--campaigns goes without --{}", other), {},
                         fmt::format("leave --{} out", other));
    std::string name = "data/calibration/campaigns.csv";
    std::string text(embedded_bytes("calibration/campaigns.csv"));
    if (!args.positional.empty()) {
        const std::string& path = args.positional.front();
        name = path == "-" ? "stdin" : path;
        TRY(text, read_file(path, kMostRowBytes));
        if (text.size() <= ReadLimits{}.max_bytes) session.sources[name] = text;
    }
    TRY(const Csv csv, Csv::read(text, name));
    TRY(Catalog * catalog, session.catalog());
    v::Hardware hardware(*catalog);
    v::Shapes shapes(*catalog);
    v::Jobs jobs(hardware, shapes);
    TRY(const v::Campaigns all, v::campaigns(csv, jobs, name));
    const Constant* constant = catalog->constant("campaign_factor");
    const double used = constant != nullptr ? constant->value : 1;
    if (session.format != Format::text) return CommandOutput{dump(session, v::campaigns_json(name, all, used)), 0};
    return CommandOutput{v::campaigns_text(name, all, used, session.style), 0};
}

Result<CommandOutput> run_validate(Session& session, const Args& args) {
    namespace v = validate;
    if (args.has("campaigns")) return run_campaigns(session, args);
    if (args.positional.empty())
        return Error(ErrorKind::invalid, "no file of published rows is named", {},
                     "name one, such as data/validation/training.csv; --campaigns alone has a table of its own");
    const std::string& path = args.positional.front();
    const std::string name = path == "-" ? "stdin" : path;
    TRY(const std::string text, read_file(path, kMostRowBytes));
    if (text.size() <= ReadLimits{}.max_bytes) session.sources[name] = text;
    TRY(const Csv csv, Csv::read(text, name));
    TRY(const v::RowKind kind, v::kind_of(csv, name));
    if (const auto out = args.get("columns")) {
        if (args.has("regret") || args.has("predictions"))
            return Error(ErrorKind::invalid, "--columns predicts nothing", {}, "leave --regret and --predictions out");
        const std::string columns = v::columns_csv(csv);
        TRY_VOID(write_file_atomic(*out, columns));
        const auto lines = static_cast<std::size_t>(std::count(columns.begin(), columns.end(), '\n')) - 1;
        if (session.format != Format::text) {
            Json answer = Json::object();
            answer.set("rows", csv.rows()).set("statements", lines);
            return CommandOutput{dump(session, answer), 0};
        }
        return CommandOutput{
            fmt::format("{} statements of {} rows were read from their words; written: {}\n", lines, csv.rows(), *out),
            0};
    }
    TRY(Catalog * catalog, session.catalog());
    v::Hardware hardware(*catalog);
    v::Shapes shapes(*catalog);
    v::Jobs jobs(hardware, shapes);
    if (args.has("regret")) {
        if (args.has("predictions"))
            return Error(ErrorKind::invalid, "--regret writes no predictions", {}, "leave --predictions out");
        if (kind != v::RowKind::training)
            return Error(ErrorKind::invalid,
                         fmt::format("regret is of training rows; these are of {}", to_string(kind)), {name, 1, 1});
        const v::Regret regret = v::regret(csv, jobs);
        if (session.format != Format::text) return CommandOutput{dump(session, v::regret_json(name, regret)), 0};
        return CommandOutput{v::regret_text(name, regret, session.style), 0};
    }
    TRY(const Intervals intervals, Intervals::embedded());
    std::vector<v::Line> lines;
    if (kind == v::RowKind::inference) {
        lines = v::predict_inference(csv, hardware, shapes, intervals);
    } else {
        lines.reserve(csv.rows());
        for (std::size_t i = 0; i < csv.rows(); ++i) {
            const v::Row row(csv, i);
            lines.push_back(kind == v::RowKind::training ? v::predict_training(row, jobs, intervals)
                                                         : v::predict_memory(row, jobs, intervals));
        }
    }
    if (const auto out = args.get("predictions")) TRY_VOID(write_file_atomic(*out, v::predictions_csv(lines)));
    v::compare(kind, csv, lines);
    TRY(const v::HeldOut apart, v::HeldOut::embedded());
    for (v::Line& line : lines) {
        const v::Row row(csv, line.row);
        line.kept_apart = apart.has(row);
        line.source = row.text(kind == v::RowKind::inference ? "split_group" : "source_group");
    }
    const MeasuredWork work = kind == v::RowKind::training ? MeasuredWork::training
                              : kind == v::RowKind::memory ? MeasuredWork::memory
                                                           : MeasuredWork::serving;
    std::optional<v::Widths> widths = v::widths_left_out(lines, *catalog, work);
    if (args.has("widths")) {
        if (!widths)
            return Error(ErrorKind::invalid, "fewer than three sources have a figure, so that none can be left out",
                         {name, 1, 1}, "widths are of a file with many sources, such as data/validation/training.csv");
        if (session.format != Format::text) return CommandOutput{dump(session, v::widths_json(*widths)), 0};
        return CommandOutput{v::widths_text(name, *widths), 0};
    }
    v::Score score = v::score(csv.rows(), lines);
    score.widths = std::move(widths);
    if (session.format != Format::text)
        return CommandOutput{dump(session, v::report_json(kind, name, score, lines)), 0};
    return CommandOutput{v::report_text(kind, name, score, session.style), 0};
}

}  // namespace

CliCommand validate_command() {
    CliCommand command;
    command.name = "validate";
    command.summary = "predict published measurements and say how far off the predictions are";
    command.usage =
        "stoker validate ROWS.csv [--predictions OUT.csv] | --widths | --regret | --columns OUT.csv | --campaigns";
    command.description =
        "Reads published measurements of training, training memory or inference (the columns are described in "
        "data/validation/README.md; the header tells which), predicts each row from its configuration alone, and "
        "compares. A row that cannot be predicted is refused with the missing column or the unknown name.\n"
        "The figures are per source group: the absolute percentage error (median, mean, 90 % of the rows), the share "
        "of measured values inside the 80 % interval, the five worst rows. What was measured is never an input of a "
        "prediction. What was assumed for a blank cell is in -o json.\n"
        "--predictions OUT.csv writes one line per figure: id, metric, predicted, low, high, refused_reason, outcome.\n"
        "--columns OUT.csv predicts nothing and writes what rows say in words (a line for each: id, column, value, and "
        "the cell "
        "and words it was read from); a file that has these columns itself is read as it stands.\n"
        "--widths leaves each source out once, takes the width of all intervals from the others, and says how much of "
        "the source is inside.\n"
        "--regret asks of training rows how much slower the layout ranked first is than the best measured one.\n"
        "--campaigns compares the device-hours of whole published trainings with those at the predicted steady rate: "
        "the factor between them is fitted on one half of the sources and judged on the other; a file with too few "
        "sources is judged by the factor that plans have. Without a file it takes the table that Stoker comes with "
        "(data/calibration/campaigns.csv).";
    command.examples = {"stoker validate data/validation/training.csv",
                        "stoker validate data/validation/memory.csv --predictions predicted.csv",
                        "stoker validate --widths data/validation/training.csv",
                        "stoker validate --regret data/validation/training.csv",
                        "stoker validate data/validation/inference.csv --columns said.csv",
                        "stoker validate --campaigns"};
    command.options = {
        {.name = "predictions",
         .value = "OUT.csv",
         .help = "write every prediction with its interval to this file",
         .completes = "file"},
        {.name = "columns",
         .value = "OUT.csv",
         .help = "write what rows say in words, as columns, to this file; nothing is predicted",
         .completes = "file"},
        {.name = "widths", .help = "80 % intervals, each source judged by the width that all others choose"},
        {.name = "regret", .help = "rank measured layouts of one model on one number of devices"},
        {.name = "campaigns", .help = "whole published trainings, with what they took beyond their rate"}};
    command.min_positional = 0;
    command.max_positional = 1;
    command.run = run_validate;
    command.completes = "file";
    return command;
}

}  // namespace stoker
