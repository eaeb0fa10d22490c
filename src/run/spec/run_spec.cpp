#include "run/spec/run_spec.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "base/codec.h"
#include "base/ids.h"
#include "base/text.h"
#include "io/sha256.h"
#include "observe/step_file.h"
#include "run/spec/repeat.h"
#include "run/spec/upload_policy.h"
#include "workload/run_section.h"

namespace stoker {
namespace {

constexpr std::int64_t kMaxSpecSeconds = std::int64_t{10} * 366 * 86400;  // ten years; keeps microseconds in 64 bits
constexpr std::int64_t kMaxSpecCpuMilli = 100'000'000;
constexpr std::int64_t kMaxSpecMemory = std::int64_t{1} << 50;
constexpr std::size_t kMaxSpecSteps = 10'000;

// Collects what is wrong with one spec; `where` leads to a step of a graph.
class SpecChecker {
public:
    SpecChecker(Problems& problems, std::string where) : problems_(problems), where_(std::move(where)) {}

    void wrong(std::string message, std::string remedy = {}) {
        problems_.push_back({.message = where_ + message, .remedy = std::move(remedy)});
    }
    void between(std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high) {
        if (value < low || value > high) wrong(fmt::format("{} is {}, expected {} to {}", key, value, low, high));
    }
    void text(std::string_view key, const std::string& value, std::size_t most) {
        if (value.size() > most) wrong(fmt::format("{} has {} bytes, at most {} are kept", key, value.size(), most));
        if (value.find('\0') != std::string::npos) wrong(fmt::format("{} holds a zero byte", key));
        if (find_invalid_utf8(value) != std::string_view::npos) wrong(fmt::format("{} is not UTF-8", key));
    }

private:
    Problems& problems_;
    std::string where_;
};

void check_spec_rank(const RunSpec& spec, SpecChecker& checker) {
    const RankNeeds& needs = spec.per_rank;
    checker.between("per_rank.cpu_milli", needs.cpu_milli, 0, kMaxSpecCpuMilli);
    checker.between("per_rank.memory_bytes", needs.memory_bytes, 0, kMaxSpecMemory);
    checker.between("per_rank.gpus", needs.gpus, 0, 16);
    checker.between("per_rank.gpu_milli", needs.gpu_milli, 1, 1000);
    if (needs.gpus > 1 && needs.gpu_milli < 1000)
        checker.wrong(
            fmt::format("{} GPUs of {} thousandths each: a part is taken of one GPU only", needs.gpus, needs.gpu_milli),
            "ask for whole GPUs, or for one rank per part");
    if (needs.gpus == 0 && !needs.gpu_model.empty())
        checker.wrong("gpu_model " + printable(needs.gpu_model, 60) + " without a GPU", "set per_rank.gpus");
    checker.text("per_rank.gpu_model", needs.gpu_model, 200);
    checker.between("ranks", spec.ranks, 1, kMostRanks);
    checker.between("nodes", spec.nodes, 0, kMostRanks);
    if (spec.nodes > 0 && spec.ranks % spec.nodes != 0)
        checker.wrong(fmt::format("{} ranks cannot be spread evenly over {} nodes", spec.ranks, spec.nodes));
}

// What a shell, a container engine and an sbatch line all take.
bool is_environment_name(std::string_view name) {
    return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte <= ' ' || byte == 0x7f || c == '=';
    });
}

void check_spec_command(const RunSpec& spec, SpecChecker& checker) {
    if (spec.command.empty() || spec.command.front().empty())
        checker.wrong("no command", "give the program and its arguments");
    for (const std::string& argument : spec.command) checker.text("command", argument, 32 * 1024);
    for (const auto& [key, value] : spec.environment) {
        if (!is_environment_name(key))
            checker.wrong(fmt::format("environment: '{}' is no name of an environment variable", printable(key, 60)),
                          "a name has no blank, no = and no control character");
        checker.text("environment." + printable(key, 60), value, 32 * 1024);
        checker.text("environment", key, 1000);
    }
    if (!spec.folder.empty() && spec.folder.front() != '/')
        checker.wrong("folder " + printable(spec.folder, 60) + " is not an absolute path");
    if (("/" + spec.checkpoint.folder + "/").find("/../") != std::string::npos)
        checker.wrong("checkpoint.folder " + printable(spec.checkpoint.folder, 60) + " leads outside with ..");
    for (const std::string* path : {&spec.folder, &spec.checkpoint.folder, &spec.image})
        checker.text("folder, checkpoint.folder, image", *path, 4000);
    if (!spec.observe) return;
    checker.text("observe.heartbeat", spec.observe->heartbeat, 4000);
    if (spec.observe->step_pattern.empty()) return;
    if (const auto pattern = StepPattern::parse(spec.observe->step_pattern); !pattern)
        checker.wrong("observe.step_pattern: " + pattern.error().message());
}

void check_spec_limits(const RunSpec& spec, SpecChecker& checker) {
    checker.between("max_restarts", spec.max_restarts, 0, 1000);
    checker.between("max_attempts", spec.max_attempts, 1, 1000);
    checker.between("timeout_s", spec.timeout_s, 0, kMaxSpecSeconds);
    checker.between("queue_timeout_s", spec.queue_timeout_s.value_or(0), 0, kMaxSpecSeconds);
    checker.between("grace_s", spec.grace_s, 0, 86400);
    checker.between("priority", spec.priority, -100, 100);
    checker.between("checkpoint.interval_s", spec.checkpoint.interval_s, 0, kMaxSpecSeconds);
    checker.between("checkpoint.keep", spec.checkpoint.keep, 1, 1'000'000);
    for (const Problem& problem : problems_of_store(spec.checkpoint)) checker.wrong(problem.message, problem.remedy);
    checker.between("lease.stop_after_s", spec.lease.stop_after_s, 0, kMaxSpecSeconds);
    checker.between("lease.hard_max_s", spec.lease.hard_max_s, 0, kMaxSpecSeconds);
    if (spec.lease.hard_max_s > 0 && spec.lease.stop_after_s > spec.lease.hard_max_s)
        checker.wrong(fmt::format("lease.stop_after_s {} lies after lease.hard_max_s {}", spec.lease.stop_after_s,
                                  spec.lease.hard_max_s));
    if (!spec.lease.stop_when_done)
        checker.wrong("lease.stop_when_done: false cannot be had yet", "work that ended always gives its place back");
    for (const int code : spec.transient_exit_codes) checker.between("transient_exit_codes", code, 1, 255);
}

void check_spec(const RunSpec& spec, const std::string& where, Problems& problems);

void check_spec_steps(const RunSpec& spec, SpecChecker& checker, Problems& problems) {
    if (spec.steps.empty()) checker.wrong("a graph without steps");
    if (spec.steps.size() > kMaxSpecSteps)
        return checker.wrong(fmt::format("{} steps, at most {}", spec.steps.size(), kMaxSpecSteps));
    if (spec.queue_timeout_s.value_or(0) != 0)
        checker.wrong("a graph has no queue_timeout_s of its own", "its steps that wait for no other may have one");
    if (!spec.command.empty()) checker.wrong("a graph has no command of its own", "its steps have");
    std::set<std::string> names;
    for (const GraphStep& step : spec.steps)
        if (!names.insert(step.name).second) checker.wrong("two steps are named " + printable(step.name, 60));
    const std::vector<std::string> known(names.begin(), names.end());
    bool all_known = true;
    for (const GraphStep& step : spec.steps) {
        for (const std::string& need : step.depends_on) {
            if (names.contains(need)) continue;
            all_known = false;
            const auto near = nearest(need, known);
            checker.wrong(fmt::format("step {} depends on {}, which is no step{}", printable(step.name, 60),
                                      printable(need, 60), near ? fmt::format(" (did you mean {}?)", *near) : ""));
        }
        const std::string where = fmt::format("step {}: ", printable(step.name, 60));
        SpecChecker inner(problems, where);
        if (step.name.empty()) inner.wrong("no name");
        if (step.run.queue_timeout_s.value_or(0) != 0 && !step.depends_on.empty())
            inner.wrong("queue_timeout_s of a step that waits for other steps",
                        "give it to those that start the graph");
        inner.text("name", step.name, 200);
        inner.between("retries", step.retries, 0, 1000);
        if (step.run.kind == RunKind::graph) {
            inner.wrong("a graph inside a graph", "name its steps in the outer one");
        } else {
            check_spec(step.run, where, problems);
        }
    }
    if (all_known) {
        if (const auto order = order_of_steps(spec); !order) checker.wrong(order.error().message());
    }
}

// An address that a mail program takes for one, and nothing else: no second one, no header.
bool is_mail_address(std::string_view text) {
    const std::size_t at = text.find('@');
    return at != std::string_view::npos && at > 0 && at + 1 < text.size() && text.size() <= 254 && text[0] != '-' &&
           text.find('@', at + 1) == std::string_view::npos &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) != 0 ||
                      std::string_view("@.!#$%&'*+-/=?^_`{|}~").find(static_cast<char>(c)) != std::string_view::npos;
           });
}

// When it comes again, and who is told.
void check_spec_row(const RunSpec& spec, const std::string& where, SpecChecker& checker) {
    if (!where.empty() && (spec.repeat || spec.notify))
        return checker.wrong("repeat and notify are of a whole run, not of a step");
    if (spec.repeat) {
        const RepeatSpec& repeat = *spec.repeat;
        if (const auto times = parse_repeat(repeat.every); !times)
            checker.wrong("repeat." + times.error().message(), times.error().problems().front().remedy);
        if (repeat.times && (*repeat.times < 1 || *repeat.times > 1'000'000))
            checker.wrong(fmt::format("repeat.times is {}, expected 1 to 1000000", *repeat.times));
        if (repeat.number < 1 || repeat.missed < 0) checker.wrong("repeat.number and repeat.missed are the server's");
        for (const std::string* run : {&repeat.first, &repeat.previous})
            if (!run->empty() && !RunId::parse(*run))
                checker.wrong(fmt::format("repeat: '{}' is no run", printable(*run, 60)), "expected r-5");
    }
    if (!spec.notify) return;
    if (spec.notify->empty() || spec.notify->size() > kMostNotify)
        checker.wrong(fmt::format("notify names {} addresses, expected 1 to {}", spec.notify->size(), kMostNotify));
    for (const NotifySpec& each : *spec.notify) {
        const std::string_view to = each.to;
        const bool plain =
            to.size() <= 2000 && std::all_of(to.begin(), to.end(), [](unsigned char c) { return c > ' ' && c < 127; });
        const bool web = to.starts_with("https://") || to.starts_with("http://");
        const bool mail = to.starts_with(kNotifyMail) && is_mail_address(to.substr(kNotifyMail.size()));
        if (!plain || !(web || mail || to == kNotifyProgram))
            checker.wrong(fmt::format("notify: '{}' is nobody that can be told", printable(to, 80)),
                          "write https://chat.example.org/hook, mailto:anna@example.org, or program");
    }
}

void check_spec(const RunSpec& spec, const std::string& where, Problems& problems) {
    SpecChecker checker(problems, where);
    if (where.empty() && spec.name.empty()) checker.wrong("no name");
    checker.text("name", spec.name, 200);
    if (std::any_of(spec.name.begin(), spec.name.end(), [](unsigned char c) { return c < ' ' || c == 127; }))
        checker.wrong("the name holds a line break or another control character");
    for (const std::string* owner : {&spec.user, &spec.project, &spec.organisation}) {
        if (owner->empty()) checker.wrong("user, project and organisation may not be empty", "the default is local");
        checker.text("user, project, organisation", *owner, 200);
    }
    check_spec_limits(spec, checker);
    if (spec.after) {
        if (spec.after->empty() || spec.after->size() > kMostAfter)
            checker.wrong(fmt::format("after names {} runs, expected 1 to {}", spec.after->size(), kMostAfter));
        for (const AfterRun& after : *spec.after)
            if (!RunId::parse(after.run))
                checker.wrong(fmt::format("after: '{}' is no run", printable(after.run, 60)), "expected r-5");
        if (!where.empty()) checker.wrong("after is of a whole run; a step has depends_on");
    }
    if (spec.begin_at_us && (*spec.begin_at_us <= 0 || !where.empty()))
        checker.wrong(where.empty() ? "begin_at_us is no time" : "begin_at_us is of a whole run, not of a step");
    if (spec.parallel && (*spec.parallel < 1 || spec.kind != RunKind::graph))
        checker.wrong(spec.kind == RunKind::graph ? fmt::format("parallel is {}, expected 1 or more", *spec.parallel)
                                                  : "parallel belongs to a sweep, an array or steps");
    check_spec_row(spec, where, checker);
    if (spec.kind == RunKind::graph) return check_spec_steps(spec, checker, problems);
    if (!spec.steps.empty()) checker.wrong("steps belong to kind graph");
    check_spec_command(spec, checker);
    check_spec_rank(spec, checker);
}

// Depth first; `path` holds the steps being visited, so that a cycle can be shown from its first step back to it.
struct StepOrder {
    const RunSpec& graph;
    std::map<std::string_view, std::size_t> index;
    std::vector<char> mark;  // 0 new, 1 on the path, 2 done
    std::vector<std::size_t> order;

    explicit StepOrder(const RunSpec& spec) : graph(spec), mark(spec.steps.size(), 0) {
        for (std::size_t i = 0; i < spec.steps.size(); ++i) index.emplace(spec.steps[i].name, i);
    }
    std::string cycle(const std::vector<std::pair<std::size_t, std::size_t>>& path, std::size_t again) const {
        std::string text;
        bool inside = false;
        for (const auto& [at, next] : path) {
            inside = inside || at == again;
            if (inside) text += graph.steps[at].name + " -> ";
        }
        return text + graph.steps[again].name;
    }
    // Without recursion: a chain of 10,000 steps would need a deep stack.
    Status visit(std::size_t from) {
        std::vector<std::pair<std::size_t, std::size_t>> path{{from, 0}};
        mark[from] = 1;
        while (!path.empty()) {
            auto& [at, next] = path.back();
            const auto& needs = graph.steps[at].depends_on;
            if (next == needs.size()) {
                mark[at] = 2;
                order.push_back(at);
                path.pop_back();
                continue;
            }
            const auto found = index.find(needs[next++]);
            if (found == index.end()) continue;  // told elsewhere
            if (mark[found->second] == 1)
                return Error(ErrorKind::invalid, "the steps depend on each other: " + cycle(path, found->second));
            if (mark[found->second] == 0) {
                mark[found->second] = 1;
                path.emplace_back(found->second, 0);
            }
        }
        return done();
    }
};

}  // namespace

Result<std::vector<std::size_t>> order_of_steps(const RunSpec& graph) {
    StepOrder walk(graph);
    for (std::size_t i = 0; i < graph.steps.size(); ++i)
        if (walk.mark[i] == 0) TRY_VOID(walk.visit(i));
    return std::move(walk.order);
}

Status check_run_spec(const RunSpec& spec) {
    Problems problems;
    check_spec(spec, "", problems);
    if (problems.empty()) return done();
    return Error(ErrorKind::invalid, std::move(problems));
}

namespace {

// Where the value is that a message begins with ("lease.stop_after_s 5 ..."), or the name that it quotes.
SourcePos place_of_message(const Node& node, std::string_view message) {
    for (const Member& member : node.members) {
        const std::string_view rest = message.substr(std::min(message.size(), member.key.size()));
        if (member.key.empty() || !message.starts_with(member.key) ||
            (!rest.empty() && rest[0] != '.' && rest[0] != ' ' && rest[0] != ':'))
            continue;
        for (const Member& inner : member.value->members)
            if (rest.find("'" + printable(inner.key, 60) + "'") != std::string_view::npos) return inner.key_pos;
        return place_of_message(*member.value, rest.substr(std::min<std::size_t>(rest.size(), 1)));
    }
    return node.pos;
}

}  // namespace

Result<RunSpec> read_run_spec(const Node& node) {
    Problems problems;
    RunSpec spec;
    codec::read(node, "", spec, problems);
    const std::size_t structural = problems.size();
    check_spec(spec, "", problems);
    for (std::size_t i = structural; i < problems.size(); ++i)
        problems[i].pos = place_of_message(node, problems[i].message);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return spec;
}

Json to_json(const RunSpec& spec) {
    return codec::write(spec);
}

std::string canonical_json(const RunSpec& spec) {
    return codec::encode(spec);
}

Result<RunSpec> parse_run_spec(std::string_view json) {
    TRY(const Document document, Document::parse_json(json, "run"));
    return read_run_spec(document.root());
}

std::string digest(const RunSpec& spec) {
    return hex(sha256(canonical_json(spec)));
}

}  // namespace stoker
