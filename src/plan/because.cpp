#include "plan/because.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "base/embedded.h"
#include "base/tsv.h"
#include "plan/parallel.h"

namespace stoker {
namespace {

constexpr double kUnknownSpread = 0.10;  // of a constant that came without one
constexpr double kMatters = 1e-3;

// What a fit says of a constant (data/calibration/*.tsv).
struct Fitted {
    double value = 0, spread = 0;
    bool linear = false;  // the spread is of the value, not of its logarithm
    std::string rows, groups;
};

std::map<std::string, Fitted, std::less<>> fitted_constants() {
    std::map<std::string, Fitted, std::less<>> out;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("calibration/")) continue;
        const auto table = Tsv::read(file.bytes, file.path);
        if (!table || !table->has_column("name") || !table->has_column("value") || !table->has_column("spread") ||
            !table->has_column("rows") || !table->has_column("groups"))
            continue;
        const std::size_t name = *table->column("name"), value = *table->column("value"),
                          spread = *table->column("spread");
        const std::size_t rows = *table->column("rows"), groups = *table->column("groups");
        const auto scale = table->column("scale");
        for (std::size_t row = 0; row < table->rows(); ++row) {
            Fitted fit;
            if (const auto number = table->number(row, value)) fit.value = *number;
            if (const auto number = table->number(row, spread)) fit.spread = *number;
            fit.linear = scale && table->at(row, *scale) == "linear";
            fit.rows = table->at(row, rows);
            fit.groups = table->at(row, groups);
            if (fit.rows != "0" && !fit.rows.empty()) out.emplace(std::string(table->at(row, name)), std::move(fit));
        }
    }
    return out;
}

// The chosen candidate with nothing left to choose.
Workload pinned_choice(const Plan& plan, const Catalog& catalog) {
    const Candidate& c = plan.candidates.front();
    Workload w = plan.workload;
    w.where.sizes = {catalog.node_types()[static_cast<std::size_t>(c.node_type)].name};
    w.where.regions.clear();
    if (!c.region.empty()) w.where.regions.push_back(c.region);
    if (plan.workload.asks_for_capacity()) w.where.nodes = c.nodes;
    w.where.gpus.reset();
    w.where.accelerators.clear();
    w.objective.deadline.reset();
    w.objective.budget.reset();
    if (!is_training(w.kind)) return w;
    w.where.nodes = c.nodes;
    const ParallelLayout& l = c.layout;
    w.layout.tensor = l.tensor;
    w.layout.pipeline = l.pipeline;
    w.layout.virtual_stages = l.virtual_stages;
    w.layout.context = l.context;
    w.layout.expert = l.expert;
    w.layout.data = l.data;
    w.layout.zero = l.zero;
    w.layout.micro_batch = l.micro_batch;
    w.layout.recompute = std::string(to_string(l.recompute));
    if (l.recompute_layers > 0) w.layout.recompute_layers = l.recompute_layers;
    w.layout.sequence_parallel = l.sequence_parallel;
    w.layout.offload = l.offload;
    return w;
}

double shift_between(double before, double after) {
    return before > 0 && std::isfinite(after) ? after / before - 1 : 0;
}

struct Shift {
    double step = 0, memory = 0, usd = 0, ttft = 0, tpot = 0;
};

Shift shift_between(const Prediction& before, const Prediction& after) {
    return {.step = shift_between(before.step_s.mid, after.step_s.mid),
            .memory = shift_between(before.memory_bytes.mid, after.memory_bytes.mid),
            .usd = shift_between(before.usd.mid, after.usd.mid),
            .ttft = shift_between(before.ttft_p95_s.mid, after.ttft_p95_s.mid),
            .tpot = shift_between(before.tpot_p95_s.mid, after.tpot_p95_s.mid)};
}

double size_of(const Shift& o) {
    return std::max({std::abs(o.step), std::abs(o.memory), std::abs(o.usd), std::abs(o.ttft), std::abs(o.tpot)});
}

// One thing that can be moved: a constant by name, or a figure of the device or of a link of the chosen size.
struct Lever {
    ConstantEffect effect;
    // Puts the catalogue into the state where it has this value, and back.
    std::function<void(Catalog&, double value)> put;
};

Lever lever_of(const Constant& constant, const std::map<std::string, Fitted, std::less<>>& fits) {
    Lever lever;
    ConstantEffect& e = lever.effect;
    e.name = constant.name, e.value = constant.value, e.unit = constant.unit;
    e.source = constant.provenance.source, e.as_of = constant.provenance.as_of, e.note = constant.note;
    const auto fit = fits.find(constant.name);
    const bool fitted =
        fit != fits.end() && std::abs(fit->second.value - constant.value) <= 1e-9 * std::abs(constant.value);
    if (fitted) {
        e.rows = fit->second.rows, e.groups = fit->second.groups;
        e.source = fmt::format("fitted on {} rows of {}", e.rows, e.groups);
    }
    if (fitted && fit->second.spread > 0) {
        const double spread = fit->second.spread;
        e.low = fit->second.linear ? constant.value - spread : constant.value * std::exp(-spread);
        e.high = fit->second.linear ? constant.value + spread : constant.value * std::exp(spread);
        e.spread = "over the folds of the fit";
    } else if (constant.low < constant.value || constant.high > constant.value) {
        e.low = constant.low > 0 ? std::min(constant.low, constant.value) : constant.value;
        e.high = std::max(constant.high, constant.value);
        e.spread = "as the catalogue has it";
    } else {
        e.low = constant.value * (1 - kUnknownSpread), e.high = constant.value * (1 + kUnknownSpread);
        e.spread = "not known: moved by 10 %";
    }
    lever.put = [constant](Catalog& catalog, double value) {
        Constant moved = constant;
        moved.value = value;
        moved.low = std::min(moved.low, value), moved.high = std::max(moved.high, value);
        catalog.replace_constant(std::move(moved));
    };
    return lever;
}

Lever lever_of_device(std::string name, std::string unit, double value, const Provenance& from,
                      std::function<void(Catalog&, double)> put) {
    Lever lever;
    lever.effect = {.name = std::move(name),
                    .unit = std::move(unit),
                    .source = from.source,
                    .as_of = from.as_of,
                    .note = {},
                    .rows = {},
                    .groups = {},
                    .spread = "not known: moved by 10 %",
                    .value = value,
                    .low = value * (1 - kUnknownSpread),
                    .high = value * (1 + kUnknownSpread)};
    lever.put = std::move(put);
    return lever;
}

void add_hardware(const Plan& plan, const Catalog& catalog, std::vector<Lever>& levers) {
    const int type = plan.candidates.front().node_type;
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(type)];
    if (node.has_gpu()) {
        const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
        const auto changed = [type](auto edit) {
            return [type, edit](Catalog& c, double value) {
                Accelerator copy = c.accelerators()[static_cast<std::size_t>(
                    c.node_types()[static_cast<std::size_t>(type)].accelerator)];
                edit(copy, value);
                copy.aliases.clear();
                copy.name += "'";
                c.node_type(type).accelerator = c.add_accelerator(std::move(copy));
            };
        };
        const Precision p = plan.workload.precision;
        const double rate = gpu.peak[static_cast<std::size_t>(p)].v;
        if (rate > 0)
            levers.push_back(lever_of_device(fmt::format("matrix rate of {} in {}", gpu.name, to_string(p)), "FLOP/s",
                                             rate, gpu.provenance, changed([p](Accelerator& a, double value) {
                                                 const double factor = value / a.peak[static_cast<std::size_t>(p)].v;
                                                 for (FlopsPerSecond& peak : a.peak)
                                                     peak = FlopsPerSecond(peak.v * factor);
                                                 a.measured_bf16 = FlopsPerSecond(a.measured_bf16.v * factor);
                                                 a.measured_fp8 = FlopsPerSecond(a.measured_fp8.v * factor);
                                             })));
        levers.push_back(lever_of_device(
            fmt::format("memory bandwidth of {}", gpu.name), "B/s", gpu.memory_bandwidth.v, gpu.provenance,
            changed([](Accelerator& a, double value) { a.memory_bandwidth = BytesPerSecond(value); })));
    }
    const auto link = [&](int index, std::string_view where, int NodeType::*member) {
        if (index < 0) return;
        const Link& one = catalog.links()[static_cast<std::size_t>(index)];
        levers.push_back(lever_of_device(fmt::format("bandwidth {}: {}", where, one.name), "B/s", one.bandwidth.v,
                                         one.provenance, [type, one, member](Catalog& c, double value) {
                                             Link moved = one;
                                             moved.bandwidth = BytesPerSecond(value);
                                             moved.name += "'";
                                             c.node_type(type).*member = c.add_link(std::move(moved));
                                         }));
    };
    if (node.has_gpu() && node.whole_gpus() > 1) link(node.link_inside, "inside a node", &NodeType::link_inside);
    if (plan.candidates.front().nodes > 1) link(node.link_across, "between nodes", &NodeType::link_across);
}

}  // namespace

std::vector<ConstantEffect> because(const Plan& plan, const Catalog& catalog, const PlanOptions& given) {
    if (!plan.feasible()) return {};
    PlanOptions options = given;
    options.progress = {};
    options.threads = 1;
    options.usages.clear();
    const Workload workload = pinned_choice(plan, catalog);
    const auto base = estimate(workload, catalog, options);
    if (!base) return {};
    const auto fits = fitted_constants();
    std::vector<Lever> levers;
    for (const Constant& constant : catalog.constants()) {
        const bool definition = constant.low == constant.high && constant.value == std::floor(constant.value);
        if (!std::isfinite(constant.value) || constant.value == 0) continue;
        // A whole number without a range is a definition: 8 elements of a tensor core's tile are not 8.8.
        if (definition && !fits.contains(constant.name)) continue;
        levers.push_back(lever_of(constant, fits));
    }
    const std::size_t constants = levers.size();
    add_hardware(plan, catalog, levers);

    const auto lanes = static_cast<std::size_t>(std::max(1u, std::thread::hardware_concurrency()));
    for_each_index(lanes, static_cast<int>(lanes), [&](std::size_t lane) {
        Catalog mine = catalog;
        for (std::size_t i = lane; i < levers.size(); i += lanes) {
            ConstantEffect& e = levers[i].effect;
            const bool node_changes = i >= constants;
            for (const bool up : {true, false}) {
                const double value = up ? e.high : e.low;
                if (value == e.value) continue;
                const NodeType before = mine.node_types()[static_cast<std::size_t>(plan.candidates.front().node_type)];
                levers[i].put(mine, value);
                const auto moved = estimate(workload, mine, options);
                if (node_changes) {
                    mine.node_type(plan.candidates.front().node_type) = before;
                } else {
                    levers[i].put(mine, e.value);
                }
                if (!moved) continue;
                const Shift o = shift_between(base->prediction, moved->prediction);
                ConstantEffect::Change& to = up ? e.when_high : e.when_low;
                to = {.step = o.step, .memory = o.memory, .usd = o.usd, .ttft = o.ttft, .tpot = o.tpot};
                e.largest = std::max(e.largest, size_of(o));
                if (up && size_of(o) == 0 && value != 0) break;  // the model does not ask for it here
            }
        }
    });
    std::vector<ConstantEffect> out;
    for (Lever& lever : levers)
        if (lever.effect.largest >= kMatters) out.push_back(std::move(lever.effect));
    std::stable_sort(out.begin(), out.end(),
                     [](const ConstantEffect& a, const ConstantEffect& b) { return a.largest > b.largest; });
    return out;
}

}  // namespace stoker
