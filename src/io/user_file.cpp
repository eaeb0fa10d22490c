#include "io/user_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "io/files.h"

namespace stoker {

Result<std::string> user_file(const char* variable, const std::string& below_home, const std::string& name,
                              const std::string& what) {
    const char* folder = std::getenv(variable);
    if (folder != nullptr && *folder != 0) return fmt::format("{}/stoker/{}", folder, name);
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == 0)
        return Error(ErrorKind::unavailable,
                     fmt::format("neither {} nor HOME is set: there is no place to keep {}", variable, what));
    return fmt::format("{}/{}/stoker/{}", home, below_home, name);
}

Status write_user_file(const std::string& path, const std::string& text) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error)
        return Error(ErrorKind::unavailable, fmt::format("cannot make the folder of {}: {}", path, error.message()));
    return write_file_atomic(path, text);
}

}  // namespace stoker
