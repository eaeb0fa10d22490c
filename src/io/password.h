// Passwords at rest: argon2id (RFC 9106) with a salt of its own for each, in the one-line form that says how it was
// made. Making and comparing take some 100 ms and 64 MiB: that is what they are for. Never on a loop.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

// A letter outside of ASCII has up to four bytes, and is one to guess.
inline constexpr std::size_t kLeastPasswordCharacters = 12, kMostPasswordBytes = 256;

// invalid: too short or too long to be one.
Status check_password(std::string_view password);
Result<std::string> hash_password(std::string_view password);
// An empty hash is nobody's: it takes as long, and is never right.
bool password_is(std::string_view password, const std::string& hash);

}  // namespace stoker
