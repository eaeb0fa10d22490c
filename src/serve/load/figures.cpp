#include "serve/load/figures.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

Json json_of(const LoadSpread& spread) {
    if (spread.count == 0) return {};
    return Json::object()
        .set("count", spread.count)
        .set("mean", spread.mean)
        .set("deviation", spread.deviation)
        .set("p50", spread.p50)
        .set("p90", spread.p90)
        .set("p95", spread.p95)
        .set("p99", spread.p99)
        .set("most", spread.most);
}

}  // namespace

LoadSpread spread_of(std::vector<double> values) {
    LoadSpread spread;
    if (values.empty()) return spread;
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size());
    for (const double value : values) spread.mean += value / n;
    for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean) / n;
    spread.deviation = std::sqrt(spread.deviation);
    auto at = [&](double p) {
        return values[static_cast<std::size_t>(std::clamp(std::ceil(p * n - 1e-9), 1.0, n)) - 1];
    };
    spread.count = static_cast<std::int64_t>(values.size());
    spread.p50 = at(0.5), spread.p90 = at(0.9), spread.p95 = at(0.95), spread.p99 = at(0.99),
    spread.most = values.back();
    return spread;
}

LoadFigures figures_of(const LoadRun& run, const LoadGoal& goal) {
    LoadFigures figures;
    figures.seconds = run.seconds;
    std::vector<double> ttft, tpot, itl, e2e, late;
    double prompt = 0, output = 0, in_flight = 0, good = 0;
    for (const LoadRecord& record : run.records) {
        figures.sent += 1;
        late.push_back(record.sent_s - record.scheduled_s);
        if (!record.error.empty()) {
            if (figures.errors.size() < 20 || figures.errors.contains(record.error)) figures.errors[record.error] += 1;
            continue;
        }
        figures.answered += 1;
        figures.tokens_counted = figures.tokens_counted && record.counted;
        const double whole_s = record.end_s - record.scheduled_s;
        const auto tokens = static_cast<double>(record.output_tokens);
        const double each_s = tokens > 1 && record.ttft_s >= 0 ? (whole_s - record.ttft_s) / (tokens - 1) : -1;
        e2e.push_back(whole_s);
        if (record.ttft_s >= 0) ttft.push_back(record.ttft_s);
        if (each_s >= 0) tpot.push_back(each_s);
        itl.insert(itl.end(), record.gaps_s.begin(), record.gaps_s.end());
        prompt += static_cast<double>(record.prompt_tokens);
        output += tokens;
        in_flight += whole_s;
        good += (goal.ttft_s <= 0 || (record.ttft_s >= 0 && record.ttft_s <= goal.ttft_s)) &&
                        (goal.tpot_s <= 0 || each_s <= goal.tpot_s) && (goal.e2e_s <= 0 || whole_s <= goal.e2e_s)
                    ? 1
                    : 0;
    }
    figures.ttft_s = spread_of(std::move(ttft));
    figures.tpot_s = spread_of(std::move(tpot));
    figures.itl_s = spread_of(std::move(itl));
    figures.e2e_s = spread_of(std::move(e2e));
    figures.sent_late_s = spread_of(std::move(late));
    const auto answered = static_cast<double>(figures.answered);
    if (figures.answered > 0) {
        figures.prompt_tokens_mean = prompt / answered;
        figures.output_tokens_mean = output / answered;
    } else {
        figures.tokens_counted = false;
    }
    if (run.seconds > 0) {
        figures.requests_per_s = answered / run.seconds;
        figures.output_tokens_per_s = output / run.seconds;
        figures.prompt_tokens_per_s = prompt / run.seconds;
        figures.in_flight_mean = in_flight / run.seconds;
        figures.goodput_per_s = good / run.seconds;
    }
    if (figures.sent > 0) figures.goodput_share = good / static_cast<double>(figures.sent);
    return figures;
}

Json json_of(const LoadFigures& figures) {
    Json errors = Json::object();
    for (const auto& [what, count] : figures.errors) errors.set(what, count);
    return Json::object()
        .set("sent", figures.sent)
        .set("answered", figures.answered)
        .set("errors", std::move(errors))
        .set("seconds", figures.seconds)
        .set("requests_per_s", figures.requests_per_s)
        .set("output_tokens_per_s", figures.output_tokens_per_s)
        .set("prompt_tokens_per_s", figures.prompt_tokens_per_s)
        .set("prompt_tokens_mean", figures.prompt_tokens_mean)
        .set("output_tokens_mean", figures.output_tokens_mean)
        .set("tokens_counted_by", figures.tokens_counted ? "server" : "chunks")
        .set("in_flight_mean", figures.in_flight_mean)
        .set("ttft_s", json_of(figures.ttft_s))
        .set("tpot_s", json_of(figures.tpot_s))
        .set("itl_s", json_of(figures.itl_s))
        .set("e2e_s", json_of(figures.e2e_s))
        .set("sent_late_s", json_of(figures.sent_late_s))
        .set("goodput_per_s", figures.goodput_per_s)
        .set("goodput_share", figures.goodput_share);
}

}  // namespace stoker
