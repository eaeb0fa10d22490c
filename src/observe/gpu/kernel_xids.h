// Errors of NVIDIA's driver as the kernel logs them, which needs no driver that answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/process.h"
#include "observe/xid_actions.h"

namespace stoker {

struct KernelXid {
    std::string pci;  // as plain_pci
    int code = 0;
};
// "6,1234,5678,-;NVRM: Xid (PCI:0000:cb:00): 79, pid=1, name=x, GPU has fallen off the bus." and older forms.
std::optional<KernelXid> parse_kernel_xid(std::string_view record);

// /dev/kmsg, from its end on.
class KernelLog {
public:
    explicit KernelLog(std::string path = "/dev/kmsg");
    // What came since the last call. At most `most` records are parsed at a time, so that a storm costs a bounded time.
    std::vector<KernelXid> poll(std::size_t most = 10'000);
    bool up() const { return static_cast<bool>(fd_); }
    std::uint64_t lost() const { return lost_; }  // records that the kernel overwrote before they were read

private:
    void open();
    std::string path_, rest_;
    UniqueFd fd_;
    bool began_ = false;
    std::uint64_t lost_ = 0;
};

}  // namespace stoker
