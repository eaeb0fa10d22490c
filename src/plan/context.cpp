#include "plan/context.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "plan/chance.h"
#include "plan/constraints/constraint.h"
#include "plan/evidence.h"

namespace stoker {

double NodeChoice::cheapest() const {
    double least = kInfinity;
    for (const Offer& offer : offers)
        if (offer.priced) least = std::min(least, offer.usd_per_hour);
    return least;
}

bool NodeChoice::is_measured(const PlanSettings& settings) const {
    return proven || measured_rows < 0 || measured_rows >= settings.device_rows_wanted;
}

int NodeChoice::devices() const {
    return accelerator != nullptr ? std::max(1, node->whole_gpus()) : 1;
}

void RejectionLog::add(Rejection rejection) {
    auto [it, fresh] = lines_.try_emplace({rejection.node_type, static_cast<int>(rejection.reason)}, rejection);
    if (fresh) return;
    Rejection& line = it->second;
    line.count += rejection.count;
    if (rejection.region != line.region) line.region.clear();
    if (rejection.nodes != line.nodes) line.nodes = 0;
    // Numbers of different kinds never meet here, since a reason fixes its unit. The nearest miss is the most useful to
    // see.
    auto gap = [](const Rejection& r) { return std::abs(r.need - r.have); };
    if (gap(rejection) < gap(line)) {
        line.have = rejection.have;
        line.need = rejection.need;
        line.text = std::move(rejection.text);
    }
}

void RejectionLog::merge(const RejectionLog& other) {
    for (const auto& [key, line] : other.lines_) add(line);
}

std::vector<Rejection> RejectionLog::sorted() const {
    std::vector<Rejection> all;
    for (const auto& [key, line] : lines_) all.push_back(line);
    return all;
}

std::int64_t RejectionLog::total() const {
    std::int64_t sum = 0;
    for (const auto& [key, line] : lines_) sum += line.count;
    return sum;
}

namespace {

void read_evictions(const Workload& workload, const Catalog& catalog, PlanSettings& settings) {
    const auto rate = [&](const Constant& c) { return Range{c.low, c.value, std::max(c.high, c.value)}; };
    const Constant* any = catalog.constant("spot_evictions_per_node_hour");
    CHECK(any != nullptr);
    settings.evictions_per_hour = settings.evictions_per_hour_cpu = rate(*any);
    settings.evictions_from = any->provenance.source;
    // A catalogue of before these were known has none.
    if (const Constant* cpu = catalog.constant("spot_evictions_per_cpu_node_hour"))
        settings.evictions_per_hour_cpu = rate(*cpu);
    if (const Constant* wait = catalog.constant("spot_wait_hours")) settings.spot_wait_s = 3600 * wait->value;
    if (const Constant* gang = catalog.constant("spot_eviction_gang_exponent"))
        settings.eviction_gang_exponent = gang->value;
    if (const Constant* watched = catalog.constant("spot_gang_nodes_watched"))
        settings.spot_gang_watched = watched->value;
    if (workload.where.evictions_per_hour)
        take_evictions(settings, *workload.where.evictions_per_hour, "where.evictions_per_hour");
}

}  // namespace

void take_evictions(PlanSettings& settings, const Range& per_hour, std::string from) {
    settings.evictions_per_hour = settings.evictions_per_hour_cpu = per_hour;
    settings.evictions_given = true;
    settings.evictions_from = std::move(from);
}

const Range& evictions_of(const PlanSettings& settings, const NodeType& node) {
    return node.has_gpu() ? settings.evictions_per_hour : settings.evictions_per_hour_cpu;
}

std::string home_of(const Workload& workload, const PlanOptions& options) {
    if (!workload.data.region.empty()) return workload.data.region;
    if (!workload.traffic.region.empty()) return workload.traffic.region;
    return options.home;
}

PlanSettings read_settings(const Workload& workload, const Catalog& catalog) {
    auto value = [&](std::string_view name) { return catalog.constant_or_die(name); };
    PlanSettings settings;
    settings.provision_s = value("provision_seconds");
    // A catalogue of before this was known has none.
    if (const Constant* start = catalog.constant("local_start_seconds")) settings.local_start_s = start->value;
    read_evictions(workload, catalog, settings);
    settings.failures_per_gpu_hour = value("failure_rate_per_gpu_hour");
    settings.restart_s = 60 * value("restart_minutes");
    settings.least_checkpoint_interval_s = value("checkpoint_least_interval_s");
    settings.snapshot_bytes_per_s = 1e9 * value("checkpoint_snapshot_gb_s");
    settings.checkpoint_bytes_per_s = 1e9 * value("checkpoint_write_gb_s");
    settings.checkpoint_store_bytes_per_s = 1e9 * value("checkpoint_storage_gb_s");
    settings.checkpoint_bytes_per_parameter = value("checkpoint_bytes_per_parameter");
    settings.pue = value("pue");
    settings.host_w_per_gpu = value("host_power_w_per_gpu");
    settings.host_w_per_vcpu = value("host_power_w_per_vcpu");
    settings.idle_power_fraction = value("idle_power_fraction");
    settings.cpu_w_per_core = value("cpu_power_w_per_core");
    settings.cpu_idle_power_fraction = value("cpu_idle_power_fraction");
    settings.cpu_host_w = value("cpu_node_host_power_w");
    settings.price_stale_days = value("price_stale_days");
    settings.catalogue_stale_days = value("catalogue_stale_days");
    settings.fit_wanted = value("fit_probability_wanted");
    settings.network_bound_share = value("network_bound_share");
    settings.placement_group = value("placement_group_vms");
    settings.placement_group_on_request = value("placement_group_vms_on_request");
    settings.placement_group_published = value("placement_group_vms_published");
    settings.tie_share = value("tie_share");
    settings.most_for_time = value("time_most_share");
    settings.time_exponent = value("time_exponent");
    // A catalogue of before these has none.
    const auto value_or_none = [&](std::string_view name) {
        const Constant* found = catalog.constant(name);
        return found != nullptr ? found->value : 0.0;
    };
    settings.nodes_exponent = value_or_none("nodes_exponent");
    if (const Constant* factor = catalog.constant("small_doubt_most_factor"))
        settings.small_doubt_most_factor = factor->value;
    settings.campaign_factor = value_or_none("campaign_factor");
    settings.campaign_least_s = 3600 * value_or_none("campaign_least_hours");
    settings.most_for_money = value_or_none("money_most_share");
    settings.money_exponent = value_or_none("money_exponent");
    settings.most_for_evidence = value_or_none("evidence_most_share");
    settings.evidence_exponent = value_or_none("evidence_exponent");
    settings.most_for_whole = value_or_none("replica_whole_most_share");
    settings.unnoticed_s = value_or_none("latency_unnoticed_ms") / 1e3;
    settings.simpler_share = value("layout_simpler_share");
    settings.simpler_share_tuning = value("layout_simpler_share_fine_tuning");
    settings.simpler_most = value_or_none("layout_simpler_most");
    settings.set_up_most = value_or_none("layout_set_up_most");
    settings.set_up_gpu_s = 3600 * value_or_none("layout_set_up_gpu_hours");
    settings.plain_share = value("layout_plain_share");
    settings.pipeline_inside_share = value("layout_pipeline_inside_share");
    settings.device_rows_wanted = value("device_rows_wanted");
    const Constant* fewer = catalog.constant("device_rows_wanted_inference");
    settings.device_rows_wanted_inference = fewer != nullptr ? fewer->value : settings.device_rows_wanted;
    settings.sigma_no_rows = value("sigma_device_no_rows");
    settings.gang_mfu_least = value("gang_mfu_least");
    settings.longest_run_s = 86400 * value("longest_run_days");
    if (const Constant* patience = catalog.constant("pile_patience_days"))
        settings.pile_patience_s = 86400 * patience->value;
    settings.cpu_fleet_vcpus = value("cpu_fleet_vcpus_most");
    settings.comfortable_ram = value("cpu_comfortable_memory_fraction");
    settings.busy_limit = value("batch_engine_busy_limit");
    settings.confidence = settings.confidence_wanted =
        workload.objective.confidence.value_or(value("objective_confidence"));
    settings.confidence_deviations = normal_quantile(settings.confidence);
    return settings;
}

bool Context::size_was_named(int type) const {
    const auto& sizes = workload.where.sizes;
    return std::find(sizes.begin(), sizes.end(), node(type).name) != sizes.end();
}

namespace {

long days_from_civil(long year, long month, long day) {  // Howard Hinnant's algorithm, days since 1970-01-01
    year -= month <= 2;
    const long era = (year >= 0 ? year : year - 399) / 400;
    const long yoe = year - era * 400, doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

std::optional<long> day_number(std::string_view text) {
    long part[3] = {0, 1, 1};
    std::size_t at = 0;
    for (int i = 0; i < 3 && at < text.size(); ++i) {
        auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), part[i]);
        if (error != std::errc()) return std::nullopt;
        at = static_cast<std::size_t>(end - text.data());
        if (at < text.size() && text[at] != '-') break;
        ++at;
    }
    if (part[0] < 1970) return std::nullopt;
    return days_from_civil(part[0], part[1], part[2]);
}

void sort_offers(std::vector<Offer>& offers) {
    std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
        return std::tuple(a.far, !a.priced, a.usd_per_hour, std::string_view(a.region), static_cast<int>(a.pricing)) <
               std::tuple(b.far, !b.priced, b.usd_per_hour, std::string_view(b.region), static_cast<int>(b.pricing));
    });
}

Rejection line(int type, std::string region, Refusal refusal) {
    return {.node_type = type,
            .region = std::move(region),
            .reason = refusal.reason,
            .have = refusal.have,
            .need = refusal.need,
            .text = std::move(refusal.text)};
}

// Regions that the work is to run in and of which no price at all is known: those that are named, or the well-known
// ones of where the data has to stay, when nothing of the one cloud that is asked for has a price there.
std::vector<RegionPriceRatio> unlisted_regions(const Context& context) {
    const auto& where = context.workload.where;
    const auto& stay = where.residency.empty() && where.regions.empty() ? context.options.residency : where.residency;
    const auto listed = [&](std::string_view cloud, const auto& is_meant) {
        return std::any_of(context.catalog.prices().begin(), context.catalog.prices().end(), [&](const Price& price) {
            return context.node(price.node_type).cloud == cloud && is_meant(price.region);
        });
    };
    const auto may_stay = [&](std::string_view region) {
        return std::any_of(stay.begin(), stay.end(),
                           [&](const std::string& place) { return same_geography(place, region); });
    };
    std::vector<RegionPriceRatio> out;
    for (const RegionPriceRatio& ratio : region_price_ratios()) {
        const bool named = std::find(where.regions.begin(), where.regions.end(), ratio.region) != where.regions.end();
        const bool the_cloud = where.clouds.size() == 1 && where.clouds.front() == ratio.cloud;
        const bool to_stay = where.regions.empty() && the_cloud && may_stay(ratio.region) &&
                             access_of(ratio.cloud, ratio.region) == RegionAccess::well_known;
        if (named ? !listed(ratio.cloud, [&](std::string_view region) { return region == ratio.region; })
                  : to_stay && !listed(ratio.cloud, may_stay))
            out.push_back(ratio);
    }
    return out;
}

// Offers in such regions: the least list price of this machine elsewhere, as a bracket. Spot follows no list.
void offer_unlisted(Context& context, int type, std::vector<Offer>& offers) {
    for (const RegionPriceRatio& ratio : context.unlisted) {
        if (ratio.cloud != context.node(type).cloud) continue;
        for (const Pricing pricing : {Pricing::on_demand, Pricing::reserved_1y, Pricing::reserved_3y}) {
            const Price* least = nullptr;
            for (const Price& price : context.catalog.prices_of(type))
                if (price.pricing == pricing && price.os == context.workload.where.os && !price.estimate &&
                    (least == nullptr || price.per_hour < least->per_hour))
                    least = &price;
            if (least == nullptr) continue;
            ++context.considered;
            const double usd = least->per_hour.dollars();
            Offer offer{.region = std::string(ratio.region),
                        .pricing = pricing,
                        .usd_per_hour = usd * (ratio.low + ratio.high) / 2,
                        .low = usd * ratio.low,
                        .high = usd * ratio.high,
                        .estimate = true,
                        .listed_in = least->region,
                        .provenance = least->provenance};
            if (auto refusal = refuse_offer(context, type, offer))
                context.rejected.add(line(type, offer.region, std::move(*refusal)));
            else
                offers.push_back(std::move(offer));
        }
    }
}

std::vector<Offer> offers_of(Context& context, int type) {
    const NodeType& node = context.node(type);
    const auto& where = context.workload.where;
    std::vector<Offer> offers;
    bool other_os = false, other_region = false, refused = false;
    for (const Price& price : context.catalog.prices_of(type)) {
        if (price.os != where.os && !price.os.empty()) {
            other_os = true;
            continue;
        }
        if (!where.regions.empty() &&
            std::find(where.regions.begin(), where.regions.end(), price.region) == where.regions.end() &&
            price.pricing != Pricing::owned) {
            other_region = true;
            continue;
        }
        ++context.considered;
        Offer offer{.region = price.region,
                    .pricing = price.pricing,
                    .usd_per_hour = price.per_hour.dollars(),
                    .low = price.low,
                    .high = price.high,
                    .estimate = price.estimate,
                    .provenance = price.provenance};
        if (offer.low <= 0) offer.low = offer.usd_per_hour;
        if (offer.high <= 0) offer.high = offer.usd_per_hour;
        // A spot price moves by the hour: an old one is a bracket up to the list price, and says so. Counted is its
        // middle by ratio: the low end would choose a region for a price of months ago.
        if (offer.pricing == Pricing::spot && !offer.estimate &&
            days_between(price.provenance.as_of, context.options.today) >
                static_cast<long>(context.settings.price_stale_days)) {
            offer.estimate = true;
            const Price* list = context.catalog.price(type, price.region, where.os, Pricing::on_demand);
            if (list != nullptr && list->per_hour.dollars() > offer.usd_per_hour) {
                offer.high = std::max(offer.high, list->per_hour.dollars());
                offer.usd_per_hour = std::sqrt(offer.usd_per_hour * list->per_hour.dollars());
            }
        }
        if (auto refusal = refuse_offer(context, type, offer)) {
            context.rejected.add(line(type, offer.region, std::move(*refusal)));
            refused = true;  // which says more than that other regions have prices
            continue;
        }
        if (where.regions.empty() && offer.pricing != Pricing::owned)
            offer.far = distance_from_home(home_of(context.workload, context.options), node.cloud, offer.region,
                                           context.workload.objective.latency.any());
        offers.push_back(std::move(offer));
    }
    offer_unlisted(context, type, offers);
    const bool own = node.cloud == "on-prem" || node.cloud == "this-machine";
    if (offers.empty() && own && context.catalog.prices_of(type).empty()) {
        offers.push_back({.region = node.cloud, .pricing = Pricing::owned, .priced = false});
    } else if (offers.empty() && context.catalog.prices_of(type).empty()) {
        ++context.considered;
        context.rejected.add(line(
            type, "",
            {Reason::unpriced, 0, 1,
             node.cloud == "azure" ? "no price in the catalogue: unpriced, which is not free; --prices brings one"
                                   : "no price in the catalogue: unpriced, which is not free; describe it with its "
                                     "price_per_hour (where: {cloud: on-prem, nodes: FILE})"}));
    } else if (offers.empty() && !refused && (other_os || other_region)) {
        ++context.considered;
        const std::string what = other_region ? "no price in these regions" : "no price for " + where.os;
        context.rejected.add(line(type, "", {other_region ? Reason::region : Reason::unpriced, 0, 1, what}));
    }
    if (offers.empty() && where.spot == SpotUse::only && !context.catalog.prices_of(type).empty()) {
        const auto prices = context.catalog.prices_of(type);
        const bool any = std::any_of(prices.begin(), prices.end(),
                                     [](const Price& price) { return price.pricing == Pricing::spot; });
        if (!any) {
            ++context.considered;
            context.rejected.add(
                line(type, "", {Reason::unpriced, 0, 1, "where.spot is only, and its spot price is not known"}));
        }
    }
    sort_offers(offers);
    return offers;
}

}  // namespace

long days_between(std::string_view from, std::string_view to) {
    auto a = day_number(from), b = day_number(to);
    return a && b ? *b - *a : 0;
}

bool is_rdma(const NodeType& node) {
    return node.rdma_gbps_per_node > 0 || node.rdma_gbps_per_gpu > 0;
}

bool is_nd(const NodeType& node) {
    const std::string name = short_size(node.name);
    return node.cloud == "azure" && name.size() > 2 && name[0] == 'N' && name[1] == 'D';
}

bool is_twin_without_rdma(const NodeType& node, const NodeType& other) {
    return node.has_gpu() && other.cloud == node.cloud && other.accelerator == node.accelerator &&
           other.accelerators == node.accelerators && other.accelerator_memory.v == node.accelerator_memory.v &&
           is_rdma(node) && !is_rdma(other);
}

std::string retirement_of(const Context& context, int type) {
    const NodeType& node = context.node(type);
    for (const SkuOffer& sku : context.options.offers)
        if (sku.size == node.name && !sku.retirement_date.empty()) return sku.retirement_date;
    return node.retirement_date;
}

namespace {

// Sizes of one kind differ in how many devices a VM has, not in what the devices are.
std::string kind_of(const Context& context, int type) {
    const NodeType& node = context.node(type);
    if (node.cloud == "on-prem" || node.cloud == "this-machine" || context.size_was_named(type)) return node.name;
    if (node.has_gpu())
        return node.cloud + "/" + context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name;
    return node.cloud + "/" + (node.cloud == "azure" ? short_size(node.name).substr(0, 1) : node.purpose);
}

}  // namespace

Context make_context(const Workload& workload, const Catalog& catalog, const PlanOptions& options) {
    Context context{.workload = workload,
                    .catalog = catalog,
                    .options = options,
                    .settings = read_settings(workload, catalog),
                    .choices = {},
                    .rejected = {},
                    .image = {}};
    if (options.evictions_per_hour && !workload.where.evictions_per_hour)
        take_evictions(context.settings, *options.evictions_per_hour, "your settings");
    if (options.settle_for) {
        context.settings.confidence = *options.settle_for;
        context.settings.confidence_deviations = normal_quantile(*options.settle_for);
    }
    std::map<std::string, int> kinds;
    auto any = [&] {
        for (std::size_t i = 0; i < catalog.node_types().size(); ++i)
            if (is_asked_for(context, static_cast<int>(i))) return true;
        return false;
    };
    context.unlisted = unlisted_regions(context);
    context.accelerator_missing = !workload.where.accelerators.empty() && !any();
    for (std::size_t i = 0; i < catalog.node_types().size(); ++i) {
        const int type = static_cast<int>(i);
        if (!is_asked_for(context, type))
            continue;  // another cloud, or not in the list of sizes: not a candidate at all
        if (auto refusal = refuse_node(context, type)) {
            ++context.considered;
            context.rejected.add(line(type, "", std::move(*refusal)));
            continue;
        }
        NodeChoice choice{.type = type, .node = &catalog.node_types()[i]};
        if (choice.node->has_gpu())
            choice.accelerator = &catalog.accelerators()[static_cast<std::size_t>(choice.node->accelerator)];
        choice.retires = retirement_of(context, type);
        choice.offers = offers_of(context, type);
        if (choice.offers.empty()) continue;
        weigh_evidence(context, choice);
        choice.kind = kinds.try_emplace(kind_of(context, type), static_cast<int>(kinds.size())).first->second;
        context.choices.push_back(std::move(choice));
    }
    return context;
}

}  // namespace stoker
