#include "validate/engine_names.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "validate/row.h"

namespace stoker::validate {
namespace {

struct Word {
    std::string_view word, name;
    bool measured = true;  // constants were fitted on rows of it
};

// The first that is there decides.
constexpr std::array<Word, 26> kParts{{{"trt", "tensorrt-llm"},
                                       {"tensorrt", "tensorrt-llm"},
                                       {"fastertransformer", "tensorrt-llm", false},
                                       {"sglang", "sglang"},
                                       {"vllm", "vllm"},
                                       {"mii", "deepspeed-mii"},
                                       {"deepspeed", "deepspeed-mii"},
                                       {"llama.cpp", "llama.cpp"},
                                       {"llamacpp", "llama.cpp"},
                                       {"llama-bench", "llama.cpp"},
                                       {"ollama", "llama.cpp"},
                                       {"ggml", "llama.cpp"},
                                       {"gguf", "llama.cpp"},
                                       {"lmdeploy", "vllm", false},
                                       {"turbomind", "vllm", false},
                                       {"lightllm", "vllm", false},
                                       {"text-generation-inference", "vllm", false},
                                       {"tgi", "vllm", false},
                                       {"mlc", "vllm", false},
                                       {"neuron", "vllm", false},
                                       {"habana", "vllm", false},
                                       {"openvino", "pytorch", false},
                                       {"onnx", "pytorch", false},
                                       {"tensorflow", "pytorch", false},
                                       {"mxnet", "pytorch", false},
                                       {"paddle", "pytorch", false}}};
// A loop over a model as it is written, each operator launched by the host.
constexpr std::array<std::string_view, 6> kEager{"transformers", "hugging", "hf", "pytorch", "torch", "eager"};

}  // namespace

NamedEngine engine_named(std::string_view printed) {
    const std::string text = lower(printed);
    const std::string shown = printable(printed, 40);
    for (const Word& word : kParts) {
        if (text.find(word.word) == std::string::npos) continue;
        if (word.measured) return {word.name};
        return {word.name, fmt::format("engine: {} has no rows; as {}", shown, word.name)};
    }
    for (const std::string_view word : kEager)
        if (says(text, word))
            return {"transformers", fmt::format("engine: {} has no rows; operator by operator", shown)};
    // Its kernels serve loops of transformers too (GPTQ), which stay loops.
    if (text.find("exllama") != std::string::npos)
        return {"vllm", fmt::format("engine: {} has no rows; as vllm", shown)};
    // Servers differ by tens of percent, and from an eager loop many times.
    if (text.empty()) return {"", "engine: not stated; as vllm"};
    return {"vllm", fmt::format("engine: {} is not known; as vllm", shown)};
}

}  // namespace stoker::validate
