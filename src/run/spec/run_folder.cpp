#include "run/spec/run_folder.h"

#include <filesystem>

#include "base/text.h"

namespace stoker {

std::string RunFolder::log(const AttemptId& attempt, int rank) const {
    return path + "/" + attempt.text() + "/rank-" + std::to_string(rank) + ".out";
}

std::string RunFolder::checkpoints(const RunSpec& spec) const {
    const std::string& folder = spec.checkpoint.folder;
    if (folder.empty() || folder.front() == '/') return folder;
    return path + "/" + folder;
}

std::string named_interface(const RunSpec& spec) {
    std::string named;
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
        if (const auto found = spec.environment.find(name); found != spec.environment.end()) named = found->second;
    return named;
}

MeasureSpec measure_spec(const RunSpec& spec, const RunFolder& folder) {
    MeasureSpec measure{.lines = folder.metrics(),
                        .heartbeat = {},
                        .step_pattern = {},
                        .folders = {folder.path},
                        .interface = named_interface(spec)};
    if (const std::string checkpoints = folder.checkpoints(spec);
        !checkpoints.empty() && !checkpoints.starts_with(folder.path + "/"))
        measure.folders.push_back(checkpoints);
    if (!spec.observe) return measure;
    const std::string& beat = spec.observe->heartbeat;
    if (!beat.empty()) measure.heartbeat = (beat.starts_with('/') ? "" : spec.folder + "/") + beat;
    measure.step_pattern = spec.observe->step_pattern;
    return measure;
}

RunFolder run_folder(const std::string& engine_folder, RunId run) {
    return {engine_folder + "/runs/" + run.text()};
}

Status make_run_folder(const RunFolder& folder, const std::string& checkpoints) {
    for (const std::string& path : {folder.path, folder.artifacts(), checkpoints}) {
        if (path.empty()) continue;
        std::error_code code;
        std::filesystem::create_directories(path, code);
        if (!code) continue;
        const ErrorKind kind = code == std::errc::no_space_on_device ? ErrorKind::exhausted : ErrorKind::denied;
        return Error(kind, "cannot make the folder " + printable(path) + ": " + code.message());
    }
    return done();
}

}  // namespace stoker
