// Sources that no constant is fitted on, so that something is left to judge by: data/calibration/held_out.tsv.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "validate/row.h"

namespace stoker::validate {

class HeldOut {
public:
    static Result<HeldOut> embedded();
    // Sources that predictions miss by far (data/calibration/missed.tsv): to have them proves no device, and makes no
    // interval narrower.
    static Result<HeldOut> missed();
    static Result<HeldOut> read(std::string_view text, FileName file);

    // By the group of the row (source_group, or split_group of inference) and its device.
    bool has(const Row& row) const;

private:
    struct Source {
        std::string group, device;  // device: blank is any
    };
    std::vector<Source> all_;
};

}  // namespace stoker::validate
