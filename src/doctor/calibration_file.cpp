#include "doctor/calibration_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/document.h"
#include "base/json.h"
#include "io/files.h"
#include "io/user_file.h"

namespace stoker {

namespace {

constexpr std::size_t kMostCalibrationFile = 4u << 20;
using Places = std::map<std::string, std::vector<CalibrationPoint>>;

double positive_at(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr && found->kind == NodeKind::number && std::isfinite(found->number)
               ? std::max(0.0, found->number)
               : 0;
}

// A file of a person's: what in it cannot be meant is an error with its place, not silently left out.
Result<Places> read_places(const std::string& path) {
    Places places;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return places;
    TRY(const std::string text, read_file(path, kMostCalibrationFile));
    TRY(const Document document, Document::parse_json(text, path));
    const auto wrong = [&](const Node& node, const char* expected) {
        return Error(ErrorKind::invalid, fmt::format("{} is expected here", expected), node.pos,
                     "stoker calibrate forget --all, or repair " + path);
    };
    if (!document.root().is_mapping()) return wrong(document.root(), "an object of places");
    for (const Member& place : document.root().members) {
        if (!place.value->is_sequence()) return wrong(*place.value, "a list of runs");
        for (const auto& item : place.value->items) {
            if (!item->is_mapping()) return wrong(*item, "an object");
            const Node *run = item->find("run"), *kind = item->find("kind");
            CalibrationPoint point{.run = run != nullptr ? run->text : "",
                                   .predicted = {positive_at(*item, "compute_s"), positive_at(*item, "other_s"),
                                                 positive_at(*item, "exchange_s")},
                                   .step_s = positive_at(*item, "step_s"),
                                   .predicted_bytes = {},
                                   .bytes = positive_at(*item, "bytes"),
                                   .shape = {positive_at(*item, "hidden"), positive_at(*item, "layers"),
                                             positive_at(*item, "sequence"), positive_at(*item, "tokens")},
                                   .kind = kind != nullptr && kind->kind == NodeKind::string ? kind->text : ""};
            // Of a file of before the two kinds of memory were told apart: all of it held.
            const double all = positive_at(*item, "predicted_bytes");
            const double transient = std::min(all, positive_at(*item, "transient_bytes"));
            point.predicted_bytes = {all - transient, transient};
            if (point.run.empty() || !(point.step_s > 0) || !(point.predicted.sum() > 0))
                return wrong(*item, "a run with step_s and compute_s");
            places[place.key].push_back(std::move(point));
        }
    }
    return places;
}

Status write_places(const std::string& path, const Places& places) {
    Json all = Json::object();
    for (const auto& [place, points] : places) {
        Json list = Json::array();
        for (const CalibrationPoint& p : points)
            list.push(Json::object()
                          .set("run", p.run)
                          .set("compute_s", p.predicted.compute_s)
                          .set("other_s", p.predicted.other_s)
                          .set("exchange_s", p.predicted.exchange_s)
                          .set("step_s", p.step_s)
                          .set("predicted_bytes", p.predicted_bytes.sum())
                          .set("transient_bytes", p.predicted_bytes.transient)
                          .set("bytes", p.bytes)
                          .set("hidden", p.shape.hidden)
                          .set("layers", p.shape.layers)
                          .set("sequence", p.shape.sequence)
                          .set("tokens", p.shape.tokens)
                          .set("kind", p.kind));
        all.set(place, std::move(list));
    }
    return write_user_file(path, all.dump() + "\n");
}

}  // namespace

Result<std::string> calibration_path() {
    return user_file("XDG_DATA_HOME", ".local/share", "calibration.json", "what runs teach");
}

std::string place_of_gpus(const std::string& machine, std::string_view gpu) {
    return fmt::format("{}, {}", machine, gpu);
}

bool is_place_of(const std::string& machine, std::string_view place) {
    return place == machine || place.starts_with(machine + ", ");
}

Result<std::vector<std::string>> calibrated_places(const std::string& machine) {
    TRY(const std::string path, calibration_path());
    TRY(const Places places, read_places(path));
    std::vector<std::string> names;
    for (const auto& [name, points] : places)
        if (is_place_of(machine, name) && !points.empty()) names.push_back(name);
    return names;
}

Result<std::vector<CalibrationPoint>> load_calibration(const std::string& place) {
    TRY(const std::string path, calibration_path());
    TRY(Places places, read_places(path));
    const auto found = places.find(place);
    if (found == places.end() || found->second.empty())
        return Error(ErrorKind::not_found, "no run has been added here", {}, "stoker calibrate add RUN");
    return std::move(found->second);
}

Status add_calibration(const std::string& place, const CalibrationPoint& point) {
    TRY(const std::string path, calibration_path());
    TRY(Places places, read_places(path));
    auto& points = places[place];
    std::erase_if(points, [&](const CalibrationPoint& other) { return other.run == point.run; });
    points.push_back(point);
    if (points.size() > kMostCalibrationPoints) points.erase(points.begin());
    return write_places(path, places);
}

Result<std::size_t> forget_calibration(const std::string& place, const std::vector<std::string>& runs) {
    TRY(const std::string path, calibration_path());
    TRY(Places places, read_places(path));
    auto& points = places[place];
    const std::size_t gone = std::erase_if(points, [&](const CalibrationPoint& point) {
        return runs.empty() || std::find(runs.begin(), runs.end(), point.run) != runs.end();
    });
    if (points.empty()) places.erase(place);
    if (gone > 0) TRY_VOID(write_places(path, places));
    return gone;
}

}  // namespace stoker
