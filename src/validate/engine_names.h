// The engine that a row prints, as the cost model knows it: "TensorRT-LLM v0.9.0 static batching" is tensorrt-llm.
#pragma once

#include <string>
#include <string_view>

namespace stoker::validate {

struct NamedEngine {
    std::string_view name;  // of a workload file, deepspeed-mii, pytorch, or transformers: a model run as it is written
    std::string assumed{};  // "engine: ..." where no row is of this engine, and another's constants stand for it
};

NamedEngine engine_named(std::string_view printed);

}  // namespace stoker::validate
