#include "serve/wire/client_path.h"

#include <algorithm>
#include <array>

#include "serve/wire/meters.h"

namespace stoker::wire {
namespace {

constexpr std::string_view kVersion = "/v1", kAzure = "/openai", kDeployments = "/deployments/";
constexpr std::array<std::string_view, 3> kListed = {"/v1/models", "/v1/files", "/v1/batches"};

bool is_there(std::string_view path) {
    return find_endpoint(path) != nullptr || std::find(kListed.begin(), kListed.end(), path) != kListed.end();
}

}  // namespace

std::optional<AzurePath> of_azure(std::string_view path) {
    if (!path.starts_with(kAzure) || path.size() <= kAzure.size() || path[kAzure.size()] != '/') return std::nullopt;
    path.remove_prefix(kAzure.size());
    if (path.starts_with("/v1/")) return AzurePath{std::string(path), {}};
    if (!path.starts_with(kDeployments)) return AzurePath{std::string(kVersion) + std::string(path), {}};
    path.remove_prefix(kDeployments.size());
    // Names of models have slashes, so it is the end that says where the name is over.
    for (const Endpoint& each : kEndpoints) {
        if (!each.path.starts_with("/v1/")) continue;
        const std::string_view end = each.path.substr(kVersion.size());
        if (path.size() > end.size() && path.ends_with(end))
            return AzurePath{std::string(each.path), std::string(path.substr(0, path.size() - end.size()))};
    }
    return std::nullopt;
}

std::string path_meant(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    while (path.starts_with("/v1/v1/")) path.remove_prefix(kVersion.size());
    if (is_there(path)) return std::string(path);
    std::string with_version = std::string(kVersion) + std::string(path);
    return is_there(with_version) ? with_version : std::string();
}

}  // namespace stoker::wire
