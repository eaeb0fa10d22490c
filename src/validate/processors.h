// The processors of published rows: a printed name as the Device of one socket. data/calibration/processors.tsv.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "sizing/device.h"

namespace stoker::validate {

struct Processor {
    std::string words;  // a part of the printed name
    std::string name;
    double cores = 1, ghz = 1;
    double fp32 = 0, bf16 = 0, int8 = 0;  // operations of a core and cycle
    double memory_gb_s = 0;
};

class Processors {
public:
    static Result<Processors> embedded();
    static Result<Processors> read(std::string_view text, FileName file);

    // "CPU: Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"; nullptr: none that is known.
    const Processor* find(std::string_view printed) const;

private:
    std::vector<Processor> all_;
};

// What a row calls a processor: "CPU: ...", "CPU ...", a Xeon or an EPYC.
bool names_processor(std::string_view printed);
// One socket, with the memory that servers of its kind have.
Device device_of(const Processor& processor, const Catalog& catalog);

}  // namespace stoker::validate
