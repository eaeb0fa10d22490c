// A script read by itself, for the tests of the shell front end.
#pragma once

#include <memory>
#include <string>

#include "lint/read.h"

namespace stoker::lint {

struct ReadScript {
    std::unique_ptr<File> file;
    const Script& script() const { return file->script; }
    // "run|--n=8|?$X": a question mark before what is not known.
    std::string words(std::size_t command) const {
        std::string text;
        for (const Value& word : script().commands.at(command).words)
            text += (text.empty() ? "" : "|") + std::string(word.known() ? "" : "?") + std::string(word.text);
        return text;
    }
};
inline ReadScript read_script(std::string text) {
    ReadScript read{std::make_unique<File>("x.sh", std::move(text))};
    read.file->kinds = {Kind::launch};
    read_shell(*read.file, ReadOptions{});
    return read;
}
// The first thing that is wrong with a script: "SYN001 a double quote that is not closed".
inline std::string script_problem(std::string text) {
    const ReadScript read = read_script(std::move(text));
    if (read.file->problems.empty()) return "";
    return std::string(read.file->problems.front().rule) + " " + read.file->problems.front().message;
}

}  // namespace stoker::lint
