// Lines of the kernel (dmesg, journalctl -k, /var/log/syslog) in which NVIDIA's driver tells of errors:
//   NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
// Their form: docs.nvidia.com/deploy/xid-errors, "Viewing Xid Error Messages".
#include <fmt/format.h>

#include "base/text.h"
#include "readings/gpu_limits.h"

namespace stoker {

namespace {

// No error is an answer where the driver speaks at all; where it does not, it is none.
Result<ToolReading> read_without_errors(ReadingBuilder& out, const ToolLines& lines) {
    constexpr std::string_view kLoads = "Kernel Module for x86_64  ", kLoadsOlder = "Kernel Module  ";
    std::optional<ToolPlace> first;
    bool kernel = false;
    std::string driver;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        kernel = kernel || is_kernel_line(lines[i]);
        const std::size_t at = lines[i].find("NVRM: ");
        if (at == std::string_view::npos) continue;
        if (!first) first = ToolPlace{static_cast<std::uint32_t>(i + 1), static_cast<std::uint32_t>(at + 1)};
        for (const std::string_view loads : {kLoads, kLoadsOlder})
            if (const std::string_view rest = between(lines[i], loads, " "); driver.empty() && !rest.empty())
                driver = rest;
    }
    if (!kernel)
        return out.broken({1, 1}, "no line of the kernel's start or of NVIDIA's driver",
                          "save the whole of it: dmesg -T > dmesg.txt");
    if (!driver.empty()) out.fact("driver", driver);
    if (!first) {
        out.check("gpu-xid", {1, 1},
                  {.message = "no line of NVIDIA's driver: it was not loaded, or the log no longer has it",
                   .fix = "save the whole of it: journalctl -k -b > kernel.txt"});
        return out.finish("nothing of NVIDIA's driver in it");
    }
    const std::string said = "NVIDIA's driver" + (driver.empty() ? "" : " " + printable(driver, 40));
    out.check("gpu-xid", *first,
              {.verdict = HealthVerdict::pass, .message = said + " was loaded and tells of no error (Xid)"});
    return out.finish(said + " tells of no error");
}

}  // namespace

bool is_xid_line(std::string_view line) {
    return contains(line, "NVRM: Xid (");
}

bool is_kernel_line(std::string_view line) {
    return contains(line, "] Linux version ") || contains(line, "kernel: Linux version ") || contains(line, "NVRM: ");
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
    if (found == 0) return read_without_errors(out, lines);
    return out.finish(fmt::format("{} of NVIDIA's driver", found == 1 ? "1 error" : fmt::format("{} errors", found)));
}

}  // namespace stoker
