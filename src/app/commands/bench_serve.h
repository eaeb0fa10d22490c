// stoker bench serve URL: its options, and what it does (bench.cpp has the command).
#pragma once

#include "app/args.h"

namespace stoker {

const std::vector<OptionSpec>& bench_serve_options();
Result<CommandOutput> bench_serve(Session& session, const Args& args);

}  // namespace stoker
