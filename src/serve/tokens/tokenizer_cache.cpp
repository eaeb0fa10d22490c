#include "serve/tokens/tokenizer_cache.h"

#include <filesystem>
#include <map>
#include <mutex>

#include "serve/models/weights_file.h"

namespace stoker::tokens {
namespace {

struct KnownFile {
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type changed{};
    std::weak_ptr<const Tokenizer> tokenizer;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, KnownFile> known;
    std::error_code none;
    const bool folder = std::filesystem::is_directory(path, none);
    const std::string file = folder ? path + "/tokenizer.json" : path;
    TRY(const WeightsSource source, source_of_file(file));
    const auto changed = std::filesystem::last_write_time(file, none);
    const std::lock_guard lock(mutex);
    KnownFile& entry = known[file];
    if (auto kept = entry.tokenizer.lock(); kept && entry.bytes == source.bytes && entry.changed == changed)
        return kept;
    TRY(auto made, read_tokenizer(source));
    entry = {.bytes = source.bytes, .changed = changed, .tokenizer = made};
    return made;
}

}  // namespace stoker::tokens
