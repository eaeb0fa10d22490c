// The text of a scalar as a guest: which of its lines stand as they are in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lint/node.h"

namespace stoker::lint {

std::vector<Piece> pieces_of_scalar(std::string_view decoded, const Source& source, Span span);

}  // namespace stoker::lint
