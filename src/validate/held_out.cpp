#include "validate/held_out.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker::validate {

Result<HeldOut> HeldOut::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t group, table.column("group"));
    TRY(const std::size_t device, table.column("device"));
    HeldOut out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        if (table.at(row, group).empty()) return table.error(row, group, "the name of a group is wanted");
        out.all_.push_back({std::string(table.at(row, group)), std::string(table.at(row, device))});
    }
    return out;
}

Result<HeldOut> HeldOut::embedded() {
    return read(embedded_bytes("calibration/held_out.tsv"), "data/calibration/held_out.tsv");
}

Result<HeldOut> HeldOut::missed() {
    return read(embedded_bytes("calibration/missed.tsv"), "data/calibration/missed.tsv");
}

bool HeldOut::has(const Row& row) const {
    const std::string_view group = row.given("source_group") ? row.text("source_group") : row.text("split_group");
    return std::any_of(all_.begin(), all_.end(), [&](const Source& source) {
        return source.group == group && (source.device.empty() || source.device == row.text("gpu_model"));
    });
}

}  // namespace stoker::validate
