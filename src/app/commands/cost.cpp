// stoker cost: price x hours, what a request and a million tokens cost, and owning against renting.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "app/cards.h"
#include "app/commands/commands.h"
#include "app/render/plan_text.h"
#include "base/text.h"
#include "catalog/names.h"
#include "io/files.h"
#include "sizing/economics.h"

namespace stoker {

namespace {

struct OwnFile {
    Usd capex, staff_per_year, other_per_year;
    std::string power;
    double years = 4, usd_per_kwh = 0.12, pue = 1.4, nodes = 1;
    std::map<std::string, SourcePos> at;
};

const RecordTable<OwnFile>& own_table() {
    static const RecordTable<OwnFile> table = [] {
        RecordTable<OwnFile> t("own", "What owning nodes like the rented ones would cost.");
        t.usd("capex", &OwnFile::capex, "Price of one node, with its share of racks, switches and installation.",
              "$320k", 1, 1e9)
            .required();
        t.number("years", &OwnFile::years, "Years until it is worth nothing.", "4", 0.5, 20);
        t.text("power", &OwnFile::power, "Mean power of one node while it works, with its unit: W or kW.", "10.2kW")
            .required();
        t.number("usd_per_kwh", &OwnFile::usd_per_kwh, "Price of electricity.", "0.12", 0, 10);
        t.number("pue", &OwnFile::pue, "Power of the building over power of the machines.", "1.4", 1, 4);
        t.usd("staff_per_year", &OwnFile::staff_per_year, "People, for all nodes together.", "$60k");
        t.usd("other_per_year", &OwnFile::other_per_year, "Space, support contracts, spares, for all nodes together.",
              "$20k");
        t.count("nodes", &OwnFile::nodes, "How many nodes.", "4", 1, 1e6);
        return t;
    }();
    return table;
}

// "10.2kW", "6500 W". A number alone is watts to one reader and kilowatts to the next.
Result<double> watts_of(std::string_view text) {
    text = trim(text);
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string unit = lower(trim(text.substr(static_cast<std::size_t>(end - text.data()))));
    const double watts = unit == "w" ? value : unit == "kw" ? 1e3 * value : unit == "mw" ? 1e6 * value : 0;
    if (code == std::errc() && unit.empty())
        return Error(ErrorKind::invalid, fmt::format("power: {} of what?", printable(text, 40)), {},
                     fmt::format("write its unit: {0}W or {0}kW", printable(text, 40)));
    if (code != std::errc() || !(watts >= 1 && watts <= 1e6))
        return Error(ErrorKind::invalid,
                     fmt::format("power: expected 1 W to 1 MW of one node, found '{}'", printable(text, 40)), {},
                     "write it as 10.2kW or 6500W");
    return watts;
}

Result<OwnSpec> read_own(Session& session, const std::string& path) {
    TRY(const Document document, session.read_document(path, 1u << 20));
    Problems problems;
    const OwnFile file = own_table().read(document.root(), problems);
    const auto watts = watts_of(file.power);
    if (!watts && problems.empty())
        problems.push_back({watts.error().message(), watts.error().problems().front().remedy,
                            file.at.contains("power") ? file.at.at("power") : SourcePos{path, 1, 1}});
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return OwnSpec{.capex = file.capex,
                   .years = file.years,
                   .power_w = *watts,
                   .usd_per_kwh = file.usd_per_kwh,
                   .pue = file.pue,
                   .staff_usd_per_year = file.staff_per_year.dollars(),
                   .other_usd_per_year = file.other_per_year.dollars(),
                   .nodes = file.nodes};
}

Result<double> number_option(const Args& args, std::string_view name, double otherwise, double low, double high) {
    return args.number(name, otherwise, low, high);
}

struct Question {
    int node_type = -1;
    const Price* price = nullptr;
    double hours = 1, nodes = 1, utilisation = 1, requests_per_s = 0, tokens_per_s = 0, disk_month = 0;
    std::string os, region;
    Pricing pricing = Pricing::on_demand;
};

constexpr double kHoursPerMonth = 730;

// A price list's figure, which a person multiplies to check: never rounded to whole dollars.
std::string exact_usd(Usd usd) {
    std::string text = format_thousands(std::fabs(usd.dollars()), 4);
    for (std::size_t decimals = text.size() - text.find('.') - 1; decimals > 2 && text.back() == '0'; --decimals)
        text.pop_back();
    return (usd.micro() < 0 ? "-$" : "$") + text;
}

std::string lines_of(const std::vector<std::pair<std::string, std::string>>& pairs, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [label, value] : pairs) rows.push_back({label, value});
    const std::string table = table_text(style, {{"", Align::left}, {"", Align::left}}, rows);
    return table.substr(table.find('\n') + 1);
}

Result<Pricing> pricing_of(const std::string& word) {
    for (const Pricing pricing : {Pricing::on_demand, Pricing::spot, Pricing::reserved_1y, Pricing::reserved_3y}) {
        if (word == to_string(pricing)) return pricing;
    }
    return Error(ErrorKind::internal, "unknown pricing " + word);
}

// Says where the size is priced, so that "unpriced" is not the end of the way.
CommandOutput unpriced(Session& session, const Catalog& catalog, const Question& q) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(q.node_type)];
    // Per system and way of buying: the cheapest region, and in how many it is priced.
    struct Sold {
        const Price* cheapest = nullptr;
        int regions = 0;
    };
    std::map<std::string, Sold> sold;
    for (const Price& price : catalog.prices_of(q.node_type)) {
        Sold& each = sold[fmt::format("{} {}", price.os, to_string(price.pricing))];
        if (each.cheapest == nullptr || price.per_hour < each.cheapest->per_hour) each.cheapest = &price;
        if (q.region.empty() || price.region == q.region) ++each.regions;
    }
    std::string elsewhere;
    Json list = Json::array();
    for (const auto& [kind, each] : sold) {
        const std::string where =
            each.regions > 0 && !q.region.empty()
                ? fmt::format("also in {}", q.region)
                : fmt::format("from {} in {}", format_usd(each.cheapest->per_hour),
                              each.cheapest->region.empty() ? "no region" : each.cheapest->region);
        elsewhere += fmt::format("{}{} {}", elsewhere.empty() ? "" : "; ", kind, where);
        list.push(Json::object()
                      .set("os", each.cheapest->os)
                      .set("pricing", to_string(each.cheapest->pricing))
                      .set("cheapest_region", each.cheapest->region)
                      .set("usd_per_node_hour", each.cheapest->per_hour.dollars()));
    }
    const std::string what = fmt::format("{} is unpriced: {}, {}, {}", node.name,
                                         q.region.empty() ? "every region" : q.region, q.os, to_string(q.pricing));
    if (session.format != Format::text)
        return {dump(session, Json::object()
                                  .set("size", node.name)
                                  .set("priced", false)
                                  .set("os", q.os)
                                  .set("pricing", to_string(q.pricing))
                                  .set("priced_elsewhere", list)),
                1};
    std::string text = what + "\n";
    for (const std::string& line :
         wrap(elsewhere.empty() ? "The catalogue has no price of it." : "Priced: " + elsewhere,
              static_cast<std::size_t>(session.style.width) - 2))
        text += "  " + line + "\n";
    text += node.cloud == "azure" ? "  look it up at " + price_pages()[q.os == "windows" ? 2 : 1] +
                                        "\n  or give a page of the Retail Prices API with --prices\n"
                                  : "  look it up on the price page of " + node.cloud + "\n";
    return {text, 1};
}

std::string cost_text(const Catalog& catalog, const Question& q, const std::optional<DiskTier>& disk,
                      const Style& style, std::string_view today) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(q.node_type)];
    const Usd hourly = q.price->per_hour * q.nodes;
    const Usd total = hourly * q.hours;
    const std::string count = q.nodes == 1 ? "" : fmt::format(" x {:g}", q.nodes);
    std::string text =
        style.bold(fmt::format("{}{}: {:g} h cost {}", node.name, count, q.hours, money_text(total.dollars()))) + "\n";
    std::vector<std::pair<std::string, std::string>> rows = {
        {"compute", fmt::format("{} x {:g} h{} = {}", exact_usd(q.price->per_hour), q.hours,
                                q.nodes == 1 ? "" : fmt::format(" x {:g} nodes", q.nodes), exact_usd(total))},
        {"price", price_line(*q.price)}};
    if (q.price->estimate)
        rows.push_back({"", fmt::format("estimate: {:.3f} to {:.3f} $/h", q.price->low, q.price->high)});
    if (const std::string retirement = retirement_text(node.retirement_date, today); !retirement.empty())
        rows.push_back({"retirement", retirement});
    const double gpus = node.has_gpu() ? node.accelerators * q.nodes : 0;
    if (gpus > 0)
        rows.push_back(
            {"per GPU",
             fmt::format("{} per GPU-hour{}", money_text(hourly.dollars() / gpus),
                         q.utilisation < 1
                             ? fmt::format("; {} per used GPU-hour at {:.0f} % utilisation (price / utilisation)",
                                           money_text(hourly.dollars() / gpus / q.utilisation), 100 * q.utilisation)
                             : "")});
    else if (q.utilisation < 1)
        rows.push_back({"used hour", fmt::format("{} at {:.0f} % utilisation (price / utilisation)",
                                                 money_text(hourly.dollars() / q.utilisation), 100 * q.utilisation)});
    const double per_second = hourly.dollars() / 3600;
    if (q.requests_per_s > 0)
        rows.push_back(
            {"per 1M requests",
             fmt::format("{} = 1e6 x $/s of the replica / requests per s at the latency target = 1e6 x {:.6f} / {:g}",
                         money_text(1e6 * per_second / q.requests_per_s), per_second, q.requests_per_s)});
    if (q.tokens_per_s > 0)
        rows.push_back(
            {"per 1M tokens", fmt::format("{} = 1e6 x $/s / tokens per s = 1e6 x {:.6f} / {:g}",
                                          money_text(1e6 * per_second / q.tokens_per_s), per_second, q.tokens_per_s)});
    if (disk) {
        const std::string shape =
            fmt::format("{} {}, {:g} GiB, {:g} MB/s", disk->name, disk->kind, disk->gib, disk->mb_s);
        rows.push_back(
            {"storage apart", q.disk_month > 0
                                  ? fmt::format("{}: {} a month each{}, {} for {:g} h", shape, money_text(q.disk_month),
                                                q.disk_month == disk->usd_per_month
                                                    ? fmt::format(" ({}, {})", disk->price_region, disk->price_source)
                                                    : "",
                                                money_text(q.disk_month * q.nodes * q.hours / kHoursPerMonth), q.hours)
                                  : shape + ": unpriced here; --disk-usd-per-month X, from "
                                            "https://azure.microsoft.com/pricing/details/managed-disks/"});
    } else {
        rows.push_back(
            {"storage apart", q.disk_month > 0
                                  ? fmt::format("{} a month each, {} for {:g} h", money_text(q.disk_month),
                                                money_text(q.disk_month * q.nodes * q.hours / kHoursPerMonth), q.hours)
                                  : "disks are billed besides, while they exist (--disk P30)"});
    }
    if (node.cloud == "azure")
        rows.push_back({"not in use",
                        fmt::format("shut down but still allocated: {} per hour as before; deallocated: only its disks",
                                    exact_usd(hourly))});
    rows.push_back(
        {"verify",
         join(node.cloud == "azure" ? price_pages() : std::vector<std::string>{"the cloud's own price page"}, " ")});
    return text + lines_of(rows, style) + correction_notes(node.name, style);
}

// Renting against owning: one line for the asked utilisation, then the table over utilisations.
std::string own_text(const OwnSpec& own, Usd rent, double utilisation, const Style& style) {
    std::string text = "\n" +
                       style.bold(fmt::format("Owning {:g} node{} at {} each, {:g} years", own.nodes,
                                              own.nodes == 1 ? "" : "s", money_text(own.capex.dollars()), own.years)) +
                       "\n";
    const OwnVerdict asked = own_or_rent(own, rent, utilisation);
    const auto months = [&](double m) {
        return std::isfinite(m) && m <= own.years * 12 ? fmt::format("month {:.1f}", m)
                                                       : std::string("not within its life");
    };
    text += fmt::format("  At {:.0f} % utilisation owning breaks even in {}.\n", utilisation * 100,
                        months(asked.break_even_months));
    text +=
        std::isfinite(asked.break_even_utilisation) && asked.break_even_utilisation <= 1
            ? fmt::format("  Over {:g} years both cost the same at {:.0f} % utilisation; above it owning is cheaper.\n",
                          own.years, 100 * asked.break_even_utilisation)
            : std::string("  Renting is cheaper at every utilisation.\n");
    std::vector<std::vector<std::string>> rows;
    for (const double u : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
        const OwnVerdict v = own_or_rent(own, rent, u);
        rows.push_back({fmt::format("{:.0f} %", u * 100), months(v.break_even_months),
                        money_text(v.own_total.dollars()), money_text(v.rent_total.dollars()),
                        money_text(v.own_usd_per_used_hour)});
    }
    return text +
           table_text(style,
                      {{"utilisation", Align::right},
                       {"break-even", Align::right},
                       {"owning", Align::right},
                       {"renting", Align::right},
                       {"owning per used node-hour", Align::right}},
                      rows) +
           "  Renting counts used hours only; owning costs the same whether it works or idles, but for\n  "
           "electricity.\n";
}

// What owning costs per node and hour of the calendar, whether it works or not: what a commitment costs is held
// against it, since that is paid for unused hours as well.
double own_per_calendar_hour(const OwnSpec& own, Usd rent, double utilisation) {
    const double hours = own.years * 24 * 365.25 * own.nodes;
    return hours > 0 ? own_or_rent(own, rent, utilisation).own_total.dollars() / hours : 0;
}

// Few who could own pay list prices: what other ways to rent would cost, and how deep a discount has to be.
std::string own_against_others(const Catalog& catalog, const Question& q, const OwnSpec& own) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(q.node_type)];
    const double owning = own_per_calendar_hour(own, q.price->per_hour, q.utilisation);
    const double list = q.price->per_hour.dollars();
    std::string text = fmt::format(
        "\n  A commitment is paid for whether it is used or not. At {:.0f} % utilisation owning costs {} per node\n"
        "  and hour of the calendar",
        q.utilisation * 100, money_text(owning));
    text += owning < list ? fmt::format(", {:.0f} % below the {} of {}:\n", 100 * (1 - owning / list), money_text(list),
                                        to_string(q.pricing))
                          : fmt::format(", more than the {} of {}:\n", money_text(list), to_string(q.pricing));
    const auto against = [&](double renting) {
        const double ratio = renting / std::max(owning, 1e-9);
        if (ratio >= 1.95) return fmt::format("renting is {:.1f} x as much as owning", ratio);
        return fmt::format("renting is {:.0f} % {} than owning", 100 * std::abs(ratio - 1),
                           ratio > 1 ? "more" : "less");
    };
    bool reserved = false;
    for (const Pricing pricing : {Pricing::reserved_1y, Pricing::reserved_3y, Pricing::spot}) {
        const Price* price = catalog.price(q.node_type, q.price->region, q.os, pricing);
        if (pricing == q.pricing || price == nullptr) continue;
        const double other = price->per_hour.dollars();
        if (pricing != Pricing::spot) {
            reserved = true;
            text += fmt::format("  {} {}: {}\n", to_string(pricing), money_text(other), against(other));
        } else if (price->estimate && price->low < price->high) {
            text += fmt::format("  spot {} - {} (a bracket) for the used hours: at its ends {}, {}; it is evicted\n",
                                money_text(price->low), money_text(price->high), against(price->low * q.utilisation),
                                against(price->high * q.utilisation));
        } else {
            text += fmt::format("  spot {} for the used hours: {}; it is evicted\n", money_text(other),
                                against(other * q.utilisation));
        }
    }
    if (!reserved)
        text += owning < list
                    ? fmt::format(
                          "  no reserved price of {} is known here: one of less than {:.0f} % off would cost more "
                          "than owning;\n  --prices takes a saved page of the price list\n",
                          node.name, 100 * (1 - owning / list))
                    : std::string("  any commitment costs less than owning\n");
    return text;
}

Json cost_json(const Catalog& catalog, const Question& q, const std::optional<OwnSpec>& own) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(q.node_type)];
    const Usd hourly = q.price->per_hour * q.nodes;
    const double per_second = hourly.dollars() / 3600;
    Json json = Json::object();
    json.set("size", node.name)
        .set("priced", true)
        .set("nodes", q.nodes)
        .set("hours", q.hours)
        .set("usd_per_node_hour", q.price->per_hour.dollars())
        .set("usd", (hourly * q.hours).dollars());
    json.set("region", q.price->region)
        .set("os", q.os)
        .set("pricing", to_string(q.pricing))
        .set("estimate", q.price->estimate)
        .set("source", q.price->provenance.source)
        .set("as_of", q.price->provenance.as_of);
    json.set("usd_per_gpu_hour", node.has_gpu() ? Json(q.price->per_hour.dollars() / node.accelerators) : Json())
        .set("utilisation", q.utilisation)
        .set("usd_per_used_hour", hourly.dollars() / q.utilisation);
    json.set("usd_per_request", q.requests_per_s > 0 ? Json(per_second / q.requests_per_s) : Json())
        .set("usd_per_million_tokens", q.tokens_per_s > 0 ? Json(1e6 * per_second / q.tokens_per_s) : Json());
    json.set("storage_usd", q.disk_month > 0 ? Json(q.disk_month * q.nodes * q.hours / kHoursPerMonth) : Json())
        .set("usd_per_hour_stopped_but_allocated", node.cloud == "azure" ? Json(hourly.dollars()) : Json())
        .set("usd_per_hour_deallocated_besides_disks", node.cloud == "azure" ? Json(0.0) : Json())
        .set("corrections", correction_json(node.name));
    if (own) {
        const OwnVerdict v = own_or_rent(*own, q.price->per_hour, q.utilisation);
        json.set("own", Json::object()
                            .set("break_even_months", v.break_even_months)
                            .set("break_even_utilisation", v.break_even_utilisation)
                            .set("own_usd", v.own_total.dollars())
                            .set("rent_usd", v.rent_total.dollars())
                            .set("own_usd_per_used_hour", v.own_usd_per_used_hour)
                            .set("own_usd_per_node_and_calendar_hour",
                                 own_per_calendar_hour(*own, q.price->per_hour, q.utilisation)));
    }
    return json;
}

Result<CommandOutput> run_cost(Session& session, const Args& args) {
    TRY(const PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    Question q;
    TRY(q.node_type, catalog->find_node_type(args.positional[0]));
    const NodeType& node = catalog->node_types()[static_cast<std::size_t>(q.node_type)];
    q.os = args.get_or("os", "linux");
    if (args.has("spot") && args.get_or("pricing", "spot") != "spot")
        return Error(ErrorKind::invalid, "--spot and --pricing " + args.get_or("pricing", "") + " exclude each other");
    TRY(q.pricing, pricing_of(args.has("spot") ? "spot" : args.get_or("pricing", "on-demand")));
    TRY(q.hours, number_option(args, "hours", 1, 1e-6, 1e7));
    TRY(q.nodes, number_option(args, "nodes", 1, 1, 1e6));
    TRY(q.requests_per_s, number_option(args, "requests-per-second", 0, 1e-9, 1e12));
    TRY(q.tokens_per_s, number_option(args, "tokens-per-second", 0, 1e-9, 1e12));
    TRY(q.disk_month, number_option(args, "disk-usd-per-month", 0, 0, 1e6));
    TRY(q.utilisation, number_option(args, "utilisation", 1, 1e-4, 100));
    if (q.utilisation > 1) q.utilisation /= 100;  // 65 means 65 %
    if (const auto region = args.get("region")) {
        TRY(q.region, catalog->find_region(node.cloud, *region));
    }
    std::optional<DiskTier> disk;
    if (const auto name = args.get("disk")) {
        TRY(const int index, catalog->find_disk(*name));
        disk = catalog->disks()[static_cast<std::size_t>(index)];
        if (q.disk_month == 0) q.disk_month = disk->usd_per_month;
    }
    std::optional<OwnSpec> own;
    if (const auto file = args.get("own")) {
        TRY(own, read_own(session, *file));
    }
    q.price = usual_price(*catalog, q.node_type, q.region, q.os, q.pricing);
    if (q.price == nullptr) return unpriced(session, *catalog, q);
    if (session.format != Format::text) return CommandOutput{dump(session, cost_json(*catalog, q, own)), 0};
    std::string text = cost_text(*catalog, q, disk, session.style, options.today);
    if (own)
        text += own_text(*own, q.price->per_hour, q.utilisation, session.style) + own_against_others(*catalog, q, *own);
    return CommandOutput{text, 0};
}

}  // namespace

CliCommand cost_command() {
    return {
        .name = "cost",
        .summary = "what a size costs: hours, requests, tokens, owning against renting",
        .usage = "stoker cost SIZE [--hours N] [options]",
        .description =
            "Price times hours, with the region, date and source of the price and where to verify it. Exit 1 when it "
            "is unpriced.\n"
            "$ per 1M requests = 1e6 x price per second / requests per second at the latency target; $ per 1M tokens = "
            "1e6 x "
            "price per second / tokens per second.",
        .examples = {"stoker cost Standard_ND96isr_H100_v5 --hours 48",
                     "stoker cost NC4as_T4_v3 --requests-per-second 40",
                     "stoker cost NC24ads_A100_v4 --spot --hours 8 --disk P30",
                     "stoker cost ND96isr_H100_v5 --own own.yaml --utilisation 65"},
        .options = {{.name = "hours", .value = "N", .help = "how long (1)"},
                    {.name = "nodes", .value = "N", .help = "how many (1)"},
                    {.name = "region",
                     .value = "REGION",
                     .help = "default: eastus, or the cheapest where it is not sold there"},
                    {.name = "os", .value = "OS", .help = "linux or windows", .choices = {"linux", "windows"}},
                    {.name = "pricing",
                     .value = "KIND",
                     .help = "how it is bought",
                     .choices = {"on-demand", "spot", "reserved-1y", "reserved-3y"}},
                    {.name = "spot", .help = "the same as --pricing spot"},
                    {.name = "utilisation", .value = "U", .help = "share of the paid hours that is used: 0.65 or 65"},
                    {.name = "requests-per-second",
                     .value = "X",
                     .help = "sustained at the latency target: gives $ per 1M requests"},
                    {.name = "tokens-per-second", .value = "Y", .help = "sustained: gives $ per 1M tokens"},
                    {.name = "disk", .value = "NAME", .help = "a data disk on each node, such as P30: listed apart"},
                    {.name = "disk-usd-per-month", .value = "USD", .help = "what that disk costs"},
                    {.name = "own",
                     .value = "FILE",
                     .help = "YAML with capex, power, years, usd_per_kwh, pue, staff_per_year, nodes: break-even",
                     .completes = "file"},
                    {.name = "prices",
                     .value = "FILE",
                     .help = "a page of the Azure Retail Prices API; newer prices replace ours",
                     .repeats = true,
                     .completes = "file"},
                    {.name = "as-of", .value = "DATE", .help = "as seen on this day, YYYY-MM-DD: retired or not"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_cost,
        .completes = "size",
        .warns_stale = true};
}

}  // namespace stoker
