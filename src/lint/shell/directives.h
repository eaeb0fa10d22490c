// #SBATCH, #PBS, #$ lines.
#pragma once

#include <string_view>

#include "lint/script.h"

namespace stoker::lint {

// `line` is a comment in the first column; nothing happens when it is no directive.
void read_directive(const Source& source, Span line, bool after_command, Script& script);

struct BatchOption {
    std::string_view name;        // without dashes
    char letter;                  // '\0': none
    char value;                   // 'y' needs one, 'n' has none, 'o' optional (only with =)
    std::string_view means = {};  // of a second name: the first
};
// By name or an unambiguous beginning of it; null when sbatch has none. `exact` false: the beginning.
const BatchOption* sbatch_option(std::string_view name);
const BatchOption* sbatch_letter(char letter);

}  // namespace stoker::lint
