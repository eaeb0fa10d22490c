#include "serve/models/weights_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "io/process.h"

namespace stoker {

Result<WeightsSource> source_of_file(const std::string& path) {
    const auto file = std::make_shared<UniqueFd>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!*file || ::fstat(file->get(), &status) != 0)
        return Error(errno == ENOENT ? ErrorKind::not_found : ErrorKind::unavailable,
                     fmt::format("{}: {}", path, std::strerror(errno)));
    if (!S_ISREG(status.st_mode))
        return Error(ErrorKind::invalid, fmt::format("{} is no file", path), {},
                     "name the files in it: FOLDER/*.safetensors, FOLDER/tokenizer.json");
    WeightsSource source{.name = path, .bytes = static_cast<std::uint64_t>(status.st_size)};
    source.read = [file, path](std::uint64_t offset, std::size_t count) -> Result<std::string> {
        std::string bytes(count, '\0');
        for (std::size_t got = 0; got < count;) {
            const ssize_t n = ::pread(file->get(), bytes.data() + got, count - got, static_cast<off_t>(offset + got));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0)
                return Error(ErrorKind::unavailable,
                             fmt::format("{}: {}", path, n < 0 ? std::strerror(errno) : "shorter than it was"));
            got += static_cast<std::size_t>(n);
        }
        return bytes;
    };
    return source;
}

}  // namespace stoker
