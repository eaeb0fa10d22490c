// DeepSpeed configurations as the rules read them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lint/rules/common_scripts.h"

namespace stoker::lint {

struct DeepSpeedFile {
    const File& part;
    const Node& root;
    std::string address;  // "ds:"; rules put a JSON pointer behind it
    bool neox = false;    // GPT-NeoX reads the same file and has keys of its own
};
void for_each_deepspeed(const File& file, const std::function<void(const DeepSpeedFile&)>& visit);

bool json_true(const Node* node);
std::optional<std::int64_t> json_int(const Node* node);
// Stage of ZeRO: 0 when nothing is said; nothing for "auto" and lists.
std::optional<std::int64_t> zero_stage(const Node& root);
// Device that a part is moved to; empty for "none" and what is not known.
std::string_view offload_device(const Node* offload);
// The bytes of "key": value, with the quotes of the key.
Span property_span(const Node& property);
// Those and the comma that goes with them.
Span property_removal(const Node& property);
// A row of data/lint/deepspeed_keys.tsv.
struct DeepSpeedKey {
    std::string_view section, key, status, instead;
};
const DeepSpeedKey* deepspeed_key(std::string_view section, std::string_view key);
std::string_view nearest_deepspeed_key(std::string_view section, std::string_view key);

}  // namespace stoker::lint
