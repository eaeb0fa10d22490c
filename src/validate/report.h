// What `stoker validate` says: OUT.csv, JSON, and the tables for people.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/style.h"
#include "validate/regret.h"
#include "validate/score.h"

namespace stoker::validate {

// id,metric,predicted,low,high,refused_reason,outcome; always all seven, one line per figure, in the order of the rows.
std::string predictions_csv(const std::vector<Line>& lines);

Json report_json(RowKind kind, const std::string& file, const Score& score, const std::vector<Line>& lines);
std::string report_text(RowKind kind, const std::string& file, const Score& score, const Style& style);

Json regret_json(const std::string& file, const Regret& regret);
std::string regret_text(const std::string& file, const Regret& regret, const Style& style);

}  // namespace stoker::validate
