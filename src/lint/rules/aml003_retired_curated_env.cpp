#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_aml003(const File& file, Report& report) {
    if (!file.kinds.has(Kind::azureml)) return;
    each_resource(file, [&](const Resource& job) {
        const Value& name = job.get(Attr::environment);
        if (!name.known()) return;
        std::string_view text = name.text;
        if (text.starts_with("azureml:")) text.remove_prefix(8);
        if (!text.starts_with("AzureML-")) return;
        // The names say their CUDA; those before 11.7 belong to images of Ubuntu 18.04.
        for (const std::string_view old : {"cuda10", "cuda11.0", "cuda11.1", "cuda11.2", "cuda11.3", "ubuntu18.04"})
            if (contains_nocase(text, old)) {
                report.add(name, job.address,
                           fmt::format("the curated environment {} is of a retired generation", text));
                return;
            }
    });
}

}  // namespace stoker::lint
