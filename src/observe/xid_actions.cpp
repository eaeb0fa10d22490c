#include "observe/xid_actions.h"

#include <algorithm>
#include <array>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker {

namespace {

constexpr std::array<std::string_view, 8> kClassNames = {"restart_app", "reset_gpu", "restart_machine", "workflow",
                                                         "check",       "ignore",    "support",         "none"};
constexpr std::array<XidClass, 8> kClasses = {XidClass::restart_app, XidClass::reset_gpu, XidClass::restart_machine,
                                              XidClass::workflow,    XidClass::check,     XidClass::ignore,
                                              XidClass::support,     XidClass::none};

}  // namespace

const std::vector<std::pair<int, XidAction>>& known_xids() {
    static const std::vector<std::pair<int, XidAction>> table = [] {
        std::vector<std::pair<int, XidAction>> read;
        const auto rows = Tsv::read(embedded_bytes("gpu/xid_actions.tsv"), "gpu/xid_actions.tsv");
        CHECK(rows.ok());
        for (std::size_t row = 0; row < rows->rows(); ++row) {
            const auto code = rows->whole_number(row, 0);
            const auto kind = find_xid_class(rows->at(row, 1));
            CHECK(code.ok() && kind);
            read.emplace_back(static_cast<int>(*code), XidAction{*kind, rows->at(row, 2)});
        }
        std::sort(read.begin(), read.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return read;
    }();
    return table;
}

std::string_view to_string(XidClass value) {
    return kClassNames[static_cast<std::size_t>(value)];
}
std::span<const XidClass> xid_classes() {
    return kClasses;
}
std::optional<XidClass> find_xid_class(std::string_view name) {
    const auto found = std::find(kClassNames.begin(), kClassNames.end(), name);
    if (found == kClassNames.end()) return std::nullopt;
    return kClasses[static_cast<std::size_t>(found - kClassNames.begin())];
}

XidAction xid_action(int code) {
    const auto& table = known_xids();
    const auto found = std::lower_bound(table.begin(), table.end(), code,
                                        [](const auto& row, int wanted) { return row.first < wanted; });
    return found == table.end() || found->first != code
               ? XidAction{XidClass::none, "not in the catalogue: look at docs.nvidia.com/deploy/xid-errors"}
               : found->second;
}

}  // namespace stoker
