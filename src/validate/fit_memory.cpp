#include "validate/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "validate/fit_rows.h"
#include "validate/held_out.h"

namespace stoker::validate {
namespace {

constexpr KnobChoice kMemoryKnobs[] = {
    {"logit_bytes_megatron"},
    {"logit_bytes_nanotron"},
    {"logit_bytes_eager"},
    {"logit_bytes_fused"},
    {"held_bytes_nanotron", false},
    {"activation_undivided_nanotron", false},
    {"activation_undivided_pipeline_nanotron", false},
    {"activation_stage_nanotron", false},
    {"checkpoint_copies_sharded_adapter"},
    {"fsdp_live_layers"},
    {"allocator_reserve_logits", true, 0.2},
};

// What is allowed to be called wrongly: of the runs that ran, and of those that did not.
constexpr double kRanWrong = 0.002, kFailedMissed = 0.15;
constexpr int kGrid = 100;  // thresholds, in hundredths

struct Verdict {
    std::string group;
    bool ran = false;
    double fits = 0;
};

struct Shares {
    double ran = 0, ran_right = 0, failed = 0, failed_right = 0;
    void add(const Verdict& v, double threshold) {
        const bool oom = v.fits < threshold;
        (v.ran ? ran : failed) += 1;
        if (oom != v.ran) (v.ran ? ran_right : failed_right) += 1;
    }
    double ran_share() const { return ran > 0 ? ran_right / ran : 1; }
    double failed_share() const { return failed > 0 ? failed_right / failed : 1; }
    // Of what is allowed: 1 and less where both are met.
    double loss() const { return std::max((1 - ran_share()) / kRanWrong, (1 - failed_share()) / kFailedMissed); }
};

Shares shares_at(const std::vector<Verdict>& verdicts, double threshold, std::string_view without) {
    Shares out;
    for (const Verdict& v : verdicts)
        if (v.group != without) out.add(v, threshold);
    return out;
}

// The middle of the thresholds that do best.
double best_threshold(const std::vector<Verdict>& verdicts, std::string_view without) {
    double least = INFINITY;
    int first = 0, last = 0;
    for (int i = 1; i < kGrid; ++i) {
        const double loss = shares_at(verdicts, static_cast<double>(i) / kGrid, without).loss();
        if (loss < least - 1e-9) {
            least = loss;
            first = last = i;
        } else if (loss <= least + 1e-9 && last == i - 1) {
            last = i;
        }
    }
    return 0.5 * (first + last) / kGrid;
}

}  // namespace

Result<FitProblem> memory_fit(const Catalog& catalog, const std::string& csv_text, FileName file) {
    return fit_of_rows(catalog, csv_text, file, RowKind::memory, kMemoryKnobs, predict_memory);
}

Result<std::string> memory_verdicts(const Catalog& catalog, const std::string& csv_text, FileName file,
                                    FitProblem& problem, Fit& fit) {
    TRY(const Csv csv, Csv::read(csv_text, file));
    TRY(const Intervals intervals, Intervals::embedded());
    TRY(const HeldOut apart, HeldOut::embedded());
    const std::size_t fitted = problem.knobs.size();
    std::map<std::string, std::vector<double>> of_group;  // constants that never saw it
    for (const Fold& fold : fit.folds) of_group.emplace(problem.groups[fold.group], fold.values);
    std::vector<double> of_all;
    for (const FittedKnob& knob : fit.knobs) of_all.push_back(knob.value);

    const auto verdicts_of = [&](const std::vector<double>& values, const auto& wanted) {
        const Catalog changed = with_knobs(catalog, std::span(problem.knobs).first(fitted), values);
        Hardware hardware(changed);
        Shapes shapes(changed);
        Jobs jobs(hardware, shapes);
        std::vector<Line> lines;
        for (std::size_t i = 0; i < csv.rows(); ++i)
            if (const Row row(csv, i); wanted(std::string(row.text("source_group"))) && !apart.has(row))
                lines.push_back(predict_memory(row, jobs, intervals));
        compare(RowKind::memory, csv, lines);
        std::vector<Verdict> out;
        for (const Line& line : lines) {
            const std::string was = lower(line.measured_outcome);
            if (was.empty() || was == "ratio" || !line.fits) continue;
            out.push_back({line.group, was == "fit", *line.fits});
        }
        return out;
    };
    const std::vector<Verdict> seen = verdicts_of(of_all, [](const std::string&) { return true; });
    // A group without a figure was in no fit.
    std::vector<Verdict> unseen =
        verdicts_of(of_all, [&](const std::string& group) { return !of_group.contains(group); });
    for (const auto& [name, values] : of_group) {
        const std::vector<Verdict> more =
            verdicts_of(values, [&name = name](const std::string& group) { return group == name; });
        unseen.insert(unseen.end(), more.begin(), more.end());
    }

    std::set<std::string> groups;
    for (const Verdict& v : seen) groups.insert(v.group);
    FittedKnob threshold{.value = best_threshold(seen, "")};
    threshold.rows = seen.size();
    threshold.groups.assign(groups.begin(), groups.end());
    Shares judged;
    std::string table;
    double sum = 0, squares = 0;
    for (const std::string& group : groups) {
        const double other = best_threshold(seen, group);
        sum += other;
        squares += other * other;
        Shares mine;
        for (const Verdict& v : unseen) {
            if (v.group != group) continue;
            mine.add(v, other);
            judged.add(v, other);
        }
        table += fmt::format("  {:<26} {:>10.2f} {:>7.0f} of {:<5.0f} {:>7.0f} of {:<5.0f}\n", group, other,
                             mine.ran_right, mine.ran, mine.failed_right, mine.failed);
    }
    const double count = static_cast<double>(std::max<std::size_t>(1, groups.size()));
    threshold.spread = std::sqrt(std::max(0.0, squares / count - sum * sum / (count * count)));
    problem.knobs.push_back(knob_of(catalog, "fit_verdict_probability", false));
    fit.knobs.push_back(threshold);

    std::string text = fmt::format("\n{:<28} {:>10} {:>16} {:>16}\n", "verdicts, group left out", "threshold",
                                   "ran, called so", "failed, flagged");
    text += table;
    text += fmt::format("  {:<26} {:>10} {:>14.2f} % {:>14.2f} %\n\n", "all of them", "", 100 * judged.ran_share(),
                        100 * judged.failed_share());
    text += fmt::format("{:<12} {:>24} {:>34}\n", "threshold", "fitted: ran, failed %",
                        "constants left out: ran, failed %");
    for (int i = 10; i < kGrid; i += 5) {
        const double at = static_cast<double>(i) / kGrid;
        const Shares a = shares_at(seen, at, ""), b = shares_at(unseen, at, "");
        text += fmt::format("{:<12.2f} {:>16.2f} {:>7.2f} {:>26.2f} {:>7.2f}\n", at, 100 * a.ran_share(),
                            100 * a.failed_share(), 100 * b.ran_share(), 100 * b.failed_share());
    }
    return text;
}

}  // namespace stoker::validate
