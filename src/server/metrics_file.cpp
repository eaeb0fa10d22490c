#include "server/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/document.h"
#include "io/process.h"

namespace stoker::api {
namespace {

constexpr std::int64_t kMostRead = 32 << 20, kLastRead = 64 << 10;
constexpr std::size_t kMostSeries = 200, kMostMetricLine = 16 << 10, kMostName = 200;
constexpr ReadLimits kLine{.max_bytes = kMostMetricLine, .max_nodes = 500, .max_depth = 4, .max_aliases = 0};

// The end of a file, from the first whole line on.
std::string end_of(const std::string& path, std::int64_t most, bool& cut) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    cut = false;
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    std::int64_t from = std::max<std::int64_t>(0, status.st_size - most);
    cut = from > 0;
    std::string text(static_cast<std::size_t>(status.st_size - from), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const ssize_t got =
            ::pread(fd.get(), text.data() + have, text.size() - have, from + static_cast<std::int64_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    if (cut) {
        const std::size_t line = text.find('\n');
        text.erase(0, line == std::string::npos ? text.size() : line + 1);
    }
    return text;
}

// Calls use(name, step, value) for each number of each line; the last line counts only when it is ended.
template <class Use>
void each_value(const std::string& text, MetricsView& view, const Use& use) {
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string::npos) break;  // being written
        const std::string_view line = std::string_view(text).substr(at, end - at);
        at = end + 1;
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        ++view.lines;
        const auto document = line.size() > kMostMetricLine ? Result<Document>(Error(ErrorKind::invalid, "too long"))
                                                            : Document::parse_json(line, "metrics", kLine);
        if (!document || !document->root().is_mapping()) {
            ++view.bad_lines;
            continue;
        }
        const Node* step_node = document->root().find("step");
        const double step = step_node != nullptr && step_node->kind == NodeKind::number
                                ? step_node->number
                                : static_cast<double>(view.lines - 1);
        for (const Member& member : document->root().members)
            if (member.value->kind == NodeKind::number && member.key != "step" && member.key.size() <= kMostName &&
                std::isfinite(member.value->number))
                use(member.key, step, member.value->number);
    }
}

using Points = std::vector<std::vector<double>>;

Points thinned(const std::vector<std::pair<double, double>>& all, std::size_t most) {
    Points points;
    if (all.size() <= most) {
        for (const auto& [step, value] : all) points.push_back({step, value});
        return points;
    }
    const std::size_t stretches = std::max<std::size_t>(1, most / 2);
    for (std::size_t i = 0; i < stretches; ++i) {
        const std::size_t from = i * all.size() / stretches, to = (i + 1) * all.size() / stretches;
        if (from == to) continue;
        std::size_t low = from, high = from;
        for (std::size_t j = from; j < to; ++j) {
            if (all[j].second < all[low].second) low = j;
            if (all[j].second > all[high].second) high = j;
        }
        for (const std::size_t j : {std::min(low, high), std::max(low, high)}) {
            if (j == std::max(low, high) && low == high) continue;
            points.push_back({all[j].first, all[j].second});
        }
        if (low == high) points.push_back({all[low].first, all[low].second});
    }
    return points;
}

}  // namespace

MetricsView read_metrics(const std::string& file, const std::string& name, std::size_t max_points) {
    MetricsView view;
    const std::string text = end_of(file, kMostRead, view.cut);
    std::map<std::string, std::vector<std::pair<double, double>>> all;
    each_value(text, view, [&](const std::string& each, double step, double value) {
        if (!name.empty() && each != name) return;
        if (all.size() >= kMostSeries && !all.contains(each)) {
            view.cut = true;
            return;
        }
        all[each].emplace_back(step, value);
    });
    for (const auto& [each, points] : all)
        view.series.push_back({.name = each,
                               .points_seen = static_cast<std::int64_t>(points.size()),
                               .points = thinned(points, max_points)});
    return view;
}

std::map<std::string, double> last_metrics(const std::string& file) {
    MetricsView view;
    const std::string text = end_of(file, kLastRead, view.cut);
    std::map<std::string, double> last;
    each_value(text, view, [&](const std::string& name, double step, double value) {
        if (last.size() >= kMostSeries && !last.contains(name)) return;
        last[name] = value;
        last["step"] = step;
    });
    return last;
}

}  // namespace stoker::api
