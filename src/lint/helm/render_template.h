// A chart's template filled with the chart's own values, so that what it makes is read as any manifest. A small part of
// Go's templates and of Sprig: what is outside of it leaves its value open, and a condition that stays open ends it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lint/file.h"

namespace stoker::lint {

struct Chart {
    std::string name, version, app_version;
    const Node* values = nullptr;                                             // of values.yaml; null: there are none
    std::vector<std::string_view> helpers;                                    // texts with define blocks
    std::function<std::optional<std::string>(const std::string& path)> file;  // of the chart: .Files.Get
};

struct RenderedTemplate {
    std::string text;
    std::vector<Piece> pieces;  // what an action wrote stands at the action
};

// Nothing where a condition, a loop or the syntax cannot be followed. `scratch` keeps the values that are made.
std::optional<RenderedTemplate> render_template(std::string_view text, const Chart& chart, File& scratch);

// As toYaml of Helm writes it, without a line end behind it.
std::string yaml_of(const Node& node, int indent = 0);

}  // namespace stoker::lint
