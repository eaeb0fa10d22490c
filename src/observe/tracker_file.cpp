#include "observe/tracker_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/protobuf.h"
#include "base/text.h"
#include "io/process.h"
#include "observe/counted_unit.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRead = 1 << 20, kMostRecord = 1 << 20, kMostNames = 4096, kMostTag = 256;

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return value;
}

double double_of(std::string_view eight) {
    return std::bit_cast<double>(little_endian(eight));
}
double float_of(std::string_view four) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(four))));
}

template <class Use>
void each_field(std::string_view message, const Use& use) {
    ProtobufFields fields(message);
    while (const auto field = fields.next()) use(*field);
}

// Lines of one step become one; of several names the one that tells a loss gives it.
class Steps {
public:
    void see(double step, double time_s, std::string_view name, double value) {
        if (!(step >= 0) || step > 1e15 || !(time_s > 0)) return;
        if (lines_.empty() || *lines_.back().step != step) {
            // A tracker that logs two counters, such as steps and epochs: the one that goes on is followed.
            if (last_ && step <= *last_) return;
            last_ = step;
            StepLine line;
            line.step = step;
            line.values.emplace_back("inferred", static_cast<double>(CountedUnit::event));
            lines_.push_back(std::move(line));
        }
        StepLine& line = lines_.back();
        if (!line.time_s) line.time_s = time_s;
        if (!names_loss(lower(name.substr(0, kMostTag)))) return;
        if (!std::isfinite(value))
            line.lost = true;
        else if (line.values.size() < 2)
            line.values.emplace_back("loss", value);
    }
    std::vector<StepLine> take() { return std::exchange(lines_, {}); }

private:
    std::vector<StepLine> lines_;
    std::optional<double> last_;
};

// What is new of a file, from where the last whole record ended.
class NewBytes {
public:
    explicit NewBytes(std::string path) : path_(std::move(path)) {}
    std::string_view read() {
        const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        struct stat status {};
        bytes_.clear();
        if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
        bytes_.resize(kMostRead);
        const ssize_t got = ::pread(fd.get(), bytes_.data(), bytes_.size(), offset_);
        bytes_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return bytes_;
    }
    void pass(std::uint64_t bytes) { offset_ += static_cast<off_t>(std::min<std::uint64_t>(bytes, 1ULL << 40)); }
    off_t offset() const { return offset_; }

private:
    std::string path_, bytes_;
    off_t offset_ = 0;
};

// Records of a length, its checksum, the bytes and theirs (TensorFlow's core/lib/io/record_writer.h); in each an Event
// (core/util/event.proto).
class TensorBoardFile : public TrackerFile {
public:
    explicit TensorBoardFile(std::string path) : bytes_(std::move(path)) {}
    std::vector<StepLine> poll() override {
        constexpr std::size_t kHead = 12, kFoot = 4;
        std::string_view rest = bytes_.read();
        while (rest.size() >= kHead) {
            const std::uint64_t size = little_endian(rest.substr(0, 8));
            if (size > kMostRecord - kHead - kFoot) {  // an image, or a graph
                bytes_.pass(size > (1ULL << 40) ? 0 : size + kHead + kFoot);
                break;
            }
            if (rest.size() < kHead + size + kFoot) break;
            event(rest.substr(kHead, size));
            rest.remove_prefix(kHead + size + kFoot);
            bytes_.pass(kHead + size + kFoot);
        }
        return steps_.take();
    }

private:
    void event(std::string_view message) {
        double time_s = 0, step = 0;
        std::string_view summary;
        each_field(message, [&](const ProtobufField& field) {
            if (field.id == 1 && field.fixed.size() == 8) time_s = double_of(field.fixed);
            if (field.id == 2) step = static_cast<double>(field.number);
            if (field.id == 5) summary = field.bytes;
        });
        each_field(summary, [&](const ProtobufField& field) {
            if (field.id != 1) return;
            std::string_view tag;
            std::optional<double> value;
            each_field(field.bytes, [&](const ProtobufField& part) {
                if (part.id == 1) tag = part.bytes;
                if (part.id == 2 && part.fixed.size() == 4) value = float_of(part.fixed);
                if (part.id == 8) value = scalar(part.bytes);
            });
            if (value && !tag.empty()) steps_.see(step, time_s, tag, *value);
        });
    }
    // A tensor of one float (core/framework/tensor.proto).
    static std::optional<double> scalar(std::string_view tensor) {
        std::optional<double> value;
        std::uint64_t type = 0;
        each_field(tensor, [&](const ProtobufField& field) {
            if (field.id == 1) type = field.number;
            // A list of one is packed, but by old writers.
            const std::string_view four = field.bytes.empty() ? field.fixed : field.bytes;
            if ((field.id == 4 || field.id == 5) && four.size() == 4) value = float_of(four);
        });
        return type == 1 ? value : std::nullopt;
    }

    NewBytes bytes_;
    Steps steps_;
};

// LevelDB's log (doc/log_format.md) behind a head of seven bytes; in it Records of wandb_internal.proto, of which those
// with a history are steps.
class WandbFile : public TrackerFile {
public:
    explicit WandbFile(std::string path) : bytes_(std::move(path)) {}
    std::vector<StepLine> poll() override {
        constexpr std::size_t kHead = 7, kBlock = 32'768;
        enum : unsigned char { whole = 1, first = 2, middle = 3, last = 4 };
        std::string_view rest = bytes_.read();
        const auto pass = [&](std::size_t count) {
            rest.remove_prefix(count);
            bytes_.pass(count);
        };
        if (bytes_.offset() == 0 && rest.size() >= kHead) {
            if (!rest.starts_with(":W&B")) return {};
            pass(kHead);
        }
        while (rest.size() >= kHead) {
            const std::size_t left = kBlock - static_cast<std::size_t>(bytes_.offset()) % kBlock;
            const std::size_t size = static_cast<std::size_t>(little_endian(rest.substr(4, 2)));
            const auto kind = static_cast<unsigned char>(rest[6]);
            if (left < kHead || kind < whole || kind > last || size + kHead > left) {  // filled up, or damaged
                if (rest.size() < left) break;
                pass(left);
                part_.clear();
                continue;
            }
            if (rest.size() < kHead + size) break;
            if (kind == whole || kind == first) part_.clear();
            if (part_.size() + size <= kMostRecord) part_ += rest.substr(kHead, size);
            if (kind == whole || kind == last) record(std::exchange(part_, {}));
            pass(kHead + size);
        }
        return steps_.take();
    }

private:
    void record(const std::string& message) {
        each_field(message, [&](const ProtobufField& field) {
            if (field.id == 2) history(field.bytes);
        });
    }
    void history(std::string_view message) {
        std::optional<double> step, time_s;
        std::vector<std::pair<std::string, double>> values;
        each_field(message, [&](const ProtobufField& field) {
            if (field.id == 2)
                each_field(field.bytes, [&](const ProtobufField& part) {
                    if (part.id == 1) step = static_cast<double>(part.number);
                });
            if (field.id != 1) return;
            std::string name;
            std::string_view json;
            each_field(field.bytes, [&](const ProtobufField& part) {
                if (part.id == 1 || part.id == 2) name = std::string(part.bytes.substr(0, kMostTag));
                if (part.id == 16) json = part.bytes;
            });
            double value = 0;
            if (json.size() > 1 && json.front() == '"') json = json.substr(1, json.size() - 2);
            if (json.empty() || number_at(json, value) != json.size()) {
                if (json != "NaN" && json != "Infinity" && json != "-Infinity") return;
                value = std::nan("");
            }
            if (name == "_step") step = value;
            if (name == "_timestamp") time_s = value;
            if (values.size() < 64) values.emplace_back(std::move(name), value);
        });
        if (!step || !time_s) return;
        for (const auto& [name, value] : values) steps_.see(*step, *time_s, name, value);
    }

    NewBytes bytes_;
    Steps steps_;
    std::string part_;
};

// "1700000000123 0.5 12": milliseconds, value, step.
class MlflowFile : public TrackerFile {
public:
    explicit MlflowFile(std::string path) : name_(path.substr(path.rfind('/') + 1)), tail_(std::move(path)) {}
    std::vector<StepLine> poll() override {
        for (const std::string& line : tail_.next()) {
            const auto words = split_words(line);
            double time_ms = 0, value = 0, step = 0;
            if (words.size() != 3 || number_at(words[0], time_ms) != words[0].size() ||
                number_at(words[1], value) != words[1].size() || number_at(words[2], step) != words[2].size())
                continue;
            steps_.see(step, time_ms / 1e3, name_, value);
        }
        return steps_.take();
    }

private:
    std::string name_;
    TailReader tail_;
    Steps steps_;
};

bool is_tensorboard(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.find("tfevents.") != std::string_view::npos;
}

double modified_s(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return 0;
    return static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
}

// The entry written last of a folder that `use` takes.
template <class Use>
std::optional<fs::path> newest_in(const fs::path& folder, double since_s, const Use& use) {
    std::error_code code;
    std::optional<fs::path> best;
    double newest = since_s;
    std::size_t seen = 0;
    for (fs::directory_iterator it(folder, code), end; !code && it != end && ++seen < kMostNames; it.increment(code))
        if (const double at = modified_s(it->path()); at >= newest && use(it->path())) {
            newest = at;
            best = it->path();
        }
    return best;
}

std::optional<std::string> in_working_folder(const fs::path& folder, double since_s) {
    const auto any = [](const fs::path&) { return true; };
    const auto run = newest_in(folder / "wandb", 0, [](const fs::path& path) {
        const std::string name = path.filename().string();
        return name.starts_with("offline-run-") || name.starts_with("run-");
    });
    if (run)
        if (const auto file =
                newest_in(*run, since_s, [](const fs::path& path) { return path.extension() == ".wandb"; }))
            return file->string();
    // mlruns/EXPERIMENT/RUN/metrics/NAME; a folder is as new as what was last made in it.
    std::error_code code;
    std::optional<fs::path> metrics;
    double newest = since_s;
    std::size_t seen = 0;
    for (fs::directory_iterator it(folder / "mlruns", code), end; !code && it != end && ++seen < 64; it.increment(code))
        if (const auto each =
                newest_in(it->path(), since_s, [](const fs::path& path) { return fs::is_directory(path / "metrics"); }))
            if (const double at = modified_s(*each / "metrics"); at >= newest) {
                newest = at;
                metrics = *each / "metrics";
            }
    if (!metrics) return std::nullopt;
    auto file = newest_in(*metrics, since_s, [](const fs::path& path) { return names_loss(path.filename().string()); });
    if (!file) file = newest_in(*metrics, since_s, any);
    return file ? std::optional(file->string()) : std::nullopt;
}

}  // namespace

std::unique_ptr<TrackerFile> TrackerFile::open(const std::string& path) {
    if (is_tensorboard(path)) return std::make_unique<TensorBoardFile>(path);
    if (path.ends_with(".wandb")) return std::make_unique<WandbFile>(path);
    if (path.find("/metrics/") != std::string::npos) return std::make_unique<MlflowFile>(path);
    return nullptr;
}

std::optional<std::string> find_tracker_file(const std::string& proc, const std::vector<pid_t>& pids, double since_s) {
    constexpr std::size_t kMostProcesses = 16;
    for (std::size_t i = 0; i < std::min(pids.size(), kMostProcesses); ++i) {
        const fs::path process = fs::path(proc) / std::to_string(pids[i]);
        std::error_code code;
        std::size_t seen = 0;
        std::optional<std::string> best;
        double newest = since_s;
        for (fs::directory_iterator it(process / "fd", code), end; !code && it != end && ++seen < kMostNames;
             it.increment(code)) {
            std::error_code gone;
            const std::string path = fs::read_symlink(it->path(), gone).string();
            if (gone || !is_tensorboard(path)) continue;
            if (const double at = modified_s(path); at >= newest) newest = at, best = path;
        }
        if (best) return best;
    }
    if (pids.empty()) return std::nullopt;
    std::error_code gone;
    const fs::path folder = fs::read_symlink(fs::path(proc) / std::to_string(pids.front()) / "cwd", gone);
    return gone ? std::nullopt : in_working_folder(folder, since_s);
}

}  // namespace stoker
