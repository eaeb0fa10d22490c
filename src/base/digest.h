// SHA-256 (FIPS 180-4) for names of things, in modules without side effects. What is large or secret is hashed by
// io/sha256.h.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

std::string sha256_hex(std::string_view bytes);  // 64 digits, lower case

}  // namespace stoker
