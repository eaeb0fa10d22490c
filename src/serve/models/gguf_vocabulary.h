// The words that a model in GGUF reads and writes.
#pragma once

#include <string>
#include <vector>

#include "serve/models/weights_header.h"

namespace stoker {

struct GgufVocabulary {
    std::string model, cut;  // tokenizer.ggml.model and .pre
    std::vector<std::string> tokens, merges;
    std::vector<float> scores;
    std::vector<int> kinds;    // token_type
    bool blank_before = true;  // add_space_prefix
};
Result<GgufVocabulary> read_gguf_vocabulary(const WeightsSource& source);

}  // namespace stoker
