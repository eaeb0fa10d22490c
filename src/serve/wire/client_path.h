// Where clients of Azure OpenAI send what others send to /v1, and what somebody meant who wrote an address down
// wrongly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::wire {

struct AzurePath {
    std::string path;   // of the OpenAI API
    std::string model;  // the deployment, whatever the body names; empty: the body names it
};
// /openai/v1/REST, /openai/REST, and /openai/deployments/NAME/REST, whose query names an api-version.
std::optional<AzurePath> of_azure(std::string_view path);

// The path that there is and that is nearest to one that there is not; empty: none is near.
std::string path_meant(std::string_view path);

}  // namespace stoker::wire
