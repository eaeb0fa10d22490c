#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_npl003(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (!is_gpu_pool(resource, report) || is_written(resource, Attr::capacity_reservation)) return;
        if (resource.get(Attr::pool_mode).is_nocase("System") || torn_down_here(resource)) return;
        const Value &scaling = resource.get(Attr::autoscaling), &count = resource.get(Attr::count),
                    &least = resource.get(Attr::min_count), &most = resource.get(Attr::max_count);
        if (scaling.unknown() && is_written(resource, Attr::autoscaling)) return;
        if (says_yes(scaling)) {
            const auto low = least.as_int(), high = most.as_int();
            if (!low || !high || *low != *high) return;
            Finding* fixed = add_at_use(
                report, most, resource.address,
                fmt::format("a GPU pool that scales from {} to {}: its size is fixed and idle nodes are paid for", *low,
                            *high));
            tell_idle_cost(report, fixed, resource, low);
            return;
        }
        const std::string message = "a GPU pool of fixed size: its nodes are paid for while nothing runs on them";
        Finding* finding = is_written(resource, Attr::count) ? add_at_use(report, count, resource.address, message)
                                                             : add_at_header(report, resource, message);
        tell_idle_cost(report, finding, resource, count_of(resource));
        if (finding) finding->advice = "turn autoscaling on with a minimum of 0";
    });
}

}  // namespace stoker::lint
