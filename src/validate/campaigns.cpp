#include "validate/campaigns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/digest.h"
#include "base/text.h"

namespace stoker::validate {
namespace {

constexpr double kNinetieth = 1.2816;  // of the normal distribution; as in a plan
constexpr double kMostTokensB = 1e6;   // a thousand trillions: beyond it is a slip of a unit
constexpr std::size_t kLeastSources = 4;

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

using Ratios = std::map<std::string, std::vector<double>, std::less<>>;

// Published by steady, of the rows of each source in one half.
Ratios ratios_of(const std::vector<Campaign>& rows, bool fitted) {
    Ratios out;
    for (const Campaign& c : rows)
        if (c.refused.empty() && c.fitted == fitted) out[c.source].push_back(c.ratio());
    return out;
}

CampaignShares shares_of(const Ratios& ratios, const Campaigns& all) {
    CampaignShares out{.sources = ratios.size()};
    std::vector<double> told;
    for (const auto& [source, members] : ratios) {
        out.rows += members.size();
        told.push_back(all.factor / median_of(members));
        double near = 0, inside = 0;
        for (const double ratio : members) {
            if (std::abs(std::log(all.factor / ratio)) <= std::log(1.25)) ++near;
            if (all.low <= ratio && ratio <= all.high) ++inside;
        }
        const auto n = static_cast<double>(members.size()), sources = static_cast<double>(ratios.size());
        out.within_quarter += near / n / sources;
        out.inside += inside / n / sources;
    }
    out.median = median_of(std::move(told));
    return out;
}

Campaign campaign_of(const Row& row, Jobs& jobs) {
    Campaign out;
    out.id = std::string(row.text("id"));
    out.source = std::string(row.text("source_group"));
    out.model = std::string(row.text("model_name"));
    out.fitted = fitted_half(out.source);
    out.read = std::string(row.text("read"));
    const auto refuse = [&out](std::string why) {
        out.refused = std::move(why);
        return out;
    };
    if (out.source.empty()) return refuse("missing:source_group");
    const auto tokens = row.number("tokens_b");
    const auto hours = row.measured("measured_gpu_hours");
    if (!row.invalid().empty()) return refuse(fmt::format("invalid:{}", row.invalid()));
    if (!tokens || !(*tokens > 0)) return refuse("missing:tokens_b");
    if (*tokens > kMostTokensB) return refuse("invalid:tokens_b");
    if (!row.given("measured_gpu_hours")) return refuse("missing:measured_gpu_hours");
    if (!hours || !(*hours > 0)) return refuse("invalid:measured_gpu_hours");
    if (!row.given("global_batch")) return refuse("missing:global_batch");
    const Job job = jobs.of(row, false);
    if (!row.invalid().empty()) return refuse(fmt::format("invalid:{}", row.invalid()));
    if (!job.refused.empty()) return refuse(job.refused);
    // As in a plan: no step is told shorter than the best published MFU makes it.
    const double held_back = job.setup->mfu_most > 0 ? std::max(1.0, job.estimate.mfu / job.setup->mfu_most) : 1;
    const double step_s = job.estimate.step_s * held_back, tokens_of_step = job.global_batch * job.sequence;
    if (!(step_s > 0) || !std::isfinite(step_s) || !(tokens_of_step > 0)) return refuse("unsupported:no step time");
    out.assumed = job.assumed;
    out.hours = *hours;
    out.steady_hours = *tokens * 1e9 / tokens_of_step * step_s * job.gpus / 3600;
    return out;
}

std::string percent(double share) {
    return fmt::format("{:.0f} %", 100 * share);
}

std::string hours_text(double hours) {
    return hours >= 1e6 ? fmt::format("{:.2f} M", hours / 1e6)
                        : fmt::format("{:.{}f} k", hours / 1e3,
                                      hours < 1e4   ? 2
                                      : hours < 1e5 ? 1
                                                    : 0);
}

Json shares_json(const CampaignShares& s) {
    return Json::object()
        .set("sources", s.sources)
        .set("rows", s.rows)
        .set("median_told_by_published", s.median)
        .set("within_a_quarter", s.within_quarter)
        .set("inside_interval", s.inside);
}

std::string shares_text(std::string_view what, const CampaignShares& s) {
    if (s.rows == 0)
        return fmt::format("  {:<11} no training: all of them were refused, or are of the other half\n", what);
    return fmt::format("  {:<11} {} sources, {} rows: told by published {:.2f} (median), within 1.25 x {}, inside {}\n",
                       what, s.sources, s.rows, s.median, percent(s.within_quarter), percent(s.inside));
}

}  // namespace

bool fitted_half(std::string_view source) {
    const char last = sha256_hex(source)[7];
    const int digit = last <= '9' ? last - '0' : last - 'a' + 10;
    return digit % 2 == 0;
}

Result<Campaigns> campaigns(const Csv& csv, Jobs& jobs, FileName file) {
    for (const std::string_view column : {"id", "source_group", "model_name", "gpu_model", "gpus", "seq_len",
                                          "global_batch", "tokens_b", "measured_gpu_hours"})
        if (!csv.column(column))
            return Error(ErrorKind::invalid, fmt::format("no column is called \"{}\"", column), {file, 1, 1},
                         "campaigns have the columns of training rows, tokens_b and measured_gpu_hours: "
                         "data/calibration/campaigns.csv");
    Campaigns out;
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        out.rows.push_back(campaign_of(Row(csv, i), jobs));
        if (!out.rows.back().refused.empty()) ++out.refused;
    }
    Ratios fitted = ratios_of(out.rows, true);
    if (fitted.size() < kLeastSources) {
        const Constant* known = jobs.catalog().constant("campaign_factor");
        if (known == nullptr || !(known->low > 0 && known->high >= known->low))
            return Error(ErrorKind::invalid,
                         fmt::format("{} sources of the half that the factor is fitted on, and {} are wanted",
                                     fitted.size(), kLeastSources),
                         {file, 1, 1},
                         "add campaigns of other sources, or a campaign_factor with low and high to the catalogue");
        for (Campaign& c : out.rows) c.fitted = false;
        out.own_factor = false;
        out.factor = known->value;
        out.low = known->low;
        out.high = known->high;
        out.judged = shares_of(ratios_of(out.rows, false), out);
        return out;
    }
    std::vector<double> logs;
    for (const auto& [source, members] : fitted) logs.push_back(std::log(median_of(members)));
    const double middle = median_of(logs);
    double squares = 0;
    for (const double value : logs) squares += (value - middle) * (value - middle);
    const double sigma = std::sqrt(squares / static_cast<double>(logs.size() - 1));
    out.factor = std::exp(middle);
    out.low = std::exp(middle - kNinetieth * sigma);
    out.high = std::exp(middle + kNinetieth * sigma);
    out.fitted = shares_of(fitted, out);
    out.judged = shares_of(ratios_of(out.rows, false), out);
    return out;
}

Json campaigns_json(const std::string& file, const Campaigns& all, double used) {
    Json rows = Json::array();
    for (const Campaign& c : all.rows) {
        Json assumed = Json::array();
        for (const std::string& text : c.assumed) assumed.push(text);
        const bool told = c.refused.empty();
        rows.push(Json::object()
                      .set("id", c.id)
                      .set("source", c.source)
                      .set("model", c.model)
                      .set("half", c.fitted ? "fitted" : "judged")
                      .set("read_at_source", c.read.empty() ? Json() : Json(c.read))
                      .set("published_gpu_hours", told ? Json(c.hours) : Json())
                      .set("steady_gpu_hours", told ? Json(c.steady_hours) : Json())
                      .set("published_by_steady", told ? Json(c.ratio()) : Json())
                      .set("refused", told ? Json() : Json(c.refused))
                      .set("assumed", std::move(assumed)));
    }
    return Json::object()
        .set("kind", "campaigns")
        .set("file", file)
        .set("factor", all.factor)
        .set("low", all.low)
        .set("high", all.high)
        .set("factor_of_plans", used)
        .set("factor_fitted_on_this_file", all.own_factor)
        .set("fitted", shares_json(all.fitted))
        .set("judged", shares_json(all.judged))
        .set("refused", all.refused)
        .set("campaigns", std::move(rows));
}

std::string campaigns_text(const std::string& file, const Campaigns& all, double used, const Style& style) {
    std::string out =
        fmt::format("{}: {} whole trainings, {} refused\n\n", printable(file, 60), all.rows.size(), all.refused);
    std::vector<std::vector<std::string>> rows;
    for (const bool fitted : {false, true})
        for (const Campaign& c : all.rows) {
            if (c.fitted != fitted) continue;
            const bool told = c.refused.empty();
            const bool inside = told && all.low <= c.ratio() && c.ratio() <= all.high;
            rows.push_back({fitted ? "fitted" : "judged", cut(printable(c.model, 60), 22),
                            cut(printable(c.source, 60), 18), told ? hours_text(c.hours) : "-",
                            told ? hours_text(c.steady_hours) : "-", told ? fmt::format("{:.2f}", c.ratio()) : "-",
                            told ? (inside ? "yes" : "no") : printable(c.refused, 40),
                            c.read.empty() ? "-" : printable(c.read, 10)});
        }
    out += table_text(style,
                      {{"half"},
                       {"model"},
                       {"source"},
                       {"published h", Align::right},
                       {"steady h", Align::right},
                       {"ratio", Align::right},
                       {"inside"},
                       {"read"}},
                      rows);
    out += fmt::format("\n  factor {:.2f} (80 % of campaigns {:.2f} to {:.2f}): {}\n", all.factor, all.low, all.high,
                       all.own_factor ? "the median over the fitted sources"
                                      : "of the catalogue, since the fitted half has too few sources here");
    out += shares_text("judged on", all.judged);
    if (all.own_factor) out += shares_text("fitted on", all.fitted);
    out += fmt::format("  plans have a factor of {:.2f}\n", used);
    out +=
        "\n  ratio: published device-hours by those at the predicted steady rate. A source counts once. Halves by a "
        "hash of\n"
        "  the source's name. read: the figure was read at its source; no: recalled\n";
    return out;
}

}  // namespace stoker::validate
