// Vocabularies of bytes write each byte as a letter that can be seen: itself where it is one, else one from U+0100 on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::tokens {

// The bytes that are written so; nothing where a letter stands for none.
std::optional<std::string> bytes_of_letters(std::string_view text);

}  // namespace stoker::tokens
