// Two runs beside each other: what each term took, and which causes one has and the other has not.
#pragma once

#include <string>

#include "base/json.h"
#include "base/style.h"
#include "server/views_observe.h"

namespace stoker {

std::string against_text(const api::ExplanationView& run, const api::ExplanationView& other, const Style& style);
// {"run", "against", "terms": [{term, unit, run, against, difference, ratio}], "causes": {run, against, both}}
Json against_json(const api::ExplanationView& run, const api::ExplanationView& other);

}  // namespace stoker
