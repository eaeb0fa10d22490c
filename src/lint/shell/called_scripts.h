// Where the files lie that a script names.
#pragma once

#include <string>
#include <string_view>

#include "lint/read.h"

namespace stoker::lint {

// The path in a word, without what stands before it that only a run knows: "$(dirname "$0")/lib/a.sh", "${HERE}/a.sh"
// and ./a.sh lie beside the script as far as anybody can tell. Empty: the word names no such file.
std::string_view path_beside(std::string_view word);

// $NAME, ${NAME} and ${NAME:=default} of `text` as far as `environment` knows them, each piece with its place in it;
// `only`: the names that are filled in, as envsubst takes them; empty: all.
std::string with_variables(std::string_view text, const std::vector<EnvVar>& environment, std::string_view only,
                           std::vector<Piece>& pieces);

// Scripts that a Dockerfile copies and runs, among its calls: what they hold is done in the build of the image.
void read_copied_scripts(File& dockerfile, const ReadOptions& options);

// What calls of scripts are named after that a script runs, by itself or on the nodes of its job.
inline constexpr std::string_view kRunByShell = "sh", kRunBySrun = "srun";
inline bool is_run_by_a_script(std::string_view name_of_call) {
    return name_of_call == kRunByShell || name_of_call == kRunBySrun;
}

// From the folder of a workflow of GitHub to the top of its repository: "../../".
std::string to_the_top(const File& file);

}  // namespace stoker::lint
