#include "observe/gpu/kernel_xids.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <map>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "observe/gpu/sample_board.h"

namespace stoker {

namespace {

constexpr std::array<std::string_view, 8> kClassNames = {"restart_app", "reset_gpu", "restart_machine", "workflow",
                                                         "check",       "ignore",    "support",         "none"};
constexpr std::array<XidClass, 8> kClasses = {XidClass::restart_app, XidClass::reset_gpu, XidClass::restart_machine,
                                              XidClass::workflow,    XidClass::check,     XidClass::ignore,
                                              XidClass::support,     XidClass::none};

const std::map<int, XidAction>& actions() {
    static const std::map<int, XidAction> table = [] {
        std::map<int, XidAction> read;
        const auto rows = Tsv::read(embedded_bytes("gpu/xid_actions.tsv"), "gpu/xid_actions.tsv");
        CHECK(rows.ok());
        for (std::size_t row = 0; row < rows->rows(); ++row) {
            const auto code = rows->whole_number(row, 0);
            CHECK(code.ok());
            std::size_t kind = 0;
            while (kind < kClassNames.size() && kClassNames[kind] != rows->at(row, 1)) ++kind;
            CHECK(kind < kClassNames.size());
            read[static_cast<int>(*code)] = {kClasses[kind], rows->at(row, 2)};
        }
        return read;
    }();
    return table;
}

}  // namespace

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

std::string_view to_string(XidClass value) {
    return kClassNames[static_cast<std::size_t>(value)];
}
std::span<const XidClass> xid_classes() {
    return kClasses;
}

XidAction xid_action(int code) {
    const auto found = actions().find(code);
    return found == actions().end()
               ? XidAction{XidClass::none, "not in the catalogue: look at docs.nvidia.com/deploy/xid-errors"}
               : found->second;
}
std::size_t known_xids() {
    return actions().size();
}

}  // namespace stoker
