// What a run leaves in files: logs, metrics, artefacts.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "server/handlers.h"
#include "server/metrics_file.h"

namespace stoker::api {
namespace {

constexpr std::int64_t kLogPiece = 256 << 10;
constexpr std::size_t kMostMatches = 1000, kMostArtifacts = 10'000;
// For an answer of the engine, in which a disk of a network or another server may have a part.
constexpr auto kAnswerBy = std::chrono::seconds(20);
constexpr std::int64_t kMostAtOnce = 16 << 20;  // bytes of one answer

struct LogOfRank {
    std::optional<LogPlace> place;  // none: it never ran
    std::string attempt;
    bool ended = false, run_ended = false;
};

Deadline answer_by() {
    return std::chrono::steady_clock::now() + kAnswerBy;
}

LogOfRank log_place(const EngineView& view, const Run& run, std::int64_t attempt, int rank) {
    LogOfRank place;
    place.run_ended = is_terminal(run.state);
    const std::size_t at = attempt == 0 ? run.attempts.size() : static_cast<std::size_t>(attempt);
    if (at == 0 || at > run.attempts.size()) {
        place.ended = place.run_ended;
        return place;
    }
    const Attempt& found = run.attempts[at - 1];
    const AttemptId id{run.id, found.number};
    place.attempt = id.text();
    place.place = {.launched = found.launch, .log_folder = run_folder(view.folder, run.id).logs(id), .rank = rank};
    const auto r = static_cast<std::size_t>(rank);
    place.ended = !found.live() || found.gone || (r < found.ranks.size() && found.ranks[r].ended);
    return place;
}

HttpResponse log_response(const LogOfRank& place, LogPiece piece) {
    HttpResponse response{
        .status = 200, .content_type = "text/plain; charset=utf-8", .headers = {}, .body = std::move(piece.text)};
    if (!piece.next.empty()) response.headers.add("Stoker-Log-Next", piece.next);
    response.headers.add("Stoker-Log-End", place.ended && piece.at_end ? "true" : "false");
    if (!place.attempt.empty()) response.headers.add("Stoker-Log-Attempt", place.attempt);
    if (piece.gap) response.headers.add("Stoker-Log-Gap", "true");
    return response;
}

Result<LogOfRank> find_log(const EngineView& view, RunId id, std::int64_t attempt, std::int64_t rank) {
    const Run* run = view.state.find(id);
    if (run == nullptr) return Error(ErrorKind::not_found, "there is no run " + id.text());
    if (run->spec.kind == RunKind::graph)
        return Error(ErrorKind::conflict, id.text() + " is a graph; its steps have the logs", {},
                     "GET /api/v1/runs/" + id.text() + " lists them");
    if (rank >= run->spec.ranks)
        return Error(ErrorKind::not_found, fmt::format("{} has ranks 0 to {}", id.text(), run->spec.ranks - 1));
    if (attempt > static_cast<std::int64_t>(run->attempts.size()))
        return Error(ErrorKind::not_found,
                     fmt::format("{} has had {} attempts so far", id.text(), run->attempts.size()));
    return log_place(view, *run, attempt, static_cast<int>(rank));
}

Json matches_json(const LogMatches& matches) {
    Json items = Json::array();
    for (const LogMatch& match : matches.items)
        items.push(Json::object().set("line", match.line).set("text", match.text));
    return Json::object().set("cut", matches.cut).set("items", std::move(items)).set("lines", matches.lines);
}

// "bytes=a-b", "bytes=a-", "bytes=-n" of a file of `size` bytes; nothing for what is no single range.
struct Range {
    std::int64_t from = 0, to = 0;  // half open
};
std::optional<Range> read_range(std::string_view text, std::int64_t size) {
    if (!text.starts_with("bytes=")) return std::nullopt;
    text.remove_prefix(6);
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto number = [](std::string_view part, std::int64_t& value) {
        const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
        return !part.empty() && part[0] != '-' && code == std::errc() && end == part.data() + part.size();
    };
    std::int64_t first = 0, last = 0;
    const std::string_view left = text.substr(0, dash), right = text.substr(dash + 1);
    if (left.empty()) {
        if (!number(right, last)) return std::nullopt;
        return Range{std::max<std::int64_t>(0, size - last), size};
    }
    if (!number(left, first)) return std::nullopt;
    if (right.empty()) return Range{first, size};
    if (!number(right, last) || last < first) return std::nullopt;
    return Range{first, std::min(size, last < size ? last + 1 : size)};
}

template <class T>
void with_folder(Service& service, const ExchangePtr& exchange, const std::function<T(const RunFolder&)>& make,
                 const std::function<void(T)>& then) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    service.ask<RunFolder>(
        exchange,
        [run = *id](const EngineView& view) -> Result<RunFolder> {
            if (view.state.find(run) == nullptr) return Error(ErrorKind::not_found, "there is no run " + run.text());
            return run_folder(view.folder, run);
        },
        [make, then](const RunFolder& folder) { then(make(folder)); });
}

}  // namespace

void get_logs(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const Parameters& p = exchange->parameters;
    if (p.has("search") + p.has("tail") + p.has("offset") > 1)
        return exchange->fail(Error(ErrorKind::invalid, "offset, tail and search exclude each other", {"query", 0, 0}));
    if (p.has("search") && p.text("search").empty())
        return exchange->fail(Error(ErrorKind::invalid, "search is empty", {"query", 0, 0}));
    const std::int64_t attempt = p.integer("attempt", 0), rank = p.integer("rank", 0);
    const auto limit = static_cast<std::size_t>(p.integer("limit", kLogPiece));
    const double wait_s = p.number("wait_s", 0);
    const auto copy = [run = *id, attempt, rank](const EngineView& view) { return find_log(view, run, attempt, rank); };

    if (p.has("search"))
        return service.ask<LogOfRank>(exchange, copy, [&service, exchange](const LogOfRank& log) {
            service.work_long(exchange, [&service, exchange, log] {
                if (!log.place) return exchange->send(matches_json({}));
                const auto matches = service.engine().questions()->search_log(
                    *log.place, exchange->parameters.text("search"), kMostMatches, answer_by());
                if (!matches) return exchange->fail(matches.error());
                exchange->send(matches_json(*matches));
            });
        });
    const auto read = [&service, exchange, limit](const LogOfRank& log) -> Result<LogPiece> {
        const Parameters& given = exchange->parameters;
        if (!log.place) {
            LogPiece nothing;
            nothing.at_end = true;
            nothing.next = given.text("offset");
            return nothing;
        }
        const auto engine = service.engine().questions();
        if (given.has("tail"))
            return engine->tail_log(*log.place, static_cast<std::size_t>(given.integer("tail", 0)), limit, answer_by());
        return engine->read_log(*log.place, given.text("offset"), limit, answer_by());
    };
    const auto answer = [exchange, read](const LogOfRank& place) {
        auto piece = read(place);
        if (!piece) return exchange->fail(piece.error());
        exchange->send(log_response(place, std::move(*piece)));
    };
    if (wait_s <= 0) return service.ask<LogOfRank>(exchange, copy, answer);
    service.wait(exchange, *id, wait_s, 0.2,
                 [&service, exchange, copy, read](bool last, const std::function<void(bool)>& tell) {
                     service.ask<LogOfRank>(exchange, copy, [exchange, read, last, tell](const LogOfRank& place) {
                         auto piece = read(place);
                         if (!piece)
                             exchange->fail(piece.error());
                         else if (!piece->text.empty() || place.ended || last)
                             exchange->send(log_response(place, std::move(*piece)));
                         tell(exchange->answered());
                     });
                 });
}

void get_run_metrics(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const std::string name = p.text("name");
    const auto most = static_cast<std::size_t>(p.integer("max_points", 1000));
    with_folder<std::string>(
        service, exchange, [](const RunFolder& folder) { return folder.metrics(); },
        [&service, exchange, name, most](const std::string& file) {
            service.work_long(exchange, [exchange, file, name, most] {
                exchange->send(codec::write(read_metrics(file, name, most)));
            });
        });
}

void list_artifacts(Service& service, const ExchangePtr& exchange) {
    with_folder<std::string>(
        service, exchange, [](const RunFolder& folder) { return folder.artifacts(); },
        [&service, exchange](const std::string& folder) {
            service.work_long(exchange, [&service, exchange, folder] {
                auto files = service.engine().questions()->list_files(folder, kMostArtifacts, answer_by());
                if (!files) return exchange->fail(files.error());
                ArtifactList list{.items = {}, .cut = files->cut};
                for (WorkFile& file : files->items)
                    list.items.push_back(
                        {.path = std::move(file.path), .bytes = file.bytes, .modified_at = rfc3339(file.modified_us)});
                exchange->send(codec::write(list));
            });
        });
}

void get_artifact(Service& service, const ExchangePtr& exchange) {
    const std::string path = exchange->parameters.path.find("path")->second;
    with_folder<std::string>(
        service, exchange, [](const RunFolder& folder) { return folder.artifacts(); },
        [&service, exchange, path](const std::string& folder) {
            service.work_long(exchange, [&service, exchange, folder, path] {
                const auto engine = service.engine().questions();
                const auto whole = engine->read_file(folder, path, 0, 0, answer_by());
                if (!whole) return exchange->fail(whole.error());
                const std::int64_t size = whole->size;
                Range range{0, size};
                bool part = false;
                if (const auto header = exchange->request.headers.find("Range")) {
                    const auto asked = read_range(*header, size);
                    if (asked && asked->from >= size) {
                        HttpResponse response =
                            problem_response(Error(ErrorKind::invalid, fmt::format("the artefact has {} bytes", size)),
                                             exchange->trace.id, 416);
                        response.headers.add("Content-Range", fmt::format("bytes */{}", size));
                        return exchange->send(std::move(response));
                    }
                    if (asked) {
                        range = *asked;
                        range.to = std::min(range.to, range.from + kMostAtOnce);
                        part = true;
                    }
                }
                if (range.to - range.from > kMostAtOnce)
                    return exchange->fail(Error(ErrorKind::exhausted,
                                                fmt::format("{} has {} bytes; {} are sent at a time",
                                                            printable(path, 200), size, kMostAtOnce),
                                                {}, fmt::format("ask in pieces: `Range: bytes=0-{}`", kMostAtOnce - 1)),
                                          413);
                auto body = engine->read_file(folder, path, range.from, static_cast<std::size_t>(range.to - range.from),
                                              answer_by());
                if (!body) return exchange->fail(body.error());
                const auto have = static_cast<std::int64_t>(body->bytes.size());
                HttpResponse response{.status = part ? 206 : 200,
                                      .content_type = "application/octet-stream",
                                      .headers = {},
                                      .body = std::move(body->bytes)};
                response.headers.add("Accept-Ranges", "bytes");
                // Nothing that a run wrote is shown as a page of ours.
                response.headers.add("Content-Disposition", "attachment");
                if (part)
                    response.headers.add("Content-Range",
                                         fmt::format("bytes {}-{}/{}", range.from, range.from + have - 1, size));
                exchange->send(std::move(response));
            });
        });
}

}  // namespace stoker::api
