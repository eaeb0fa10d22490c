#include "observe/gpu/gpu_assignments.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/protobuf.h"
#include "base/text.h"
#include "io/grpc_call.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = 256, kMostAssignments = 4096;

std::string word_of(std::string_view bytes) {
    return printable(bytes, kMostText);
}

// "GPU-1b2c::3" is the third turn on GPU-1b2c.
void add_device(std::string_view id, GpuAssignment of, std::vector<GpuAssignment>& out) {
    const std::size_t turn = id.find("::");
    of.shared = turn != std::string_view::npos;
    of.device = word_of(id.substr(0, turn));
    if (!of.device.empty() && out.size() < kMostAssignments) out.push_back(std::move(of));
}

bool read_devices(std::string_view message, const GpuAssignment& of, std::vector<GpuAssignment>& out) {
    ProtobufFields fields(message);
    std::string_view resource;
    std::vector<std::string_view> ids;
    while (const auto field = fields.next()) {
        if (field->id == 1) resource = field->bytes;
        if (field->id == 2) ids.push_back(field->bytes);
    }
    if (resource.starts_with("nvidia.com/"))
        for (const std::string_view id : ids) add_device(id, of, out);
    return !fields.broken();
}

// A claim of dynamic resource allocation: its devices are named by the driver ("gpu-0", "gpu-0-mig-9-4-4").
bool read_claim(std::string_view message, GpuAssignment of, std::vector<GpuAssignment>& out) {
    ProtobufFields fields(message);
    std::vector<std::string_view> resources;
    while (const auto field = fields.next()) {
        if (field->id == 2) of.claim = word_of(field->bytes);
        if (field->id == 4) resources.push_back(field->bytes);
    }
    bool good = !fields.broken();
    for (const std::string_view resource : resources) {
        ProtobufFields inner(resource);
        std::string_view driver, device;
        while (const auto field = inner.next()) {
            if (field->id == 2) driver = field->bytes;
            if (field->id == 4) device = field->bytes;
        }
        good = good && !inner.broken();
        if (driver == "gpu.nvidia.com") add_device(device, of, out);
    }
    return good;
}

// The number behind a prefix, and nothing behind it; -1: it is no such name.
int number_after(std::string_view text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return -1;
    text.remove_prefix(prefix.size());
    int number = -1;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    return end.ec == std::errc() && end.ptr == text.data() + text.size() ? number : -1;
}

}  // namespace

Result<std::vector<GpuAssignment>> read_pod_resources(std::string_view message) {
    std::vector<GpuAssignment> out;
    ProtobufFields pods(message);
    bool good = true;
    while (const auto pod = pods.next()) {
        if (pod->id != 1) continue;
        GpuAssignment of;
        std::vector<std::string_view> containers;
        ProtobufFields fields(pod->bytes);
        while (const auto field = fields.next()) {
            if (field->id == 1) of.pod = word_of(field->bytes);
            if (field->id == 2) of.name_space = word_of(field->bytes);
            if (field->id == 3) containers.push_back(field->bytes);
        }
        good = good && !fields.broken();
        for (const std::string_view container : containers) {
            ProtobufFields parts(container);
            std::vector<std::string_view> devices, claims;
            while (const auto field = parts.next()) {
                if (field->id == 1) of.container = word_of(field->bytes);
                if (field->id == 2) devices.push_back(field->bytes);
                if (field->id == 5) claims.push_back(field->bytes);
            }
            good = good && !parts.broken();
            for (const std::string_view each : devices) good = read_devices(each, of, out) && good;
            for (const std::string_view each : claims) good = read_claim(each, of, out) && good;
        }
    }
    if (!good || pods.broken()) return Error(ErrorKind::unavailable, "its answer is no list of pods");
    return out;
}

Result<std::vector<GpuAssignment>> read_job_files(const std::string& folder) {
    std::vector<GpuAssignment> out;
    std::error_code code;
    fs::directory_iterator file(folder, code);
    if (code) return Error(ErrorKind::unavailable, fmt::format("{}: {}", folder, code.message()));
    for (const fs::directory_iterator end; file != end; file.increment(code)) {
        if (code) return Error(ErrorKind::unavailable, fmt::format("{}: {}", folder, code.message()));
        const std::string name = file->path().filename().string();
        if (name.find_first_not_of("0123456789.") != std::string::npos) continue;
        std::ifstream text(file->path());
        for (std::string line; std::getline(text, line) && out.size() < kMostAssignments;)
            if (const std::string_view job = trim(line); !job.empty()) {
                GpuAssignment of;
                of.device = name;
                of.job = word_of(job);
                out.push_back(std::move(of));
            }
    }
    std::sort(out.begin(), out.end(),
              [](const auto& a, const auto& b) { return std::tie(a.device, a.job) < std::tie(b.device, b.job); });
    return out;
}

bool is_assigned(const GpuAssignment& assignment, const GpuDevice& device) {
    const std::string_view name = assignment.device;
    if (name.starts_with("GPU-") || name.starts_with("MIG-")) return device.uuid == name;
    const int board = device.minor >= 0 ? device.minor : device.index;
    // Of Slurm: the index of the GPU, or with the number of its instance; of others the number of its device file.
    if (!assignment.job.empty())
        return name == (device.whole() ? std::to_string(device.index)
                                       : fmt::format("{}.{}", device.index, device.gpu_instance));
    if (device.whole()) return number_after(name, "nvidia") == board || number_after(name, "gpu-") == board;
    return number_after(name, fmt::format("nvidia{}/gi", board)) == device.gpu_instance;
}

std::vector<const GpuAssignment*> GpuAssignments::of(const GpuDevice& device) const {
    std::vector<const GpuAssignment*> found;
    for (const AssignmentSource& source : sources)
        for (const GpuAssignment& each : source.assignments) {
            if (!is_assigned(each, device)) continue;
            const auto same = [&](const GpuAssignment* other) {
                return std::tie(other->name_space, other->pod, other->container, other->job) ==
                       std::tie(each.name_space, each.pod, each.container, each.job);
            };
            if (std::none_of(found.begin(), found.end(), same)) found.push_back(&each);
        }
    return found;
}

GpuAssignments look_at_assignments(const AssignmentOptions& options, const GpuAssignments& before, double now_s) {
    GpuAssignments now;
    const auto ask = [&](const char* name, const auto& read) {
        AssignmentSource source;
        for (const AssignmentSource& each : before.sources)
            if (each.name == name) source = each;
        source.name = name;
        Result<std::vector<GpuAssignment>> told = read();
        source.up = told.ok();
        source.problem = told.ok() ? "" : told.error().message();
        if (told.ok()) source.assignments = std::move(*told), source.read_at_s = now_s;
        now.sources.push_back(std::move(source));
    };
    if (!options.kubelet_socket.empty())
        ask("kubelet", [&]() -> Result<std::vector<GpuAssignment>> {
            TRY(const std::string answer, grpc_call(options.kubelet_socket, "/v1.PodResourcesLister/List", "",
                                                    std::chrono::steady_clock::now() + std::chrono::seconds(10)));
            return read_pod_resources(answer);
        });
    if (!options.job_folder.empty()) ask("slurm", [&] { return read_job_files(options.job_folder); });
    return now;
}

}  // namespace stoker
