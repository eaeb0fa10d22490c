// Lines of the kernel (dmesg, journalctl -k, /var/log/syslog) in which NVIDIA's driver tells of errors:
//   NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
// Their form: docs.nvidia.com/deploy/xid-errors, "Viewing Xid Error Messages".
#include <fmt/format.h>

#include "base/text.h"
#include "readings/gpu_limits.h"

namespace stoker {

bool is_xid_line(std::string_view line) {
    return contains(line, "NVRM: Xid (");
}

Result<ToolReading> read_kernel_log(std::string_view text, const std::string& file, const ToolContext&) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::kernel_log, file);
    std::size_t found = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::size_t at = lines[i].find("NVRM: Xid (");
        if (at == std::string_view::npos) continue;
        const std::string_view rest = lines[i].substr(at + 11);
        const std::size_t close = rest.find("):");
        if (close == std::string_view::npos) continue;
        const auto code = leading_number(trim(rest.substr(close + 2)));
        if (!code || *code < 1 || *code > 1000) continue;
        std::string_view bus = rest.substr(0, close);
        if (bus.starts_with("PCI:")) bus.remove_prefix(4);
        ++found;
        judge_xid(out, static_cast<int>(*code), "the GPU at " + std::string(bus),
                  {static_cast<std::uint32_t>(i + 1), static_cast<std::uint32_t>(at + 1)});
    }
    if (found == 0) return out.broken({1, 1}, "no line with an Xid", "save the whole of it: dmesg -T > dmesg.txt");
    return out.finish(fmt::format("{} of NVIDIA's driver", found == 1 ? "1 error" : fmt::format("{} errors", found)));
}

}  // namespace stoker
