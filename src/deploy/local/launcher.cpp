#include "deploy/local/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/box.h"
#include "deploy/local/gang_end.h"
#include "deploy/local/image.h"
#include "io/process.h"

extern char** environ;

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// For what a keeper left that died before its word.
constexpr auto kCleanUpLimit = std::chrono::seconds(1);
// Half of what the keeper reads, since the folder holds nothing else of this size.
constexpr std::size_t kMaxOrderBytes = 8u << 20;
constexpr std::size_t kMostRanksHere = 512;

// JSON cannot carry other bytes, and the kernel takes no zero byte.
bool can_be_written(std::string_view text) {
    return find_invalid_utf8(text) == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

std::string problem_of_rank(const RankSpec& rank) {
    if (rank.arguments.empty()) return "there is no program to run";
    for (const std::string& argument : rank.arguments)
        if (!can_be_written(argument)) return "the argument " + printable(argument) + " is not UTF-8";
    for (const auto& [key, value] : rank.environment) {
        if (key.empty() || key.find('=') != std::string::npos || !can_be_written(key))
            return "'" + printable(key) + "' is no name of an environment variable";
        if (!can_be_written(value)) return "the environment variable " + key + " is not UTF-8";
    }
    return rank.cpu_milli < 0 || rank.memory_bytes < 0 ? "a limit is negative" : "";
}

std::string problem_of_image(const std::string& image, TreeKind tree) {
    if (!can_be_written(image)) return "the name of the image is not UTF-8";
    if (std::string why = why_no_images(tree); !why.empty()) return why;
    const auto bundle = read_bundle(image);
    return bundle ? std::string() : bundle.error().message();
}

std::string problem_of_gang(const OperationId& operation, const GangSpec& gang) {
    if (!OperationId::parse(operation.text())) return "not an id of an operation: " + operation.text();
    if (!gang.attempt) return "an attempt is missing";
    if (gang.ranks.empty()) return "a gang has at least one rank";
    if (!can_be_written(gang.folder) || !can_be_written(gang.log_folder)) return "the name of a folder is not UTF-8";
    for (std::size_t i = 0; i < gang.ranks.size(); ++i)
        if (const std::string problem = problem_of_rank(gang.ranks[i]); !problem.empty())
            return "rank " + std::to_string(i) + ": " + problem;
    return {};
}

std::string missing_on(const std::vector<NodeInfo>& nodes, const RankSpec& rank) {
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& each) { return each.name == rank.node; });
    if (node == nodes.end()) return "there is no node " + printable(rank.node);
    for (const std::string& device : rank.devices)
        if (std::none_of(node->devices.begin(), node->devices.end(),
                         [&](const DeviceInfo& each) { return each.id == device; }))
            return "node " + rank.node + " has no device " + printable(device);
    return {};
}

// What to say to a launch whose folder is there; nothing: a server died before it wrote the order, so nothing was
// started.
std::optional<Outcome> outcome_of_existing(const std::string& folder, const OperationId& operation, Deadline deadline) {
    for (;;) {
        const auto status = read_gang_status(folder);
        if (status && status->started) return confirmed("it was launched before");
        if (status && status->state == GangState::ended) return rejected(status->cause, status->detail);
        if (!find_keeper(folder)) {
            auto order = read_launch_order(folder);
            if (!order && order.error().kind() == ErrorKind::not_found) return std::nullopt;
            if (!order) order = LaunchOrder{.operation = operation};
            // Refused while a keeper that is about to begin holds the folder; one that comes later leaves at once.
            const auto end = bury(folder, *order, std::min(deadline, Clock::now() + kCleanUpLimit));
            if (end && end->started) return confirmed("it was launched before");
            if (end) return rejected(end->cause, end->detail);
        }
        const int wait = milliseconds_until(deadline, 5);
        if (wait == 0) return unknown("it was launched before, and its keeper does not say that it runs");
        ::poll(nullptr, 0, wait);
    }
}

// False when the deadline comes before a line or the end.
bool read_word(const UniqueFd& pipe, std::string& word, Deadline deadline) {
    for (;;) {
        pollfd wait{.fd = pipe.get(), .events = POLLIN, .revents = 0};
        const int left = milliseconds_until(deadline);
        if (const int ready = ::poll(&wait, 1, left); ready <= 0) {
            if (ready == 0 && left == 0) return false;
            continue;
        }
        std::array<char, 64> block{};
        const ssize_t got = ::read(pipe.get(), block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got > 0) word.append(block.data(), static_cast<std::size_t>(got));
        if (got <= 0 || word.ends_with('\n')) return true;
    }
}

std::string words_of_keeper(const std::string& folder) {
    std::array<char, 1000> text{};
    const UniqueFd file(::open((folder + "/keeper.log").c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
    return got > 0 ? "; its keeper said: " + std::string(text.data(), static_cast<std::size_t>(got)) : "";
}

DetachedProgram keeper_program(const std::string& folder, const std::vector<std::string>& keeper, int output) {
    DetachedProgram program{.path = "/proc/self/exe",  // also when the file was replaced by a newer one
                            .arguments = {"stoker", "keeper"},
                            .environment = {},
                            .standard_output = output,
                            .error_file = folder + "/keeper.log"};
    if (!keeper.empty()) {
        program.path = keeper.front();
        program.arguments = keeper;
    }
    program.arguments.push_back(folder);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        // A server that runs inside a gang must not pass that gang's mark on.
        if (!std::string_view(*entry).starts_with("STOKER_")) program.environment.emplace_back(*entry);
    return program;
}

}  // namespace

Outcome confirmed(std::string_view detail) {
    return {.certainty = Certainty::confirmed, .detail = printable(detail, kMaxDetailBytes)};
}
Outcome rejected(Cause cause, std::string_view detail) {
    return {.certainty = Certainty::rejected, .cause = cause, .detail = printable(detail, kMaxDetailBytes)};
}
Outcome unknown(std::string_view detail) {
    return {.certainty = Certainty::unknown, .detail = printable(detail, kMaxDetailBytes)};
}

bool path_exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0 || errno != ENOENT;
}

std::string absolute_path(const std::string& path) {
    std::error_code code;
    const fs::path absolute = fs::absolute(path, code);
    return code ? path : absolute.lexically_normal().string();
}

bool remove_gang_folder(const std::string& folder) {
    const fs::path path(folder);
    const std::string gone = (path.parent_path() / (std::string(kGone) + path.filename().string())).string();
    remove_tree(gone);
    if (::rename(folder.c_str(), gone.c_str()) != 0) return errno == ENOENT;
    remove_tree(gone);
    return true;
}

Outcome check_gang(const OperationId& operation, const GangSpec& gang, const std::vector<NodeInfo>& nodes,
                   TreeKind tree) {
    if (const std::string problem = problem_of_gang(operation, gang); !problem.empty())
        return rejected(Cause::user_error, problem);
    if (gang.ranks.size() > kMostRanksHere)
        return rejected(Cause::user_error,
                        fmt::format("{} ranks on one machine, at most {}", gang.ranks.size(), kMostRanksHere));
    for (std::size_t i = 0; i < gang.ranks.size(); ++i)
        if (const std::string missing = missing_on(nodes, gang.ranks[i]); !missing.empty())
            return rejected(Cause::no_capacity, "rank " + std::to_string(i) + ": " + missing);
    if (!gang.image.empty())
        if (const std::string problem = problem_of_image(gang.image, tree); !problem.empty())
            return rejected(Cause::user_error, problem);
    return confirmed();
}

Outcome launch_gang(const std::string& folder, LaunchOrder order, const std::vector<std::string>& keeper,
                    Deadline deadline) {
    if (::mkdir(folder.c_str(), 0700) != 0) {
        if (errno != EEXIST) return rejected(Cause::platform, "cannot make " + folder + ": " + std::strerror(errno));
        if (auto known = outcome_of_existing(folder, order.operation, deadline)) return *known;
    }
    for (std::string* path : {&order.gang.folder, &order.gang.log_folder, &order.gang.image})
        if (!path->empty()) *path = absolute_path(*path);
    const auto give_up = [&](Cause cause, std::string_view why) {
        remove_gang_folder(folder);  // no keeper has seen it
        return rejected(cause, why);
    };
    if (!order.gang.image.empty() && order.image_digest.empty()) {
        const auto bundle = read_bundle(order.gang.image);
        auto digest = bundle ? bundle_digest(*bundle) : Result<std::string>(bundle.error());
        if (!digest) return give_up(Cause::user_error, digest.error().message());
        order.image_digest = std::move(*digest);
    }
    const std::string text = to_json(order).dump(0);
    if (text.size() > kMaxOrderBytes)
        return give_up(Cause::user_error, "arguments and environments of all ranks together have more than " +
                                              std::to_string(kMaxOrderBytes) + " bytes");
    if (const Status written = replace_file(folder + "/launch.json", text, true); !written)
        return give_up(Cause::platform, written.error().message());
    auto pipe = make_pipe();
    if (!pipe) return give_up(Cause::platform, pipe.error().message());
    const auto child = start_detached(keeper_program(folder, keeper, pipe->write.get()));
    if (!child) return give_up(Cause::platform, child.error().message());
    pipe->write.reset();
    std::string word;
    const bool heard = read_word(pipe->read, word, deadline);
    // The child has forked the keeper proper and ended.
    reap(*child, Clock::now() + std::chrono::milliseconds(100));
    if (!heard) return unknown("the keeper has not said yet whether the ranks run");
    if (word == "started\n") return confirmed(order.image_digest.empty() ? "" : "image " + order.image_digest);
    const Deadline by = std::min(deadline, Clock::now() + kCleanUpLimit);
    auto status = read_gang_status(folder);
    while (!status || (status->state != GangState::ended && !status->started)) {
        status = bury(folder, order, by);
        if (status || status.error().kind() != ErrorKind::conflict) break;
        // The keeper may have left because whoever looks after ended gangs held the folder just then.
        const int wait = milliseconds_until(by, 5);
        if (wait == 0) break;
        ::poll(nullptr, 0, wait);
        status = read_gang_status(folder);
    }
    if (!status) return unknown(status.error().message());
    if (status->started) return confirmed();
    return rejected(status->cause, status->detail + words_of_keeper(folder));
}

}  // namespace stoker
