// The description of the HTTP API. Apart from api.h, so that commands need not see the engine.
#pragma once

#include <string>

#include "base/json.h"

namespace stoker {

// OpenAPI 3.1, from the table of routes.
Json openapi_document();
// The same table as a page in Markdown.
std::string api_reference();

}  // namespace stoker
