#include "observe/gpu/gpu_owners.h"

#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "base/text.h"
#include "observe/proc_text.h"

namespace stoker {

namespace {

constexpr std::size_t kMostBytes = 256 * 1024;

std::optional<std::string> read_proc(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    std::string text(kMostBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) return std::nullopt;
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

bool is_hex(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

void read_cgroup_owner(std::string_view cgroup, GpuOwner& owner) {
    for (const std::string_view line : split_lines(cgroup)) {
        const std::size_t second = line.find(':', line.find(':') + 1);
        if (second == std::string_view::npos) continue;
        for (std::string_view part : split(line.substr(second + 1), '/')) {
            if (part.starts_with("job_") && part.size() > 4 &&
                part.find_first_not_of("0123456789", 4) == std::string_view::npos)
                owner.job = part.substr(4);
            // Of the systemd driver: kubepods-burstable-pod1a2b_3c4d.slice; of cgroupfs: pod1a2b-3c4d.
            std::string_view pod = part;
            if (pod.ends_with(".slice")) pod.remove_suffix(6);
            if (const std::size_t at = pod.rfind("pod");
                at != std::string_view::npos && (at == 0 || pod[at - 1] == '-') && pod.size() - at - 3 >= 32) {
                std::string uid = replace_all(pod.substr(at + 3), "_", "-");
                if (is_hex(replace_all(uid, "-", ""))) owner.pod = uid;
            }
            std::string_view id = part;
            if (id.ends_with(".scope")) id.remove_suffix(6);
            if (const std::size_t dash = id.rfind('-'); dash != std::string_view::npos) id.remove_prefix(dash + 1);
            if (id.size() == 64 && is_hex(id)) owner.container = id.substr(0, 12);
        }
    }
}

void read_environment_owner(std::string_view environment, GpuOwner& owner) {
    for (const std::string_view entry : split(environment, '\0')) {
        const auto value = [&](std::string_view name) -> std::optional<std::string> {
            if (!entry.starts_with(name) || entry.size() <= name.size() || entry[name.size()] != '=')
                return std::nullopt;
            return printable(entry.substr(name.size() + 1), 128);
        };
        if (auto run = value("STOKER_RUN")) owner.run = *run;
        if (auto attempt = value("STOKER_ATTEMPT")) owner.attempt = *attempt;
        if (auto rank = value("RANK")) owner.rank = *rank;
        if (auto job = value("SLURM_JOB_ID"); job && owner.job.empty()) owner.job = *job;
    }
    // A rank of another launcher, started outside of a run, says nothing to us.
    if (owner.run.empty() && owner.job.empty()) owner.rank.clear();
}

std::optional<std::uint64_t> GpuOwners::ticks_of(std::uint32_t pid) const {
    const auto text = read_proc(fmt::format("{}/{}/stat", roots_.proc, pid));
    if (!text) return std::nullopt;
    const auto stat = parse_proc_stat(*text);
    return stat ? std::optional(stat->start_ticks) : std::nullopt;
}

GpuOwner GpuOwners::read(std::uint32_t pid) const {
    GpuOwner owner;
    const std::string folder = fmt::format("{}/{}", roots_.proc, pid);
    if (const auto text = read_proc(folder + "/cgroup")) read_cgroup_owner(*text, owner);
    if (const auto text = read_proc(folder + "/environ")) read_environment_owner(*text, owner);
    if (const auto text = read_proc(folder + "/comm")) owner.command = printable(trim(*text), 32);
    struct ::stat status = {};
    if (::stat(folder.c_str(), &status) == 0) {
        std::array<char, 4096> buffer;
        struct ::passwd entry = {}, *found = nullptr;
        if (::getpwuid_r(status.st_uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found)
            owner.user = printable(found->pw_name, 32);
        else
            owner.user = std::to_string(status.st_uid);
    }
    return owner;
}

void GpuOwners::refresh(const std::vector<std::uint32_t>& pids) {
    std::map<std::uint32_t, Entry> next;
    for (const std::uint32_t pid : pids) {
        if (next.contains(pid)) continue;
        const auto before = ticks_of(pid);
        // Its number is of another namespace (a container without hostPID), or it has just ended.
        if (!before) continue;
        const auto known = entries_.find(pid);
        if (known != entries_.end() && known->second.start_ticks == *before) {
            next.insert(*known);
            continue;
        }
        Entry entry{*before, read(pid)};
        // Another process had its number meanwhile: what was read may be of either.
        if (ticks_of(pid) != before) continue;
        entry.owner.known = true;
        next[pid] = std::move(entry);
    }
    entries_ = std::move(next);
}

const GpuOwner* GpuOwners::find(std::uint32_t pid) const {
    const auto found = entries_.find(pid);
    return found == entries_.end() ? nullptr : &found->second.owner;
}

}  // namespace stoker
