#include "doctor/framework_speed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/embedded.h"
#include "base/text.h"
#include "deploy/local/rank_environment.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {

namespace {

constexpr std::string_view kProbe = "probe/torch_cpu.py";
constexpr std::chrono::seconds kProbeLimit{300};
constexpr std::size_t kMostAnswer = 1 << 20, kMostErrors = 64 << 10;

// What the program printed until it ended. All of its session is killed when it takes too long.
Result<std::string> output_of(const DetachedProgram& wanted, std::string_view what) {
    TRY(PipePair pipe, make_pipe());
    DetachedProgram program = wanted;
    program.standard_output = pipe.write.get();
    TRY(const pid_t child, start_detached(program));
    pipe.write.reset();
    const auto deadline = std::chrono::steady_clock::now() + kProbeLimit;
    const auto give_up = [&](ErrorKind kind, const std::string& why) {
        ::kill(-child, SIGKILL);
        (void)reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(10));
        return Error(kind, fmt::format("{} {}", what, why));
    };
    std::string text(kMostAnswer, '\0');
    std::size_t length = 0;
    while (true) {
        pollfd ready{.fd = pipe.read.get(), .events = POLLIN, .revents = 0};
        const int wait = milliseconds_until(deadline, 60'000);
        if (wait <= 0) return give_up(ErrorKind::timed_out, fmt::format("took more than {} s", kProbeLimit.count()));
        if (::poll(&ready, 1, wait) <= 0) continue;
        const ssize_t got = ::read(pipe.read.get(), text.data() + length, text.size() - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += static_cast<std::size_t>(got);
        if (length == text.size()) return give_up(ErrorKind::unavailable, "printed more than 1 MiB");
    }
    text.resize(length);
    const auto status = reap(child, deadline);
    if (!status) return give_up(ErrorKind::timed_out, fmt::format("took more than {} s", kProbeLimit.count()));
    if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
        const auto said = read_file(program.error_file, kMostErrors);
        std::string errors = said ? *said : std::string();
        while (!errors.empty() && errors.back() == '\n') errors.pop_back();
        const std::string last = errors.substr(errors.rfind('\n') + 1);
        return Error(ErrorKind::unavailable,
                     fmt::format("{} failed{}", what, last.empty() ? "" : ": " + printable(last, 200)), {},
                     "Debian: apt-get install python3-torch libopenblas0-pthread; another Python: --python PATH");
    }
    return text;
}

double number_of(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr && found->kind == NodeKind::number && std::isfinite(found->number) ? found->number : 0;
}
int count_of(const Node& node, std::string_view key) {
    return static_cast<int>(std::clamp(number_of(node, key), 0.0, 1e9));
}
std::string text_of(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr && found->kind == NodeKind::string ? found->text : "";
}
template <typename Each>
void each_of(const Node& node, std::string_view key, Each each) {
    const Node* list = node.find(key);
    if (list == nullptr || !list->is_sequence()) return;
    for (const auto& item : list->items)
        if (item->is_mapping()) each(*item);
}

// A value that was measured at points of a plane.
struct Measured {
    double x = 0, y = 0, value = 0;
};

// The two of the values around `at`, ends repeated: what was not measured is taken as the nearest that was.
std::pair<double, double> around(std::vector<double> values, double at) {
    std::sort(values.begin(), values.end());
    const auto above = std::lower_bound(values.begin(), values.end(), at);
    if (above == values.end()) return {values.back(), values.back()};
    if (above == values.begin() || *above == at) return {*above, *above};
    return {*(above - 1), *above};
}

// Between the points of a grid in logarithms of all three; without a whole cell around it, by distance.
double between(const std::vector<Measured>& points, double x, double y) {
    if (points.empty()) return 0;
    std::vector<double> xs, ys;
    for (const Measured& each : points) xs.push_back(each.x), ys.push_back(each.y);
    const auto [x0, x1] = around(xs, x);
    const auto [y0, y1] = around(ys, y);
    const auto share = [](double low, double high, double at) {
        return high > low ? std::clamp(std::log(at / low) / std::log(high / low), 0.0, 1.0) : 0.0;
    };
    const double u = share(x0, x1, x), v = share(y0, y1, y);
    double sum = 0, found = 0;
    for (const auto& [cx, wx] : {std::pair(x0, 1 - u), std::pair(x1, u)})
        for (const auto& [cy, wy] : {std::pair(y0, 1 - v), std::pair(y1, v)}) {
            if (!(wx * wy > 0)) continue;
            for (const Measured& each : points)
                if (each.x == cx && each.y == cy) {
                    sum += wx * wy * std::log(each.value), found += wx * wy;
                    break;
                }
        }
    if (found > 0.999) return std::exp(sum);
    double weight = 0, total = 0;
    for (const Measured& each : points) {
        const double dx = std::log2(std::max(1.0, x) / each.x), dy = std::log2(std::max(1.0, y) / each.y);
        const double w = 1 / std::pow(0.05 + dx * dx + dy * dy, 1.5);
        weight += w, total += w * std::log(each.value);
    }
    return std::exp(total / weight);
}

}  // namespace

Result<FrameworkSpeed> measure_framework(const std::string& python, bool quick, const std::string& day) {
    if (::access(python.c_str(), X_OK) != 0)
        return Error(ErrorKind::unavailable, fmt::format("there is no Python at {}", python), {}, "--python PATH");
    TRY(const ScratchFolder folder, ScratchFolder::make("probe"));
    const std::string script = folder.path() + "/torch_cpu.py";
    TRY_VOID(write_file_atomic(script, std::string(embedded_bytes(kProbe))));
    DetachedProgram program{
        .path = python,
        .arguments = {python, script},
        // As a rank of a run has it: a thread each unless it says otherwise.
        .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=PASSIVE",
                        "PYTHONDONTWRITEBYTECODE=1", "TMPDIR=" + folder.path()},
        .error_file = folder.path() + "/errors"};
    for (const auto& [key, value] : kKeepMemory) program.environment.push_back(std::string(key) + "=" + value);
    if (quick) program.arguments.push_back("--quick");
    TRY(const std::string answer, output_of(program, "the measurement of PyTorch by " + python));
    TRY(const Document document, Document::parse_json(answer, "the answer of " + python));
    if (!document.root().is_mapping()) return Error(ErrorKind::internal, "the probe did not answer with an object");
    TRY(FrameworkSpeed speed, read_framework(document.root()));
    speed.python = python;
    speed.measured = day;
    return speed;
}

Json framework_json(const FrameworkSpeed& speed) {
    Json matmul = Json::array(), reduce = Json::array(), together = Json::array();
    for (const MatmulRate& m : speed.matmul)
        matmul.push(Json::object()
                        .set("precision", m.precision)
                        .set("threads", m.threads)
                        .set("hidden", m.hidden)
                        .set("tokens", m.tokens)
                        .set("flops_per_second", m.flops_per_second));
    for (const AllReduceTime& a : speed.all_reduce)
        reduce.push(Json::object().set("ranks", a.ranks).set("bytes", a.bytes).set("seconds", a.seconds));
    for (const TogetherRate& t : speed.together)
        together.push(Json::object()
                          .set("ranks", t.ranks)
                          .set("share_of_alone", t.share_of_alone)
                          .set("resident_bytes", t.resident_bytes));
    Json attention = Json::array(), elementwise = Json::array();
    for (const AttentionCost& a : speed.attention)
        attention.push(Json::object().set("sequence", a.sequence).set("head", a.head).set("seconds", a.seconds));
    for (const ElementwiseCost& e : speed.elementwise)
        elementwise.push(Json::object().set("elements", e.elements).set("seconds", e.seconds));
    return Json::object()
        .set("attention", std::move(attention))
        .set("elementwise", std::move(elementwise))
        .set("optimizer_s", speed.optimizer_s)
        .set("framework", speed.framework)
        .set("python", speed.python)
        .set("measured", speed.measured)
        .set("matmul", std::move(matmul))
        .set("operator_s", speed.operator_s)
        .set("memory_bytes_per_second", speed.memory_bytes_per_second)
        .set("import_s", speed.import_s)
        .set("all_reduce", std::move(reduce))
        .set("together", std::move(together));
}

Result<FrameworkSpeed> read_framework(const Node& node) {
    FrameworkSpeed speed{.framework = text_of(node, "framework"),
                         .python = text_of(node, "python"),
                         .measured = text_of(node, "measured"),
                         .optimizer_s = number_of(node, "optimizer_s"),
                         .operator_s = number_of(node, "operator_s"),
                         .import_s = number_of(node, "import_s"),
                         .memory_bytes_per_second = number_of(node, "memory_bytes_per_second")};
    each_of(node, "matmul", [&](const Node& m) {
        speed.matmul.push_back({text_of(m, "precision"), count_of(m, "threads"), count_of(m, "hidden"),
                                count_of(m, "tokens"), number_of(m, "flops_per_second")});
    });
    each_of(node, "all_reduce", [&](const Node& a) {
        speed.all_reduce.push_back({count_of(a, "ranks"), number_of(a, "bytes"), number_of(a, "seconds")});
    });
    each_of(node, "together", [&](const Node& t) {
        speed.together.push_back(
            {count_of(t, "ranks"), number_of(t, "share_of_alone"), number_of(t, "resident_bytes")});
    });
    each_of(node, "attention", [&](const Node& a) {
        speed.attention.push_back({count_of(a, "sequence"), count_of(a, "head"), number_of(a, "seconds")});
    });
    each_of(node, "elementwise", [&](const Node& e) {
        speed.elementwise.push_back({number_of(e, "elements"), number_of(e, "seconds")});
    });
    std::erase_if(speed.attention,
                  [](const AttentionCost& a) { return a.sequence < 1 || a.head < 1 || !(a.seconds > 0); });
    std::erase_if(speed.elementwise, [](const ElementwiseCost& e) { return !(e.elements >= 1) || !(e.seconds > 0); });
    std::erase_if(speed.matmul, [](const MatmulRate& m) {
        return !(m.flops_per_second > 0) || m.hidden < 1 || m.tokens < 1 || m.threads < 1;
    });
    std::erase_if(speed.all_reduce, [](const AllReduceTime& a) { return !(a.seconds > 0) || !(a.bytes > 0); });
    std::erase_if(speed.together, [](const TogetherRate& t) { return !(t.share_of_alone > 0) || t.ranks < 1; });
    if (speed.matmul.empty() || !(speed.operator_s > 0) || !(speed.memory_bytes_per_second > 0))
        return Error(ErrorKind::not_found, "the kept measurement of the framework is not complete", {},
                     "stoker bench cpu --framework");
    return speed;
}

bool framework_computes(const FrameworkSpeed& speed, std::string_view precision) {
    return std::any_of(speed.matmul.begin(), speed.matmul.end(),
                       [&](const MatmulRate& rate) { return rate.precision == precision; });
}

RankRates rates_of_rank(const FrameworkSpeed& speed, const std::string& precision, int ranks, int threads,
                        const RankShape& shape) {
    RankRates rates{.memory_bytes_per_second = speed.memory_bytes_per_second,
                    .operator_s = speed.operator_s,
                    .optimizer_s = speed.optimizer_s,
                    .head = shape.head};
    // The most threads that were measured and are not more than there are: more of them are not trusted to be faster.
    int measured = 0;
    for (const MatmulRate& m : speed.matmul)
        if (m.precision == precision && m.threads <= std::max(1, threads)) measured = std::max(measured, m.threads);
    std::vector<Measured> points;
    for (const MatmulRate& m : speed.matmul)
        if (m.precision == precision && m.threads == measured)
            points.push_back({static_cast<double>(m.hidden), static_cast<double>(m.tokens), m.flops_per_second});
    rates.flops_per_second = between(points, std::max(1.0, shape.hidden), std::max(1.0, shape.tokens));
    points.clear();
    for (const AttentionCost& a : speed.attention)
        points.push_back({static_cast<double>(a.sequence), static_cast<double>(a.head), a.seconds});
    if (shape.sequence >= 1 && shape.head >= 1) rates.attention_s = between(points, shape.sequence, shape.head);
    points.clear();
    for (const ElementwiseCost& e : speed.elementwise) points.push_back({e.elements, 1, e.seconds});
    rates.elementwise_s = between(points, std::max(1.0, shape.hidden * shape.tokens), 1);
    // What others leave is between the two numbers of ranks that were measured around it.
    double share = 1;
    for (const TogetherRate& t : speed.together)
        if (t.ranks <= ranks) share = t.share_of_alone;
    rates.flops_per_second *= share;
    rates.memory_bytes_per_second *= share;
    for (double* seconds : {&rates.attention_s, &rates.elementwise_s, &rates.optimizer_s}) *seconds /= share;
    if (ranks < 2) return rates;
    double moved = 0, took = 0, smallest = 0;
    int nearest = 0;
    for (const AllReduceTime& a : speed.all_reduce)
        if (a.ranks <= ranks) nearest = std::max(nearest, a.ranks);
    for (const AllReduceTime& a : speed.all_reduce) {
        if (a.ranks != nearest) continue;
        if (a.bytes >= 1e6) moved += a.bytes * 2 * (a.ranks - 1) / a.ranks, took += a.seconds;  // bus bandwidth
        if (smallest == 0 || a.seconds < smallest) smallest = a.seconds;
    }
    if (took > 0) rates.loopback_bytes_per_second = moved / took;
    rates.loopback_latency_s = smallest / 2;
    return rates;
}

Status save_framework(const std::string& path, const Machine& machine, const FrameworkSpeed& speed) {
    return save_measurement(path, machine_key(machine), "framework", framework_json(speed));
}

Result<FrameworkSpeed> load_framework(const std::string& path, const Machine& machine) {
    TRY(const Document document, read_measurements(path));
    const Node* entry = document.root().find(machine_key(machine));
    const Node* kept = entry != nullptr && entry->is_mapping() ? entry->find("framework") : nullptr;
    if (kept == nullptr || !kept->is_mapping())
        return Error(ErrorKind::not_found, "no framework has been measured on this machine", {},
                     "stoker bench cpu --framework");
    return read_framework(*kept);
}

void use_rates(const RankRates& rates, const FrameworkSpeed& speed, Catalog& catalog) {
    const Provenance source{
        fmt::format("measured on this machine with {}: stoker bench cpu --framework", speed.framework), speed.measured};
    const auto set = [&](const char* name, double value) {
        const Constant* published = catalog.constant(name);
        if (published == nullptr || !(value > 0)) return;
        Constant mine = *published;
        mine.value = mine.low = mine.high = value;
        mine.provenance = source;
        catalog.replace_constant(std::move(mine));
    };
    // The rates of the node type are what was reached, not what the hardware could do.
    if (rates.flops_per_second > 0) set("cpu_measured_matmul_fraction", 1);
    if (rates.memory_bytes_per_second > 0) set("memory_efficiency", 1);
    set("launch_us_cpu", 1e6 * rates.operator_s);
    // The plan counts reads and writes of memory; what each costs in attention, beside it and in the optimizer was
    // measured as seconds, so the counts become what gives these back.
    const double memory = rates.memory_bytes_per_second;
    if (rates.elementwise_s > 0 && memory > 0) {
        const auto count = [&](const char* name) { return catalog.constant_or_die(name); };
        // Of a layer with a gate 8/3 as wide as the probe's, in fp32.
        const double elements = count("vector_hidden_passes") + count("vector_ffn_passes") * 3 * 8.0 / 3;
        const double passes = rates.elementwise_s * memory / (4 * elements * (1 + count("vector_backward_factor")));
        set("vector_pass_constant_cpu", passes);
    }
    if (rates.attention_s > 0 && memory > 0 && rates.flops_per_second > 0) {
        const double products = 4 * rates.head / rates.flops_per_second;  // forward, of a score
        set("attention_unfused_passes", std::max(0.1, (rates.attention_s / 3 - products) * memory / 4));
    }
    if (rates.optimizer_s > 0 && memory > 0) set("cpu_optimizer_bytes_adam", rates.optimizer_s * memory);
    set("loopback_gb_s", rates.loopback_bytes_per_second / 1e9);
    set("loopback_latency_us", 1e6 * rates.loopback_latency_s);
}

}  // namespace stoker
