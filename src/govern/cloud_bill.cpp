#include "govern/cloud_bill.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"

namespace stoker {
namespace {

// The same thing under the names of the formats that have it, the best first.
struct Column {
    const char* what;
    std::vector<std::string_view> names;  // in small letters
    bool required = true;
};
enum BillColumn : std::size_t { kDay, kResource, kCost, kCurrency, kQuantity, kUnit, kColumns };
const std::vector<Column>& columns() {
    static const std::vector<Column> all = {
        {"the day", {"date", "usagedatetime", "chargeperiodstart"}},
        {"the resource", {"resourceid", "instanceid"}},
        {"the cost", {"costinbillingcurrency", "billedcost", "pretaxcost", "cost"}},
        {"the currency", {"billingcurrencycode", "billingcurrency", "currency"}},
        {"the quantity", {"quantity", "consumedquantity", "usagequantity"}, false},
        {"the unit", {"unitofmeasure", "consumedunit"}, false},
    };
    return all;
}

// "11/03/2026", "2026-11-03", "2026-11-03T00:00:00Z" as "2026-11-03"; empty: none of them.
std::string day_of(std::string_view text) {
    const auto digits = [&](std::size_t from, std::size_t count) {
        if (from + count > text.size()) return false;
        return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(from),
                           text.begin() + static_cast<std::ptrdiff_t>(from + count),
                           [](unsigned char c) { return std::isdigit(c) != 0; });
    };
    if (text.size() >= 10 && digits(0, 4) && text[4] == '-' && digits(5, 2) && text[7] == '-' && digits(8, 2))
        return std::string(text.substr(0, 10));
    if (text.size() >= 10 && digits(0, 2) && text[2] == '/' && digits(3, 2) && text[5] == '/' && digits(6, 4))
        return fmt::format("{}-{}-{}", text.substr(6, 4), text.substr(0, 2), text.substr(3, 2));
    return {};
}

std::optional<long double> number_of(std::string_view text) {
    const std::string plain(trim(text));
    if (plain.empty() || plain.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
    char* end = nullptr;
    const long double value = std::strtold(plain.c_str(), &end);
    if (end != plain.c_str() + plain.size() || !std::isfinite(value) || std::fabs(value) > 1e12L) return std::nullopt;
    return value;
}

// ".../virtualMachines/NAME", ".../virtualMachineScaleSets/NAME[/virtualMachines/3]"; nothing: no machine.
std::optional<BilledMachine> machine_of(std::string_view resource) {
    const std::vector<std::string_view> parts = split(resource, '/');
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const std::string kind = lower(parts[i]);
        if (parts[i + 1].empty()) continue;
        if (kind == "virtualmachinescalesets")
            return BilledMachine{.name = std::string(parts[i + 1]), .scale_set = true};
        // Of a disk that is attached, or an extension, the machine is named too, and the kind of it last.
        if (kind == "virtualmachines") return BilledMachine{.name = std::string(parts[i + 1])};
    }
    return std::nullopt;
}

// "1 Hour", "10 Hours", "Hours": how many hours one of them is; 0: it counts something else.
double hours_of_unit(std::string_view text) {
    const std::string unit = lower(trim(text));
    if (unit.find("hour") == std::string::npos || unit.find("gb") != std::string::npos) return 0;
    const double number = std::strtod(unit.c_str(), nullptr);
    return number > 0 ? number : 1;
}

bool is_node_of(const std::string& node, const std::string& key, const BilledMachine& machine) {
    if (!machine.scale_set) return node == key;
    return node.size() > key.size() && node.starts_with(key);
}

}  // namespace

std::int64_t CloudBill::total_micro() const {
    std::int64_t sum = others_micro;
    for (const auto& [key, machine] : machines) sum += machine.micro;
    return sum;
}

Result<CloudBill> read_cloud_bill(std::string_view csv, const std::string& name) {
    TRY(const Csv table, Csv::read(csv, name));
    std::vector<std::optional<std::size_t>> place(kColumns);
    std::string missing;
    for (std::size_t i = 0; i < columns().size(); ++i) {
        for (const std::string_view word : columns()[i].names) {
            const auto found = std::find_if(table.header().begin(), table.header().end(),
                                            [&](const std::string& each) { return lower(each) == word; });
            if (found == table.header().end()) continue;
            place[i] = static_cast<std::size_t>(found - table.header().begin());
            break;
        }
        if (!place[i] && columns()[i].required)
            missing +=
                fmt::format("{}{} ({})", missing.empty() ? "" : ", ", columns()[i].what, columns()[i].names.front());
    }
    if (!missing.empty())
        return Error(
            ErrorKind::invalid, "its first line names no column for " + missing, {name, 1, 1},
            "export cost and usage details (actual cost), or FOCUS, from Cost Management as CSV, not compressed");
    CloudBill bill;
    // Sums are rounded once, at the end: lines have fractions of a micro-dollar.
    std::map<std::string, long double> cost_of;
    long double others = 0;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto text = [&](BillColumn which) {
            return place[which] ? table.at(row, *place[which]) : std::string_view();
        };
        const auto at = [&](BillColumn which) { return table.pos(row, *place[which]); };
        const auto money = number_of(text(kCost));
        if (!money)
            return Error(ErrorKind::invalid,
                         fmt::format("its cost is '{}', expected a number", printable(text(kCost), 40)), at(kCost),
                         "a file whose lines were cut or edited by a spreadsheet is read as it was exported");
        const std::string on = day_of(trim(text(kDay)));
        if (on.empty())
            return Error(ErrorKind::invalid, fmt::format("its day is '{}'", printable(text(kDay), 40)), at(kDay),
                         "2026-11-03 or 11/03/2026, as it was exported");
        const std::string in(trim(text(kCurrency)));
        if (bill.currency.empty()) bill.currency = in;
        if (in != bill.currency)
            return Error(
                ErrorKind::invalid,
                fmt::format("it is in {}, and lines before in {}", printable(in, 10), printable(bill.currency, 10)),
                at(kCurrency), "compare the bill of one billing account at a time");
        if (bill.lines++ == 0) bill.first_day = bill.last_day = on;
        bill.first_day = std::min(bill.first_day, on);
        bill.last_day = std::max(bill.last_day, on);
        auto machine = machine_of(text(kResource));
        if (!machine) {
            others += *money;
            continue;
        }
        const std::string key = lower(machine->name);
        BilledMachine& billed = bill.machines.try_emplace(key, std::move(*machine)).first->second;
        cost_of[key] += *money;
        if (const double hours = hours_of_unit(text(kUnit)); hours > 0)
            if (const auto count = number_of(text(kQuantity))) billed.hours += hours * static_cast<double>(*count);
    }
    if (bill.lines == 0) return Error(ErrorKind::invalid, "it has no line behind its first", {name, 1, 1});
    for (auto& [key, machine] : bill.machines) machine.micro = std::llround(cost_of[key] * 1e6L);
    bill.others_micro = std::llround(others * 1e6L);
    return bill;
}

std::vector<ComparedMachine> compare_bill(const CloudBill& bill, const std::vector<NodeUse>& uses, double slack) {
    std::map<std::string, ComparedMachine> compared;
    for (const auto& [key, machine] : bill.machines)
        compared[key] = {
            .machine = machine.name, .nodes = {}, .billed_micro = machine.micro, .billed_hours = machine.hours};
    std::vector<ComparedMachine> all;
    for (const NodeUse& use : uses) {
        const std::string node = lower(use.node);
        // Of several scale sets whose names it begins with, the longest is meant.
        const BilledMachine* of = nullptr;
        std::string key;
        for (const auto& [name, machine] : bill.machines)
            if (is_node_of(node, name, machine) && (of == nullptr || name.size() > key.size()))
                of = &machine, key = name;
        ComparedMachine alone{.machine = use.node, .nodes = {}, .agreement = BillAgreement::only_here};
        ComparedMachine& to = of != nullptr ? compared[key] : alone;
        to.nodes.push_back(use.node);
        to.charged_micro += use.micro;
        to.held_hours += use.hours;
        if (of == nullptr) all.push_back(std::move(alone));
    }
    for (auto& [key, machine] : compared) {
        const auto bound = static_cast<std::int64_t>(
            static_cast<double>(std::max<std::int64_t>(0, machine.billed_micro)) * (1 + slack));
        machine.agreement = machine.nodes.empty()           ? BillAgreement::only_bill
                            : machine.charged_micro > bound ? BillAgreement::more_here
                                                            : BillAgreement::covered;
        all.push_back(std::move(machine));
    }
    std::stable_sort(all.begin(), all.end(), [](const ComparedMachine& a, const ComparedMachine& b) {
        const auto apart = [](const ComparedMachine& each) {
            return std::llabs(each.billed_micro - each.charged_micro);
        };
        return std::pair(-apart(a), a.machine) < std::pair(-apart(b), b.machine);
    });
    return all;
}

}  // namespace stoker
