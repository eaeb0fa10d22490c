#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_net018(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::scale_set || is_az(resource) || !has_rdma(resource, report)) return;
        const Value& reservation = resource.get(Attr::capacity_reservation);
        if (reservation.absent() || !resource.written.starts_with("azurerm_")) return;
        report.add(reservation, resource.address,
                   "a capacity reservation needs single_placement_group = false, and without a single placement group "
                   "an InfiniBand size has no InfiniBand");
    });
}

}  // namespace stoker::lint
