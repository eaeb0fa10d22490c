#include "run/decide/fleet_trace.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/tsv.h"

namespace stoker {
namespace {

constexpr std::int64_t kMostNodes = 1000000, kMostTasks = 10000000, kMostMilli = 1000000000;

Result<std::int64_t> whole_between(const Tsv& csv, std::size_t row, std::size_t column, std::int64_t low,
                                   std::int64_t high) {
    TRY(const std::int64_t value, csv.whole_number(row, column));
    if (value < low || value > high)
        return csv.error(row, column, fmt::format("expected {} to {}, found {}", low, high, value));
    return value;
}

// The index of a model, adding it when it is new.
Result<int> model_index(Fleet& fleet, std::string_view name, const Error& too_many) {
    const auto found = std::find(fleet.models.begin(), fleet.models.end(), name);
    if (found != fleet.models.end()) return static_cast<int>(found - fleet.models.begin());
    if (fleet.models.size() == kMaxGpuModels) return too_many;
    fleet.models.emplace_back(name);
    return static_cast<int>(fleet.models.size() - 1);
}

Error too_many_models(const Tsv& csv, std::size_t row, std::size_t column) {
    return csv.error(row, column, fmt::format("more than {} different GPU models", kMaxGpuModels));
}

}  // namespace

Result<Fleet> read_fleet(std::string_view text, FileName file) {
    TRY(const Tsv csv, Tsv::read_csv(text, file));
    TRY(const std::size_t name, csv.column(csv.has_column("sn") ? "sn" : "name"));
    TRY(const std::size_t cpu, csv.column("cpu_milli"));
    TRY(const std::size_t memory, csv.column("memory_mib"));
    TRY(const std::size_t gpus, csv.column("gpu"));
    TRY(const std::size_t model, csv.column("model"));
    if (csv.rows() == 0) return Error(ErrorKind::invalid, "the file has no nodes", SourcePos{file, 0, 0});
    if (csv.rows() > static_cast<std::size_t>(kMostNodes))
        return Error(ErrorKind::exhausted, fmt::format("more than {} nodes", kMostNodes), SourcePos{file, 0, 0});
    Fleet fleet;
    fleet.nodes.reserve(csv.rows());
    std::set<std::string_view> names;
    for (std::size_t row = 0; row < csv.rows(); ++row) {
        FleetNode node;
        node.name = std::string(csv.at(row, name));
        if (node.name.empty()) return csv.error(row, name, "a node needs a name");
        if (!names.insert(csv.at(row, name)).second)
            return csv.error(row, name, fmt::format("a second node named {}", printable(node.name, 60)));
        TRY(node.cpu_milli, whole_between(csv, row, cpu, 0, kMostMilli));
        TRY(node.memory_mib, whole_between(csv, row, memory, 0, kMostMilli));
        TRY(const std::int64_t count, whole_between(csv, row, gpus, 0, kMaxGpusOfNode));
        node.gpus = static_cast<int>(count);
        if (node.gpus > 0) {
            if (csv.at(row, model).empty()) return csv.error(row, model, "a node with GPUs needs their model");
            TRY(node.model, model_index(fleet, csv.at(row, model), too_many_models(csv, row, model)));
        }
        fleet.nodes.push_back(std::move(node));
    }
    return fleet;
}

Result<std::vector<FleetTask>> read_fleet_tasks(std::string_view text, FileName file, Fleet& fleet) {
    TRY(const Tsv csv, Tsv::read_csv(text, file));
    TRY(const std::size_t name, csv.column("name"));
    TRY(const std::size_t cpu, csv.column("cpu_milli"));
    TRY(const std::size_t memory, csv.column("memory_mib"));
    TRY(const std::size_t gpus, csv.column("num_gpu"));
    TRY(const std::size_t milli, csv.column("gpu_milli"));
    const auto optional_column = [&](std::string_view which) -> Result<std::optional<std::size_t>> {
        if (!csv.has_column(which)) return std::optional<std::size_t>();
        TRY(const std::size_t at, csv.column(which));
        return std::optional<std::size_t>(at);
    };
    TRY(const std::optional<std::size_t> spec, optional_column("gpu_spec"));
    TRY(const std::optional<std::size_t> created, optional_column("creation_time"));
    TRY(const std::optional<std::size_t> deleted, optional_column("deletion_time"));
    if (csv.rows() == 0) return Error(ErrorKind::invalid, "the file has no tasks", SourcePos{file, 0, 0});
    if (csv.rows() > static_cast<std::size_t>(kMostTasks))
        return Error(ErrorKind::exhausted, fmt::format("more than {} tasks", kMostTasks), SourcePos{file, 0, 0});
    std::vector<FleetTask> tasks;
    tasks.reserve(csv.rows());
    for (std::size_t row = 0; row < csv.rows(); ++row) {
        FleetTask task;
        task.name = std::string(csv.at(row, name));
        TRY(task.shape.cpu_milli, whole_between(csv, row, cpu, 0, kMostMilli));
        TRY(task.shape.memory_mib, whole_between(csv, row, memory, 0, kMostMilli));
        TRY(const std::int64_t count, whole_between(csv, row, gpus, 0, kMaxGpusOfNode));
        TRY(const std::int64_t part, whole_between(csv, row, milli, 0, kWholeGpu));
        task.shape.gpus = static_cast<int>(count);
        task.shape.gpu_milli = static_cast<int>(count > 0 ? part : 0);
        if (count > 0 && part == 0)
            return csv.error(row, milli, "a task with GPUs asks for 1 to 1000 thousandths of each, found 0");
        if (count > 1 && part != kWholeGpu)
            return csv.error(row, milli,
                             fmt::format("a task on {} GPUs takes them whole: expected 1000, found {}", count, part));
        if (spec && count > 0) {
            for (std::string_view left = csv.at(row, *spec); !left.empty();) {
                const std::size_t end = left.find('|');
                const std::string_view model = left.substr(0, end);
                left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
                if (model.empty()) continue;
                TRY(const int index, model_index(fleet, model, too_many_models(csv, row, *spec)));
                task.shape.models |= GpuModels{1} << index;
            }
        }
        if (created && !csv.at(row, *created).empty()) {
            TRY(task.arrival_s, csv.number(row, *created));
        }
        if (deleted && !csv.at(row, *deleted).empty()) {
            TRY(task.departure_s, csv.number(row, *deleted));
        }
        tasks.push_back(std::move(task));
    }
    return tasks;
}

}  // namespace stoker
