// For tests: a folder of files that goes in the end.
#pragma once

#include <filesystem>
#include <string>

#include "io/files.h"

namespace stoker {

class TestFolder {
public:
    TestFolder() : scratch_(ScratchFolder::make("check-test").value()) {}
    std::string path(const std::string& name = {}) const {
        return name.empty() ? scratch_.path() : scratch_.path() + "/" + name;
    }
    std::string write(const std::string& name, std::string_view text) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        (void)write_file_atomic(path(name), text);
        return path(name);
    }

private:
    ScratchFolder scratch_;
};

}  // namespace stoker
