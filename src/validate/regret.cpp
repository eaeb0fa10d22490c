#include "validate/regret.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace stoker::validate {
namespace {

struct Measured {
    std::string id{}, layout{};
    double measured_s = 0, predicted_s = 0, flops = 0;
};

// What a person chooses, apart from the data-parallel degree, which follows from the number of devices.
std::string layout_word(const Row& row) {
    std::string word;
    for (const char* column : {"tp", "pp", "vpp", "cp", "ep", "zero_stage", "micro_batch", "recompute"})
        word += std::string(row.text(column)) + "/";
    return word;
}

// Measured seconds of the one that `figure` puts first; of tied ones the worst.
template <typename Figure>
const Measured& first_by(const std::vector<Measured>& members, const Figure& figure) {
    const Measured* best = &members.front();
    for (const Measured& m : members) {
        const double mine = figure(m), lowest = figure(*best);
        if (mine < lowest || (mine == lowest && m.measured_s > best->measured_s)) best = &m;
    }
    return *best;
}

RegretFigures figures_of(const std::vector<RegretGroup>& groups, double RegretGroup::*member) {
    std::vector<double> values;
    for (const RegretGroup& g : groups) values.push_back(g.*member);
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    RegretFigures out{.median = n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]),
                      .mean = 0,
                      .max = values.back()};
    for (const double v : values) out.mean += v / static_cast<double>(n);
    return out;
}

}  // namespace

Regret regret(const Csv& csv, Jobs& jobs) {
    Regret out;
    std::map<std::string, std::vector<Measured>> groups;
    std::map<std::string, RegretGroup> heads;
    std::map<std::string, std::map<std::string, std::size_t>> layouts;  // of a source: how often
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const Row row(csv, i);
        if (training_metric(row) != "step_s") continue;
        const Job job = jobs.of(row, false);
        // A model cannot be blamed for what it was never asked: refused rows are no candidates.
        if (!job.refused.empty() || !row.invalid().empty() || !(job.estimate.step_s > 0)) {
            ++out.left_out;
            continue;
        }
        std::string key;
        for (const char* column :
             {"source_group", "model_name", "gpu_model", "gpus", "seq_len", "global_batch", "precision"})
            key += std::string(row.text(column)) + "|";
        Measured m{.id = std::string(row.text("id")), .layout = layout_word(row), .predicted_s = job.estimate.step_s};
        const double passes = job.layout.recompute == Recompute::full ? 4.0 / 3 : 1;
        m.flops = model_flops(*job.setup, job.global_batch) * passes;
        const auto measured = measured_step(row);
        if (!measured || !(*measured > 0)) continue;
        m.measured_s = *measured;
        ++layouts[std::string(row.text("source_group"))][m.layout];
        heads.try_emplace(key, RegretGroup{.source = std::string(row.text("source_group")),
                                           .model = std::string(row.text("model_name")),
                                           .device = std::string(row.text("gpu_model")),
                                           .gpus = job.gpus});
        groups[key].push_back(std::move(m));
    }
    for (auto& [key, members] : groups) {
        std::set<std::string> distinct;
        for (const Measured& m : members) distinct.insert(m.layout);
        if (distinct.size() < kLeastLayouts) continue;
        RegretGroup g = heads.at(key);
        g.layouts = distinct.size();
        g.best_s = std::numeric_limits<double>::infinity();
        double sum = 0;
        for (const Measured& m : members) {
            g.best_s = std::min(g.best_s, m.measured_s);
            sum += m.measured_s;
        }
        const auto over = [&](double seconds) { return seconds / g.best_s - 1; };
        const Measured& chosen = first_by(members, [](const Measured& m) { return m.predicted_s; });
        const auto& often = layouts.at(g.source);
        g.chosen = chosen.id;
        g.model_choice = over(chosen.measured_s);
        g.common = over(
            first_by(members, [&](const Measured& m) { return -static_cast<double>(often.at(m.layout)); }).measured_s);
        g.flops = over(first_by(members, [](const Measured& m) { return m.flops; }).measured_s);
        g.random = over(sum / static_cast<double>(members.size()));
        out.groups.push_back(std::move(g));
    }
    out.model_choice = figures_of(out.groups, &RegretGroup::model_choice);
    out.common = figures_of(out.groups, &RegretGroup::common);
    out.flops = figures_of(out.groups, &RegretGroup::flops);
    out.random = figures_of(out.groups, &RegretGroup::random);
    return out;
}

}  // namespace stoker::validate
