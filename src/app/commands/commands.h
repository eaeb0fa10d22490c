// One function per command; each stands in the file of its name. commands.cpp lists them in the order of --help.
#pragma once

#include "app/args.h"

namespace stoker {

Command plan_command();
Command estimate_command();
Command compare_command();
Command cost_command();
Command catalog_command();
Command explain_command();
Command template_command();
Command bench_command();
Command simulate_command();
Command schema_command();
Command completion_command();
Command keeper_command();  // internal

// What `stoker template list` prints, or with a name `stoker template show NAME`.
Result<CommandOutput> show_templates(Session& session, const std::string& name);

}  // namespace stoker
