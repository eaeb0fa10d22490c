// How many published rows there are of a device and a kind of work: data/calibration/measured.tsv, which plans rank by
// (plan/evidence.h).
#pragma once

#include <string>

#include "base/result.h"
#include "catalog/catalog.h"

namespace stoker::validate {

// The file's text, from the rows of data/validation. Rows of a slice of a GPU and of a machine that the catalogue does
// not have are left out, and those of sources that are kept apart: what judges the figures does not choose the
// machines.
Result<std::string> measured_tsv(const Catalog& catalog, const std::string& training_csv,
                                 const std::string& inference_csv);

// data/calibration/sources.tsv: what each source measured, by which sizing/nearness.h tells how far something lies from
// all of them. From the three files of data/validation.
Result<std::string> sources_tsv(const Catalog& catalog, const std::string& training_csv, const std::string& memory_csv,
                                const std::string& inference_csv);

}  // namespace stoker::validate
