// stoker models push, list, show, pull, exec, verify, remove, clean and cache; and what a deploy needs of a registry.
#pragma once

#include <string>

#include "app/args.h"
#include "app/session.h"
#include "serve/registry/model_registry.h"

namespace stoker {

Result<CommandOutput> run_models_registry(Session& session, const Args& args);

// models.cpp: what weights hold and where they fit; config.json is looked for beside `path`.
Result<CommandOutput> weights_page(Session& session, const Args& args, const WeightsHeader& header,
                                   const std::string& title, const std::string& path);

// --registry, STOKER_MODELS, or the folder models/ of the state folder.
Result<std::string> registry_url(const Args& args);
// The words that start a program with the weights of a version, on any machine that has this binary at its path.
std::vector<std::string> with_weights(const Args& args, const ModelVersion& version, const std::string& registry,
                                      std::vector<std::string> command);

}  // namespace stoker
