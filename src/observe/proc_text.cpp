#include "observe/proc_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace stoker {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& number) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    return code == std::errc() && end == text.data() + text.size();
}

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t number = 0;
    if (!read_number(text, number)) return std::nullopt;
    return number;
}

// Counters are unsigned in the kernel; what does not fit is held at the largest value.
std::optional<std::int64_t> counter_of(std::string_view text) {
    std::uint64_t number = 0;
    if (!read_number(text, number)) return std::nullopt;
    return static_cast<std::int64_t>(std::min<std::uint64_t>(number, std::numeric_limits<std::int64_t>::max()));
}

// mountinfo writes blanks and the like as \040.
std::string unescape_octal(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
        if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
            out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
            i += 3;
        } else {
            out.push_back(text[i]);
        }
    }
    return out;
}

bool names(const std::vector<std::string>& controllers, std::string_view controller) {
    return std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
    // The second field is the program's name in brackets and may hold blanks and brackets: fields count from the last.
    const std::size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
    const auto pid = number_of(trim(text.substr(0, open)));
    const auto fields = split_words(text.substr(close + 1));
    if (!pid || fields.size() < 22) return std::nullopt;
    ProcStat stat{.pid = static_cast<pid_t>(*pid), .state = fields[0][0]};
    std::int64_t parent = 0;
    // proc(5) counts from 1 and `fields` begins with the third.
    const bool whole = read_number(fields[1], parent) && read_number(fields[7], stat.minor_faults) &&
                       read_number(fields[9], stat.major_faults) && read_number(fields[11], stat.user_ticks) &&
                       read_number(fields[12], stat.system_ticks) && read_number(fields[17], stat.threads) &&
                       read_number(fields[19], stat.start_ticks) && read_number(fields[21], stat.rss_pages);
    if (!whole) return std::nullopt;
    stat.parent = static_cast<pid_t>(parent);
    return stat;
}

ProcStatus parse_proc_status(std::string_view text) {
    ProcStatus status;
    for (const std::string_view line : split_lines(text)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view key = line.substr(0, colon);
        const auto words = split_words(line.substr(colon + 1));
        if (words.empty()) continue;
        const auto kilobytes = [&](std::optional<std::int64_t>& to) {
            const auto value = counter_of(words[0]);
            if (value && *value < (std::int64_t{1} << 50)) to = *value * 1024;
        };
        if (key == "State") status.state = words[0][0];
        if (key == "VmHWM") kilobytes(status.peak_bytes);
        if (key == "RssAnon") kilobytes(status.anonymous_bytes);
        if (key == "VmSwap") kilobytes(status.swap_bytes);
        if (key == "Cpus_allowed_list") {
            int count = 0;
            for (const std::string_view part : split(words[0], ',')) {
                const std::size_t dash = part.find('-');
                const auto first = number_of(part.substr(0, dash));
                const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
                if (first && count == 0) status.first_cpu = static_cast<int>(*first);
                if (first && last && *last >= *first && *last < 1'000'000)
                    count += static_cast<int>(*last - *first) + 1;
            }
            if (count > 0) status.cpus_allowed = count;
        }
        if (key == "voluntary_ctxt_switches") status.voluntary_switches = counter_of(words[0]);
        if (key == "nonvoluntary_ctxt_switches") status.involuntary_switches = counter_of(words[0]);
    }
    return status;
}

std::optional<ProcIo> parse_proc_io(std::string_view text) {
    const auto read = flat_value(text, "read_bytes:"), written = flat_value(text, "write_bytes:");
    if (!read || !written) return std::nullopt;
    return ProcIo{.read_bytes = *read,
                  .write_bytes = *written,
                  .read_calls = flat_value(text, "syscr:").value_or(0),
                  .call_read_bytes = flat_value(text, "rchar:").value_or(0)};
}

std::optional<MachineStat> parse_machine_stat(std::string_view text) {
    MachineStat stat;
    bool whole = false;
    for (const std::string_view line : split_lines(text)) {
        if (!line.starts_with("cpu")) break;
        const auto words = split_words(line);
        if (words[0] != "cpu") {
            ++stat.cpus;
            continue;
        }
        // user nice system idle iowait irq softirq steal; guests are counted in user.
        if (words.size() < 9) return std::nullopt;
        for (const std::size_t at : {1, 2, 3, 6, 7}) {
            const auto ticks = number_of(words[at]);
            if (!ticks || *ticks < 0 || *ticks > (std::int64_t{1} << 60)) return std::nullopt;
            stat.busy_ticks += *ticks;
        }
        const auto steal = number_of(words[8]);
        if (!steal || *steal < 0) return std::nullopt;
        stat.steal_ticks = *steal;
        whole = true;
    }
    return whole ? std::optional(stat) : std::nullopt;
}

std::optional<ThreadTimes> parse_schedstat(std::string_view text) {
    const auto words = split_words(text);
    if (words.size() < 2) return std::nullopt;
    const auto ran = counter_of(words[0]), waited = counter_of(words[1]);
    if (!ran || !waited) return std::nullopt;
    return ThreadTimes{.ran_ns = *ran, .waited_ns = *waited};
}

namespace {

constexpr std::size_t kMostDevices = 64;  // of a network namespace; more count in the sums alone

// A text that no kernel wrote may say anything.
void add_counter(std::int64_t& sum, std::int64_t more) {
    if (__builtin_add_overflow(sum, more, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

}  // namespace

std::optional<NetBytes> parse_net_dev(std::string_view text) {
    NetBytes bytes;
    bool any = false;
    for (const std::string_view line : split_lines(text)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;  // the two headings
        const auto words = split_words(line.substr(colon + 1));
        if (words.size() < 9) continue;
        const auto received = counter_of(words[0]), sent = counter_of(words[8]);
        if (!received || !sent) continue;
        any = true;
        if (trim(line.substr(0, colon)) == "lo") {
            add_counter(bytes.loopback, *sent);
        } else {
            add_counter(bytes.received, *received);
            add_counter(bytes.sent, *sent);
            if (bytes.sent_by.size() < kMostDevices) bytes.sent_by.emplace_back(trim(line.substr(0, colon)), *sent);
        }
    }
    return any ? std::optional(bytes) : std::nullopt;
}

bool names_interface(std::string_view wanted, std::string_view device) {
    const bool others = wanted.starts_with('^');
    if (others) wanted.remove_prefix(1);
    const bool exact = wanted.starts_with('=');
    if (exact) wanted.remove_prefix(1);
    bool named = false;
    while (!wanted.empty()) {
        const std::size_t comma = std::min(wanted.find(','), wanted.size());
        const std::string_view name = trim(wanted.substr(0, comma));
        wanted.remove_prefix(std::min(comma + 1, wanted.size()));
        named = named || (!name.empty() && (exact ? device == name : device.starts_with(name)));
    }
    return named != others;
}

std::vector<CgroupLine> parse_proc_cgroup(std::string_view text) {
    std::vector<CgroupLine> lines;
    for (const std::string_view line : split_lines(text)) {
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
        CgroupLine one{.path = std::string(line.substr(second + 1))};
        // The path of a group that was removed while processes are in it.
        if (one.path.ends_with(" (deleted)")) one.path.resize(one.path.size() - 10);
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        if (!controllers.empty())
            for (const std::string_view controller : split(controllers, ',')) one.controllers.emplace_back(controller);
        lines.push_back(std::move(one));
    }
    return lines;
}

std::vector<CgroupMount> parse_mountinfo(std::string_view text) {
    std::vector<CgroupMount> mounts;
    for (const std::string_view line : split_lines(text)) {
        // 36 35 98:0 ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER-OPTIONS
        const std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        const auto before = split_words(line.substr(0, dash)), after = split_words(line.substr(dash + 3));
        if (before.size() < 5 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) continue;
        CgroupMount mount{
            .root = unescape_octal(before[3]), .point = unescape_octal(before[4]), .unified = after[0] == "cgroup2"};
        if (!mount.unified)
            for (const std::string_view option : split(after[2], ',')) mount.controllers.emplace_back(option);
        mounts.push_back(std::move(mount));
    }
    return mounts;
}

CgroupChain cgroup_chain(const std::vector<CgroupMount>& mounts, const std::vector<CgroupLine>& lines,
                         std::string_view controller) {
    const auto own = std::find_if(lines.begin(), lines.end(),
                                  [&](const CgroupLine& line) { return names(line.controllers, controller); });
    const auto line = own != lines.end()
                          ? own
                          : std::find_if(lines.begin(), lines.end(), [](const auto& each) { return each.unified(); });
    if (line == lines.end()) return {};
    CgroupChain chain{.unified = line->unified(), .folders = {}};
    for (const CgroupMount& mount : mounts) {
        if (mount.unified != chain.unified || (!mount.unified && !names(mount.controllers, controller))) continue;
        // A container sees its own part of the hierarchy mounted, while the paths may count from the host's root.
        std::string_view below = line->path;
        if (below.find("/..") != std::string_view::npos) continue;  // outside of our control group namespace
        if (mount.root != "/") {
            if (!below.starts_with(mount.root)) continue;
            below.remove_prefix(mount.root.size());
            if (!below.empty() && below.front() != '/') continue;
        }
        while (!below.empty() && below.back() == '/') below.remove_suffix(1);
        for (;;) {
            chain.folders.push_back(mount.point + std::string(below));
            if (below.empty() || chain.folders.size() >= 32) break;
            below = below.substr(0, below.rfind('/'));
        }
        return chain;
    }
    return {};
}

std::optional<std::int64_t> flat_value(std::string_view text, std::string_view key) {
    for (const std::string_view line : split_lines(text)) {
        if (!line.starts_with(key)) continue;
        const auto words = split_words(line);
        if (words.size() == 2 && words[0] == key) return counter_of(words[1]);
    }
    return std::nullopt;
}

std::optional<std::int64_t> parse_limit(std::string_view text) {
    const auto value = counter_of(trim(text));
    // 2^63 rounded down to the largest page size in use (64 KiB), and whatever is above.
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max() - (64 << 10);
    return value && *value < kNone ? value : std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view text) {
    const auto words = split_words(text);
    if (words.empty()) return std::nullopt;
    const auto quota = counter_of(words[0]);
    const auto period = words.size() > 1 ? counter_of(words[1]) : std::optional<std::int64_t>(100'000);
    if (!quota || !period || *period == 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace stoker
