#include "deploy/slurm/launch_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/document.h"
#include "base/text.h"
#include "deploy/slurm/wire.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker::slurm {
namespace {

// Written over as a whole by one call.
constexpr std::size_t kOrderBytes = 1024;

std::string content(const std::string& path, std::size_t most) {
    std::string text(most, '\0');
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

}  // namespace

Result<bool> make_claim(const std::string& folder, const std::string& who) {
    const std::string path = folder + "/claim";
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) return false;
    if (!file) return Error(ErrorKind::unavailable, "cannot write " + printable(path) + ": " + std::strerror(errno));
    TRY_VOID(write_all(file.get(), who + "\n", path));
    ::fsync(file.get());
    return true;
}

std::string claim_of(const std::string& folder) {
    const std::string path = folder + "/claim";
    if (::access(path.c_str(), F_OK) != 0) return {};
    const std::string who(trim(content(path, 1000)));
    return who.empty() ? "somebody" : who;  // made, and not written yet
}

Status write_order(const std::string& folder, const Order& order) {
    std::string text = Json::object()
                           .set("number", order.number)
                           .set("verb", order.request.verb == ControlVerb::signal ? "signal" : "stop")
                           .set("epoch", static_cast<std::int64_t>(order.request.epoch))
                           .set("signal", order.request.signal)
                           .set("grace_s", order.request.grace_s)
                           .dump(0);
    text.resize(kOrderBytes - 1, ' ');
    text += '\n';
    const std::string path = folder + "/order";
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!file || ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return Error(ErrorKind::unavailable, "cannot write " + printable(path) + ": " + std::strerror(errno));
    return done();
}

std::optional<Order> read_order(const std::string& folder) {
    const std::string text = content(folder + "/order", kOrderBytes);
    if (text.size() != kOrderBytes || text.back() != '\n') return std::nullopt;
    const auto document = Document::parse_json(text, "order");
    if (!document) return std::nullopt;
    const Node& root = document->root();
    const Node* grace = root.find("grace_s");
    return Order{.number = number_of(root, "number"),
                 .request = {.verb = text_of(root, "verb") == "signal" ? ControlVerb::signal : ControlVerb::stop,
                             .epoch = static_cast<std::uint64_t>(number_of(root, "epoch")),
                             .signal = static_cast<int>(number_of(root, "signal")),
                             .grace_s = grace == nullptr ? 0 : grace->number}};
}

Status write_answer(const std::string& folder, const Answer& answer) {
    const Json json =
        Json::object().set("number", answer.number).set("ok", answer.ok).set("detail", printable(answer.detail, 2000));
    return replace_file(folder + "/answer.json", json.dump(0) + "\n", false);
}

std::optional<Answer> read_answer(const std::string& folder) {
    const auto document = Document::parse_json(content(folder + "/answer.json", 16384), "answer.json");
    if (!document) return std::nullopt;
    const Node* ok = document->root().find("ok");
    return Answer{.number = number_of(document->root(), "number"),
                  .ok = ok != nullptr && ok->boolean,
                  .detail = text_of(document->root(), "detail")};
}

std::string end_of_file(const std::string& path, std::size_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return {};
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(most));
    std::string text(static_cast<std::size_t>(size - from), '\0');
    const ssize_t got = ::pread(file.get(), text.data(), text.size(), from);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return std::string(trim(text));
}

}  // namespace stoker::slurm
