#include "app/commands/usage_bill.h"

#include <array>

#include <fmt/format.h>

#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/listing.h"
#include "base/api_time.h"
#include "base/text.h"
#include "govern/cloud_bill.h"
#include "server/views.h"

namespace stoker {
namespace {

constexpr std::int64_t kBillDayUs = 86'400'000'000;
constexpr std::size_t kMostBillRows = 200;

std::string bill_money(std::int64_t micro, const std::string& currency) {
    return currency == "USD" ? money_text(micro) : fmt::format("{:.2f} {}", static_cast<double>(micro) / 1e6, currency);
}

std::string bill_hours(double hours) {
    return hours <= 0 ? "-" : fmt::format("{:.2f}", hours);
}

std::string verdict_text(const ComparedMachine& machine, const std::string& currency) {
    const std::int64_t rest = machine.billed_micro - machine.charged_micro;
    switch (machine.agreement) {
        case BillAgreement::covered:
            return rest <= 0 ? "all of it is charged" : bill_money(rest, currency) + " of it is charged to nobody";
        case BillAgreement::more_here:
            return bill_money(-rest, currency) +
                   " more is charged than billed: prices or mark-ups, or lines are missing";
        case BillAgreement::only_bill:
            return "billed, and nobody held anything of it: forgotten, or named otherwise here";
        case BillAgreement::only_here: return "held, and the bill has no machine of that name";
    }
    return "";
}

}  // namespace

bool is_cloud_bill(std::string_view text) {
    const std::string head = lower(text.substr(0, text.find('\n')));
    return head.find(',') != std::string::npos && head.find('|') == std::string::npos;
}

Result<CommandOutput> compare_with_bill(Session& session, Client& client, const Args& args, const std::string& text) {
    for (const char* name : {"from", "to"})
        if (args.has(name))
            return Error(ErrorKind::invalid, fmt::format("--{}: a bill says itself which days it is about", name), {},
                         "leave it out, or export the bill of other days");
    TRY(const CloudBill bill, read_cloud_bill(text, args.get_or("against", "bill")));
    const auto first = parse_rfc3339(bill.first_day + "T00:00:00Z"), last = parse_rfc3339(bill.last_day + "T00:00:00Z");
    if (!first || !last)
        return Error(ErrorKind::invalid, fmt::format("the bill is of {} to {}", bill.first_day, bill.last_day));
    const std::string from = rfc3339(*first), to = rfc3339(*last + kBillDayUs);
    TRY(const auto usage, get<api::UsageView>(client, fmt::format("/api/v1/usage?by=node&from={}&to={}",
                                                                  url_encoded(from), url_encoded(to))));
    std::vector<NodeUse> uses;
    for (const api::UsageLine& line : usage.items)
        if (line.requests == 0)  // what gateways charged for tokens is on no node
            uses.push_back({line.key, line.cost_microusd,
                            line.node_hours > 0  ? line.node_hours
                            : line.gpu_hours > 0 ? line.gpu_hours
                                                 : line.cpu_hours});
    const auto compared = compare_bill(bill, uses);

    constexpr std::array kWords = {"covered", "more_here", "only_bill", "only_here"};
    std::int64_t billed = 0, charged = 0, unused = 0;
    bool apart = false;
    Json items = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const ComparedMachine& each : compared) {
        billed += each.billed_micro, charged += each.charged_micro;
        if (each.agreement == BillAgreement::only_bill) unused += each.billed_micro;
        apart = apart || each.agreement != BillAgreement::covered;
        Json nodes = Json::array();
        for (const std::string& node : each.nodes) nodes.push(node);
        items.push(Json::object()
                       .set("machine", each.machine)
                       .set("nodes", std::move(nodes))
                       .set("result", kWords[static_cast<std::size_t>(each.agreement)])
                       .set("billed_micro", each.billed_micro)
                       .set("charged_micro", each.charged_micro)
                       .set("billed_hours", each.billed_hours)
                       .set("held_hours", each.held_hours));
        if (rows.size() < kMostBillRows)
            rows.push_back({printable(each.machine, 60), bill_money(each.billed_micro, bill.currency),
                            bill_money(each.charged_micro, bill.currency), bill_hours(each.billed_hours),
                            bill_hours(each.held_hours), verdict_text(each, bill.currency)});
    }
    const int code = apart ? 1 : 0;
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("items", std::move(items))
                                               .set("currency", bill.currency)
                                               .set("from", bill.first_day)
                                               .set("to", bill.last_day)
                                               .set("billed_micro", billed)
                                               .set("charged_micro", charged)
                                               .set("not_held_micro", unused)
                                               .set("others_micro", bill.others_micro)
                                               .set("total_micro", bill.total_micro())),
                             code};
    std::string out = table_text(session.style,
                                 {{"machine"},
                                  {"billed", Align::right},
                                  {"charged", Align::right},
                                  {"hours", Align::right},
                                  {"held", Align::right},
                                  {""}},
                                 rows, 0);
    if (compared.size() > rows.size())
        out += fmt::format("and {} more machines, where the difference is smaller\n", compared.size() - rows.size());
    out += fmt::format(
        "{} to {}: billed {} for machines, charged {} here; {} of the bill is for machines that nobody held\n",
        bill.first_day, bill.last_day, bill_money(billed, bill.currency), bill_money(charged, bill.currency),
        bill_money(unused, bill.currency));
    out += session.style.dim(fmt::format(
               "the bill has {} more that is about no machine (disks, addresses, licences); in "
               "all {}",
               bill_money(bill.others_micro, bill.currency), bill_money(bill.total_micro(), bill.currency))) +
           "\n";
    if (bill.currency != usage.currency)
        out += fmt::format("the bill is in {}, the price book in {}: the sums are not of one kind\n",
                           printable(bill.currency, 10), printable(usage.currency, 10));
    if (!usage.total.priced) out += "some of what was held has no price here: stoker up --prices FILE\n";
    return CommandOutput{out, code};
}

}  // namespace stoker
