// stoker calibrate: lets measured runs correct what is predicted for this machine.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/session.h"
#include "base/text.h"
#include "doctor/calibration_file.h"
#include "doctor/this_machine.h"
#include "observe/diagnosis.h"
#include "server/views_observe.h"

namespace stoker {

namespace {

MemoryParts parts_of_memory(const PublishedSpec& said) {
    const double transient = std::clamp(said.transient_bytes.value_or(0), 0.0, said.memory_bytes);
    return {said.memory_bytes - transient, transient};
}

// Whether what was found makes its steps those of something else than was planned.
bool spoils(const api::DiagnosisView& each, const api::ExplanationView& explained, bool alone) {
    constexpr double kLeastShare = 0.03;  // of a step; less is within what is learnt anyway
    const DiagnosisRule* rule = find_diagnosis_rule(each.name);
    if (each.stops) return true;
    if (rule == nullptr || rule->cost != CostLies::within_step)
        return false;  // checkpoints and warm-up are no part of it
    if (alone && each.name == "noisy-neighbour") return false;
    for (const char* otherwise : {"other-precision", "batch-smaller", "recompute-on", "eager-not-compiled"})
        if (each.name == otherwise) return true;
    double step = 0;
    for (const api::ExplainedTerm& term : explained.terms)
        if (term.term == "step") step = term.measured.value_or(0);
    return step > 0 && each.cost_s >= kLeastShare * step;
}

struct PlacedPoint {
    std::string place;
    CalibrationPoint point;
};

// What a run teaches, and where; an error says why it teaches nothing.
Result<PlacedPoint> point_of_run(Client& client, const api::RunView& view) {
    const std::string name = view.run.id.text();
    const auto nothing = [&](std::string why, std::string remedy = "") {
        return Error(ErrorKind::conflict, fmt::format("{} teaches nothing: {}", name, why), {}, std::move(remedy));
    };
    const auto& plan = view.spec.prediction;
    if (!plan || !plan->published)
        return nothing("it was not predicted", "describe the model in its file: stoker template new training FILE");
    const std::string here = machine_key(discover_machine());
    const PublishedSpec& said = *plan->published;
    if (!is_place_of(here, said.place))
        return nothing(fmt::format("it was predicted for {}, and this is {}", said.place, here));
    if (view.run.state != RunState::succeeded)
        return nothing(fmt::format("it is {}", to_string(view.run.state)), "a run that came to its end teaches");
    TRY(const auto explained, get<api::ExplanationView>(client, fmt::format("/api/v1/runs/{}/explanation", name)));
    // Its own processor seconds count, and no neighbour adds to those.
    const bool gpus = view.spec.per_rank.gpus > 0;
    const bool alone = !gpus && view.spec.ranks == 1 && view.spec.per_rank.cpu_milli < 2000;
    for (const api::DiagnosisView& each : explained.diagnoses)
        if (spoils(each, explained, alone))
            return nothing(fmt::format("it did not run as planned: {}: {}", each.name, each.what),
                           fmt::format("stoker explain {} says more; mend it and run again", name));
    const MeasuredSteps measured = measured_steps(client, view);
    if (!(measured.step_s > 0)) return nothing("it writes no step_s to STOKER_METRICS_FILE");
    CalibrationPoint point{.run = name + " " + view.digest.substr(0, 12),
                           .predicted = {said.compute_s, said.other_s, said.exchange_s},
                           .step_s = measured.step_s};
    // A rank that shares a core with strangers is slow, not mispredicted; alone in its run it waits for nobody else.
    if (alone && measured.cpu_s > 0) point.step_s = std::min(measured.step_s, measured.cpu_s);
    // What the engine saw of its ranks; the program itself knows better where it tells.
    double peak = 0;
    for (const api::ExplainedTerm& term : explained.terms)
        if (term.term == (gpus ? "gpu-memory" : "memory")) peak = term.measured.value_or(0);
    if (const auto told = view.metrics.find("peak_rss_bytes"); !gpus && told != view.metrics.end() && told->second > 0)
        peak = told->second;
    if (peak > 0) point.bytes = peak, point.predicted_bytes = parts_of_memory(said);
    point.kind = said.kind.value_or("");
    point.shape = {said.hidden.value_or(0), said.layers.value_or(0), said.sequence.value_or(0),
                   said.tokens.value_or(0)};
    return PlacedPoint{said.place, std::move(point)};
}

std::string kind_of(const CalibrationPoint& point) {
    return point.kind.empty() ? "decoder" : point.kind;
}

// What runs taught at one place, each kind of network by itself, as plans use them.
struct Taught {
    std::string place;
    std::vector<CalibrationPoint> points;
    std::map<std::string, std::size_t> counts;  // by kind
    std::map<std::string, Calibration> fits;
    const Calibration* fit_of(const CalibrationPoint& p) const {
        const auto found = fits.find(kind_of(p));
        return found == fits.end() ? nullptr : &found->second;
    }
};

Result<Taught> taught_at(const std::string& place) {
    Taught taught{.place = place};
    auto points = load_calibration(place);
    if (!points && points.error().kind() != ErrorKind::not_found) return points.error();
    if (points) taught.points = std::move(*points);
    std::map<std::string, std::vector<CalibrationPoint>> kinds;
    for (const CalibrationPoint& p : taught.points) kinds[kind_of(p)].push_back(p);
    for (const auto& [kind, all] : kinds) {
        taught.counts[kind] = all.size();
        if (auto fit = fit_calibration(all)) taught.fits.emplace(kind, std::move(*fit));
    }
    return taught;
}

Json taught_json(const Taught& taught) {
    Json runs = Json::array(), factors = Json::object();
    for (const CalibrationPoint& p : taught.points) {
        const Calibration* fit = taught.fit_of(p);
        runs.push(Json::object()
                      .set("run", p.run)
                      .set("kind", kind_of(p))
                      .set("step_s", p.step_s)
                      .set("published_step_s", p.predicted.sum())
                      .set("calibrated_step_s", fit ? Json(calibrated_step(*fit, p.predicted, p.shape).mid) : Json())
                      .set("memory_bytes", p.bytes > 0 ? Json(p.bytes) : Json()));
    }
    for (const auto& [kind, fit] : taught.fits) {
        const bool memory = fit.memory.spread > 0;
        factors.set(kind, Json::object()
                              .set("runs", static_cast<std::int64_t>(fit.points))
                              .set("compute", fit.step.factor[0])
                              .set("other", fit.step.factor[1])
                              .set("exchange", fit.step.factor[2])
                              .set("spread", fit.step.spread)
                              .set("memory_held", memory ? Json(fit.memory.factor[0]) : Json())
                              .set("memory_transient", memory ? Json(fit.memory.factor[1]) : Json())
                              .set("memory_spread", memory ? Json(fit.memory.spread) : Json()));
    }
    return Json::object().set("place", taught.place).set("runs", std::move(runs)).set("factors", std::move(factors));
}

std::string taught_text(const Session& session, const Taught& taught) {
    std::vector<std::vector<std::string>> rows;
    for (const CalibrationPoint& p : taught.points) {
        const Calibration* fit = taught.fit_of(p);
        const double now = fit ? calibrated_step(*fit, p.predicted, p.shape).mid : 0;
        rows.push_back({p.run.substr(0, p.run.find(' ')), kind_of(p), format_seconds(Seconds(p.step_s)),
                        format_seconds(Seconds(p.predicted.sum())),
                        fmt::format("{:+.0f} %", 100 * (p.predicted.sum() / p.step_s - 1)),
                        now > 0 ? format_seconds(Seconds(now)) : "-",
                        now > 0 ? fmt::format("{:+.0f} %", 100 * (now / p.step_s - 1)) : "-"});
    }
    std::string text = taught.place + "\n" +
                       table_text(session.style,
                                  {{"run"},
                                   {"kind"},
                                   {"measured", Align::right},
                                   {"published", Align::right},
                                   {"off", Align::right},
                                   {"calibrated", Align::right},
                                   {"off", Align::right}},
                                  rows, 0);
    for (const auto& [kind, count] : taught.counts) {
        const auto fit = taught.fits.find(kind);
        if (fit == taught.fits.end()) {
            text += fmt::format("{}: {} of {} runs: plans use the published constants until then\n", kind, count,
                                kLeastCalibration);
            continue;
        }
        const auto& [step, memory] = std::pair(fit->second.step, fit->second.memory);
        text += fmt::format(
            "{}: products x{:.2f}, memory and launches x{:.2f}, between ranks x{:.2f}; {:.0f} % spread "
            "is left\n",
            kind, step.factor[0], step.factor[1], step.factor[2], 100 * step.spread);
        if (memory.spread > 0)
            text += fmt::format("{}: memory held x{:.2f}, activations x{:.2f}; {:.0f} % spread is left\n", kind,
                                memory.factor[0], memory.factor[1], 100 * memory.spread);
        else
            text += fmt::format("{}: no run told its memory\n", kind);
    }
    return text;
}

// Of the machine's cores, and of each kind of GPU that runs taught something of.
Result<CommandOutput> show_calibration(Session& session, const std::string& machine) {
    TRY(const Taught own, taught_at(machine));
    std::vector<Taught> gpus;
    TRY(const auto places, calibrated_places(machine));
    for (const std::string& place : places) {
        if (place == machine) continue;
        TRY(Taught taught, taught_at(place));
        gpus.push_back(std::move(taught));
    }
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const Taught& each : gpus) list.push(taught_json(each));
        return CommandOutput{dump(session, taught_json(own).set("gpus", std::move(list)))};
    }
    std::string text;
    if (!own.points.empty()) text = taught_text(session, own);
    for (const Taught& each : gpus) text += (text.empty() ? "" : "\n") + taught_text(session, each);
    if (text.empty()) text = fmt::format("{}: no run has been added; plans use the published constants\n", machine);
    return CommandOutput{text};
}

Result<CommandOutput> run_calibrate(Session& session, const Args& args) {
    const std::string verb = args.positional.empty() ? "show" : args.positional[0];
    const std::vector<std::string> names(args.positional.empty() ? args.positional.end() : args.positional.begin() + 1,
                                         args.positional.end());
    const std::string machine = machine_key(discover_machine());
    if (verb == "show") {
        if (!names.empty())
            return Error(ErrorKind::invalid, "stoker calibrate show takes no run", {}, "stoker calibrate show");
        return show_calibration(session, machine);
    }
    if (verb == "forget") {
        if (names.empty() && !args.has("all"))
            return Error(ErrorKind::invalid, "which run is to be forgotten?", {},
                         "stoker calibrate forget RUN, or --all");
        std::vector<std::string> wanted;
        for (const std::string& name : names) {
            TRY(const RunId id, run_named(name));
            wanted.push_back(id.text());
        }
        std::size_t gone = 0;
        TRY(const auto places, calibrated_places(machine));
        for (const std::string& place : places) {
            std::vector<std::string> stored;
            TRY(const auto points, load_calibration(place));
            for (const CalibrationPoint& p : points)
                for (const std::string& name : wanted)
                    if (p.run.substr(0, p.run.find(' ')) == name) stored.push_back(p.run);
            if (!args.has("all") && stored.empty()) continue;
            TRY(const std::size_t here,
                forget_calibration(place, args.has("all") ? std::vector<std::string>{} : stored));
            gone += here;
        }
        if (!args.has("all") && gone == 0)
            return Error(ErrorKind::not_found, fmt::format("{} was not added here", join(wanted, ", ")), {},
                         "stoker calibrate show");
        return CommandOutput{fmt::format("forgotten: {} run{}\n", gone, gone == 1 ? "" : "s")};
    }
    if (verb != "add")
        return Error(ErrorKind::invalid, fmt::format("there is no stoker calibrate {}", verb), {},
                     "add, show or forget");
    if (names.empty())
        return Error(ErrorKind::invalid, "which run is to be added?", {}, "stoker calibrate add RUN, as r-7");
    TRY(const auto client, connect_to_look(args));
    std::vector<Error> refused;
    for (const std::string& name : names) {
        TRY(const RunId id, find_run(*client, name));
        TRY(const auto view, get<api::RunView>(*client, "/api/v1/runs/" + id.text()));
        const auto point = point_of_run(*client, view);
        if (!point && point.error().kind() != ErrorKind::conflict) return point.error();
        if (point) TRY_VOID(add_calibration(point->place, point->point));
        if (!point) refused.push_back(point.error());
    }
    // One that teaches nothing keeps none of the others out.
    if (refused.size() == names.size()) return refused.front();
    TRY(CommandOutput shown, show_calibration(session, machine));
    for (const Error& each : refused) fmt::print(stderr, "not added: {}\n", each.text());
    return shown;
}

}  // namespace

CliCommand calibrate_command() {
    CliCommand command{
        .name = "calibrate",
        .summary = "let measured runs correct what is predicted for this machine",
        .usage = "stoker calibrate add RUN...\n  stoker calibrate show\n  stoker calibrate forget RUN... | --all",
        .description =
            "Adds what runs on this machine took to what their plans said. From three on, predictions for this machine "
            "use the factors\n"
            "that fit them, one for matrix products, one for memory and launches, one between ranks, and an interval "
            "as wide as they are apart, for each kind of network by itself, and for each kind of GPU apart from the "
            "cores. A run that did not run as planned (see "
            "stoker "
            "explain) teaches nothing.\n"
            "The published constants stay as they are; the runs are kept in $XDG_DATA_HOME/stoker/calibration.json.",
        .examples = {"stoker calibrate add r-7 r-8 r-9", "stoker calibrate show -o json",
                     "stoker calibrate forget r-8"},
        .options = {{.name = "all", .help = "with forget: every run of this machine"}},
        .max_positional = 1000,
        .subcommands = {"add", "show", "forget"},
        .run = run_calibrate,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
