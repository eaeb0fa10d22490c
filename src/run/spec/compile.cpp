#include "run/spec/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "observe/step_file.h"
#include "run/spec/upload_policy.h"
#include "sizing/economics.h"

namespace stoker {
namespace {

constexpr const char* kArrayParameter = "array_index";
constexpr std::size_t kLongestPointName = 100;

// One combination of a sweep and an array.
struct RunPoint {
    std::string name;
    std::map<std::string, std::string> parameters;
    std::map<std::string, std::string> environment;
};

std::string replace_parameters(const std::string& text, const std::map<std::string, std::string>& parameters,
                               bool script) {
    std::string out;
    std::size_t done_to = 0;
    for (const Placeholder& each : placeholders_in(text)) {
        const auto value = parameters.find(each.name);
        // In a script, what is no parameter is the shell's.
        if (value == parameters.end() && (script || !each.escaped)) continue;
        out.append(text, done_to, each.begin - done_to);
        out += each.escaped ? "${" + each.name + "}" : value->second;
        done_to = each.end;
    }
    return out.append(text, done_to);
}

std::vector<RunPoint> points_of_run(const RunSection& section) {
    std::vector<RunPoint> points{{}};
    const auto multiply = [&](std::size_t count, const auto& extend) {
        std::vector<RunPoint> more;
        for (const RunPoint& point : points) {
            for (std::size_t i = 0; i < count; ++i) {
                more.push_back(point);
                extend(more.back(), i);
            }
        }
        points = std::move(more);
    };
    const auto name = [](RunPoint& point, std::string_view key, std::string_view value) {
        point.name += fmt::format("{}{}={}", point.name.empty() ? "" : ",", key, value);
    };
    for (const SweepParameter& parameter : section.sweep) {
        multiply(parameter.values.size(), [&](RunPoint& point, std::size_t i) {
            const std::string& value = parameter.values[i];
            point.parameters[parameter.name] = value;
            point.environment[variable_of(parameter.name)] = value;
            name(point, parameter.name, replace_all(printable(value, 40), "/", "_"));
        });
    }
    if (section.array) {
        const std::vector<int>& indices = *section.array;
        multiply(indices.size(), [&](RunPoint& point, std::size_t i) {
            const std::string index = std::to_string(indices[i]);
            point.parameters[kArrayParameter] = index;
            for (const char* key : {"STOKER_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"}) point.environment[key] = index;
            point.environment["SLURM_ARRAY_TASK_COUNT"] = std::to_string(indices.size());
            point.environment["SLURM_ARRAY_TASK_MIN"] = std::to_string(indices.front());
            point.environment["SLURM_ARRAY_TASK_MAX"] = std::to_string(indices.back());
            name(point, "index", index);
        });
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i].name.size() > kLongestPointName || !names.insert(points[i].name).second) {
            points[i].name = fmt::format("point-{}", i + 1);
            names.insert(points[i].name);
        }
    }
    return points;
}

class RunCompiler {
public:
    RunCompiler(const RunSection& section, const CompileContext& context) : run_(section), context_(context) {}

    Result<RunSpec> spec() {
        RunSpec spec;
        const bool many = !run_.sweep.empty() || run_.array.has_value();
        if (run_.steps.empty() && !many) {
            spec = of_fields(run_, {});
        } else {
            spec.kind = RunKind::graph;
            spec.folder = folder_of(run_);
            spec.max_restarts = run_.restarts.value_or(0);
            spec.max_attempts = run_.attempts.value_or(spec.max_attempts);
            for (const RunPoint& point : points_of_run(run_)) add_point(point, many, spec);
        }
        spec.name = context_.name;
        spec.source = context_.source;
        for (const auto& [key, value] : run_.labels) spec.labels[key] = value.text;
        spec.priority = run_.priority;
        if (run_.parallel) spec.parallel = *run_.parallel;
        spec.run_class = static_cast<RunClass>(run_.run_class);
        spec.lease = lease();
        if (run_.engine) spec.engine = *run_.engine;
        if (run_.queue_timeout) {
            const std::int64_t most = whole_seconds(run_.queue_timeout, 0);
            if (spec.kind != RunKind::graph) spec.queue_timeout_s = most;
            for (GraphStep& step : spec.steps)
                if (step.depends_on.empty()) step.run.queue_timeout_s = most;
        }
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        // What the spec itself cannot be, with the section as its place.
        if (auto status = check_run_spec(spec); !status) {
            Problems problems = status.error().problems();
            for (Problem& problem : problems) problem.pos = run_.place("");
            return Error(ErrorKind::invalid, std::move(problems));
        }
        return spec;
    }

private:
    static std::int64_t whole_seconds(const std::optional<Seconds>& seconds, std::int64_t otherwise) {
        return seconds ? static_cast<std::int64_t>(std::ceil(seconds->v)) : otherwise;
    }

    RunKind kind() const {
        if (context_.workload == nullptr) return RunKind::batch;
        if (is_training(context_.workload->kind)) return RunKind::train;
        return context_.workload->kind == WorkloadKind::notebook ? RunKind::notebook : RunKind::batch;
    }

    std::string folder_of(const RunFields& own) const {
        namespace fs = std::filesystem;
        const std::string& given = own.folder.empty() ? run_.folder : own.folder;
        std::string path = (fs::path(context_.folder) / given).lexically_normal().string();
        if (path.size() > 1 && path.ends_with('/')) path.pop_back();
        return path;
    }

    // "./bundle" is a folder beside the file; anything else is a name.
    std::string image_of(const RunFields& own) const {
        namespace fs = std::filesystem;
        const std::string& given = own.image.empty() ? run_.image : own.image;
        if (!given.starts_with("./") && !given.starts_with("../")) return given;
        return (fs::path(context_.folder) / given).lexically_normal().string();
    }

    LeaseSpec lease() const {
        LeaseSpec lease;
        if (!run_.lease) return lease;
        lease.stop_after_s = whole_seconds(run_.lease->stop_after, 0);
        lease.hard_max_s = whole_seconds(run_.lease->hard_max, 0);
        return lease;
    }

    void add_point(const RunPoint& point, bool many, RunSpec& graph) {
        const auto add = [&](GraphStep step) {
            step.run.parameters = point.parameters;
            step.run.lease = lease();
            step.run.name = step.name;
            graph.steps.push_back(std::move(step));
        };
        if (run_.steps.empty()) {
            GraphStep step{.name = point.name,
                           .on_failure = OnFailure::continue_others,
                           .retries = run_.restarts.value_or(0),
                           .run = of_fields(run_, point)};
            return add(std::move(step));
        }
        const std::string before = many ? point.name + "/" : "";
        for (const RunStepForm& form : run_.steps) {
            GraphStep step{.name = before + form.name,
                           .on_failure = static_cast<OnFailure>(form.on_failure),
                           .retries = form.retries.value_or(form.restarts.value_or(run_.restarts.value_or(0))),
                           .run = of_fields(form, point)};
            // One point that fails stops itself, not the others.
            if (many && step.on_failure == OnFailure::fail) step.on_failure = OnFailure::continue_others;
            for (const PlacedText& need : form.after) step.depends_on.push_back(before + need.text);
            add(std::move(step));
        }
    }

    // `own` is the run, or one of its steps: what it does not say, the run says.
    RunSpec of_fields(const RunFields& own, const RunPoint& point) {
        const auto either = [&](auto member) { return own.*member ? own.*member : run_.*member; };
        RunSpec spec;
        spec.kind = kind();
        command(own.command.given() ? own.command : run_.command, point, spec);
        for (const RunFields* fields : {static_cast<const RunFields*>(&run_), &own})
            for (const auto& [key, value] : fields->environment)
                spec.environment[key] =
                    run_.foreign ? value.text : replace_parameters(value.text, point.parameters, false);
        for (const auto& [key, value] : point.environment) spec.environment[key] = value;
        spec.folder = folder_of(own);
        spec.image = image_of(own);
        if ((own.topology == TopologyWord::unsaid ? run_.topology : own.topology) == TopologyWord::require)
            spec.topology = TopologyWish::require;
        places(own, spec);
        spec.max_restarts = either(&RunFields::restarts).value_or(spec.max_restarts);
        spec.max_attempts = either(&RunFields::attempts).value_or(spec.max_attempts);
        spec.timeout_s = whole_seconds(either(&RunFields::timeout), 0);
        spec.grace_s = whole_seconds(either(&RunFields::grace), spec.grace_s);
        spec.transient_exit_codes = either(&RunFields::transient_exit_codes).value_or(spec.transient_exit_codes);
        if (const auto& form = either(&RunFields::checkpoint)) spec.checkpoint = checkpoint(*form, point);
        if (const auto& form = either(&RunFields::observe)) spec.observe = observe(*form);
        if (const auto& form = either(&RunFields::needs)) spec.prerequisites = prerequisites(*form, spec.folder);
        return spec;
    }

    void command(const CommandForm& form, const RunPoint& point, RunSpec& spec) const {
        if (form.script) spec.command = form.interpreter;
        for (const PlacedText& word : form.words)
            spec.command.push_back(run_.foreign ? word.text
                                                : replace_parameters(word.text, point.parameters, form.script));
    }

    void places(const RunFields& own, RunSpec& spec) const {
        // A step that says anything of them says all.
        const RunFields& shape = own.ranks || own.ranks_per_node || own.nodes ? own : run_;
        spec.nodes = shape.nodes.value_or(0);
        spec.ranks = shape.ranks.value_or(shape.ranks_per_node.value_or(1) * std::max(spec.nodes, 1));
        if (spec.nodes == 0 && shape.ranks_per_node) spec.nodes = spec.ranks / *shape.ranks_per_node;
        const auto either = [&](auto member) { return own.*member ? own.*member : run_.*member; };
        RankNeeds& needs = spec.per_rank;
        if (const auto cpus = either(&RunFields::cpus)) needs.cpu_milli = std::llround(*cpus * 1000);
        if (const auto memory = either(&RunFields::memory)) needs.memory_bytes = static_cast<std::int64_t>(memory->v);
        needs.gpu_model = own.gpu.empty() ? run_.gpu : own.gpu;
        const double gpus = either(&RunFields::gpus).value_or(needs.gpu_model.empty() ? 0 : 1);
        if (gpus == 0) needs.gpu_model.clear();  // a step without GPUs in a run with them
        needs.gpus = static_cast<int>(std::ceil(gpus));
        if (gpus > 0 && gpus < 1) needs.gpu_milli = static_cast<int>(std::lround(gpus * 1000));
    }

    CheckpointPolicy checkpoint(const RunCheckpointForm& form, const RunPoint& point) {
        CheckpointPolicy spec{.folder = replace_parameters(form.folder, point.parameters, false), .keep = form.keep};
        const std::optional<Seconds> planned =
            context_.workload != nullptr ? context_.workload->checkpoint.every : std::nullopt;
        if (form.every || (planned && !form.automatic)) {
            spec.interval_s = whole_seconds(form.every ? form.every : planned, 0);
        } else if (form.automatic) {
            const double interval = suggested_interval_s(context_.checkpoint_write_s, context_.mtbf_s);
            const auto at = form.at.find("every");
            if (interval <= 0 && !told_automatic_)
                problems_.push_back(
                    {"every: auto needs the time to write a checkpoint and the time between failures, "
                     "and this file does not say what is trained",
                     "write a duration such as 10m, or describe the model with kind: training",
                     at != form.at.end() ? at->second : run_.place("checkpoint")});
            told_automatic_ = told_automatic_ || interval <= 0;
            spec.interval_s = static_cast<std::int64_t>(std::ceil(interval));
        }
        store(form, point, spec);
        return spec;
    }

    ObserveSpec observe(const ObserveForm& form) {
        if (!form.step_pattern.empty())
            if (const auto pattern = StepPattern::parse(form.step_pattern); !pattern) {
                const auto at = form.at.find("step_pattern");
                for (Problem problem : pattern.error().problems()) {
                    problem.pos = at != form.at.end() ? at->second : run_.place("observe");
                    problems_.push_back(std::move(problem));
                }
            }
        return {.heartbeat = form.heartbeat, .step_pattern = form.step_pattern};
    }

    void store(const RunCheckpointForm& form, const RunPoint& point, CheckpointPolicy& spec) {
        spec.restore_from = replace_parameters(form.restore_from, point.parameters, false);
        if (form.upload)
            spec.upload = UploadPolicy{.to = replace_parameters(form.upload->to, point.parameters, false),
                                       .keep = form.upload->keep,
                                       .every = form.upload->every,
                                       .at_end = form.upload->at_end,
                                       .tier = form.upload->tier};
        if (std::exchange(told_store_, told_store_ || !problems_of_store(spec).empty())) return;
        for (Problem& problem : problems_of_store(spec)) {
            // "checkpoint.upload.to: ..." stands where `to` stands.
            const std::string key = problem.message.substr(0, problem.message.find_first_of(": "));
            SourcePos pos = run_.place("checkpoint");
            const auto look = [&](const std::map<std::string, SourcePos>& at) {
                const auto found = at.find(key.substr(key.rfind('.') + 1));
                if (found != at.end()) pos = found->second;
            };
            look(form.at);
            if (form.upload && key.starts_with("checkpoint.upload.")) look(form.upload->at);
            problem.pos = pos;
            problems_.push_back(std::move(problem));
        }
    }

    static PrerequisitesSpec prerequisites(const RequiresForm& form, const std::string& folder) {
        PrerequisitesSpec spec{.commands = form.commands, .python_modules = form.python_modules};
        if (!form.python.empty()) spec.python = form.python;
        for (const std::string& path : form.paths)
            spec.paths.push_back((std::filesystem::path(folder) / path).lexically_normal().string());
        if (form.disk) spec.disk_bytes = static_cast<std::int64_t>(form.disk->v);
        spec.driver = form.driver;
        return spec;
    }

    const RunSection& run_;
    const CompileContext& context_;
    Problems problems_;
    bool told_automatic_ = false, told_store_ = false;
};

}  // namespace

std::string variable_of(std::string_view parameter) {
    return "STOKER_PARAM_" + upper(parameter);
}

std::string run_name_from(std::string_view text, std::string_view otherwise) {
    std::string name;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                           c == '_' || c == '-';
        if (plain)
            name += c;
        else if (!name.empty() && name.back() != '-')
            name += '-';
        if (name.size() == 100) break;
    }
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
    while (!name.empty() && (name.front() == '-' || name.front() == '.')) name.erase(name.begin());
    return name.empty() ? std::string(otherwise) : name;
}

Result<RunSpec> compile_run(const RunSection& section, const CompileContext& context) {
    Problems problems;
    check_run_section(section, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return RunCompiler(section, context).spec();
}

}  // namespace stoker
