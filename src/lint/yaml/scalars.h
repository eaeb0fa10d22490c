// What a scalar of YAML means, and where each of its bytes was written.
#pragma once

#include <string_view>
#include <vector>

#include "lint/node.h"

namespace stoker::lint {

// Of an unquoted scalar, as Kubernetes and compose read it (YAML 1.1: yes and off are booleans).
Shape shape_of_plain(std::string_view text);

// A value that a tool fills in before the file is used: $NAME, ${NAME}, <name>, {{ name }}, @NAME@. Text of several
// words is one only where it holds {{ in one line.
bool is_placeholder(std::string_view text);

// Where the bytes of node.text stand in node.source, for a guest made of them: verbatim per line for literal blocks and
// for text without escapes; an escape or a fold is a changed piece. Empty for lists and objects.
std::vector<Piece> pieces_of(const Node& node);

}  // namespace stoker::lint
