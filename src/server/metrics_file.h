// metrics.jsonl of a run: one JSON object a line, {"step": 12, "loss": 2.3}, written by the program.
#pragma once

#include <map>
#include <string>

#include "server/views.h"

namespace stoker::api {

// Every series, or the one named, with at most `max_points` points each: the smallest and the largest of as many
// stretches, so that a spike stays visible. The last 32 MiB are read.
MetricsView read_metrics(const std::string& file, const std::string& name, std::size_t max_points);
// The last value of each number; the last 64 KiB are read.
std::map<std::string, double> last_metrics(const std::string& file);

}  // namespace stoker::api
