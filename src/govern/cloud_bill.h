// What a cloud billed for machines, held against what is known here of the same machines: a file of cost details as
// Azure Cost Management exports it (EA and MCA), or one with the columns of FOCUS. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct BilledMachine {
    std::string name;  // of the machine or scale set, as the bill has it
    bool scale_set = false;
    double hours = 0;        // of its machines, where the bill counts hours
    std::int64_t micro = 0;  // of the currency: all that the bill has under its name
};
struct CloudBill {
    std::string currency;
    std::string first_day, last_day;                // "2026-11-01", of its lines
    std::map<std::string, BilledMachine> machines;  // by name, in small letters
    std::int64_t others_micro = 0;                  // lines that are about no machine: disks, addresses, support
    std::size_t lines = 0;
    std::int64_t total_micro() const;
};
// invalid, with the line: it is no such file, a number is none, or it has several currencies.
Result<CloudBill> read_cloud_bill(std::string_view csv, const std::string& name);

// What is known here of a node in the same time.
struct NodeUse {
    std::string node;
    std::int64_t micro = 0;  // charged for what was held of it
    double hours = 0;        // of whatever was held: whole nodes, GPUs, processors
};

enum class BillAgreement : std::uint8_t {
    covered,    // charged no more than was billed
    more_here,  // charged more than was billed
    only_bill,  // billed, and nobody held anything of it
    only_here   // held, and on no bill
};
struct ComparedMachine {
    std::string machine;             // as the bill has it, else the node's name
    std::vector<std::string> nodes;  // of a scale set several
    BillAgreement agreement = BillAgreement::covered;
    std::int64_t billed_micro = 0, charged_micro = 0;
    double billed_hours = 0, held_hours = 0;
};
// By name, in any letters; a node of a scale set begins with the name of that. What differs most first. `slack`: so
// much of what was billed may be charged on top, for rounding.
std::vector<ComparedMachine> compare_bill(const CloudBill& bill, const std::vector<NodeUse>& uses,
                                          double slack = 0.005);

}  // namespace stoker
