#include "app/compare_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "base/text.h"
#include "catalog/names.h"

namespace stoker {

namespace {

const NodeType& node_of(const Catalog& catalog, int index) {
    return catalog.node_types()[static_cast<std::size_t>(index)];
}

std::string times_text(double ratio) {
    return fmt::format("{:.3g}x", ratio);
}

// A row of its own below the figure, since three intervals side by side do not fit a terminal.
void add_interval(Card& card, const std::string& key, const Range& range, std::string (*text)(double)) {
    const std::string low = text(range.low), high = text(range.high);
    if (low == high) return;
    card.add(key + "_80_percent", "  in 80 %", Json::object().set("low", range.low).set("high", range.high),
             fmt::format("{} - {}", low, high));
}

bool pinned(const Workload& w) {
    return w.where.nodes.has_value() && w.where.sizes.size() == 1;
}

// The rate of multiplication that the chosen precision can use at best, all devices together.
double peak_of(const Side& side, const Catalog& catalog) {
    const NodeType& node = node_of(catalog, side.candidate->node_type);
    double peak = peak_of_node(node, catalog, side.workload.precision);
    if (peak <= 0) peak = peak_of_node(node, catalog, Precision::fp32);
    return peak * side.candidate->nodes;
}

double share_of(const Candidate& c, TimeTerm term) {
    return c.prediction.step_s.mid > 0 ? c.prediction.seconds[static_cast<std::size_t>(term)] / c.prediction.step_s.mid
                                       : 0;
}

Card side_card(const Side& side, const Catalog& catalog) {
    const Candidate& c = *side.candidate;
    const Prediction& p = c.prediction;
    const NodeType& node = node_of(catalog, c.node_type);
    Card card{side.title, {}};
    card.add("size", "machines", node.name, fmt::format("{} x {}", c.nodes, bare_size(node.name)));
    card.add("nodes", "", c.nodes);
    card.add("vcpus", "vCPU in all", c.nodes * node.vcpus);
    card.add("devices", "GPUs", node.has_gpu() ? Json(c.nodes * node.accelerators) : Json(),
             node.has_gpu() ? fmt::format("{:.4g} x {}", c.nodes * node.accelerators,
                                          catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name)
                            : "-");
    card.add("precision", "precision", to_string(side.workload.precision));
    card.add("region", "region", c.region.empty() ? Json() : Json(c.region));
    card.add("pricing", "bought", to_string(c.pricing));
    if (side.service) {
        card.add("replicas", "replicas", c.replicas);
        card.add("ttft_p95_seconds", "TTFT p95", p.ttft_p95_s.mid > 0 ? Json(p.ttft_p95_s.mid) : Json(),
                 p.ttft_p95_s.mid > 0 ? format_seconds(Seconds(p.ttft_p95_s.mid)) : "-");
        card.add("tpot_p95_seconds", "TPOT p95", p.tpot_p95_s.mid > 0 ? Json(p.tpot_p95_s.mid) : Json(),
                 p.tpot_p95_s.mid > 0 ? format_seconds(Seconds(p.tpot_p95_s.mid)) : "-");
        card.add("knee_requests_per_second_per_replica", "requests/s a replica holds",
                 p.knee_requests_per_s > 0 ? Json(p.knee_requests_per_s) : Json());
    }
    card.add("hours", side.service ? "" : "time", p.hours.mid, hours_text(p.hours.mid));
    add_interval(card, "hours", p.hours, hours_text);
    card.add("usd", side.service ? "cost per hour" : "cost", c.priced ? Json(p.usd.mid) : Json(),
             c.priced ? money_text(p.usd.mid) : "unpriced");
    if (c.priced) add_interval(card, "usd", p.usd, money_text);
    card.add(
        "usd_per_node_hour", "price per node and hour", c.priced ? Json(c.node_per_hour.dollars()) : Json(),
        c.priced ? fmt::format("{}{}", format_usd(c.node_per_hour), c.price_is_estimate ? " (estimate)" : "") : "-");
    card.add("price_as_of", "price as of",
             c.priced && !c.price_provenance.as_of.empty() ? Json(c.price_provenance.as_of) : Json());
    card.add("usd_per_unit", "$ per " + (p.unit_name.empty() ? std::string("unit") : p.unit_name),
             c.priced ? Json(p.usd_per_unit.mid) : Json());
    card.add("peak_tflops", "peak TFLOPS", peak_of(side, catalog) / 1e12);
    card.add("mfu_percent", "MFU %", p.mfu > 0 ? Json(100 * p.mfu) : Json());
    card.add("data_stall_percent", "waiting for data %",
             p.step_s.mid > 0 ? Json(100 * share_of(c, TimeTerm::data_stall)) : Json());
    card.add("bottleneck", "bound by", to_string(p.bottleneck));
    card.add("memory_gib", "memory GiB, fullest device",
             p.memory_bytes.mid > 0 ? Json(p.memory_bytes.mid / kGiB) : Json(),
             p.memory_bytes.mid > 0 ? fmt::format("{} of {}", number_text(p.memory_bytes.mid / kGiB),
                                                  number_text(p.memory_capacity_bytes / kGiB))
                                    : "-");
    card.add("kwh", "kWh", p.kwh.mid > 0 ? Json(p.kwh.mid) : Json());
    return card;
}

// Hours over the hours that the steps alone would take: restarts, evictions, checkpoints, provisioning.
double overhead_of(const Candidate& c) {
    const double steps_s = c.prediction.step_s.mid * c.prediction.steps;
    return steps_s > 0 ? std::max(1.0, c.prediction.hours.mid * 3600 / steps_s) : 1;
}

// Time ratio = peak ratio x share of the peak that is reached x what is lost waiting for data x what failures cost.
std::string why_text(const Side& slow, const Side& fast, const Catalog& catalog, const Style& style) {
    const double ratio = slow.hours / fast.hours;
    const double peaks = peak_of(fast, catalog) / std::max(1.0, peak_of(slow, catalog));
    const double busy_slow = 1 - share_of(*slow.candidate, TimeTerm::data_stall),
                 busy_fast = 1 - share_of(*fast.candidate, TimeTerm::data_stall);
    const double waiting = busy_fast / std::max(1e-9, busy_slow);
    const double restarts = overhead_of(*slow.candidate) / overhead_of(*fast.candidate);
    const double reach = ratio / peaks / waiting / restarts;
    std::string text =
        "\n  " + style.bold(fmt::format("Why {} is {:.3g}x faster than {}", fast.title, ratio, slow.title)) + "\n";
    std::vector<std::string> factors;
    const auto factor = [&](double value, std::string line) {
        if (std::fabs(value - 1) < 0.005) return;  // says nothing
        factors.push_back(fmt::format("{:.3g}", value));
        text += bullet(fmt::format("{}: {:.3g}x", line, value), style);
    };
    factor(peaks,
           fmt::format("peak: {} TFLOPS in {} against {} TFLOPS in {}", number_text(peak_of(fast, catalog) / 1e12),
                       to_string(fast.workload.precision), number_text(peak_of(slow, catalog) / 1e12),
                       node_of(catalog, slow.candidate->node_type).has_gpu() ? to_string(slow.workload.precision)
                                                                             : std::string_view("fp32")));
    factor(reach,
           "share of that peak reached while computing, with memory traffic, launches, communication and batch sizes "
           "counted");
    factor(waiting, fmt::format("waiting for data: {:.0f} % of a step against {:.0f} %", 100 * (1 - busy_fast),
                                100 * (1 - busy_slow)));
    factor(restarts, "provisioning, checkpoints, failures and evictions");
    if (factors.size() > 1) text += fmt::format("     {} = {:.3g}\n", join(factors, " x "), ratio);
    return text;
}

// The fast side again with BF16 tensor cores and an input pipeline that keeps up.
std::optional<Side> tuned(const Side& fast, const Catalog& catalog, const PlanOptions& options) {
    const NodeType& node = node_of(catalog, fast.candidate->node_type);
    if (!node.has_gpu() || !is_training(fast.workload.kind) || peak_of_node(node, catalog, Precision::bf16) <= 0)
        return std::nullopt;
    const bool starved = share_of(*fast.candidate, TimeTerm::data_stall) > 0.01;
    const bool wide = fast.workload.precision == Precision::fp32 || fast.workload.precision == Precision::tf32;
    if (!starved && !wide) return std::nullopt;
    Side better = fast;
    fix_precision(better.workload, Precision::bf16);
    better.workload.data.decode_per_example = Seconds(0);
    better.workload.data.storage_bandwidth_per_second = Bytes(1e15);
    better.workload.disk = {};  // kept on the machine's own NVMe or in memory: the disk that was asked for is no limit
    better.workload.compiled = true;
    better.workload.where.sizes = {node.name};
    better.workload.where.nodes = fast.candidate->nodes;
    auto candidate = estimate(better.workload, catalog, options);
    if (!candidate) return std::nullopt;
    better.candidate = std::move(candidate).value();
    return better;
}

std::string tuned_text(const Side& slow, const Side& fast, const Side& better, const Style& style) {
    const double before = slow.candidate->prediction.hours.mid / fast.candidate->prediction.hours.mid;
    const double after = slow.candidate->prediction.hours.mid / better.candidate->prediction.hours.mid;
    std::string text = "\n  " + style.bold("What it leaves on the table") + "\n";
    text += bullet(
        fmt::format("{:.3g}x holds for {} with an input pipeline that makes the GPUs wait {:.0f} % of the time.",
                    before, to_string(fast.workload.precision), 100 * share_of(*fast.candidate, TimeTerm::data_stall)),
        style);
    return text +
           bullet(fmt::format("Tuned, with BF16 on the tensor cores, compiled, and data that arrives in time (decoded "
                              "beforehand or on the GPU, on storage that keeps up): {} and {}, {:.3g}x.",
                              hours_text(better.candidate->prediction.hours.mid),
                              better.candidate->priced ? money_text(better.candidate->prediction.usd.mid) : "unpriced",
                              after),
                  style);
}

// One sentence on what sets two services apart: the machines' price, and how much one replica holds.
std::string service_text(const Side& a, const Side& b) {
    const Candidate &x = *a.candidate, &y = *b.candidate;
    std::string text =
        fmt::format("{}: {} replica{} at {} per hour; {}: {} at {}", a.title, x.replicas, x.replicas == 1 ? "" : "s",
                    money_text(a.usd), b.title, y.replicas, money_text(b.usd));
    const double kx = x.prediction.knee_requests_per_s, ky = y.prediction.knee_requests_per_s;
    if (kx > 0 && ky > 0)
        text += fmt::format(". One replica holds {} requests/s against {}, and costs {} per hour against {}",
                            figure_text(kx), figure_text(ky), money_text(a.usd / std::max(1, x.replicas)),
                            money_text(b.usd / std::max(1, y.replicas)));
    if (x.prediction.bottleneck == y.prediction.bottleneck)
        text += fmt::format("; both are bound by {}", to_string(x.prediction.bottleneck));
    else
        text += fmt::format("; bound by {} and by {}", to_string(x.prediction.bottleneck),
                            to_string(y.prediction.bottleneck));
    return text + ".";
}

// "B is 2.1x faster and costs 1.4x as much as A."
std::string ratio_text(const Side& a, const Side& b) {
    std::vector<std::string> parts;
    const auto close = [](double x, double y) { return std::max(x, y) < 1.005 * std::min(x, y); };
    if (!a.service && !b.service && a.hours > 0 && b.hours > 0)
        parts.push_back(close(a.hours, b.hours) ? "takes as long"
                        : b.hours < a.hours     ? fmt::format("is {} faster", times_text(a.hours / b.hours))
                                                : fmt::format("takes {} the time", times_text(b.hours / a.hours)));
    if (a.usd > 0 && b.usd > 0)
        parts.push_back(close(a.usd, b.usd) ? "costs the same"
                        : b.usd < a.usd     ? fmt::format("is {} cheaper", times_text(a.usd / b.usd))
                                            : fmt::format("costs {} as much", times_text(b.usd / a.usd)));
    if (parts.empty()) return {};
    return fmt::format("Against {}, {} {}.", a.title, b.title, join(parts, " and "));
}

// Which side answers best, in the unit of the work.
std::string best_text(const std::vector<Side>& sides) {
    const Side *cheapest = nullptr, *fastest = nullptr;
    for (const Side& side : sides) {
        if (side.unit != sides.front().unit) return {};  // other work: nothing to rank
        if (side.usd_per_unit > 0 && (cheapest == nullptr || side.usd_per_unit < cheapest->usd_per_unit))
            cheapest = &side;
        if (!side.service && side.hours > 0 && (fastest == nullptr || side.hours < fastest->hours)) fastest = &side;
    }
    if (cheapest == nullptr) return {};
    std::string text =
        fmt::format("Cheapest per {}: {} at ${}", cheapest->unit, cheapest->title, figure_text(cheapest->usd_per_unit));
    if (fastest != nullptr) text += fmt::format("; fastest: {} in {}", fastest->title, hours_text(fastest->hours));
    return text + ".";
}

void fill_from_candidate(Side& side, const Catalog& catalog) {
    const Candidate& c = *side.candidate;
    const Prediction& p = c.prediction;
    side.service = runs_by_the_hour(p);
    side.hours = p.hours.mid;
    side.usd = c.priced ? p.usd.mid : 0;
    side.usd_per_unit = c.priced ? p.usd_per_unit.mid : 0;
    side.unit = p.unit_name;
    side.card = side_card(side, catalog);
}

double number_at(const Node* node, std::string_view key) {
    const Node* found = node != nullptr && node->is_mapping() ? node->find(key) : nullptr;
    return found != nullptr && found->kind == NodeKind::number ? found->number : 0;
}
std::string text_at(const Node* node, std::string_view key) {
    const Node* found = node != nullptr && node->is_mapping() ? node->find(key) : nullptr;
    return found != nullptr && found->kind == NodeKind::string ? found->text : std::string();
}
const Node* member(const Node* node, std::string_view key) {
    return node != nullptr && node->is_mapping() ? node->find(key) : nullptr;
}
Range range_at(const Node* node, std::string_view key) {
    const Node* range = member(node, key);
    return {number_at(range, "low"), number_at(range, "mid"), number_at(range, "high")};
}

}  // namespace

std::string bullet(std::string_view text, const Style& style) {
    std::string out;
    const std::vector<std::string> lines = wrap(text, static_cast<std::size_t>(style.width) - 5);
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "   - " : "     ") + lines[i] + "\n";
    return out;
}

Result<Side> side_of_workload(std::string title, Workload workload, const Catalog& catalog,
                              const PlanOptions& options) {
    Side side;
    side.title = std::move(title);
    side.workload = std::move(workload);
    if (pinned(side.workload)) {
        auto candidate = estimate(side.workload, catalog, options);
        if (!candidate) return std::move(candidate).while_doing("estimating " + side.title).error();
        side.candidate = std::move(candidate).value();
    } else {
        PlanOptions quick = options;
        quick.what_if = false;
        auto plan = make_plan(side.workload, catalog, quick);
        if (!plan) return std::move(plan).while_doing("planning " + side.title).error();
        if (plan->feasible())
            side.candidate = plan->candidates.front();
        else
            side.no_plan = plan->infeasible_because;
    }
    if (side.candidate) {
        if (!side.workload.precision_order.empty()) fix_precision(side.workload, side.candidate->precision);
        fill_from_candidate(side, catalog);
    } else {
        side.card = Card{side.title, {}};
    }
    return side;
}

bool is_saved_plan(const Document& document) {
    return text_at(&document.root(), "schema").starts_with("stoker.plan/");
}

Result<Side> side_of_saved_plan(const std::string& path, const Document& document) {
    const Node* root = &document.root();
    const Node* list = member(root, "candidates");
    Side side;
    side.title = path;
    side.card = Card{side.title, {}};
    if (list == nullptr || !list->is_sequence())
        return Error(ErrorKind::invalid, "the saved plan has no list of candidates", root->pos,
                     "write it with: stoker plan FILE -o json > plan.json");
    if (list->items.empty()) {
        side.no_plan = text_at(root, "infeasible_because");
        return side;
    }
    const Node* best = list->items.front().get();
    const Node* prediction = member(best, "prediction");
    const Node* latency = member(prediction, "latency");
    const Node* price = member(best, "price");
    const Range hours = range_at(prediction, "hours"), usd = range_at(prediction, "usd");
    const bool priced = price != nullptr && price->is_mapping();
    side.service = text_at(member(root, "workload"), "kind") == "inference" ||
                   (latency != nullptr && text_at(member(root, "workload"), "kind") == "embedding");
    side.hours = hours.mid;
    side.usd = priced ? usd.mid : 0;
    side.usd_per_unit = priced ? range_at(prediction, "usd_per_unit").mid : 0;
    side.unit = text_at(prediction, "unit");
    Card& card = side.card;
    card.add("size", "machines", text_at(best, "size"),
             fmt::format("{:g} x {}", number_at(best, "nodes"), bare_size(text_at(best, "size"))));
    card.add("nodes", "", number_at(best, "nodes"));
    card.add("devices", "GPUs", number_at(best, "devices"),
             fmt::format("{:.4g} x {}", number_at(best, "devices"), text_at(best, "accelerator")));
    card.add("precision", "precision", text_at(member(root, "workload"), "precision"));
    card.add("region", "region", text_at(best, "region"));
    card.add("pricing", "bought", text_at(best, "pricing"));
    if (side.service) {
        card.add("replicas", "replicas", number_at(best, "replicas"));
        const Range ttft = range_at(latency, "ttft_p95_seconds"), tpot = range_at(latency, "tpot_p95_seconds");
        card.add("ttft_p95_seconds", "TTFT p95", ttft.mid, format_seconds(Seconds(ttft.mid)));
        card.add("tpot_p95_seconds", "TPOT p95", tpot.mid, format_seconds(Seconds(tpot.mid)));
    }
    card.add("hours", side.service ? "" : "time", hours.mid, hours_text(hours.mid));
    add_interval(card, "hours", hours, hours_text);
    card.add("usd", side.service ? "cost per hour" : "cost", priced ? Json(usd.mid) : Json(),
             priced ? money_text(usd.mid) : "unpriced");
    if (priced) add_interval(card, "usd", usd, money_text);
    card.add("usd_per_node_hour", "price per node and hour",
             priced ? Json(number_at(price, "usd_per_node_hour")) : Json(),
             priced ? money_text(number_at(price, "usd_per_node_hour")) : "-");
    card.add("price_as_of", "price as of", text_at(member(price, "provenance"), "as_of"));
    card.add("usd_per_unit", "$ per " + (side.unit.empty() ? "unit" : side.unit),
             priced ? Json(side.usd_per_unit) : Json());
    card.add("mfu_percent", "MFU %",
             number_at(prediction, "mfu") > 0 ? Json(100 * number_at(prediction, "mfu")) : Json());
    card.add("bottleneck", "bound by", text_at(prediction, "bottleneck"));
    card.add("kwh", "kWh", range_at(prediction, "kwh").mid);
    return side;
}

Result<std::optional<Workload>> restricted(const Workload& base, const std::string& word, const Catalog& catalog) {
    Workload w = base;
    if (const auto precision = precision_from(lower(word))) {
        fix_precision(w, *precision);
        return std::optional(std::move(w));
    }
    const std::string folded = fold_name(word);
    if (folded == "spot" || folded == "ondemand") {
        w.where.spot = folded == "spot" ? SpotUse::only : SpotUse::never;
        return std::optional(std::move(w));
    }
    const auto free_place = [&](std::vector<std::string> clouds) {
        w.where.clouds = std::move(clouds);
        w.where.regions.clear();
    };
    if (folded == "onprem" || folded == "thismachine") {
        free_place({folded == "onprem" ? "on-prem" : "this-machine"});
        w.where.sizes.clear();
        return std::optional(std::move(w));
    }
    for (const NodeType& node : catalog.node_types()) {
        if (fold_name(node.cloud) != folded) continue;
        free_place({node.cloud});
        w.where.sizes.clear();
        return std::optional(std::move(w));
    }
    if (const auto size = catalog.find_node_type(word)) {
        const NodeType& node = node_of(catalog, *size);
        if (std::find(w.where.clouds.begin(), w.where.clouds.end(), node.cloud) == w.where.clouds.end())
            free_place({node.cloud});
        w.where.sizes = {node.name};
        return std::optional(std::move(w));
    }
    if (const auto gpu = catalog.find_accelerator(word)) {
        const auto sizes_in = [&](bool anywhere) {
            std::vector<std::string> sizes;
            for (const NodeType& node : catalog.node_types()) {
                const auto& clouds = w.where.clouds;
                const bool here = clouds.empty() ? node.cloud == "azure"
                                                 : std::find(clouds.begin(), clouds.end(), node.cloud) != clouds.end();
                if (node.accelerator == *gpu && (here || anywhere)) sizes.push_back(node.name);
            }
            return sizes;
        };
        w.where.sizes = sizes_in(false);
        if (w.where.sizes.empty()) {
            w.where.sizes = sizes_in(true);
            free_place({"any"});
        }
        if (w.where.sizes.empty())
            return Error(ErrorKind::invalid, fmt::format("no machine of the catalogue has a {}", word));
        return std::optional(std::move(w));
    }
    for (const std::string& cloud : w.where.clouds.empty() ? std::vector<std::string>{"azure"} : w.where.clouds) {
        if (const auto region = catalog.find_region(cloud, word)) {
            w.where.regions = {*region};
            return std::optional(std::move(w));
        }
    }
    return std::optional<Workload>();
}

std::string sides_text(const std::vector<Side>& sides, const Catalog& catalog, const PlanOptions& options,
                       const Style& style) {
    std::vector<Card> cards;
    std::vector<const Side*> answered;
    std::string refused;
    for (const Side& side : sides) {
        if (side.no_plan.empty()) {
            cards.push_back(side.card);
            answered.push_back(&side);
        } else {
            refused += bullet(fmt::format("{}: no plan: {}", side.title, side.no_plan), style);
        }
    }
    std::string text = cards.empty() ? std::string() : side_by_side(cards, style);
    if (!refused.empty()) text += (text.empty() ? "" : "\n") + refused;
    std::string sentences;
    if (answered.size() > 1) {
        std::vector<Side> list;
        for (const Side* side : answered) list.push_back(*side);
        if (const std::string best = best_text(list); !best.empty() && list.size() > 2)
            sentences += bullet(best, style);
    }
    for (std::size_t i = 1; i < answered.size(); ++i) {
        const Side &a = *answered[0], &b = *answered[i];
        if (const std::string ratio = ratio_text(a, b); !ratio.empty()) sentences += bullet(ratio, style);
        if (a.service && b.service && a.candidate && b.candidate) sentences += bullet(service_text(a, b), style);
    }
    if (!sentences.empty()) text += "\n" + sentences;
    for (std::size_t i = 1; i < answered.size(); ++i) {
        const bool faster = answered[i]->hours <= answered[0]->hours;
        const Side &slow = faster ? *answered[0] : *answered[i], &fast = faster ? *answered[i] : *answered[0];
        if (!slow.candidate || !fast.candidate || !is_training(slow.workload.kind) ||
            !is_training(fast.workload.kind) || slow.hours < 1.02 * fast.hours)
            continue;
        text += why_text(slow, fast, catalog, style);
        if (const auto better = tuned(fast, catalog, options)) text += tuned_text(slow, fast, *better, style);
    }
    return text;
}

Json sides_json(const std::vector<Side>& sides, const Catalog& catalog) {
    Json array = Json::array();
    for (const Side& side : sides) {
        Json item = Json::object().set("name", side.title).set("feasible", side.no_plan.empty());
        if (!side.no_plan.empty()) item.set("infeasible_because", side.no_plan);
        if (side.no_plan.empty()) item.set("summary", side.card.json());
        if (side.candidate) item.set("candidate", candidate_json(*side.candidate, side.workload, catalog));
        array.push(std::move(item));
    }
    const Side &first = sides.front(), &last = sides.back();
    const bool jobs = !first.service && !last.service && first.hours > 0 && last.hours > 0;
    return Json::object()
        .set("compared", "plans")
        .set("items", array)
        .set("time_ratio", jobs ? Json(first.hours / last.hours) : Json())
        .set("cost_ratio", first.usd > 0 && last.usd > 0 ? Json(first.usd / last.usd) : Json());
}

}  // namespace stoker
