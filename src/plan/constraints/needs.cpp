// Software that only runs on GPUs of one vendor: a machine without them is no cheaper way to the same.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_unmet_needs(const Context& context, int type) {
    struct Vendor {
        std::string_view need, vendor;
    };
    static constexpr std::array<Vendor, 6> kVendors{{{"cuda", "NVIDIA"},
                                                     {"cudnn", "NVIDIA"},
                                                     {"tensorrt", "NVIDIA"},
                                                     {"nccl", "NVIDIA"},
                                                     {"rocm", "AMD"},
                                                     {"rccl", "AMD"}}};
    const NodeType& node = context.node(type);
    const std::string_view vendor =
        node.has_gpu()
            ? std::string_view(context.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].vendor)
            : std::string_view("no");
    for (const Vendor& one : kVendors)
        for (const std::string& need : context.workload.needs)
            if (equals_ignore_case(need, one.need) && vendor != one.vendor)
                return Refusal{Reason::wrong_purpose, 0, 0,
                               fmt::format("needs: {} runs on {} GPUs; this size has {}", need, one.vendor,
                                           node.has_gpu() ? vendor : "none")};
    return std::nullopt;
}

}  // namespace stoker
