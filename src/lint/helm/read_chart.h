// Charts that another file installs with values of its own.
#pragma once

#include <string>
#include <string_view>

#include "lint/read.h"

namespace stoker::lint {

// What the templates of the chart in a folder beside `caller` make with `given` over the chart's own values, among the
// calls of `caller`. `at`: where it is installed; `name`: by what.
void read_chart_given(File& caller, std::string_view chart, const Node& given, Span at, std::string name,
                      const ReadOptions& options);

// Charts and manifests of the repository as Argo CD, Flux and umbrella charts install them, among the calls of `file`.
void read_installed_charts(File& file, const ReadOptions& options);

// Values are no template; what alerts say of their labels ({{ $labels.instance }}) is left to Prometheus.
bool is_template_of_values(std::string_view text);

// a.b.c=value as --set has it, put into an object of values.
void give_chart_value(File& in, Node& given, std::string_view path, const Value& value);
// Values that are written as an object or as a text of YAML, or in a file beside; null where they cannot be read.
const Node* chart_values_of(File& in, const Node& written);
const Node* chart_values_beside(File& in, const std::string& path, const ReadOptions& options);
const Node& chart_values_over(File& in, const Node& base, const Node& over);

}  // namespace stoker::lint
