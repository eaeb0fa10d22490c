// stoker simulate: a fleet and its demand from CSV, replayed against placement policies.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/listing.h"
#include "base/table.h"
#include "base/text.h"
#include "base/units.h"
#include "io/gzip.h"
#include "io/terminal.h"
#include "run/decide/replay.h"

namespace stoker {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::vector<std::string> policy_names() {
    std::vector<std::string> names;
    for (const PlacementPolicy policy : all_placement_policies()) names.emplace_back(to_string(policy));
    return names;
}

Result<std::vector<PlacementPolicy>> policies_of(const Args& args) {
    std::vector<PlacementPolicy> policies;
    for (const std::string& name : args.all("policy"))  // the names were checked with the options
        if (const auto policy = placement_policy(name)) policies.push_back(*policy);
    return policies.empty() ? all_placement_policies() : policies;
}

Result<std::int64_t> whole_option(const Args& args, std::string_view name, std::int64_t otherwise, std::int64_t low,
                                  std::int64_t high, std::string_view unit) {
    const auto given = args.get(name);
    if (!given) return otherwise;
    std::string_view text = *given;
    if (!unit.empty() && text.ends_with(unit)) text.remove_suffix(unit.size());
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < low || value > high)
        return Error(ErrorKind::invalid, fmt::format("--{} takes a whole number from {} to {}{}, not '{}'", name, low,
                                                     high, unit, printable(*given, 40)));
    return value;
}

struct Summary {
    double mean = 0, low = 1, high = 0;
    void add(double value, double weight) {
        mean += value * weight;
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

struct PolicyOutcome {
    PlacementPolicy policy{};
    Summary allocated, fragmented, refused;
    std::vector<double> allocated_at;  // mean share of the capacity at each tenth of demand
};

PolicyOutcome run_policy(const Fleet& fleet, const std::vector<FleetTask>& tasks, ReplayOptions options, int seeds) {
    PolicyOutcome outcome{.policy = options.policy};
    const std::uint64_t first = options.seed;
    for (int i = 0; i < seeds; ++i) {
        options.seed = first + static_cast<std::uint64_t>(i);
        const ReplayResult result = replay(fleet, tasks, options);
        const double weight = 1.0 / seeds;
        outcome.allocated.add(result.allocated, weight);
        outcome.fragmented.add(result.fragmented, weight);
        outcome.refused.add(
            result.tasks > 0 ? static_cast<double>(result.refused) / static_cast<double>(result.tasks) : 0, weight);
        outcome.allocated_at.resize(std::max(outcome.allocated_at.size(), result.points.size()));
        for (std::size_t p = 0; p < result.points.size(); ++p)
            outcome.allocated_at[p] += result.points[p].allocated * weight;
    }
    return outcome;
}

Json outcome_json(const PolicyOutcome& outcome, double gpus) {
    Json json = Json::object();
    json.set("policy", to_string(outcome.policy))
        .set("allocated_share", outcome.allocated.mean)
        .set("allocated_share_low", outcome.allocated.low)
        .set("allocated_share_high", outcome.allocated.high)
        .set("allocated_gpus", outcome.allocated.mean * gpus)
        .set("fragmented_share", outcome.fragmented.mean)
        .set("refused_tasks_share", outcome.refused.mean);
    Json points = Json::array();
    for (std::size_t p = 0; p < outcome.allocated_at.size(); ++p)
        points.push(Json::object()
                        .set("demand_share", static_cast<double>(p + 1) / 10)
                        .set("allocated_share", outcome.allocated_at[p]));
    return json.set("points", std::move(points));
}

std::string percent(double share) {
    return fmt::format("{:.1f} %", 100 * share);
}

Result<CommandOutput> run_simulate(Session& session, const Args& args) {
    const auto nodes_file = args.get("nodes"), tasks_file = args.get("tasks");
    if (!nodes_file || !tasks_file)
        return Error(ErrorKind::invalid, "which fleet, and which tasks? Both --nodes and --tasks are needed", {},
                     "stoker simulate --nodes nodes.csv --tasks tasks.csv");
    TRY(const std::int64_t demand, whole_option(args, "demand", 0, 1, 1000, "%"));
    TRY(const std::int64_t seeds, whole_option(args, "seeds", demand > 0 ? 3 : 1, 1, 1000, ""));
    TRY(const std::int64_t seed, whole_option(args, "seed", 42, 0, 1000000000, ""));
    TRY(const std::vector<PlacementPolicy> policies, policies_of(args));
    TRY(const std::string nodes_text, read_plain_or_gzip(*nodes_file, kMostBytes));
    TRY(Fleet fleet, read_fleet(nodes_text, *nodes_file));
    TRY(const std::string tasks_text, read_plain_or_gzip(*tasks_file, kMostBytes));
    TRY(const std::vector<FleetTask> tasks, read_fleet_tasks(tasks_text, *tasks_file, fleet));

    ProgressLine progress(!session.quiet);
    std::vector<PolicyOutcome> outcomes;
    for (const PlacementPolicy policy : policies) {
        progress.update(static_cast<double>(outcomes.size()) / static_cast<double>(policies.size()), to_string(policy));
        outcomes.push_back(run_policy(
            fleet, tasks,
            {.policy = policy, .demand = static_cast<double>(demand) / 100, .seed = static_cast<std::uint64_t>(seed)},
            static_cast<int>(seeds)));
    }
    progress.clear();
    std::stable_sort(outcomes.begin(), outcomes.end(), [](const PolicyOutcome& a, const PolicyOutcome& b) {
        return a.allocated.mean > b.allocated.mean;
    });

    const double gpus = static_cast<double>(fleet.total_gpu_milli()) / kWholeGpu;
    std::int64_t asked = 0;
    for (const FleetTask& task : tasks) asked += task.shape.total_gpu_milli();
    if (session.format != Format::text) {
        Json list = Json::array();
        for (const PolicyOutcome& outcome : outcomes) list.push(outcome_json(outcome, gpus));
        return CommandOutput{
            dump(session, Json::object()
                              .set("nodes", fleet.nodes.size())
                              .set("gpus", gpus)
                              .set("tasks", tasks.size())
                              .set("demand_share", demand > 0 ? Json(static_cast<double>(demand) / 100) : Json())
                              .set("seeds", seeds)
                              .set("policies", std::move(list))),
            0};
    }
    std::string text = fmt::format(
        "{} nodes, {} GPUs; {} tasks that ask for {} GPUs{}\n\n",
        format_thousands(static_cast<double>(fleet.nodes.size())), format_thousands(gpus),
        format_thousands(static_cast<double>(tasks.size())), format_thousands(static_cast<double>(asked) / kWholeGpu),
        demand > 0
            ? fmt::format(", redrawn to {} % of the fleet, mean of {} seed{}", demand, seeds, seeds == 1 ? "" : "s")
            : std::string(", in their order"));
    FactTable listing;
    listing.columns = {{"policy", "policy"},
                       {"allocated", "allocated", Align::right},
                       {"gpus", "GPUs", Align::right},
                       {"fragmented", "fragmented", Align::right},
                       {"refused", "tasks refused", Align::right}};
    if (seeds > 1) listing.columns.push_back({"range", "allocated by seed", Align::right});
    for (const PolicyOutcome& outcome : outcomes) {
        listing.rows.push_back({to_string(outcome.policy), percent(outcome.allocated.mean),
                                format_thousands(outcome.allocated.mean * gpus), percent(outcome.fragmented.mean),
                                percent(outcome.refused.mean)});
        if (seeds > 1)
            listing.rows.back().emplace_back(
                fmt::format("{:.1f} - {:.1f} %", 100 * outcome.allocated.low, 100 * outcome.allocated.high));
    }
    text += listing.text(session.style);
    text +=
        "\n" + session.style.dim("fragmented: free GPU that the usual tasks cannot use (Weng et al., ATC 2023)") + "\n";
    return CommandOutput{text, 0};
}

}  // namespace

CliCommand simulate_command() {
    return {
        .name = "simulate",
        .summary = "replay tasks on a fleet under several placement policies",
        .usage = "stoker simulate --nodes NODES.csv --tasks TASKS.csv [options]",
        .description =
            "What-if for a whole fleet: how much of its GPUs the tasks would fill, how much would be left in pieces "
            "that no usual task can use, and how many tasks would find no room, under each policy.\n"
            "NODES has the columns sn (or name), cpu_milli, memory_mib, gpu, model; TASKS has name, cpu_milli, "
            "memory_mib, num_gpu, gpu_milli and, if known, gpu_spec (models, divided by |). Both may be gzip'd.\n"
            "Tasks come in their order and never leave. --demand redraws them to a share of the fleet's GPUs, in an "
            "order drawn by each seed, as published studies do.",
        .examples = {"stoker simulate --nodes nodes.csv --tasks tasks.csv",
                     "stoker simulate --nodes nodes.csv --tasks tasks.csv.gz --demand 130% --seeds 10",
                     "stoker simulate --nodes nodes.csv --tasks tasks.csv --policy best-fit --policy fragmentation "
                     "-o json"},
        .options = {{.name = "nodes", .value = "FILE", .help = "the fleet, CSV", .completes = "file"},
                    {.name = "tasks", .value = "FILE", .help = "the demand, CSV", .completes = "file"},
                    {.name = "policy",
                     .value = "NAME",
                     .help = "one of the policies; may be repeated (all)",
                     .choices = policy_names(),
                     .repeats = true},
                    {.name = "demand", .value = "PERCENT", .help = "GPU demand, % of the fleet (as the tasks are)"},
                    {.name = "seeds", .value = "N", .help = "how many orders to draw (3 with --demand)"},
                    {.name = "seed", .value = "N", .help = "the first seed (42)"}},
        .run = run_simulate};
}

}  // namespace stoker
