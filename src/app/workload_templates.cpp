#include "app/workload_templates.h"

#include <filesystem>

#include "base/embedded.h"
#include "base/text.h"

namespace stoker {

namespace {

// Comments at the head: "# template: NAME", "# title: ...", "# group: ...".
WorkloadTemplate parse_template(const EmbeddedFile& file) {
    WorkloadTemplate found{.text = file.bytes};
    for (const std::string_view line : split_lines(file.bytes)) {
        if (!line.starts_with("#")) break;
        const std::string_view comment = trim(line.substr(1));
        for (const auto& [key, value] : {std::pair{std::string_view("template:"), &found.name},
                                         {std::string_view("title:"), &found.title},
                                         {std::string_view("group:"), &found.group}}) {
            if (comment.starts_with(key)) *value = std::string(trim(comment.substr(key.size())));
        }
    }
    if (found.name.empty()) found.name = std::filesystem::path(file.path).stem().string();
    return found;
}

}  // namespace

std::vector<WorkloadTemplate> workload_templates() {
    std::vector<WorkloadTemplate> list;
    for (const EmbeddedFile& file : embedded_files()) {
        if (file.path.starts_with("templates/") && file.path.ends_with(".yaml")) list.push_back(parse_template(file));
    }
    return list;
}

}  // namespace stoker
