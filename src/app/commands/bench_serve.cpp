// stoker bench serve: load on any OpenAI-compatible server, what its clients met, and how that is to its plan.
#include "app/commands/bench_serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>

#include "app/render/held_table.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/terminal.h"
#include "plan/plan.h"
#include "serve/load/figures.h"
#include "serve/load/rows.h"
#include "validate/nearest.h"

namespace stoker {

namespace {

// What was planned for the load that is put on; from a workload file.
struct PlannedService {
    Workload workload;
    Candidate candidate;
    std::string machine;
};

Result<LoadGoal> goal_of(const Args& args) {
    LoadGoal goal;
    for (const std::string& item : args.all("goal"))
        for (const std::string_view part : split(item, ',')) {
            const std::size_t equals = part.find('=');
            const std::string_view name = trim(part.substr(0, equals));
            double* to = name == "ttft"   ? &goal.ttft_s
                         : name == "tpot" ? &goal.tpot_s
                         : name == "e2e"  ? &goal.e2e_s
                                          : nullptr;
            if (to == nullptr || equals == std::string_view::npos)
                return Error(ErrorKind::invalid, fmt::format("--goal: '{}' is no goal", part), {},
                             "write --goal ttft=500ms,tpot=50ms,e2e=10s, or some of them");
            TRY(const Seconds limit, parse_seconds(trim(part.substr(equals + 1))));
            if (limit.v <= 0) return Error(ErrorKind::invalid, fmt::format("--goal: '{}' is not above zero", part));
            *to = limit.v;
        }
    return goal;
}

Result<PlannedService> planned_of(Session& session, const std::string& path) {
    TRY(const Workload workload, load_workload(session, path));
    if (workload.kind != WorkloadKind::inference)
        return Error(ErrorKind::invalid, fmt::format("{} is no inference", path), {},
                     "the plan of an endpoint has kind: inference");
    TRY(Catalog * catalog, session.catalog());
    PlanOptions options;
    options.today = session.today;
    options.what_if = false;
    options.top = 1;
    options.nearest_run = validate::nearest_published(*catalog);
    TRY(Plan plan, make_plan(workload, *catalog, options));
    if (!plan.feasible())
        return Error(ErrorKind::infeasible, fmt::format("{} has no plan: {}", path, plan.infeasible_because), {},
                     fmt::format("stoker plan {}", path));
    PlannedService planned{.workload = plan.workload, .candidate = std::move(plan.candidates.front())};
    planned.machine =
        fmt::format("{} x {}", planned.candidate.nodes, catalog->node_type(planned.candidate.node_type).name);
    return planned;
}

Result<LoadPlan> load_of(const Args& args, const PlannedService* planned) {
    LoadPlan load;
    const TrafficSpec traffic = planned ? planned->workload.traffic : TrafficSpec{};
    if (args.has("rate") && args.has("concurrency"))
        return Error(ErrorKind::invalid, "--rate and --concurrency are two kinds of load", {},
                     "--rate R: requests come by themselves; --concurrency N: clients wait for their answers");
    TRY(load.requests, args.whole_number("requests", 200, 1, 1'000'000));
    TRY(load.requests_per_second, args.number("rate", 0, 0.001, 100'000));
    TRY(load.concurrency, args.whole_number("concurrency", 0, 1, 10'000));
    if (!args.has("rate") && !args.has("concurrency")) {
        if (traffic.requests_per_second)
            load.requests_per_second = *traffic.requests_per_second;
        else
            load.concurrency = std::max(1, static_cast<int>(traffic.concurrency.value_or(1)));
    }
    TRY(load.arrival_shape, args.number("shape", 1, 0.01, 1000));
    TRY(load.prompt_words, args.number("prompt-tokens", traffic.prompt_tokens.value_or(128), 1, 1e6));
    TRY(const double output, args.number("output-tokens", traffic.output_tokens.value_or(64), 1, 1e6));
    load.output_tokens = static_cast<int>(output);
    TRY(load.prompt_cv, args.number("cv", traffic.prompt_tokens_cv.value_or(0), 0, 10));
    load.output_cv = args.has("cv") ? load.prompt_cv : traffic.output_tokens_cv.value_or(0);
    load.ignore_eos = args.has("ignore-eos");
    if (const auto timeout = args.get("timeout")) {
        TRY(const Seconds limit, parse_seconds(*timeout));
        if (limit.v <= 0 || limit.v > 86'400)
            return Error(ErrorKind::invalid, "--timeout: within 1 ms and a day", {}, "--timeout 2m");
        load.timeout_s = limit.v;
    }
    TRY(const int seed, args.whole_number("seed", 1, 0, 1'000'000'000));
    load.seed = static_cast<std::uint64_t>(seed);
    return load;
}

Result<LoadTarget> target_of(const Args& args) {
    LoadTarget target{.url = args.positional[1]};
    if (!target.url.starts_with("http://") && !target.url.starts_with("https://"))
        return Error(ErrorKind::invalid, fmt::format("'{}' is no address of a server", target.url), {},
                     "write http://HOST:PORT or https://HOST");
    if (const auto name = args.get("key-env")) {
        const char* key = std::getenv(name->c_str());
        if (key == nullptr || *key == 0)
            return Error(ErrorKind::invalid, fmt::format("--key-env: {} is not set", *name));
        target.key = key;
    }
    if (const auto file = args.get("ca")) {
        TRY(target.ca_pem, read_file(*file, 1u << 20));
    }
    target.api = args.get_or("api", "chat") == "completions" ? LoadApi::completions : LoadApi::chat;
    if (const auto model = args.get("model")) {
        target.model = *model;
    } else {
        TRY(const auto models, list_models(target));
        target.model = models.front();
    }
    return target;
}

// What the row says of the model: of the file that planned it, unless the user says otherwise.
Result<std::map<std::string, std::string>> cells_of(const Args& args, const Workload* workload) {
    std::map<std::string, std::string> cells;
    if (workload != nullptr) {
        const ModelSpec& model = workload->model;
        const std::pair<const char*, double> shape[] = {{"layers", model.layers}, {"hidden", model.hidden},
                                                        {"heads", model.heads},   {"kv_heads", model.kv_heads},
                                                        {"ffn", model.ffn},       {"vocab", model.vocabulary}};
        for (const auto& [column, value] : shape)
            if (value > 0) cells[column] = fmt::format("{:g}", value);
    }
    for (const std::string& cell : args.all("cell")) {
        const std::size_t equals = cell.find('=');
        if (equals == std::string::npos || equals == 0)
            return Error(ErrorKind::invalid, fmt::format("--cell: '{}' is not COLUMN=VALUE", cell), {},
                         "--cell gpu_model=H100");
        cells[cell.substr(0, equals)] = cell.substr(equals + 1);
    }
    return cells;
}

struct Compared {
    std::string name, unit;
    double planned = 0, low = 0, high = 0, measured = 0;
    bool within() const { return measured >= low && measured <= high; }
};

std::vector<Compared> compare(const PlannedService& planned, const LoadFigures& f) {
    const Prediction& p = planned.candidate.prediction;
    std::vector<Compared> rows;
    auto add = [&rows](std::string name, std::string unit, Range range, double measured) {
        if (range.mid > 0 && measured > 0)
            rows.push_back({std::move(name), std::move(unit), range.mid, std::min(range.low, range.mid),
                            std::max(range.high, range.mid), measured});
    };
    // The interval of the 95th percentile, as a share of it, is that of the others too.
    auto like = [](double mid, const Range& of) {
        return of.mid > 0 ? Range{mid * of.low / of.mid, mid, mid * of.high / of.mid} : Range{mid, mid, mid};
    };
    add("ttft p50", "s", like(p.latency.ttft_p50, p.ttft_p95_s), f.ttft_s.p50);
    add("ttft p95", "s", p.ttft_p95_s, f.ttft_s.p95);
    add("tpot p50", "s", like(p.latency.tpot_p50, p.tpot_p95_s), f.tpot_s.p50);
    add("tpot p95", "s", p.tpot_p95_s, f.tpot_s.p95);
    // One replica is simulated; requests are divided among all.
    const double replicas = std::max(planned.candidate.replicas, 1);
    const Range tpot = p.tpot_p95_s;
    const double rate = p.latency.requests_per_s * replicas, tokens = p.latency.output_tokens_per_s * replicas;
    auto inverse = [&](double mid) {
        return tpot.mid > 0 && tpot.low > 0 && tpot.high > 0
                   ? Range{mid * tpot.mid / tpot.high, mid, mid * tpot.mid / tpot.low}
                   : Range{mid, mid, mid};
    };
    add("requests", "/s", inverse(rate), f.requests_per_s);
    add("output tokens", "/s", inverse(tokens), f.output_tokens_per_s);
    if (const double hourly = planned.candidate.node_per_hour.dollars() * planned.candidate.nodes;
        hourly > 0 && tokens > 0 && f.output_tokens_per_s > 0) {
        const Range t = inverse(tokens);
        auto usd = [hourly](double per_s) { return hourly / 3600 / per_s * 1e6; };
        add("USD per M tokens", "", {usd(t.high), usd(t.mid), usd(t.low)}, usd(f.output_tokens_per_s));
    }
    return rows;
}

Json json_of(const std::vector<Compared>& rows) {
    Json all = Json::array();
    for (const Compared& row : rows)
        all.push(Json::object()
                     .set("figure", row.name)
                     .set("planned", row.planned)
                     .set("low", row.low)
                     .set("high", row.high)
                     .set("measured", row.measured)
                     .set("ratio", row.measured / row.planned)
                     .set("within", row.within()));
    return all;
}

std::string seconds_text(double s) {
    return s >= 10  ? fmt::format("{:.1f} s", s)
           : s >= 1 ? fmt::format("{:.2f} s", s)
                    : fmt::format("{:.3g} ms", 1e3 * s);
}

std::string cell(const Compared& row, double value) {
    return row.unit == "s" ? seconds_text(value) : fmt::format("{:.4g}{}", value, row.unit);
}

std::string text_of(const Session& session, const LoadTarget& target, const LoadPlan& load, const LoadFigures& f,
                    const LoadGoal& goal) {
    std::string text = fmt::format("{}  {}\n", session.style.bold(target.model), target.url);
    text +=
        load.requests_per_second > 0
            ? fmt::format("  open loop, {:g} requests/s{}\n", load.requests_per_second,
                          load.arrival_shape == 1 ? ", Poisson" : fmt::format(", gamma shape {:g}", load.arrival_shape))
            : fmt::format("  closed loop, {} client{}\n", load.concurrency, load.concurrency == 1 ? "" : "s");
    text += fmt::format(
        "  {} of {} answered in {:.1f} s: {:.4g} requests/s, {:.4g} output tokens/s, {:.4g} prompt tokens/s\n",
        f.answered, f.sent, f.seconds, f.requests_per_s, f.output_tokens_per_s, f.prompt_tokens_per_s);
    text += fmt::format("  prompts {:.4g} tokens, answers {:.4g} {}; {:.3g} in flight on average\n\n",
                        f.prompt_tokens_mean, f.output_tokens_mean,
                        f.tokens_counted ? "tokens" : "chunks (the server counts no tokens)", f.in_flight_mean);
    std::vector<std::vector<std::string>> rows;
    const std::pair<const char*, const LoadSpread*> spreads[] = {{"time to first token", &f.ttft_s},
                                                                 {"time per output token", &f.tpot_s},
                                                                 {"between chunks", &f.itl_s},
                                                                 {"whole request", &f.e2e_s}};
    for (const auto& [name, s] : spreads)
        if (s->count > 0)
            rows.push_back({name, seconds_text(s->mean), seconds_text(s->p50), seconds_text(s->p90),
                            seconds_text(s->p95), seconds_text(s->p99), seconds_text(s->most)});
    if (!rows.empty())
        text += table_text(session.style,
                           {{""},
                            {"mean", Align::right},
                            {"p50", Align::right},
                            {"p90", Align::right},
                            {"p95", Align::right},
                            {"p99", Align::right},
                            {"most", Align::right}},
                           rows);
    if (goal.any())
        text += fmt::format("\n  within the goal: {:.1f} % of all requests, {:.4g} a second\n", 100 * f.goodput_share,
                            f.goodput_per_s);
    if (load.requests_per_second > 0 && f.sent_late_s.p99 > 0.05)
        text +=
            fmt::format("  {} requests left this machine up to {} late: more than {} were in flight, or it is busy\n",
                        session.style.warn("!"), seconds_text(f.sent_late_s.most), load.most_in_flight);
    for (const auto& [what, count] : f.errors)
        text += fmt::format("  {} {} x {}\n", session.style.bad("!"), count, what);
    return text;
}

std::string comparison_text(const Session& session, const PlannedService& planned, const std::vector<Compared>& rows,
                            const LoadFigures& f) {
    std::string text = fmt::format("\n{} {}, {}\n", session.style.bold("held against its plan:"), planned.machine,
                                   planned.candidate.framework);
    std::vector<HeldRow> held;
    for (const Compared& row : rows)
        held.push_back({row.name, cell(row, row.planned), cell(row, row.low), cell(row, row.high),
                        cell(row, row.measured), row.measured / row.planned, row.within() ? "within" : "outside"});
    text += held_table(session.style, held);
    const TrafficSpec& traffic = planned.workload.traffic;
    auto unlike = [&text, &session](const char* what, std::optional<double> asked, double measured) {
        if (asked && measured > 0 && std::abs(measured / *asked - 1) > 0.2)
            text += fmt::format("  {} {} had {:.4g} tokens; the plan is for {:.4g}\n", session.style.warn("!"), what,
                                measured, *asked);
    };
    unlike("prompts", traffic.prompt_tokens, f.tokens_counted ? f.prompt_tokens_mean : 0);
    unlike("answers", traffic.output_tokens, f.output_tokens_mean);
    return text;
}

}  // namespace

Result<CommandOutput> bench_serve(Session& session, const Args& args) {
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, "which server is to be measured?", {},
                     "stoker bench serve http://127.0.0.1:8080");
    TRY(const LoadGoal goal, goal_of(args));
    std::optional<PlannedService> planned;
    if (const auto file = args.get("plan")) {
        TRY(planned, planned_of(session, *file));
    }
    TRY(LoadPlan load, load_of(args, planned ? &*planned : nullptr));
    TRY(const LoadTarget target, target_of(args));

    ProgressLine progress(!session.quiet);
    const double wanted_prompt = load.prompt_words;
    progress.update(-1, "asking how the server counts tokens");
    TRY(const auto scale, measure_prompt_scale(target, load));
    const double tokens_per_word = scale ? scale->tokens_per_word : 4.0 / 3;
    load.prompt_words = std::max(1.0, (wanted_prompt - (scale ? scale->frame_tokens : 0)) / tokens_per_word);

    std::atomic<bool> stop{false}, over{false};
    std::atomic<std::int64_t> finished{0};
    std::thread watcher([&] {
        while (!over) {
            progress.update(static_cast<double>(finished) / load.requests,
                            fmt::format("{} of {} requests", finished.load(), load.requests));
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    });
    const auto run = run_load(target, load, stop, finished);
    over = true;
    watcher.join();
    progress.clear();
    if (!run) return run.error();
    const LoadFigures figures = figures_of(*run, goal);
    const std::vector<Compared> compared = planned ? compare(*planned, figures) : std::vector<Compared>{};
    if (const auto out = args.get("row")) {
        TRY(auto cells, cells_of(args, planned ? &planned->workload : nullptr));
        cells.try_emplace("source", fmt::format("stoker bench serve, {}", session.today));
        cells.try_emplace("model", target.model);
        TRY(const std::string row, inference_row(figures, load, cells));
        TRY_VOID(write_file_atomic(*out, row));
    }
    const int exit = figures.answered == 0 ? 3 : figures.answered < figures.sent ? 1 : 0;
    if (session.format != Format::text) {
        Json out =
            Json::object()
                .set("url", target.url)
                .set("model", target.model)
                .set("loop", load.requests_per_second > 0 ? "open" : "closed")
                .set("requests_per_s_asked", load.requests_per_second > 0 ? Json(load.requests_per_second) : Json())
                .set("concurrency", load.concurrency > 0 ? Json(load.concurrency) : Json())
                .set("prompt_tokens_asked", wanted_prompt)
                .set("output_tokens_asked", load.output_tokens)
                .set("figures", json_of(figures));
        if (planned)
            out.set("plan", Json::object()
                                .set("machine", planned->machine)
                                .set("framework", planned->candidate.framework)
                                .set("figures", json_of(compared)));
        return CommandOutput{dump(session, out), exit};
    }
    std::string text = text_of(session, target, load, figures, goal);
    if (planned) text += comparison_text(session, *planned, compared, figures);
    return CommandOutput{text, exit};
}

const std::vector<OptionSpec>& bench_serve_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "model", .value = "NAME", .help = "serve: which model (the first that the server lists)"},
        {.name = "rate",
         .value = "R",
         .help = "serve: open loop, so many requests a second, whatever the answers take"},
        {.name = "concurrency",
         .value = "N",
         .help = "serve: closed loop, so many clients that wait for their answers (1)"},
        {.name = "shape", .value = "K", .help = "serve: of gamma distributed gaps; 1 Poisson, 0.25 bursts, 16 even"},
        {.name = "requests", .value = "N", .help = "serve: how many in all (200)"},
        {.name = "prompt-tokens", .value = "N", .help = "serve: mean length of a prompt (128)"},
        {.name = "output-tokens", .value = "N", .help = "serve: mean length of an answer (64)"},
        {.name = "cv", .value = "X", .help = "serve: spread of both lengths, as deviation over mean (0)"},
        {.name = "ignore-eos", .help = "serve: answers are as long as asked (llama.cpp, vLLM, SGLang)"},
        {.name = "goal",
         .value = "LIMITS",
         .help = "serve: ttft=500ms,tpot=50ms,e2e=10s; counts the requests within",
         .repeats = true},
        {.name = "plan",
         .value = "FILE",
         .help = "serve: the workload file of this endpoint: its load, and what was planned",
         .completes = "file"},
        {.name = "api", .value = "API", .help = "serve: chat, or completions", .choices = {"chat", "completions"}},
        {.name = "key-env", .value = "NAME", .help = "serve: the variable that holds the key of the server"},
        {.name = "ca", .value = "FILE", .help = "serve: whom to trust for https, as PEM", .completes = "file"},
        {.name = "timeout", .value = "TIME", .help = "serve: of one request (2m)"},
        {.name = "seed", .value = "N", .help = "serve: of prompts, lengths and arrivals (1)"},
        {.name = "row",
         .value = "FILE",
         .help = "serve: write the result as a row for stoker validate",
         .completes = "file"},
        {.name = "cell",
         .value = "COLUMN=VALUE",
         .help = "serve: a cell of that row: gpu_model=H100, engine=vLLM, layers=32",
         .repeats = true}};
    return options;
}

}  // namespace stoker
