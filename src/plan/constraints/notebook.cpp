// A notebook idles most of the day: an eight-GPU training node for it burns tens of dollars an hour for nothing.
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_notebook_on_nd(const Context& context, int type) {
    if (context.workload.kind != WorkloadKind::notebook) return std::nullopt;
    const NodeType& node = context.node(type);
    if (!is_nd(node) && !(node.accelerators >= 8)) return std::nullopt;
    return Refusal{Reason::policy_notebook, node.accelerators, 1,
                   "a training node of many GPUs is not for notebooks: take a fraction of an A10 or a CPU size"};
}

}  // namespace stoker
