#pragma once

#include "serve/tokens/tokenizer.h"

namespace stoker::tokens {

// The tokenizer of a file, or tokenizer.json of a folder; read once for all who ask while it stays as it is.
Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const std::string& path);

}  // namespace stoker::tokens
