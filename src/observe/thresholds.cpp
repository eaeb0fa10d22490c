#include "observe/thresholds.h"

#include <cstdlib>
#include <string>

#include "base/result.h"
#include "base/tsv.h"
#include "catalog/embedded.h"

namespace stoker {

const std::vector<CauseThreshold>& cause_thresholds() {
    static const std::vector<CauseThreshold> list = [] {
        std::vector<CauseThreshold> found;
        const auto table = Tsv::read(embedded_bytes("observe/causes.tsv"), "observe/causes.tsv");
        CHECK(table.ok() && table->header().size() == 4);  // our own data
        for (std::size_t row = 0; row < table->rows(); ++row)
            found.push_back({.name = table->at(row, 0),
                             .unit = table->at(row, 2),
                             .set_on = table->at(row, 3),
                             .value = std::strtod(std::string(table->at(row, 1)).c_str(), nullptr)});
        return found;
    }();
    return list;
}

double cause_threshold(std::string_view name) {
    for (const CauseThreshold& each : cause_thresholds())
        if (each.name == name) return each.value;
    CHECK(name.empty());
    return 0;
}

}  // namespace stoker
