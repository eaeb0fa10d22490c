// Values at rest, sealed with AES-256-GCM (NIST SP 800-38D): what was changed, or belongs to another name, is not
// opened.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

inline constexpr std::size_t kSealKeyBytes = 32;

// A key as people write it: 64 hex digits. Blanks around it are none of it.
Result<std::string> read_seal_key(std::string_view text);

// `name` is what it is stored as. The nonce is drawn anew each time.
Result<std::string> seal(const std::string& key, std::string_view name, std::string_view plain);
bool is_sealed(std::string_view bytes);
// By its beginning: sealed with this key.
bool is_sealed_with(const std::string& key, std::string_view bytes);
// denied: another key, another name, or it was changed.
Result<std::string> open_sealed(const std::string& key, std::string_view name, std::string_view bytes);

}  // namespace stoker
