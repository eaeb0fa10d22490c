#include "observe/gpu/kernel_xids.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "observe/gpu/sample_board.h"

namespace stoker {

std::optional<KernelXid> parse_kernel_xid(std::string_view record) {
    constexpr std::string_view kMark = "NVRM: Xid (";
    const std::size_t at = record.find(kMark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = record.substr(at + kMark.size());
    const std::size_t close = rest.find("):");
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view number = trim(rest.substr(close + 2));
    int code = 0;
    const auto end = std::from_chars(number.data(), number.data() + number.size(), code);
    if (end.ec != std::errc() || code < 1 || code > 100'000) return std::nullopt;
    const std::string pci = plain_pci(rest.substr(0, close));
    if (pci.size() < 7 || pci.size() > 20) return std::nullopt;
    return KernelXid{pci, code};
}

KernelLog::KernelLog(std::string path) : path_(std::move(path)) {
    open();
}

void KernelLog::open() {
    fd_.reset(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    // What was logged before we were here is of an earlier time. A log that appears later is read whole.
    if (fd_ && !began_) ::lseek(fd_.get(), 0, SEEK_END);
    began_ = true;
}

std::vector<KernelXid> KernelLog::poll(std::size_t most) {
    std::vector<KernelXid> found;
    if (!fd_) open();
    std::array<char, 8192> buffer;
    for (std::size_t reads = 0; fd_ && reads < most; ++reads) {
        const ::ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EPIPE) {  // overwritten before it was read; the next read goes on behind the gap
                ++lost_;
                continue;
            }
            if (errno != EAGAIN) fd_.reset();  // no permission: dmesg_restrict without CAP_SYSLOG
            break;
        }
        if (got == 0) break;
        // The kernel gives one record a read; a file or a pipe in its place may give several, or a part.
        rest_.append(buffer.data(), static_cast<std::size_t>(got));
        std::size_t begin = 0;
        for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
            if (auto xid = parse_kernel_xid(std::string_view(rest_).substr(begin, end - begin))) found.push_back(*xid);
        rest_.erase(0, begin);
        if (rest_.size() > 65536) rest_.clear();  // no line of a log is that long
    }
    return found;
}

}  // namespace stoker
