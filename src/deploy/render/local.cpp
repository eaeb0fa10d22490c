// local: the run section of what is started here, as a file that `stoker run` takes.
#include <fmt/format.h>

#include "base/enum_words.h"
#include "base/json.h"
#include "deploy/render/targets.h"
#include "workload/run_section.h"

namespace stoker {
namespace {

Json seconds_json(std::int64_t seconds) {
    return Json(fmt::format("{}s", seconds));
}

Json number_json(double value) {
    const auto whole = static_cast<std::int64_t>(value);
    return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

// ${x} would be a parameter of the file: it is meant for the shell or the program.
std::string as_it_is(const std::string& text) {
    std::string out;
    std::size_t done_to = 0;
    for (const Placeholder& each : placeholders_in(text)) {
        out.append(text, done_to, each.begin - done_to);
        out += "$" + text.substr(each.begin, each.end - each.begin);
        done_to = each.end;
    }
    return out.append(text, done_to);
}

Json upload_json(const UploadPolicy& upload) {
    Json out = Json::object().set("to", upload.to).set("keep", upload.keep).set("every", upload.every);
    if (!upload.tier.empty()) out.set("tier", upload.tier);
    return out.set("at_end", upload.at_end);
}

Json texts_json(const std::vector<std::string>& texts) {
    Json out = Json::array();
    for (const std::string& text : texts) out.push(text);
    return out;
}

Json requires_json(const PrerequisitesSpec& needs) {
    const PrerequisitesSpec usual;
    Json out = Json::object();
    if (!needs.commands.empty()) out.set("commands", texts_json(needs.commands));
    if (needs.python != usual.python) out.set("python", needs.python);
    if (!needs.python_modules.empty()) out.set("python_modules", texts_json(needs.python_modules));
    if (!needs.paths.empty()) out.set("paths", texts_json(needs.paths));
    if (needs.disk_bytes > 0) out.set("disk", fmt::format("{}B", needs.disk_bytes));
    if (!needs.driver.empty()) out.set("driver", needs.driver);
    return out;
}

// What is said beyond the defaults.
void set_policy(const StartPolicy& policy, Json& run) {
    const StartPolicy usual;
    if (policy.restarts != usual.restarts) run.set("restarts", policy.restarts);
    if (policy.attempts != usual.attempts) run.set("attempts", policy.attempts);
    if (policy.grace_s != usual.grace_s) run.set("grace", seconds_json(policy.grace_s));
    if (policy.transient_exit_codes != usual.transient_exit_codes) {
        Json codes = Json::array();
        for (const int code : policy.transient_exit_codes) codes.push(code);
        run.set("transient_exit_codes", std::move(codes));
    }
    if (policy.topology) run.set("topology", enum_word(*policy.topology));
    if (policy.queue_timeout_s) run.set("queue_timeout", seconds_json(*policy.queue_timeout_s));
    if (policy.run_class != usual.run_class) run.set("class", enum_word(policy.run_class));
    if (policy.priority != usual.priority) run.set("priority", policy.priority);
    if (!policy.labels.empty()) {
        Json labels = Json::object();
        for (const auto& [key, value] : policy.labels) labels.set(key, value);
        run.set("labels", std::move(labels));
    }
    if (policy.observe) {
        Json observe = Json::object();
        if (!policy.observe->step_pattern.empty()) observe.set("step_pattern", policy.observe->step_pattern);
        if (!policy.observe->heartbeat.empty()) observe.set("heartbeat", policy.observe->heartbeat);
        run.set("observe", std::move(observe));
    }
}

}  // namespace

std::string local_refusal(const Deployment& deployment) {
    if (deployment.nodes.cloud != "this-machine")
        return fmt::format("it is planned for {} x {}, and stoker run starts what runs here", deployment.nodes.count,
                           deployment.nodes.machine);
    if (deployment.command.empty()) return "the file does not say what to run: it has no section run";
    return "";
}

std::vector<FileToWrite> local_files(const Deployment& deployment) {
    const RankNeeds& needs = deployment.ranks.each;
    Json command = Json::array();
    for (const std::string& word : deployment.command) command.push(as_it_is(word));
    Json run = Json::object().set("command", std::move(command));
    if (!deployment.folder.empty() && deployment.folder != ".") run.set("folder", deployment.folder);
    if (!deployment.image.empty()) run.set("image", deployment.image);
    run.set("ranks", deployment.ranks.count).set("cpus", number_json(static_cast<double>(needs.cpu_milli) / 1000));
    if (needs.memory_bytes > 0) run.set("memory", fmt::format("{}B", needs.memory_bytes));
    if (needs.gpus > 0) run.set("gpus", needs.gpu_milli < 1000 ? Json(needs.gpu_milli / 1000.0) : Json(needs.gpus));
    if (!needs.gpu_model.empty()) run.set("gpu", needs.gpu_model);
    if (!deployment.environment.empty()) {
        Json environment = Json::object();
        for (const auto& [key, value] : deployment.environment) environment.set(key, as_it_is(value));
        run.set("environment", std::move(environment));
    }
    const CheckpointPolicy& policy = deployment.checkpoint;
    if (!policy.folder.empty()) {
        Json checkpoint = Json::object().set("folder", policy.folder);
        if (policy.interval_s > 0) checkpoint.set("every", seconds_json(policy.interval_s));
        checkpoint.set("keep", policy.keep);
        if (!policy.restore_from.empty()) checkpoint.set("restore_from", policy.restore_from);
        if (policy.upload) checkpoint.set("upload", upload_json(*policy.upload));
        run.set("checkpoint", std::move(checkpoint));
    }
    Json lease = Json::object();
    if (deployment.lease.stop_after_s > 0) lease.set("stop_after", seconds_json(deployment.lease.stop_after_s));
    if (deployment.lease.hard_max_s > 0) lease.set("hard_max", seconds_json(deployment.lease.hard_max_s));
    if (deployment.lease.stop_after_s > 0 || deployment.lease.hard_max_s > 0) run.set("lease", std::move(lease));
    if (deployment.walltime_s > 0) run.set("timeout", seconds_json(deployment.walltime_s));
    set_policy(deployment.policy, run);
    if (deployment.prerequisites) run.set("requires", requires_json(*deployment.prerequisites));
    const Json file = Json::object().set("version", 1).set("name", deployment.name).set("run", std::move(run));
    return {{deployment.name + ".run.yaml", fmt::format("# {}, as it runs on this machine: stoker run {}.run.yaml\n",
                                                        deployment.title, deployment.name) +
                                                file.dump_yaml()}};
}

}  // namespace stoker
