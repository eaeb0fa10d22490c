// How wide 80 % intervals have to be, told by sources that are left out: what interval_known_WORK of
// data/catalog/defaults.tsv is taken from, and how often intervals would hold that never saw the source they are judged
// by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "catalog/catalog.h"
#include "sizing/nearness.h"
#include "validate/lines.h"

namespace stoker::validate {

struct SourceWidth {
    std::string source;
    bool kept_apart = false;
    std::size_t rows = 0, inside = 0;  // inside by the scale that all other sources choose
    double scale = 0;                  // that one; 0: there is no other source
    double needed = 0;                 // what would hold 80 % of its own rows
};

struct Widths {
    double wanted = 0.8;
    double used = 0, chosen = 0;       // interval_known_WORK as it is, and as all sources together choose it
    double slope = 0;                  // interval_known_distance_WORK
    std::vector<SourceWidth> sources;  // by name
    double inside = 0;                 // mean over the sources, each left out
    double apart_inside = 0;           // the same over those that no constant was fitted on
    std::size_t apart_sources = 0, apart_rows = 0, apart_rows_inside = 0;
};

// Each source counts once, whatever its rows: the quantile of the mean of their distributions of |ln(measured /
// predicted)| over the interval's end before it grows (CDF pooling: Dunn, Wasserman and Ramdas, Distribution-Free
// Prediction Sets for Two-Layer Hierarchical Models, arXiv 1809.07441). Nothing where fewer than three sources have
// rows.
std::optional<Widths> widths_left_out(const std::vector<Line>& lines, const Catalog& catalog, MeasuredWork work);

std::string widths_text(const std::string& name, const Widths& widths);
Json widths_json(const Widths& widths);

}  // namespace stoker::validate
