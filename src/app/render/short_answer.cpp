// Longer than 500 lines because the lines of the answer share their words; those about money are the next to move.
#include "app/render/short_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "app/render/evidence_text.h"
#include "app/render/plan_text.h"
#include "base/text.h"
#include "plan/chance.h"
#include "plan/evidence.h"
#include "plan/savings.h"
#include "plan/sized_by.h"
#include "workload/run_section.h"

namespace stoker {

namespace {

struct TimeUnit {
    double hours = 1;
    std::string_view one, many;
};
constexpr TimeUnit kTimeUnits[] = {
    {24, "day", "days"}, {1, "h", "h"}, {1.0 / 60, "min", "min"}, {1.0 / 3600, "s", "s"}};

const TimeUnit& unit_for(double hours) {
    if (hours >= 48) return kTimeUnits[0];
    if (hours >= 2) return kTimeUnits[1];
    return hours >= 2.0 / 60 ? kTimeUnits[2] : kTimeUnits[3];
}

std::string in_unit(double hours, const TimeUnit& unit) {
    const double value = hours / unit.hours;
    if (value >= 99.5) return format_thousands(value);
    if (value >= 9.95 && unit.hours < 24) return fmt::format("{:.0f}", value);
    std::string text = fmt::format("{:.1f}", value);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
}

std::string plural(double count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", format_thousands(count), count == 1 ? one : many);
}

const NodeType& node_of(const Candidate& candidate, const Catalog& catalog) {
    return catalog.node_types()[static_cast<std::size_t>(candidate.node_type)];
}

std::string short_name(const NodeType& node) {
    return node.name.starts_with("Standard_") ? node.name.substr(9) : node.name;
}

std::string_view pricing_words(Pricing pricing) {
    switch (pricing) {
        case Pricing::on_demand: return "on demand";
        case Pricing::spot: return "spot";
        case Pricing::reserved_1y: return "reserved for 1 year";
        case Pricing::reserved_3y: return "reserved for 3 years";
        case Pricing::owned: return "your own";
    }
    return "";
}

std::string_view pricing_words(Pricing pricing, const Provenance& price) {
    if (!by_savings_plan(price)) return pricing_words(pricing);
    return pricing == Pricing::reserved_1y ? "on a 1-year savings plan" : "on a 3-year savings plan";
}

std::string machines_of(const Candidate& c, const Catalog& catalog) {
    const NodeType& node = node_of(c, catalog);
    std::string text = fmt::format("{} x {}", c.nodes, node.name);
    if (node.mig && node.mig->parts() > 0)
        text = fmt::format("{} of {} {}", plural(c.nodes, node.mig->profile + " part", node.mig->profile + " parts"),
                           (c.nodes + node.mig->parts() - 1) / node.mig->parts(), node.name);
    if (!c.region.empty() && c.region != node_of(c, catalog).name) text += ", " + c.region;
    const int kept = c.spot_service ? c.spot_service->on_demand_nodes : 0;
    if (kept > 0) return fmt::format("{}, {} on demand, {} on spot", text, kept, c.nodes - kept);
    return fmt::format("{}, {}", text, pricing_words(c.pricing, c.price_provenance));
}

std::string hardware_of(const Candidate& c, const Catalog& catalog) {
    const NodeType& node = node_of(c, catalog);
    std::string text = machine_parts(c, catalog);
    if (!node.has_gpu() || c.nodes < 2 || c.replicas > 0) return text;
    return text +
           (node.rdma_gbps_per_node > 0
                ? fmt::format(
                      ", {}{}",
                      node.rdma_generation.empty() || node.rdma_generation == "none" ? "" : node.rdma_generation + " ",
                      node.rdma == "infiniband" ? "InfiniBand"
                      : node.rdma == "roce"     ? "RoCE"
                                                : upper(node.rdma))
                : ", Ethernet");
}

double per_hour(const Candidate& c) {
    return usd_shown(c.prediction).mid;
}

// Of a price that is only known to lie between two figures, these; its middle is known to nobody.
std::string bracket_text(const Range& usd) {
    const std::string low = rounded_money(usd.low), high = rounded_money(usd.high);
    return low == high ? low : fmt::format("{} - {}", low, high);
}

// "no price list of eu-central-1 is known: that of us-east-1 and 15 to 30 % more".
std::string list_elsewhere_text(const Candidate& c) {
    const double low = 100 * (c.list_ratio.low - 1), high = 100 * (c.list_ratio.high - 1);
    return fmt::format("no price list of {} is known: counted at that of {}{}", c.region, c.price_is_of,
                       high < 0.5  ? ", which has been the same"
                       : low < 0.5 ? fmt::format(" and up to {:.0f} % more", high)
                                   : fmt::format(" and {:.0f} to {:.0f} % more", low, high));
}

std::string money_of(const Candidate& c) {
    if (c.pricing == Pricing::owned && c.prediction.usd.mid <= 0) return "your own machines";
    if (!c.priced) return "no price known";
    if (!runs_by_the_hour(c.prediction)) return rounded_money_range(c.prediction.usd);
    const Range hourly = usd_shown(c.prediction);
    if (c.price_is_estimate && hourly.low < hourly.high)
        return fmt::format("{} - {}/h, {} a month", money_text(hourly.low), money_text(hourly.high),
                           bracket_text(hourly * kHoursOfMonth));
    return fmt::format("{}/h, {} a month", money_text(per_hour(c)), rounded_money(per_hour(c) * kHoursOfMonth));
}

// "349 ms (216 - 768)": the ends in the unit of the middle.
std::string latency_in_one_unit(const Range& seconds) {
    if (!(seconds.mid < 60)) return format_seconds(Seconds(seconds.mid));
    const bool small = seconds.mid < 1;
    const auto text = [&](double value) {
        const double shown = small ? value * 1e3 : value;
        if (shown >= 999.5) return format_thousands(std::round(shown));
        const int digits = shown >= 99.5 ? 0 : shown >= 9.95 ? (small ? 0 : 1) : small ? 1 : 2;
        return fmt::format("{:.{}f}", shown, digits);
    };
    const std::string low = text(seconds.low), mid = text(seconds.mid), high = text(seconds.high);
    const std::string head = fmt::format("{} {}", mid, small ? "ms" : "s");
    return low == high ? head : fmt::format("{} ({} - {})", head, low, high);
}

// Where the whole answer has a limit, or is sound that was heard, it is what counts. It errs as its parts do.
std::string whole_answer(const Workload& workload, const Prediction& p) {
    const LatencySpec& limits = workload.objective.latency;
    const bool hears = workload.model.request.window_s > 0;
    const Range &first = p.ttft_p95_s, &token = p.tpot_p95_s;
    const double whole = p.latency.e2e_p95;
    if ((!hears && !limits.e2e_p95 && !limits.p95) || !(whole > 0) || !(first.mid > 0) || !(token.mid > 0)) return {};
    const double waits = std::min(first.mid, whole), rest = whole - waits;
    const Range answer{waits * first.low / first.mid + rest * token.low / token.mid, whole,
                       waits * first.high / first.mid + rest * token.high / token.mid};
    return fmt::format("p95: {}answer in {}",
                       hears ? "" : fmt::format("first token {}, ", format_seconds(Seconds(first.mid))),
                       latency_in_one_unit(answer));
}

std::string time_of(const Workload& workload, const Prediction& p) {
    if (!runs_by_the_hour(p)) return duration_in_one_unit(p.hours);
    if (!(p.ttft_p95_s.mid > 0)) return {};
    if (std::string answer = whole_answer(workload, p); !answer.empty()) return answer;
    const std::string first = latency_in_one_unit(p.ttft_p95_s);
    if (!(p.tpot_p95_s.mid > 0)) return fmt::format("p95: answer in {}", first);
    return fmt::format("p95: first token {}, then {} a token", first, latency_in_one_unit(p.tpot_p95_s));
}

// Rounded down: nobody is promised the last percent. 99 at most, since no model is surer of itself.
std::string percent(double chance) {
    return fmt::format("{:.0f} %", std::clamp(std::floor(100 * chance + 1e-9), 0.0, 99.0));
}

// Limits that nobody gave decide how many machines there are all the same.
std::string assumed_limit(const LatencySpec& latency, const TrafficSpec& traffic) {
    constexpr double kUsual = 2, kLong = 1024, kSecondsPerToken = 0.001;
    const double read = traffic.prompt_tokens.value_or(0) - traffic.cached_prompt_tokens.value_or(0);
    if (latency.at.empty() && latency.p95)
        return fmt::format(" (assumed: answer within {})", format_seconds(*latency.p95));
    if (!latency.at.empty() || !latency.ttft_p99 || !latency.tpot_p99) return {};
    const bool reads_long = latency.ttft_p99->v > kUsual && read > kLong;
    // More than what prompts account for: own machines, on which nothing is faster (PlanOptions of make_plan).
    const bool slower = latency.ttft_p99->v > kUsual + kSecondsPerToken * std::max(0.0, read - kLong) + 1;
    return fmt::format(" (assumed: first token within {}{}, then {} a token{})", format_seconds(*latency.ttft_p99),
                       reads_long && !slower ? " for the long prompts" : "", format_seconds(*latency.tpot_p99),
                       slower ? ": less is not to be had here" : "");
}

std::string chance_of(const Workload& workload, const Candidate& c) {
    const ObjectiveSpec& objective = workload.objective;
    if (!c.measured)
        return objective.deadline || objective.budget || objective.latency.any()
                   ? fmt::format("{}: no probability is given for the limits", hardly_published(workload)
                                                                                   ? "few runs of speech are published"
                                                                                   : "not measured on these devices")
                   : "";
    const Prediction& p = c.prediction;
    const bool service = runs_by_the_hour(p);
    std::vector<std::string> parts;
    if (!service && objective.deadline)
        parts.push_back(percent(chance_below(p.hours, objective.deadline->v / 3600)) + " to make the deadline");
    if (!service && objective.budget && c.priced)
        parts.push_back(percent(chance_below(p.usd, objective.budget->dollars())) + " to stay in budget");
    if (service && p.latency_chance >= 0)
        parts.push_back(percent(p.latency_chance) + " to keep the latency limits" +
                        assumed_limit(objective.latency, workload.traffic));
    if (p.memory_bytes.mid > 0 && p.fit_probability < (parts.empty() ? 1.0 : 0.98))
        parts.push_back(percent(p.fit_probability) + " to fit in memory");
    constexpr double kHardlyUsed = 0.3;  // whose advice says the same
    const std::string_view limit = service && p.utilisation >= kHardlyUsed ? sized_by_limit(c) : std::string_view();
    return join(parts, ", ") + (limit.empty() ? "" : fmt::format("{}{}", parts.empty() ? "" : "; ", limit));
}

// "safest of 446 candidates: nothing makes the deadline with 90 %", where the plan settles for less than is wanted by
// default (PlanOptions::settle_for); else nothing.
std::string settled_words(const Plan& plan, const Catalog& catalog, const std::string& candidates) {
    const ObjectiveSpec& objective = plan.workload.objective;
    const Candidate& best = plan.candidates.front();
    const Constant* wanted = catalog.constant("objective_confidence");
    if (wanted == nullptr || objective.confidence || !best.measured || runs_by_the_hour(best.prediction)) return {};
    const auto kept = [&](const Range& range, double limit) {
        return chance_below(range, limit) >= wanted->value - 0.005;
    };
    const bool late = objective.deadline && !kept(best.prediction.hours, objective.deadline->v / 3600);
    const bool dear = objective.budget && best.priced && !kept(best.prediction.usd, objective.budget->dollars());
    if (!late && !dear) return {};
    return fmt::format("safest of {}: nothing {} with {}", candidates,
                       objective.deadline && objective.budget ? "keeps deadline and budget"
                       : late                                 ? "makes the deadline"
                                                              : "stays in budget",
                       percent(wanted->value));
}

// How another's time or money stands to the first choice's: "11 % more", "2.9 x as long".
std::string money_words(double ratio) {
    if (ratio >= 1.95) return ratio < 2.05 ? std::string("twice as much") : fmt::format("{:.1f} x as much", ratio);
    if (ratio > 1.005) return fmt::format("{:.0f} % more", 100 * (ratio - 1));
    return ratio < 0.995 ? fmt::format("{:.0f} % less", 100 * (1 - ratio)) : "the same price";
}

std::string time_words(double ratio) {
    if (ratio >= 1.95 && ratio < 2.05) return "twice as long";
    if (ratio >= 1.05) return fmt::format("{:.1f} x as long", ratio);
    if (ratio <= 0.513 && ratio > 0.488) return "twice as fast";
    return ratio <= 0.95 ? fmt::format("{:.1f} x as fast", 1 / ratio) : "as fast";
}

std::string why_line(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    const Candidate* other = nullptr;
    // What is cheaper than "the cheapest" has its own line, with what speaks against it.
    const auto saves_money = [&](const Candidate& c) {
        return plan.workload.objective.minimize == Minimize::cost && !plan.workload.asks_for_capacity() && c.priced &&
               c.doubt != best.doubt && per_hour(c) < 0.995 * per_hour(best);
    };
    for (const Candidate& c : plan.candidates)
        if (other == nullptr && !saves_money(c) &&
            (c.node_type != best.node_type || (plan.candidates.size() == 2 && &c != &best)))
            other = &c;
    std::string_view word = plan.workload.asks_for_capacity() ? "cheapest by the request" : "cheapest";
    if (plan.workload.objective.minimize == Minimize::time)
        word = runs_by_the_hour(best.prediction) ? "quickest" : "fastest";
    if (plan.workload.objective.minimize == Minimize::energy) word = "least energy";
    const std::string candidates = plural(static_cast<double>(plan.considered), "candidate", "candidates");
    if (std::string settled = settled_words(plan, catalog, candidates); !settled.empty()) return settled;
    std::string text = fmt::format("{} of {}", word, candidates);
    // Nearly the cheapest, and worth it: what the money buys comes before what is next.
    for (const Foregone& one : plan.foregone)
        if (one.id == "slower" && per_hour(one.candidate) > 0) {
            const Candidate& c = one.candidate;
            text = fmt::format("{} than the cheapest, {} x {}{}", money_words(per_hour(best) / per_hour(c)), c.nodes,
                               short_name(node_of(c, catalog)),
                               c.pricing != best.pricing ? fmt::format(" {}", pricing_words(c.pricing)) : "");
            const double longer = c.prediction.hours.mid / std::max(best.prediction.hours.mid, 1e-9);
            if (longer > 1.02)
                text += fmt::format(", for {:.1f} x the speed", longer);
            else if (!one.why.empty())
                text += fmt::format(": {}", one.why);
            if (other != nullptr && other->node_type == c.node_type && other->nodes == c.nodes) return text;
        }
    // Nearly the fastest, for less money.
    for (const Foregone& one : plan.foregone)
        if (one.id == "faster" && per_hour(best) > 0) {
            const Candidate& c = one.candidate;
            const double longer = runs_by_the_hour(best.prediction)
                                      ? best.prediction.latency.e2e_p95 / std::max(c.prediction.latency.e2e_p95, 1e-9)
                                      : best.prediction.hours.mid / std::max(c.prediction.hours.mid, 1e-9);
            const double later = best.prediction.latency.e2e_p95 - c.prediction.latency.e2e_p95;
            const std::string what = fmt::format("the fastest, {} x {}", c.nodes, short_name(node_of(c, catalog)));
            text = longer < 1.5 ? fmt::format("{:.0f} % longer than {}", 100 * (longer - 1), what)
                                : fmt::format("{} later than {}", format_seconds(Seconds(later)), what);
            if (c.priced && per_hour(c) > 0) text += fmt::format(", for {}", money_words(per_hour(best) / per_hour(c)));
            if (other != nullptr && other->node_type == c.node_type && other->nodes == c.nodes) return text;
        }
    if (other == nullptr) return text;
    const bool elsewhere = other->node_type == best.node_type && other->region != best.region;
    text += fmt::format("; next {} x {}{}{}", other->nodes, short_name(node_of(*other, catalog)),
                        elsewhere ? " in " + other->region : "",
                        other->pricing != best.pricing ? fmt::format(" {}", pricing_words(other->pricing)) : "");
    std::vector<std::string> parts;
    const bool priced = best.priced && other->priced && per_hour(best) > 0;
    if (priced) parts.push_back(money_words(per_hour(*other) / per_hour(best)));
    if (!runs_by_the_hour(best.prediction) && best.prediction.hours.mid > 0)
        parts.push_back(time_words(other->prediction.hours.mid / best.prediction.hours.mid));
    if (!parts.empty()) text += ": " + join(parts, ", ");
    return text;
}

std::string how_line(const Plan& plan) {
    std::vector<std::string> parts = layout_parts(plan.candidates.front(), plan.workload);
    if (plan.candidates.front().prediction.mfu > 0)
        parts.push_back(fmt::format("MFU {:.0f} %", 100 * plan.candidates.front().prediction.mfu));
    return join(parts, " · ");
}

const Advice* advice_with(const Plan& plan, std::initializer_list<std::string_view> ids) {
    for (const Advice& advice : plan.advice)
        if (std::find(ids.begin(), ids.end(), advice.id) != ids.end()) return &advice;
    return nullptr;
}

// The first sentence: a headline has no room for the second.
std::string first_sentence(std::string_view text) {
    const std::size_t end = text.find(". ");
    std::string sentence(text.substr(0, end));
    while (sentence.ends_with('.')) sentence.pop_back();
    return sentence;
}

std::string first_line(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    const NodeType& node = node_of(best, catalog);
    if (node.cloud == "on-prem" && node.available <= 0 && best.nodes > 1)
        return fmt::format("that you have {} x {}, the fewest that keep the limits: the file of nodes gives no count",
                           best.nodes, node.name);
    if (node.cloud == "on-prem" || node.cloud == "this-machine") return {};
    if (const Advice* quota = advice_with(plan, {"quota-short"}))
        return first_sentence(quota->text) + ": ask for it before anything else";
    const Advice* zones = advice_with(plan, {"zones-open"});
    const std::string open = zones != nullptr ? zones->text : "";
    if (advice_with(plan, {"quota-enough"}) != nullptr) return open;
    if (const Advice* quota = advice_with(plan, {"quota-unknown"}))
        return first_sentence(quota->text) + (open.empty() ? "" : "; " + open);
    return fmt::format("the quota of {} for {} in {} was not checked{}", node.cloud,
                       plural(best.nodes, "such machine", "such machines"), best.region,
                       best.price_is_of.empty() ? "" : ", nor whether it is offered there");
}

// The one thing besides quota that is likeliest to spoil it.
std::string watch_line(const Plan& plan) {
    constexpr std::string_view kSaidElsewhere[] = {"quota-short",  "quota-unknown", "quota-enough", "deadline-tight",
                                                   "budget-tight", "latency-tight", "stale-price",  "no-measured-row"};
    // What cannot be ordered at all comes before what needs a request.
    if (const Advice* scarce = advice_with(plan, {"hard-to-get"})) return first_sentence(scarce->text);
    // A slip in the file makes everything else an answer to another question.
    if (const Advice* slip = advice_with(plan, {"parameters-differ", "beyond-context"}))
        return first_sentence(slip->text);
    for (const Advice& advice : plan.advice) {
        if (advice.background || advice.severity == AdviceSeverity::info) continue;
        if (advice.id.starts_with("passed-over-")) continue;
        if (std::find(std::begin(kSaidElsewhere), std::end(kSaidElsewhere), advice.id) != std::end(kSaidElsewhere))
            continue;
        return first_sentence(advice.text);
    }
    return {};
}

std::string sure_line(const Plan& plan, const Catalog& catalog) {
    const PublishedEvidence& evidence = plan.evidence;
    if (!evidence.asked) return {};
    const Candidate& best = plan.candidates.front();
    const NodeType& node = node_of(best, catalog);
    if (hardly_published(plan.workload) && !evidence.closest)
        return "no published run of speech is near: plan with the far end of the interval";
    std::string text = evidence.missing.empty() ? std::string() : first_sentence(evidence.missing);
    // The runs that are compared are of language models; a device may be measured at the rest.
    if (!text.empty() && best.measured && best.measured_rows >= 1 && best.devices_used > 0 && node.has_gpu())
        text = fmt::format("{} published {} on this GPU, none close to this one", format_thousands(best.measured_rows),
                           best.measured_rows < 2 ? "run" : "runs");
    if (evidence.closest) {
        const PublishedRun& run = *evidence.closest;
        if (!text.empty()) text += "; ";
        if (evidence.runs_near > 1)
            text += fmt::format("{} measured runs are like yours; ",
                                format_thousands(static_cast<double>(evidence.runs_near)));
        else if (evidence.runs_near == 0 && text.empty())
            text += "no measured run is like yours; ";
        const std::string title = run.title.substr(0, run.title.find(','));
        text += fmt::format("for the nearest ({}{}) we are {}", title,
                            evidence.runs_near == 0 ? unlike_text(run) : std::string(), off_text(run));
    } else if (text.empty() && evidence.runs > 0) {
        text = "no measured run is like this one: plan with the far end of the interval";
    }
    // A middle at the best MFU that anybody published has nothing below it.
    const Range& hours = best.prediction.hours;
    if (best.prediction.mfu > 0 && hours.low > 0.995 * hours.mid && hours.high > 1.05 * hours.mid)
        text += fmt::format("{}no published run on this GPU reaches a higher MFU", text.empty() ? "" : "; ");
    return text;
}

// A run as it is published: with what broke, was tried and was measured on the way.
std::string campaign_line(const Workload& workload, const Candidate& best) {
    const Prediction& p = best.prediction;
    constexpr double kWorthALine = 1.05;  // less is lost in the interval of the hours
    if (!(p.campaign_factor >= kWorthALine)) return {};
    const double hours = p.hours.mid * p.campaign_factor, usd = p.usd.mid * p.campaign_factor;
    std::string text = duration_in_one_unit({hours, hours, hours});
    if (best.priced && usd > 0) text += ", " + rounded_money(usd);
    text += fmt::format(": published runs took {:.1f} x their steady rate (restarts, evaluation, tuning)",
                        p.campaign_factor);
    const ObjectiveSpec& objective = workload.objective;
    const bool late = objective.deadline && hours * 3600 > objective.deadline->v;
    const bool dear = objective.budget && best.priced && usd > objective.budget->dollars();
    if (late || dear)
        text += fmt::format("; that is past the {}", late && dear ? "deadline and the budget"
                                                     : late       ? "deadline"
                                                                  : "budget");
    return text;
}

// A sweep or an array is so many times what was planned, and has to keep the deadline and the budget as a whole.
std::string runs_line(const Workload& workload, const Candidate& best) {
    const double runs = workload.run ? static_cast<double>(points_of(*workload.run)) : 1;
    const Prediction& p = best.prediction;
    if (runs < 2 || runs_by_the_hour(p) || !(p.hours.mid > 0)) return {};
    std::string text = fmt::format("{} runs like this one", format_thousands(runs));
    const bool paid = best.priced && p.usd.mid > 0;
    if (paid) text += fmt::format(": {} in all", rounded_money_range(p.usd * runs));
    const double at_once = std::min(runs, workload.run->parallel ? static_cast<double>(*workload.run->parallel) : 1);
    const double hours = p.hours.mid * std::ceil(runs / at_once);
    text += fmt::format(
        "; {} {} {}",
        at_once < 2 ? std::string("one after the other they take") : format_thousands(at_once) + " at once take",
        duration_in_one_unit({hours, hours, hours}),
        workload.run->parallel ? "" : "(run: {parallel: 8} says how many go at once)");
    while (text.ends_with(' ')) text.pop_back();
    const ObjectiveSpec& objective = workload.objective;
    const bool late = objective.deadline && hours * 3600 > objective.deadline->v;
    const bool dear = objective.budget && paid && p.usd.mid * runs > objective.budget->dollars();
    if (late && p.hours.mid * 3600 < objective.deadline->v) {
        const double needed = std::ceil(runs / std::floor(objective.deadline->v / 3600 / p.hours.mid));
        text += fmt::format("; the deadline needs {} at once", format_thousands(needed));
    }
    if (dear) text += "; that is past the budget";
    return text;
}

// The rate of evictions at which the choice would be another, where spot is allowed.
std::string spot_line(const Plan& plan) {
    if (!plan.spot_rate || !(plan.spot_rate->flips_at > 0)) return {};
    const SpotRate& rate = *plan.spot_rate;
    const bool spot = plan.candidates.front().pricing == Pricing::spot;
    return fmt::format("{} a node is evicted less than {:.2g} times an hour; {:.2g} is {}",
                       spot ? "first while" : "would be first if", rate.flips_at, rate.per_hour.mid,
                       rate.given ? "what " + rate.from + (rate.from.ends_with('s') ? " say" : " says")
                                  : std::string("assumed (where.evictions_per_hour)"));
}

// What the same machines would be under the other ways to pay, where the catalogue knows a price there.
std::string cost_line(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    const NodeType& node = node_of(best, catalog);
    if (!best.priced || node.cloud == "on-prem" || node.cloud == "this-machine") return {};
    std::vector<std::string> parts;
    std::vector<std::string> unknown;
    const bool spot_wanted = plan.workload.where.spot != SpotUse::never && best.pricing == Pricing::on_demand;
    if (spot_wanted && catalog.price(best.node_type, best.region, plan.workload.where.os, Pricing::spot) == nullptr)
        unknown.push_back(fmt::format("no spot price of {} known", short_name(node)));
    if (!best.price_is_of.empty()) {
        parts.push_back(list_elsewhere_text(best));
    } else if (best.price_is_estimate) {
        const Price* listed = catalog.price(best.node_type, best.region, plan.workload.where.os, best.pricing);
        parts.push_back(listed != nullptr && !listed->estimate
                            ? fmt::format("the spot price is of {}: a bracket up to the list price until it is renewed",
                                          best.price_provenance.as_of)
                            : std::string("the spot price is a bracket: no list has it"));
    }
    for (const Pricing pricing : {Pricing::on_demand, Pricing::spot, Pricing::reserved_1y, Pricing::reserved_3y}) {
        if (pricing == best.pricing) continue;
        if (pricing == Pricing::on_demand && best.on_demand) {
            const Candidate::ListPrice& list = *best.on_demand;
            parts.push_back(runs_by_the_hour(best.prediction)
                                ? fmt::format("on demand {} a month",
                                              rounded_money(list.node_per_hour.dollars() * best.nodes * kHoursOfMonth))
                                : fmt::format("on demand it would be {} in {}", rounded_money(list.usd.mid),
                                              duration_in_one_unit({list.hours.mid, list.hours.mid, list.hours.mid})));
            continue;
        }
        const Candidate* planned = nullptr;  // counts evictions, and the machines that make up for them
        for (const Candidate& c : plan.candidates)
            if (planned == nullptr && c.pricing == pricing && c.node_type == best.node_type) planned = &c;
        if (planned != nullptr && planned->priced && !runs_by_the_hour(best.prediction)) {
            parts.push_back(
                planned->price_is_estimate
                    ? fmt::format("{} {} (a bracket)", pricing_words(pricing), bracket_text(planned->prediction.usd))
                    : fmt::format("{} {}", pricing_words(pricing), rounded_money(planned->prediction.usd.mid)));
            continue;
        }
        const Price* price = catalog.price(best.node_type, best.region, plan.workload.where.os, pricing);
        const bool long_lived = runs_by_the_hour(best.prediction);
        if (pricing == Pricing::reserved_1y || pricing == Pricing::reserved_3y) {
            if (!long_lived) continue;  // nobody reserves a year for a run of days
            if (price == nullptr) {
                if (pricing == Pricing::reserved_1y) unknown.emplace_back("reserved price not known");
                continue;
            }
        }
        if (price == nullptr || best.node_per_hour.dollars() <= 0) continue;
        const bool spot = pricing == Pricing::spot;
        if (spot && !long_lived && !plan.workload.interruptible) continue;
        const double now = long_lived ? per_hour(best) * kHoursOfMonth : best.prediction.usd.mid;
        const auto at = [&](double usd_per_hour) { return now * usd_per_hour / best.node_per_hour.dollars(); };
        const bool bracket = price->estimate && price->low < price->high;
        parts.push_back(fmt::format(
            "{} {}{}{}", pricing_words(pricing, price->provenance),
            bracket ? bracket_text({at(price->low), 0, at(price->high)}) : rounded_money(at(price->per_hour.dollars())),
            long_lived ? " a month"
            : spot     ? " before evictions"
                       : "",
            bracket ? " (a bracket)" : ""));
    }
    parts.insert(parts.end(), unknown.begin(), unknown.end());
    std::string text = parts.empty() ? std::string() : join(parts, ", ") + "; ";
    text += "storage and egress not included";
    if (advice_with(plan, {"stale-price"}) != nullptr)
        text += fmt::format("; prices of {}, --prices brings newer ones", best.price_provenance.as_of);
    return text;
}

// The same work on a few of the machines, where many were chosen.
std::string fewer_line(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    for (const Foregone& one : plan.foregone) {
        if (one.id != "fewer") continue;
        const Candidate& c = one.candidate;
        const double hours = c.prediction.hours.mid;
        std::string text = fmt::format("{} x {} in {}", c.nodes, short_name(node_of(c, catalog)),
                                       duration_in_one_unit({hours, hours, hours}));
        if (best.priced && c.priced && per_hour(best) > 0)
            text += fmt::format(" for {}, {}", rounded_money(c.prediction.usd.mid),
                                money_words(per_hour(c) / per_hour(best)));
        return text;
    }
    return {};
}

// Narrower weights that the file does not ask for, where they save much: the widest of those that do.
std::string narrower_line(const Plan& plan) {
    constexpr double kMuch = 0.75;
    const Candidate& best = plan.candidates.front();
    const bool hourly = runs_by_the_hour(best.prediction);
    if (!best.priced || !(best.prediction.usd.mid > 0) || is_training(plan.workload.kind) ||
        plan.workload.asks_for_capacity())
        return {};
    for (const PlanWhatIf& what : plan.what_if) {
        if (!what.change.starts_with("precision") || !(what.usd > 0)) continue;
        const double ratio = what.usd / best.prediction.usd.mid;
        if (ratio > kMuch) continue;
        return fmt::format("{}: {}, {}{}", what.change, what.outcome, money_words(ratio),
                           hourly || what.change.find("test") != std::string::npos ? "" : "; test the answers");
    }
    return {};
}

// What would cost less, and why it is not first.
std::string cheaper_line(const Plan& plan, const Catalog& catalog) {
    const Candidate& best = plan.candidates.front();
    for (const Foregone& one : plan.foregone) {
        const Candidate& c = one.candidate;
        if (per_hour(c) > 0.995 * per_hour(best)) continue;  // the same price is no saving
        if (one.id == "rule" || one.id == "slower" || one.id == "faster" || one.id == "fewer" || !best.priced ||
            !c.priced || !(per_hour(best) > 0) || per_hour(c) >= per_hour(best))
            continue;
        std::string text = fmt::format("{} x {}", c.nodes, short_name(node_of(c, catalog)));
        if (!c.region.empty() && c.region != best.region) text += " in " + c.region;
        if (c.pricing != best.pricing) text += fmt::format(", {}", pricing_words(c.pricing));
        text += fmt::format(", {}", money_words(per_hour(c) / per_hour(best)));
        return fmt::format("{}: not first, {}", text, one.why);
    }
    return {};
}

// Who gives machines of his own and a cloud asks which of the two: the best of the other side, whatever comes first.
std::string other_side_line(const Plan& plan, const Catalog& catalog) {
    const auto owned = [](const Candidate& c) { return c.pricing == Pricing::owned; };
    const Candidate& best = plan.candidates.front();
    const auto other = std::find_if(plan.candidates.begin(), plan.candidates.end(),
                                    [&](const Candidate& c) { return owned(c) != owned(best); });
    if (other == plan.candidates.end()) return {};
    std::string text = fmt::format("{}: {}", machines_of(*other, catalog), money_of(*other));
    std::vector<std::string> parts;
    if (best.priced && other->priced && per_hour(best) > 0 && per_hour(*other) > 0)
        parts.push_back(money_words(per_hour(*other) / per_hour(best)));
    if (!runs_by_the_hour(best.prediction) && best.prediction.hours.mid > 0)
        parts.push_back(time_words(other->prediction.hours.mid / best.prediction.hours.mid));
    if (!parts.empty()) text += ": " + join(parts, ", ");
    if (!other->doubt.empty()) text += "; " + other->doubt;
    return text;
}

void add(ShortAnswer& answer, std::string_view label, std::string text) {
    if (!text.empty()) answer.lines.push_back({std::string(label), std::move(text), {}});
}

void no_plan(const Plan& plan, const Catalog& catalog, std::string_view file, ShortAnswer& answer) {
    constexpr std::size_t kNearest = 4;
    add(answer, "because", plan.infeasible_because);
    for (std::size_t i = 0; i < plan.nearest.size() && i < kNearest; ++i) {
        const Candidate& c = plan.nearest[i];
        const Prediction& p = c.prediction;
        std::string text = machines_of(c, catalog);
        if (!runs_by_the_hour(p) && p.hours.mid > 0) text += ": " + duration_in_one_unit(p.hours);
        if (c.priced) text += (runs_by_the_hour(p) || !(p.hours.mid > 0) ? ": " : ", ") + money_of(c);
        if (!c.why_not_first.empty()) text += "; " + c.why_not_first;
        add(answer, i == 0 ? "nearest" : "or", text);
    }
    if (const Advice* api = advice_with(plan, {"api-price"})) add(answer, "or buy", api->text);
    answer.lines.push_back(
        {"next", "every size that was refused, and why", fmt::format("stoker plan {} --show rejected", file)});
}

}  // namespace

std::string duration_in_one_unit(const Range& hours) {
    const TimeUnit& unit = unit_for(hours.mid);
    const std::string mid = in_unit(hours.mid, unit), low = in_unit(hours.low, unit), high = in_unit(hours.high, unit);
    const std::string head = fmt::format("{} {}", mid, mid == "1" ? unit.one : unit.many);
    return low == high ? head : fmt::format("{} ({} - {})", head, low, high);
}

std::string rounded_money(double usd) {
    const double size = std::fabs(usd);
    if (!(size >= 100)) return size > 0 && size < 0.01 ? "under $0.01" : money_text(std::round(usd * 100) / 100);
    const double step = std::pow(10.0, std::floor(std::log10(size)) - 2);
    return "$" + format_thousands(std::round(usd / step) * step);
}

std::string rounded_money_range(const Range& usd) {
    const std::string low = rounded_money(usd.low), high = rounded_money(usd.high);
    return low == high ? rounded_money(usd.mid) : fmt::format("{} ({} - {})", rounded_money(usd.mid), low, high);
}

ShortAnswer short_answer(const Plan& plan, const Catalog& catalog, std::string_view file) {
    ShortAnswer answer;
    answer.task = task_of(plan, catalog);
    answer.task = answer.task.substr(0, answer.task.find(": not possible"));
    if (!plan.feasible()) {
        no_plan(plan, catalog, file, answer);
        return answer;
    }
    const Candidate& best = plan.candidates.front();
    answer.machines = machines_of(best, catalog);
    answer.hardware = hardware_of(best, catalog);
    answer.time = time_of(plan.workload, best.prediction);
    // What the given machines hold was the question.
    if (plan.workload.asks_for_capacity())
        answer.time =
            fmt::format("holds {}: {}",
                        rate_text(best.prediction.requests_per_s, plan.workload.model.request_unit(), 3), answer.time);
    answer.money = money_of(best);
    answer.chance = chance_of(plan.workload, best);
    add(answer, "why", why_line(plan, catalog));
    add(answer, "how", how_line(plan));
    add(answer, best.pricing == Pricing::owned ? "rent" : "own", other_side_line(plan, catalog));
    add(answer, "first", first_line(plan, catalog));
    add(answer, "watch", watch_line(plan));
    add(answer, "sure?", sure_line(plan, catalog));
    add(answer, "runs", runs_line(plan.workload, best));
    add(answer, "all in", campaign_line(plan.workload, best));
    add(answer, "fewer", fewer_line(plan, catalog));
    if (const Advice* gpu = advice_with(plan, {"gpu-for-more"})) add(answer, "faster", gpu->text);
    add(answer, "saves", narrower_line(plan));
    add(answer, "cheaper", cheaper_line(plan, catalog));
    add(answer, "spot", spot_line(plan));
    add(answer, "cost", cost_line(plan, catalog));
    if (const Advice* api = advice_with(plan, {"api-price"})) add(answer, "or buy", api->text);
    const bool runs_here = node_of(best, catalog).cloud == "this-machine" && plan.workload.run;
    if (runs_here) answer.lines.push_back({"next", "", fmt::format("stoker run {}", file)});
    const std::size_t others = plan.candidates.size() - 1;
    answer.lines.push_back(
        {runs_here ? "" : "next",
         others > 0 ? plural(static_cast<double>(others), "other choice", "other choices") + ", what was assumed"
                    : "what was assumed",
         fmt::format("stoker plan {} --full", file)});
    return answer;
}

}  // namespace stoker
