// How the plan's shape, bounds and precisions are said to an inference engine on its command line. The scripts and the
// containers of the clusters say the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

struct EngineFlag {
    std::string name, value;  // "--tensor-parallel-size", "8"; a value may be empty
    std::string comment;      // "# reason (source)\n" lines; empty: it is obvious
};

struct EngineCall {
    std::vector<std::string> program;  // "vllm", "serve", MODEL
    std::vector<EngineFlag> flags;     // but for address, port and what differs from node to node
    std::string health;                // path that answers 200 once the model is loaded
    std::string key_variable;          // environment that holds the key callers need; empty: the engine knows none
};

// The engine's own name of the plan's framework: vllm, sglang, tgi, tensorrt-llm, llama.cpp; empty: none of these.
std::string engine_of(const Deployment& deployment);
EngineCall engine_call(std::string_view engine, const Deployment& deployment);
// Why this engine cannot run the replica; empty: it can.
std::string engine_refusal(std::string_view engine, const Deployment& deployment);
// Speech comes in: vLLM answers under /v1/audio/transcriptions.
bool hears(const Deployment& deployment);
std::string engine_refusal_of_kind(const Deployment& deployment);

// A script that starts one replica, with its devices and port by its number on the node.
std::string engine_script(std::string_view engine, const Deployment& deployment);

}  // namespace stoker
