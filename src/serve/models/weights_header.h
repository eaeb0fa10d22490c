// What a file of weights says of itself before any weight is read: GGUF, safetensors, ONNX. Strict: what does not fit
// the file that it stands in is an error with its byte, since a loader would find out after minutes, or read past the
// end.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

enum class WeightsFormat : std::uint8_t { gguf, safetensors, onnx };

// Bytes of a file, anywhere in it. An error when fewer are there.
struct WeightsSource {
    std::string name;  // for messages
    std::uint64_t bytes = 0;
    std::function<Result<std::string>(std::uint64_t offset, std::size_t count)> read;
};
WeightsSource source_of_text(std::string name, std::string_view text);  // which outlives it

struct WeightsHeader {
    WeightsFormat format = WeightsFormat::gguf;
    int version = 0;                            // of the format
    std::string architecture, name, tokenizer;  // as written; empty: not said
    bool chat_template = false;
    struct OfType {
        std::int64_t tensors = 0;
        double elements = 0, bytes = 0;
    };
    std::map<std::string, OfType> types;  // "F16", "Q4_K", "BF16", ...
    std::int64_t tensors = 0;
    double parameters = 0, weight_bytes = 0;
    std::uint64_t file_bytes = 0;
    bool weights_elsewhere = false;  // ONNX with external data: the sizes are those of the tensors
    // Of a decoder, where the file says it; 0: not said.
    double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0, context = 0,
           experts = 0, active_experts = 0;
    std::string main_type() const;  // of most bytes
};

// By its first bytes. invalid: none of the three, or damaged, with the offset; unsupported: a version that is not
// known.
Result<WeightsHeader> read_weights_header(const WeightsSource& source);

// Each format by itself.
Result<WeightsHeader> read_gguf(const WeightsSource& source);
Result<WeightsHeader> read_safetensors(const WeightsSource& source);
Result<WeightsHeader> read_onnx(const WeightsSource& source);

// What several files of one model say together (model-00001-of-00004.safetensors, ...). invalid: two kinds, or one
// tensor's count is beyond what a number holds.
Result<WeightsHeader> add_shard(WeightsHeader all, const WeightsHeader& shard);

constexpr std::array<std::pair<WeightsFormat, std::string_view>, 3> enum_names(WeightsFormat) {
    return {
        {{WeightsFormat::gguf, "gguf"}, {WeightsFormat::safetensors, "safetensors"}, {WeightsFormat::onnx, "onnx"}}};
}

}  // namespace stoker
