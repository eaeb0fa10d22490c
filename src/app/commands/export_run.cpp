// stoker export: everything about a run as one folder that needs no Stoker to be read.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/text.h"
#include "base/units.h"
#include "io/files.h"
#include "io/sha256.h"
#include "server/views.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kArtifactPiece = 8 << 20;  // a call gives 16 MiB at most
constexpr std::int64_t kLogPiece = 1 << 20;

// A name that a server tells: within the folder whatever it says.
bool stays_inside(const std::string& path) {
    const fs::path given(path);
    return !path.empty() && given.is_relative() &&
           std::none_of(given.begin(), given.end(), [](const fs::path& part) { return part == ".."; });
}

class RunExport {
public:
    RunExport(Client& client, fs::path to, bool artifacts)
        : client_(client), to_(std::move(to)), artifacts_(artifacts) {}

    Status run(RunId id, const fs::path& under) {
        const std::string target = "/api/v1/runs/" + id.text();
        TRY(const HttpResponse told, client_.raw({.target = target}));
        TRY_VOID(keep(under / "run.json", told.body));
        TRY(const Document document, Document::parse_json(told.body, "answer", {.max_bytes = 64u << 20}));
        TRY(const auto view, typed<api::RunView>(document));
        TRY_VOID(events(target, under));
        for (const api::StepView& step : view.steps)
            TRY_VOID(run(step.run, under / (stays_inside(step.step) ? "steps/" + step.step : step.run.text())));
        if (view.attempts.empty()) return done();
        for (const auto& [part, query] :
             {std::pair{"metrics", "?max_points=20000"}, std::pair{"series", "?max_points=3600"},
              std::pair{"explanation", ""}, std::pair{"checkpoints", ""}})
            TRY_VOID(page(target, part, query, under));
        TRY_VOID(logs(target, view, under));
        return artifacts_ ? artifacts(target, under) : done();
    }

    // The list of what was kept, with digests, and of what could not be had.
    Result<Json> finish() {
        Json files = Json::array();
        for (const Kept& each : kept_)
            files.push(Json::object().set("path", each.path).set("bytes", each.bytes).set("sha256", each.sha256));
        Json manifest = Json::object().set("files", std::move(files));
        Json missing = Json::array();
        for (const std::string& each : missing_) missing.push(each);
        manifest.set("missing", std::move(missing));
        TRY_VOID(write_file_atomic((to_ / "manifest.json").string(), manifest.dump() + "\n"));
        return manifest;
    }

    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const Kept& each : kept_) sum += each.bytes;
        return sum;
    }
    std::size_t files() const { return kept_.size(); }
    const std::vector<std::string>& missing() const { return missing_; }

private:
    struct Kept {
        std::string path;
        std::int64_t bytes = 0;
        std::string sha256;
    };

    // Written piece by piece, so that its size is nobody's memory.
    class File {
    public:
        File(const fs::path& root, fs::path path) : path_(std::move(path)) {
            std::error_code code;
            fs::create_directories((root / path_).parent_path(), code);
            file_.open(root / path_, std::ios::binary | std::ios::trunc);
        }
        void add(std::string_view bytes) {
            file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
            digest_.add(bytes);
            bytes_ += static_cast<std::int64_t>(bytes.size());
        }
        Result<Kept> end() {
            file_.close();
            if (!file_) return Error(ErrorKind::unavailable, "cannot write " + path_.string(), {}, "is the disk full?");
            return Kept{path_.string(), bytes_, hex(digest_.finish())};
        }
        std::int64_t bytes() const { return bytes_; }

    private:
        fs::path path_;
        std::ofstream file_;
        Sha256 digest_;
        std::int64_t bytes_ = 0;
    };

    Status keep(const fs::path& path, std::string_view bytes) {
        File file(to_, path);
        file.add(bytes);
        return end(file);
    }
    Status end(File& file) {
        TRY(Kept kept, file.end());
        kept_.push_back(std::move(kept));
        return done();
    }

    Status missed(const fs::path& path, const Error& why) {
        missing_.push_back(path.string() + ": " + why.message());
        return done();
    }
    // What a run may well not have: its absence is told, and the rest goes on.
    Status page(const std::string& target, const std::string& part, const std::string& query, const fs::path& under) {
        const auto told = client_.raw({.target = target + "/" + part + query});
        if (told) return keep(under / (part + ".json"), told->body);
        if (told.error().kind() != ErrorKind::not_found && told.error().kind() != ErrorKind::conflict)
            return told.error();
        return missed(under / (part + ".json"), told.error());
    }

    Status events(const std::string& target, const fs::path& under) {
        std::optional<File> file;
        for (double after = 0;;) {
            const auto page = client_.get(fmt::format("{}/events?limit=1000&after={:.0f}", target, after));
            if (!page && client_.offline()) return missed(under / "events.jsonl", page.error());
            if (!page) return page.error();
            const Node* items = part(page->root(), "items");
            if (!file) file.emplace(to_, under / "events.jsonl");
            if (items != nullptr)
                for (const auto& event : items->items) file->add(json_of(*event).dump(0) + "\n");
            const double next = number_at(page->root(), "next_after");
            if (next <= after) break;
            after = next;
        }
        return end(*file);
    }

    Status logs(const std::string& target, const api::RunView& view, const fs::path& under) {
        for (std::size_t attempt = 1; attempt <= view.attempts.size(); ++attempt)
            for (int rank = 0; rank < static_cast<int>(view.spec.ranks); ++rank) {
                const std::string name = fmt::format("logs/attempt-{}/rank-{}.log", attempt, rank);
                const std::string at =
                    fmt::format("{}/logs?attempt={}&rank={}&limit={}", target, attempt, rank, kLogPiece);
                std::optional<File> file;
                for (std::string offset;;) {
                    const auto piece =
                        client_.raw({.target = at + (offset.empty() ? "" : "&offset=" + url_encoded(offset))});
                    if (!piece) {
                        if (piece.error().kind() != ErrorKind::not_found && !file) return piece.error();
                        missing_.push_back((under / name).string() + ": " + piece.error().message());
                        break;
                    }
                    if (!file) file.emplace(to_, under / name);
                    file->add(piece->body);
                    const auto next = piece->headers.find("Stoker-Log-Next");
                    if (piece->body.empty() || !next || *next == offset) break;
                    offset = std::string(*next);
                }
                if (file) TRY_VOID(end(*file));
            }
        return done();
    }

    Status artifacts(const std::string& target, const fs::path& under) {
        TRY(const auto list, get<api::ArtifactList>(client_, target + "/artifacts"));
        if (list.cut) missing_.push_back((under / "artifacts").string() + ": there are more than the server lists");
        for (const api::ArtifactItem& item : list.items) {
            if (!stays_inside(item.path)) {
                missing_.push_back(printable(item.path, 200) + ": a name that leads out of the folder");
                continue;
            }
            std::string encoded;
            for (const std::string_view each : split(item.path, '/'))
                encoded += (encoded.empty() ? "" : "/") + url_encoded(each);
            File file(to_, under / "artifacts" / item.path);
            while (file.bytes() < item.bytes) {
                HttpCall call{.target = target + "/artifacts/" + encoded};
                call.headers.add("Range", fmt::format("bytes={}-{}", file.bytes(),
                                                      std::min(file.bytes() + kArtifactPiece, item.bytes) - 1));
                TRY(const HttpResponse piece, client_.raw(call));
                if (piece.body.empty())
                    return Error(ErrorKind::conflict, printable(item.path, 200) + " became shorter while it was read",
                                 {}, "again, when nobody writes it");
                file.add(piece.body);
            }
            TRY_VOID(end(file));
        }
        return done();
    }

    Client& client_;
    fs::path to_;
    bool artifacts_;
    std::vector<Kept> kept_;
    std::vector<std::string> missing_;
};

Result<CommandOutput> run_export(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const RunId id, find_run(*client, args.positional[0]));
    const fs::path to = args.get_or("to", id.text());
    std::error_code code;
    if (fs::exists(to, code) && !fs::is_empty(to, code))
        return Error(ErrorKind::conflict, to.string() + " is there and not empty", {}, "--to another folder");
    const bool ours = !fs::exists(to, code);
    RunExport exported(*client, to, !args.has("no-artifacts"));
    if (const Status status = exported.run(id, ""); !status) {
        if (ours) fs::remove_all(to, code);  // half of it would look like all of it
        return status.error();
    }
    TRY(const Json manifest, exported.finish());
    if (session.format != Format::text) return CommandOutput{dump(session, manifest)};
    std::string text =
        fmt::format("{}: {} files, {}\n", to.string(), exported.files() + 1,
                    exported.bytes() < kMiB ? fmt::format("{:.1f} KiB", static_cast<double>(exported.bytes()) / kKiB)
                                            : fmt::format("{:.1f} MiB", static_cast<double>(exported.bytes()) / kMiB));
    for (const std::string& each : exported.missing()) text += "  not there: " + each + "\n";
    return CommandOutput{text};
}

}  // namespace

CliCommand export_command() {
    return with_client(
        {.name = "export",
         .summary = "everything about a run as one folder: for a paper, a ticket, another tool",
         .usage = "stoker export RUN [--to DIR]",
         .description =
             "Writes run.json (what it was told, its parameters, attempts, digests), events.jsonl, metrics.json (the "
             "numbers "
             "that it wrote), series.json (what was measured of each rank), explanation.json (held against its plan), "
             "checkpoints.json (where they are; not their bytes), logs/ and artifacts/, and manifest.json with the "
             "SHA-256 of each file. Of a graph, each step in steps/.",
         .examples = {"stoker export r-7", "stoker export llama-8b --to results/ --no-artifacts"},
         .options = {{.name = "to", .value = "DIR", .help = "into this folder, new or empty (the run's id)"},
                     {.name = "no-artifacts", .help = "without the files that it left in STOKER_ARTIFACT_DIR"}},
         .min_positional = 1,
         .max_positional = 1,
         .run = run_export,
         .completes = "run"});
}

}  // namespace stoker
