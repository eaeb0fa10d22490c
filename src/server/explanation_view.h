// An explanation as the API shows it.
#pragma once

#include "explain/explained.h"
#include "server/views_observe.h"

namespace stoker::api {

ExplanationView view_of_explanation(const ExplainedRun& explained);

}  // namespace stoker::api
