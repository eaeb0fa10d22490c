#include "validate/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"

namespace stoker::validate {
namespace {

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

GroupScore score_lines(std::string name, const std::vector<const Line*>& lines) {
    GroupScore g;
    g.name = std::move(name);
    std::vector<double> errors, signed_errors, widths;
    std::vector<const Line*> scored;
    for (const Line* line : lines) {
        ++g.lines;
        if (!line->refused.empty()) ++g.refused;
        if (line->refused.starts_with("unsupported:")) ++g.refused_able;
        if (!line->predicted || !line->counted || !line->measured || *line->measured == 0) continue;
        scored.push_back(line);
        errors.push_back(std::abs(line->error()));
        signed_errors.push_back(line->error());
        if (line->low > 0) widths.push_back(line->high / line->low);
        if (line->low <= *line->measured && *line->measured <= line->high) ++g.covered;
    }
    g.scored = scored.size();
    if (scored.empty()) return g;
    g.median = median_of(errors);
    g.median_signed = median_of(signed_errors);
    g.width = median_of(widths);
    double sum = 0;
    for (const double e : errors) sum += e;
    g.mean = sum / static_cast<double>(errors.size());
    std::sort(errors.begin(), errors.end());
    g.p90 = errors[static_cast<std::size_t>(std::floor(0.9 * static_cast<double>(errors.size() - 1)))];
    std::stable_sort(scored.begin(), scored.end(),
                     [](const Line* a, const Line* b) { return std::abs(a->error()) > std::abs(b->error()); });
    if (scored.size() > 5) scored.resize(5);
    g.worst = std::move(scored);
    return g;
}

std::vector<Tally> most_frequent_first(std::map<std::string, Tally> tallies) {
    std::vector<Tally> out;
    for (auto& [text, tally] : tallies) out.push_back(std::move(tally));
    std::stable_sort(out.begin(), out.end(), [](const Tally& a, const Tally& b) { return a.lines > b.lines; });
    return out;
}

void count(std::map<std::string, Tally>& tallies, const std::string& text, const std::string& id) {
    Tally& tally = tallies[text];
    tally.text = text;
    ++tally.lines;
    if (tally.ids.size() < 5) tally.ids.push_back(id);
}

void count_outcome(const Line& line, Confusion& c) {
    const std::string was = lower(line.measured_outcome);
    if (was.empty() || was == "ratio") return;
    const bool oom = line.outcome == "oom", known = !line.outcome.empty();
    if (!known) ++c.without;
    if (line.base_rate) ++c.base_rate;
    if (was == "fit") {
        ++c.fit;
        if (known && !oom) ++c.fit_called_fit;
    } else if (was == "oom" || was.starts_with("would-oom")) {
        ++c.oom;
        if (oom) ++c.oom_flagged;
    } else {
        ++c.mixed;
        if (oom) ++c.mixed_flagged;
    }
}

std::vector<VerdictPoint> verdicts_by_threshold(const std::vector<Line>& lines) {
    std::vector<VerdictPoint> out;
    for (int percent = 10; percent <= 90; percent += 10) out.push_back({.threshold = percent / 100.0});
    for (const Line& line : lines) {
        const std::string was = lower(line.measured_outcome);
        if (was.empty() || was == "ratio" || !line.fits) continue;
        for (VerdictPoint& point : out) {
            const bool oom = *line.fits < point.threshold;
            if (was == "fit" && !oom) ++point.fit_called_fit;
            if (was != "fit" && oom) ++point.failed_flagged;
        }
    }
    return out;
}

}  // namespace

std::string kind_of_refusal(std::string_view reason) {
    return std::string(trim(reason.substr(0, reason.find(" ("))));
}

Score score(std::size_t rows, const std::vector<Line>& lines) {
    Score out;
    out.rows = rows;
    std::map<std::string, std::vector<const Line*>> groups;
    std::map<std::string, Tally> refusals, assumptions;
    std::set<std::size_t> seen;
    std::vector<const Line*> all, apart;
    const std::string kApart = " (kept apart)";
    for (const Line& line : lines) {
        groups[line.kept_apart ? line.group + kApart : line.group].push_back(&line);
        all.push_back(&line);
        if (line.kept_apart) apart.push_back(&line);
        seen.insert(line.row);
        if (!line.refused.empty()) count(refusals, kind_of_refusal(line.refused), line.id);
        for (const std::string& text : line.assumed) count(assumptions, text, line.id);
        if (line.unfit) ++out.unfit;
        count_outcome(line, out.confusion);
    }
    out.verdicts = verdicts_by_threshold(lines);
    out.rows_missing = rows - std::min(rows, seen.size());
    std::vector<double> medians, medians_apart;
    for (const auto& [name, members] : groups) {
        out.groups.push_back(score_lines(name, members));
        const GroupScore& g = out.groups.back();
        if (g.scored == 0) continue;
        medians.push_back(g.median);
        if (members.front()->kept_apart) medians_apart.push_back(g.median);
        if (g.scored >= 9 && g.median > out.worst_median) {
            out.worst_median = g.median;
            out.worst_group = g.name;
        }
    }
    out.all = score_lines("all", all);
    out.median_of_medians = median_of(medians);
    out.apart = score_lines("kept apart", apart);
    out.apart_median_of_medians = median_of(medians_apart);
    out.refusals = most_frequent_first(std::move(refusals));
    out.assumptions = most_frequent_first(std::move(assumptions));
    return out;
}

}  // namespace stoker::validate
