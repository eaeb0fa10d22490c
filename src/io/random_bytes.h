// Randomness of the kernel, for tokens and keys. What must be repeatable draws from base/random.h instead.
#pragma once

#include <cstddef>
#include <string>

namespace stoker {

std::string random_hex(std::size_t bytes);  // two characters a byte

}  // namespace stoker
