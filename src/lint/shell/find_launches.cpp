#include "lint/read.h"

namespace stoker::lint {

void find_launches(File&, const ReadOptions&) {}

std::optional<Launch> launch_of_words(const File&, const std::vector<Value>&, Span) {
    return std::nullopt;
}

}  // namespace stoker::lint
