#include "server/audit_trail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

bool matches(const AuditLine& line, const AuditQuestion& question) {
    if (question.refused && !AuditTrail::is_refusal(line.status)) return false;
    if (line.at < question.from || (!question.to.empty() && line.at >= question.to)) return false;
    return line.who.starts_with(question.who);
}

}  // namespace

Result<std::shared_ptr<AuditTrail>> AuditTrail::open(AuditOptions options) {
    std::shared_ptr<AuditTrail> trail(new AuditTrail(std::move(options)));
    std::error_code code;
    const std::string folder = trail->options_.folder + "/audit";
    fs::create_directories(folder, code);
    if (code)
        return Error(ErrorKind::denied, fmt::format("cannot make the folder {}: {}", folder, code.message()), {},
                     "the audit trail is kept there");
    ::chmod(folder.c_str(), 0700);
    TRY_VOID(trail->reopen());
    return trail;
}

AuditTrail::~AuditTrail() {
    if (fd_ >= 0) ::close(fd_);
}

bool AuditTrail::is_refusal(int status) {
    return status == 401 || status == 403 || status == 404 || status == 421 || status == 429;
}

bool AuditTrail::wants(std::string_view method, int status) {
    return is_refusal(status) || (method != "GET" && method != "HEAD" && method != "OPTIONS");
}

std::string AuditTrail::file(int older) const {
    return options_.folder + (older == 0 ? "/audit/requests.jsonl" : fmt::format("/audit/requests.{}.jsonl", older));
}

Status AuditTrail::reopen() {
    fd_ = ::open(file(0).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd_ < 0)
        return Error(ErrorKind::denied, fmt::format("cannot write {}: {}", file(0), std::strerror(errno)), {},
                     "the audit trail is kept there");
    struct stat status {};
    bytes_ = ::fstat(fd_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
    return done();
}

void AuditTrail::rotate() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    for (int i = options_.older_files; i > 0; --i) ::rename(file(i - 1).c_str(), file(i).c_str());
    (void)reopen();
}

void AuditTrail::write(AuditLine line) {
    const std::int64_t now_us = wall_clock_us();
    line.at = rfc3339(now_us);
    line.path = printable(line.path, 300);
    line.method = printable(line.method, 20);
    const std::lock_guard lock(mutex_);
    const std::int64_t second = now_us / 1'000'000;
    if (second != second_) {
        second_ = second;
        in_second_ = 0;
    }
    if (++in_second_ > options_.lines_per_second && is_refusal(line.status)) {
        ++left_out_;
        ++lost_;
        return;
    }
    line.left_out = std::exchange(left_out_, 0);
    const std::string text = codec::encode(line) + "\n";
    if (bytes_ + text.size() > options_.file_bytes) rotate();
    if (fd_ < 0) (void)reopen();
    if (fd_ < 0 || !write_all(fd_, text, file(0))) {
        ++lost_;
        return;
    }
    bytes_ += text.size();
}

Result<std::vector<AuditLine>> AuditTrail::newest(const AuditQuestion& question) const {
    std::vector<AuditLine> found;
    std::size_t skipped = 0;
    for (int older = 0; older <= options_.older_files && found.size() < question.most; ++older) {
        std::error_code code;
        if (!fs::exists(file(older), code)) break;
        TRY(const std::string text, read_file(file(older), options_.file_bytes + (1u << 20)));
        const std::vector<std::string_view> lines = split_lines(text);
        for (auto at = lines.rbegin(); at != lines.rend() && found.size() < question.most; ++at) {
            // The last line of a server that was killed may be torn.
            auto line = codec::decode<AuditLine>(*at, "audit");
            if (!line || !matches(*line, question)) continue;
            if (skipped++ < question.skip) continue;
            found.push_back(std::move(*line));
        }
    }
    return found;
}

std::uint64_t AuditTrail::lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
}

}  // namespace stoker
