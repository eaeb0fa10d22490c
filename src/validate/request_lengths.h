// How unequal the requests of a load are, by the name of the data they were drawn from: data/calibration/lengths.tsv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sizing/serving.h"

namespace stoker::validate {

struct RequestLengths {
    std::string name;
    LengthLaw law = LengthLaw::lognormal;
    double prompt_cv = 0, output_cv = 0;  // standard deviation over the mean
    double most = 20;                     // the longest over the mean
};

class LengthTable {
public:
    static Result<LengthTable> embedded();
    static Result<LengthTable> read(std::string_view text, FileName file);
    const RequestLengths* find(std::string_view name) const;  // nullptr: none

private:
    std::vector<RequestLengths> all_;
};

}  // namespace stoker::validate
