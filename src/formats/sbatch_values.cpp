#include "formats/sbatch_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "base/text.h"

namespace stoker::sbatch {

namespace {

bool value_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
// As strtol reads it: blanks and a sign in front.
std::string_view without_sign(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
    if (text.starts_with('+')) text.remove_prefix(1);
    return text;
}
bool one_of_nocase(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::any_of(list.begin(), list.end(), [&](std::string_view each) { return equals_ignore_case(text, each); });
}
// visit(part) for each between `separator`s; false as soon as one is not right.
template <typename F>
bool all_parts(std::string_view text, char separator, F&& right) {
    while (true) {
        const std::size_t stop = std::min(text.find(separator), text.size());
        if (!right(text.substr(0, stop))) return false;
        if (stop == text.size()) return true;
        text.remove_prefix(stop + 1);
    }
}
std::size_t parts_of(std::string_view text, char separator) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), separator)) + 1;
}

bool is_positive(std::string_view value) {
    const std::string_view number = without_sign(value);
    return value_digits(number) && number.find_first_not_of('0') != std::string_view::npos;
}
bool is_node_number(std::string_view value, long& number) {
    value = without_sign(value);
    while (value.ends_with(' ')) value.remove_suffix(1);
    if (!value.empty() && std::string_view("kKmM").find(value.back()) != std::string_view::npos) value.remove_suffix(1);
    if (!value_digits(value)) return false;
    number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return true;
}
bool is_node_count(std::string_view value) {
    if (value.starts_with('-')) return value_digits(value.substr(1));  // taken as none
    const std::size_t dash = value.find('-');
    long least = 0, most = 0;
    if (!is_node_number(value.substr(0, dash), least)) return false;
    if (dash == std::string_view::npos) return true;
    return is_node_number(value.substr(dash + 1), most) && most >= least;
}
bool is_size(std::string_view value) {
    value = without_sign(value);
    if (value.size() > 1 && (value.back() == 'B' || value.back() == 'b')) {
        value.remove_suffix(1);
        if (value.back() >= '0' && value.back() <= '9') return false;
    }
    if (!value.empty() && std::string_view("kKmMgGtT").find(value.back()) != std::string_view::npos)
        value.remove_suffix(1);
    return value_digits(value);
}
// minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds.
bool is_time(std::string_view value) {
    if (one_of_nocase(value, {"unlimited", "infinite"})) return true;
    if (value.starts_with('-')) return value_digits(value.substr(1));
    if (const std::size_t dash = value.find('-'); dash != std::string_view::npos) {
        if (!value_digits(value.substr(0, dash))) return false;
        value.remove_prefix(dash + 1);
        if (value.empty()) return true;
    }
    return parts_of(value, ':') <= 3 && all_parts(value, ':', value_digits);
}
// A number of at most `most`, of one or two digits.
bool small_number(std::string_view text, int most) {
    if (text.size() > 2 || !value_digits(text)) return false;
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number <= most;
}
bool is_moment(std::string_view value) {
    if (value.find(' ') != std::string_view::npos) return true;  // "tomorrow 16:00": not followed
    if (one_of_nocase(value, {"now", "today", "tomorrow", "midnight", "noon", "fika", "teatime", "elevenses"}))
        return true;
    if (starts_with_ignore_case(value, "now+") || starts_with_ignore_case(value, "now-")) {
        const std::string_view rest = value.substr(4);
        const std::size_t unit = std::min(rest.find_first_not_of("0123456789"), rest.size());
        return unit > 0 && (unit == rest.size() ||
                            one_of_nocase(rest.substr(unit), {"second", "seconds", "minute", "minutes", "hour", "hours",
                                                              "day", "days", "week", "weeks"}));
    }
    const auto is_clock = [](std::string_view clock) {
        for (const std::string_view half : {"am", "pm", "AM", "PM"})
            if (clock.ends_with(half)) clock.remove_suffix(2);
        const std::size_t parts = parts_of(clock, ':');
        int k = 0;
        return parts >= 2 && parts <= 3 &&
               all_parts(clock, ':', [&](std::string_view part) { return small_number(part, k++ == 0 ? 23 : 59); });
    };
    if (value.size() >= 10 && value[4] == '-' && value[7] == '-') {
        const std::string_view rest = value.substr(10);
        return value_digits(value.substr(0, 4)) && small_number(value.substr(5, 2), 12) &&
               small_number(value.substr(8, 2), 31) && (rest.empty() || (rest[0] == 'T' && is_clock(rest.substr(1))));
    }
    if (value.find(':') != std::string_view::npos) return is_clock(value) || value.find('/') != std::string_view::npos;
    return !value.empty() && value[0] >= '0' && value[0] <= '9' &&
           value.find_first_not_of("0123456789/.-") == std::string_view::npos;
}
// name, name:count, name:type, name:type:count.
bool is_gres(std::string_view value) {
    if (equals_ignore_case(value, "none") || equals_ignore_case(value, "help")) return true;
    return all_parts(value, ',', [](std::string_view part) {
        if (part.starts_with("gres:") || part.starts_with("gres/")) part.remove_prefix(5);
        if (const std::size_t sockets = part.find('('); sockets != std::string_view::npos) return true;
        if (part.empty() || part.ends_with(':') || value_digits(part)) return false;
        const std::size_t parts = parts_of(part, ':');
        const std::string_view last = part.substr(part.rfind(':') + 1);
        if (parts == 3 && !(last[0] >= '0' && last[0] <= '9')) return false;
        if (parts > 1 && last[0] >= '0' && last[0] <= '9' && last.find('.') != std::string_view::npos) return false;
        return parts <= 3;
    });
}
// count, type:count; with commas.
bool is_gpu_list(std::string_view value) {
    return value.empty() || all_parts(value, ',', [](std::string_view part) {
               if (part.empty() || part.ends_with(':') || parts_of(part, ':') > 2) return false;
               const std::string_view last = part.substr(part.rfind(':') + 1);
               return !(last[0] >= '0' && last[0] <= '9' && last.find('.') != std::string_view::npos);
           });
}
// 0-15, 1,3,5, 0-15:4, 0-15%4.
bool is_array(std::string_view value) {
    if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
    if (const std::size_t most = value.find('%'); most != std::string_view::npos) {
        const std::string_view limit = value.substr(most + 1);
        if (!limit.empty() && !value_digits(limit)) return false;
        value = value.substr(0, most);
    }
    return all_parts(value, ',', [](std::string_view part) {
        std::string_view step;
        if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
            step = part.substr(colon + 1);
            if (!is_positive(step)) return false;
            part = part.substr(0, colon);
        }
        const std::size_t dash = part.find('-');
        if (dash == std::string_view::npos) return value_digits(part);
        const std::string_view first = part.substr(0, dash), last = part.substr(dash + 1);
        long from = 0, to = 0;
        std::from_chars(first.data(), first.data() + first.size(), from);
        std::from_chars(last.data(), last.data() + last.size(), to);
        return value_digits(first) && value_digits(last) && from <= to;
    });
}
bool is_mail_type(std::string_view value) {
    // One that is known is enough.
    return !all_parts(value, ',', [](std::string_view part) {
        return !one_of_nocase(part, {"none", "begin", "end", "fail", "requeue", "all", "invalid_depend", "stage_out",
                                     "time_limit", "time_limit_90", "time_limit_80", "time_limit_50", "array_tasks"});
    });
}
bool is_dependency(std::string_view value) {
    const char separator = value.find('?') != std::string_view::npos ? '?' : ',';
    return all_parts(value, separator, [](std::string_view part) {
        if (part == "singleton" || value_digits(part)) return true;
        const std::size_t colon = part.find(':');
        if (colon == std::string_view::npos) return false;
        bool known = false;
        for (const std::string_view kind :
             {"after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok", "expand"})
            known |= part.substr(0, colon) == kind;
        return known && all_parts(part.substr(colon + 1), ':',
                                  [](std::string_view job) { return !job.empty() && job[0] >= '0' && job[0] <= '9'; });
    });
}
// [R|B|RB:]signal[@seconds].
bool is_signal(std::string_view value) {
    if (const std::size_t colon = value.find(':'); colon != std::string_view::npos) {
        if (colon == 0 || value.substr(0, colon).find_first_not_of("RB") != std::string_view::npos) return false;
        value.remove_prefix(colon + 1);
    }
    const std::size_t at = value.find('@');
    std::string_view name = value.substr(0, at);
    if (at != std::string_view::npos) {
        const std::string_view seconds = value.substr(at + 1);
        long number = 0;
        std::from_chars(seconds.data(), seconds.data() + seconds.size(), number);
        if (!seconds.empty() && (!value_digits(seconds) || seconds.size() > 5 || number > 65535)) return false;
    }
    if (value_digits(name)) return true;
    if (starts_with_ignore_case(name, "SIG")) name.remove_prefix(3);
    return one_of_nocase(name, {"HUP", "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1", "USR2", "URG", "CONT",
                                "STOP", "TSTP", "TTIN", "TTOU", "XCPU", "CHLD"});
}
bool is_distribution(std::string_view value) {
    const std::string_view layout = value.substr(0, value.find(','));
    if (starts_with_ignore_case(layout, "plane"))
        return layout.size() > 6 && layout[5] == '=' && is_positive(layout.substr(6));
    return all_parts(layout, ':', [](std::string_view part) {
        return one_of_nocase(part, {"*", "block", "cyclic", "fcyclic", "arbitrary", "pack", "nopack"});
    });
}
bool starts_with_one(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::any_of(list.begin(), list.end(),
                       [&](std::string_view each) { return starts_with_ignore_case(text, each); });
}
bool is_core_spec(std::string_view value) {
    return value.empty() || value_digits(without_sign(value));
}
bool is_layout(std::string_view value) {  // sockets[:cores[:threads]]
    return all_parts(value, ':', [](std::string_view part) { return part == "*" || is_positive(part); });
}
bool is_switches(std::string_view value) {
    return is_positive(value.substr(0, value.find('@')));
}
bool is_environment_wait(std::string_view value) {
    if (!value.empty() && std::string_view("sSlL").find(value.back()) != std::string_view::npos) value.remove_suffix(1);
    return value.empty() || value_digits(value);
}
bool is_frequency(std::string_view value) {
    return all_parts(value, ',', [](std::string_view part) {
        return value_digits(part.substr(part.find('=') == std::string_view::npos ? 0 : part.find('=') + 1));
    });
}

bool is_gpu_frequency(std::string_view value) {
    return all_parts(value, ',', [](std::string_view part) {
        if (starts_with_ignore_case(part, "memory=")) part.remove_prefix(7);
        return value_digits(part) || equals_ignore_case(part, "verbose") ||
               starts_with_one(part, {"low", "medium", "high"});
    });
}
bool is_cpu_frequency(std::string_view value) {
    const std::string_view range = value.substr(0, value.find(':'));
    return all_parts(range, '-', [](std::string_view part) {
        return value_digits(part) ||
               starts_with_one(part, {"low", "medium", "high", "conservative", "ondemand", "performance", "powersave",
                                      "schedutil", "userspace", "help", "list"});
    });
}
bool is_limit_list(std::string_view value) {
    return value.empty() || all_parts(value, ',', [](std::string_view part) {
               for (const std::string_view name :
                    {"ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"})
                   if (part == name || (part.starts_with("RLIMIT_") && part.substr(7) == name)) return true;
               return false;
           });
}
bool is_memory_bind(std::string_view value) {
    return all_parts(value.substr(0, value.find(':')), ',', [](std::string_view part) {
        return one_of_nocase(part, {"quiet", "q", "verbose", "v", "sort", "nosort", "prefer", "p", "no", "none", "rank",
                                    "local", "map_mem", "mapmem", "mask_mem", "maskmem", "help"});
    });
}
bool is_profile(std::string_view value) {
    return all_parts(value, ',', [](std::string_view part) {
        return one_of_nocase(part, {"none", "all", "energy", "task", "lustre", "filesystem", "network"});
    });
}

struct ValueRule {
    Sort sort;
    bool (*right)(std::string_view);
    std::string_view expected;
    bool name = false;  // a word from a list: one in capitals is no placeholder
};
constexpr std::string_view kWhole = "a whole number above 0", kSize = "a whole number with K, M, G or T, and no blank",
                           kTime = "minutes, MM:SS, HH:MM:SS or D-HH[:MM[:SS]]", kGpus = "N or TYPE:N",
                           kMoment = "a moment such as 16:00, now+1hour or 2026-12-31T08:00:00";
constexpr ValueRule kRules[] = {
    {Sort::whole, is_positive, kWhole},
    {Sort::spare_cores, is_core_spec, "a whole number"},
    {Sort::node_count, is_node_count, "a number of nodes, or MIN-MAX"},
    {Sort::size, is_size, kSize},
    {Sort::duration, is_time, kTime},
    {Sort::moment, is_moment, kMoment},
    {Sort::gres, is_gres, "NAME[:TYPE][:COUNT], with commas between several", true},
    {Sort::gpus, is_gpu_list, kGpus, true},
    {Sort::indices, is_array, "indices such as 0-15, 1,3,5 or 0-15%4"},
    {Sort::dependency, is_dependency, "afterok:JOB, singleton and their kin", true},
    {Sort::layout, is_layout, "SOCKETS[:CORES[:THREADS]]"},
    {Sort::switches, is_switches, "COUNT[@TIME]"},
    {Sort::sampling, is_frequency, "seconds, or TYPE=SECONDS"},
    {Sort::environment_wait, is_environment_wait, "seconds, with L or S behind them"},
    {Sort::mail, is_mail_type, "BEGIN, END, FAIL, REQUEUE, ALL, NONE, TIME_LIMIT or ARRAY_TASKS", true},
    {Sort::signal, is_signal, "[B:]SIGNAL[@SECONDS]", true},
    {Sort::distribution, is_distribution, "block, cyclic, plane=SIZE, arbitrary or a list of them", true},
    {Sort::hint,
     [](std::string_view value) {
         return one_of_nocase(value, {"compute_bound", "memory_bound", "multithread", "nomultithread", "help"});
     },
     "compute_bound, memory_bound, multithread or nomultithread", true},
    {Sort::exclusive,
     [](std::string_view value) {
         return value.empty() || one_of_nocase(value, {"user", "mcs", "exclusive", "topo"});
     },
     "user or mcs", true},
    {Sort::open_mode,
     [](std::string_view value) {
         return starts_with_one(value, {"a", "t"});
     },
     "append or truncate", true},
    {Sort::yes_no,
     [](std::string_view value) {
         return one_of_nocase(value, {"yes", "no"});
     },
     "yes or no", true},
    {Sort::gres_flags,
     [](std::string_view value) {
         return starts_with_one(value,
                                {"disable-binding", "enforce-binding", "multiple-tasks", "one-task", "allow-task"});
     },
     "disable-binding or enforce-binding", true},
    {Sort::off,
     [](std::string_view value) {
         return value.empty() || one_of_nocase(value, {"off", "no"});
     },
     "off", true},
    {Sort::zero_one, [](std::string_view value) { return value == "0" || value == "1"; }, "0 or 1"},
    {Sort::not_negative, [](std::string_view value) { return !value.starts_with('-'); }, "a number of 0 or more"},
    {Sort::gpu_frequency, is_gpu_frequency, "low, medium, high or MHz, with memory= for the memory's", true},
    {Sort::cpu_frequency, is_cpu_frequency, "a range of low, medium, high or kHz, or a governor", true},
    {Sort::limits, is_limit_list, "ALL, NONE or names of limits in capitals", true},
    {Sort::memory_bind, is_memory_bind, "none, local, rank, map_mem:LIST or mask_mem:LIST", true},
    {Sort::profile, is_profile, "none, all, energy, task, lustre or network", true},
    {Sort::gpu_bind,
     [](std::string_view value) {
         return all_parts(value.substr(0, value.find(':')), ',',
                          [](std::string_view part) {
                              return one_of_nocase(part, {"verbose", "v", "quiet", "q", "closest", "none", "map_gpu",
                                                          "mask_gpu", "single", "per_task"});
                          }) &&
                (value.find(':') != std::string_view::npos || !one_of_nocase(value, {"single", "map_gpu", "mask_gpu"}));
     },
     "none, closest, single:N, per_task:N, map_gpu:LIST or mask_gpu:LIST", true},
};

// __NODES__, NNODES, your_nodes, HH:MM:SS, @n@: to be filled in. Words without a digit are no numbers by mistake.
bool is_placeholder(std::string_view value, bool name) {
    if (value.find_first_of("@{}?") != std::string_view::npos) return true;
    if (name || value.empty()) return false;
    const char first = value[0];
    if (!((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z') || first == '_')) return false;
    return value.find('_') != std::string_view::npos || value.find_first_of("0123456789") == std::string_view::npos;
}

// One for each sort but `any`, in the order of the sorts.
static_assert([] {
    for (std::size_t k = 0; k < std::size(kRules); ++k)
        if (kRules[k].sort != static_cast<Sort>(k + 1)) return false;
    return std::size(kRules) == static_cast<std::size_t>(Sort::gpu_bind);
}());

}  // namespace

std::string_view expected_value(const Option& option, std::string_view value) {
    if (option.sort == Sort::any) return {};
    const ValueRule& rule = kRules[static_cast<std::size_t>(option.sort) - 1];
    if (is_placeholder(value, rule.name) && rule.sort != Sort::dependency && rule.sort != Sort::signal) return {};
    return rule.right(value) ? std::string_view() : rule.expected;
}

std::optional<double> bytes_of(std::string_view value) {
    if (!is_size(value)) return std::nullopt;
    value = without_sign(value);
    if (value.back() == 'B' || value.back() == 'b') value.remove_suffix(1);
    double unit = 1048576;
    switch (value.back()) {
        case 'K':
        case 'k': unit = 1024; break;
        case 'G':
        case 'g': unit = 1073741824; break;
        case 'T':
        case 't': unit = 1099511627776; break;
        default: break;
    }
    double number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);  // stops at the unit
    return number * unit;
}

std::optional<double> seconds_of(std::string_view value) {
    if (one_of_nocase(value, {"unlimited", "infinite", "-1"})) return std::numeric_limits<double>::infinity();
    if (!is_time(value) || value.starts_with('-')) return std::nullopt;
    double parts[4] = {};  // days, hours, minutes, seconds
    std::size_t at = 1;
    const auto number = [](std::string_view digits) {
        double result = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), result);
        return result;
    };
    if (const std::size_t dash = value.find('-'); dash != std::string_view::npos) {
        parts[0] = number(value.substr(0, dash));
        value.remove_prefix(dash + 1);
    } else if (parts_of(value, ':') < 3) {
        at = 2;
    }
    all_parts(value, ':', [&](std::string_view part) {
        parts[at++] = number(part);
        return true;
    });
    return parts[0] * 86'400 + parts[1] * 3600 + parts[2] * 60 + parts[3];
}

std::string no_such_option(std::string_view written) {
    return fmt::format("sbatch has no option {}\"{}\": it refuses the script (\"Invalid directive\")",
                       written.starts_with('-') ? "" : "called ", written.substr(0, 40));
}
std::string missing_value(std::string_view option) {
    return fmt::format("--{} has no value: sbatch refuses the script", option);
}
std::string refused_value(std::string_view option, std::string_view value) {
    return fmt::format("sbatch refuses --{}={}", option, value.substr(0, 40));
}

}  // namespace stoker::sbatch
