// The commands of az that make or change what rules ask about, and what their options mean.
#pragma once

#include <span>
#include <string_view>

#include "lint/facts.h"

namespace stoker::lint {

struct AzCommand {
    std::string_view path;  // behind "az"
    std::string_view written;
    ResourceType type;
};
// Which option sets which attribute; `scope` is the beginning of AzCommand::path, empty for all.
struct AzOption {
    std::string_view scope, option;
    Attr attr;
    std::string_view fixed = {};  // the value of a switch
    bool list = false;            // several words, or parts between commas
};

std::span<const AzCommand> az_commands();
std::span<const AzOption> az_options();
bool az_in_scope(std::string_view path, std::string_view scope);
// Null: an option that says nothing here.
const AzOption* az_option(std::string_view path, std::string_view name);

}  // namespace stoker::lint
