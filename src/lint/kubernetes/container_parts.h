// What Kubernetes and compose containers have in common: a command that may hold a script.
#pragma once

#include "lint/read.h"

namespace stoker::lint {

// True for sh, bash and their kin, with or without a folder.
bool is_shell_program(std::string_view word);

// Where a text of `node` stands within `file`, for a guest; its beginning when that is another file.
std::vector<Piece> pieces_within(const Node& node);
// The text of a scalar as a guest that stands where the scalar was written.
const File* read_text_guest(File& file, const Node& node, Kinds kinds, const ReadOptions& options,
                            const Container* container = nullptr);

// The script that a shell among the words is given with -c, as a guest of `file`; and the words as a Launch of `file`
// when they are one. `container` must stay where it is from here on.
void read_command(File& file, Container& container, const ReadOptions& options);

}  // namespace stoker::lint
