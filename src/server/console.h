// The pages of the console: files of web/dist, which are in the binary. They ask the API for all that they show.
#pragma once

#include "server/exchange.h"

namespace stoker::api {

// True: it was for the console, and is answered. `sign_on`: where browsers log in by single sign-on, which the page may
// talk to; empty: nowhere.
bool answer_console(Exchange& exchange, const std::string& sign_on);

}  // namespace stoker::api
