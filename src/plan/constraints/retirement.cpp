// A retired size cannot be created, whatever price lists still say. The live RetirementDateUtc of list-skus beats the
// table.
#include <fmt/format.h>

#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_retired(const Context& context, int type) {
    const std::string date = retirement_of(context, type);
    const NodeType& node = context.node(type);
    if (date.empty()) {
        if (node.status != "retired") return std::nullopt;
        return Refusal{Reason::retired, 0, 0, "retired (date not published)"};
    }
    const long left = days_between(context.options.today, date);
    if (left > 0) return std::nullopt;
    return Refusal{Reason::retired, static_cast<double>(left), 0, fmt::format("retired on {}", date)};
}

}  // namespace stoker
