#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_cost004(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const Value& idle = resource.get(Attr::idle_seconds);
        const auto seconds = idle.as_int();
        if (resource.type != ResourceType::aml_compute || !seconds || !has_gpu(resource, report)) return;
        const auto most = static_cast<std::int64_t>(report.options().aml_idle_s);
        if (*seconds <= most) return;
        Finding* finding =
            report.add(idle, resource.address,
                       fmt::format("idle GPU nodes are kept for {} minutes, more than {}", *seconds / 60, most / 60));
        if (!finding) return;
        const std::string_view raw = idle.source->text(idle.span);
        const std::size_t from = raw.find_first_not_of("\"'"), to = raw.find_last_not_of("\"'");
        if (from == std::string_view::npos || raw.find("${") != std::string_view::npos) return;
        const std::string_view word = raw.substr(from, to - from + 1);
        const bool iso = word.starts_with('P');
        if (!iso && word.find_first_not_of("0123456789") != std::string_view::npos) return;
        const Span inner{static_cast<std::uint32_t>(idle.span.begin + from),
                         static_cast<std::uint32_t>(idle.span.begin + to + 1)};
        report.fix(finding, *idle.source, FixClass::safe, fmt::format("release them after {} minutes", most / 60),
                   {{inner, iso ? fmt::format("PT{}M", most / 60) : std::to_string(most)}});
    });
}

}  // namespace stoker::lint
