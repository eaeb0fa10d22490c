#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s007(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        if (container.resources.empty() || !container.image.known() || accelerator_of(container)) return;
        for (const Quantity& quantity : container.resources) {
            if (!is_accelerator_resource(quantity.resource) || !quantity.amount.is("0")) continue;
            if (!is_gpu_image(container.image.text)) return;
            report.add(quantity.amount, container.address,
                       fmt::format("{} is 0 beside an image made for GPUs: the container gets no device, and with some "
                                   "runtimes all of them",
                                   quantity.resource));
        }
    });
}

}  // namespace stoker::lint
