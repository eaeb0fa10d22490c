// gateway.yaml: one table reads it, names what is wrong with it, and makes its reference page and its schema.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/table.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

struct GatewayConfig {
    std::string listen = "127.0.0.1:8080";
    GatewayOptions options;  // but for the address and the port, which stand in `listen`
    double drain_s = 300;
    std::shared_ptr<Setup> setup;
};

// By name: endpoints that are there. Models of the file may be one; those that none is are models of their own name.
using EndpointBoards = std::map<std::string, std::shared_ptr<ReplicaBoard>>;

// Names of upstreams are looked up here and now; paths are relative to `folder`. All problems together.
Result<GatewayConfig> read_gateway_config(std::string_view text, const std::string& name, const std::string& folder,
                                          const EndpointBoards& endpoints = {});

// What is wrong with the text alone, for whoever looks at it elsewhere: no name is looked up, no other file and no
// variable is read, and endpoints that it names may be there.
Problems gateway_config_problems(std::string_view text, const std::string& name);

const RecordInfo& gateway_config_record();
std::string gateway_config_reference();  // docs/reference/gateway.md

}  // namespace stoker::gateway
