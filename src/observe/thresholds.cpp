#include "observe/thresholds.h"

#include <cstdlib>
#include <string>

#include "base/embedded.h"
#include "base/result.h"
#include "base/tsv.h"

namespace stoker {

const std::vector<DiagnosisThreshold>& diagnosis_thresholds() {
    static const std::vector<DiagnosisThreshold> list = [] {
        std::vector<DiagnosisThreshold> found;
        const auto table = Tsv::read(embedded_bytes("observe/diagnoses.tsv"), "observe/diagnoses.tsv");
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

double diagnosis_threshold(std::string_view name) {
    for (const DiagnosisThreshold& each : diagnosis_thresholds())
        if (each.name == name) return each.value;
    CHECK(name.empty());
    return 0;
}

}  // namespace stoker
