#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_aml002(const File& file, Report& report) {
    if (!file.kinds.has(Kind::azureml)) return;
    each_resource(file, [&](const Resource& job) {
        const Value& processes = job.get(Attr::process_count);
        if (processes.as_int().value_or(0) < 2 || job.get(Attr::shm_size).present()) return;
        Finding* finding =
            report.add(processes, job.address,
                       fmt::format("{} processes of an instance share the default /dev/shm of 2 GB", processes.text));
        if (finding) finding->advice = "set resources.shm_size, for example to 16g";
    });
}

}  // namespace stoker::lint
