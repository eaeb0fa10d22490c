// Metrics as text: families with their samples, written as Prometheus reads them (version 0.0.4) or as OpenMetrics 1.0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct ExpositionSample {
    std::string labels;  // as label_text() makes them: R"(gpu="0",uuid="GPU-...")"
    double value = 0;
    std::optional<double> created_s;  // of counters: since when, by the wall clock
};
struct ExpositionFamily {
    std::string name;  // of counters with _total
    std::string help;
    bool counter = false;
    std::vector<ExpositionSample> samples;
};

// name="value", with what has to be escaped escaped, and what is no UTF-8 replaced.
std::string label_text(std::string_view name, std::string_view value);
void add_label(std::string& labels, std::string_view name, std::string_view value);
std::string number_text_of_sample(double value);  // shortest that reads back the same; whole numbers without exponent

// Families without samples are left out, and values that are no numbers.
std::string prometheus_text(const std::vector<ExpositionFamily>& families);
std::string openmetrics_text(const std::vector<ExpositionFamily>& families);

// Which of the two an Accept header asks for, by its q-values.
bool wants_openmetrics(std::string_view accept);
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr std::string_view kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

}  // namespace stoker
