#include "app/commands/models_registry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/run_text.h"
#include "base/api_time.h"
#include "base/codec.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "io/files.h"
#include "io/process.h"
#include "io/terminal.h"
#include "io/user_file.h"
#include "serve/registry/weights_cache.h"
#include "server/server.h"

namespace stoker {

namespace {

std::string environment_word(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::string decimal_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (value < 1e3) return fmt::format("{} bytes", bytes);
    if (value >= 1e9) return fmt::format("{:.1f} GB", value / 1e9);
    return value >= 1e6 ? fmt::format("{:.1f} MB", value / 1e6) : fmt::format("{:.1f} kB", value / 1e3);
}

std::string counted(std::int64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

Result<ModelRegistry> registry_of(const Args& args) {
    TRY(const std::string url, registry_url(args));
    return ModelRegistry::open(url);
}

Result<ModelVersion> version_of(ModelRegistry& registry, const Args& args) {
    if (args.positional.size() != 2)
        return Error(ErrorKind::invalid, fmt::format("stoker models {} takes one model", args.positional[0]), {},
                     fmt::format("stoker models {} NAME, or NAME@N for a version", args.positional[0]));
    TRY(const ModelRef ref, read_model_ref(args.positional[1]));
    return registry.find(ref);
}

// A bar on a terminal; elsewhere, in the log of a replica, a line every ten seconds.
class TransferLine {
public:
    explicit TransferLine(const Session& session, std::string ref)
        : ref_(std::move(ref)), bar_(!session.quiet), lines_(!session.quiet && ::isatty(2) != 1) {}
    ModelTransfer transfer() {
        return {.stop = nullptr, .progress = [this](std::int64_t done, std::int64_t of, std::string_view what) {
                    const double share = of > 0 ? static_cast<double>(done) / static_cast<double>(of) : 1;
                    const std::string words = fmt::format("{} {}, {}", what, ref_, decimal_text(of));
                    bar_.update(share, words);
                    const std::int64_t now = monotonic_clock_us();
                    if (!lines_ || now - last_us_ < 10'000'000) return;
                    last_us_ = now;
                    fmt::print(stderr, "{}: {:.0f} %\n", words, 100 * share);
                }};
    }
    void clear() { bar_.clear(); }

private:
    const std::string ref_;
    ProgressLine bar_;
    const bool lines_;
    std::int64_t last_us_ = monotonic_clock_us();
};

Result<std::int64_t> size_option(const std::string& said, const char* what) {
    if (said.empty()) return 0;
    const auto bytes = parse_bytes(said);
    if (bytes && bytes->v >= 1 && bytes->v < 1e16) return static_cast<std::int64_t>(bytes->v);
    return Error(ErrorKind::invalid, fmt::format("{} '{}' is no size", what, printable(said, 40)), {}, "500GB, or 2TB");
}

Result<WeightsCache> cache_of(const Args& args) {
    std::string folder = args.get_or("cache", environment_word("STOKER_MODEL_CACHE"));
    if (folder.empty()) {
        TRY(folder, user_file("XDG_CACHE_HOME", ".cache", "models", "weights"));
    }
    const auto said = args.get("cache-limit");
    TRY(const std::int64_t limit,
        said ? size_option(*said, "--cache-limit")
             : size_option(environment_word("STOKER_MODEL_CACHE_LIMIT"), "STOKER_MODEL_CACHE_LIMIT"));
    return WeightsCache::open(folder, limit);
}

Json json_of_version(const ModelVersion& version, bool files) {
    Json json = Json::object()
                    .set("ref", version.ref())
                    .set("name", version.name)
                    .set("version", version.version)
                    .set("digest", version.digest)
                    .set("bytes", version.bytes)
                    .set("format", enum_word(version.header.format))
                    .set("type", version.header.main_type())
                    .set("parameters", version.header.parameters)
                    .set("created_at", version.created_at)
                    .set("created_by", version.created_by)
                    .set("note", version.note);
    if (!files) return json;
    Json list = Json::array();
    for (const ModelFile& file : version.files)
        list.push(Json::object().set("path", file.path).set("bytes", file.bytes).set("chunks", file.chunks.size()));
    return json.set("files", std::move(list));
}

CommandOutput model_answer(const Session& session, Json json, std::string text, int exit = 0) {
    return {session.format == Format::text ? std::move(text) : dump(session, json), exit};
}

Result<CommandOutput> push_model(Session& session, const Args& args) {
    if (args.positional.size() < 3)
        return Error(ErrorKind::invalid, "a push takes a name and what is to be pushed", {},
                     "stoker models push llama-3-8b ./llama-3-8b, a folder, or the names of files");
    TRY(ModelRegistry registry, registry_of(args));
    TransferLine line(session, args.positional[1]);
    auto pushed = registry.push(args.positional[1], {args.positional.begin() + 2, args.positional.end()},
                                args.get_or("note", ""), line.transfer());
    line.clear();
    if (!pushed) return std::move(pushed).error();
    const ModelVersion& version = pushed->version;
    std::string text = pushed->was_there ? fmt::format("{} has these bytes already\n", version.ref())
                                         : fmt::format("{} is in {}\n", version.ref(), registry.url());
    text +=
        fmt::format("  {} in {}: {}, {} parameters in {}\n", decimal_text(version.bytes),
                    counted(static_cast<std::int64_t>(version.files.size()), "file"), enum_word(version.header.format),
                    format_count(version.header.parameters), version.header.main_type());
    if (!pushed->was_there)
        text += pushed->shared_bytes == 0
                    ? fmt::format("  {} sent\n", decimal_text(pushed->sent_bytes))
                    : fmt::format("  {} sent, {} were there: of other versions, or of a push that was cut off\n",
                                  decimal_text(pushed->sent_bytes), decimal_text(pushed->shared_bytes));
    text += fmt::format("  next      stoker models show {0}; stoker deploy FILE --weights {0}\n", version.ref());
    return model_answer(session,
                        json_of_version(version, true)
                            .set("was_there", pushed->was_there)
                            .set("sent_bytes", pushed->sent_bytes)
                            .set("shared_bytes", pushed->shared_bytes),
                        std::move(text));
}

Result<CommandOutput> list_model(Session& session, const Args& args) {
    if (args.positional.size() > 2) return Error(ErrorKind::invalid, "stoker models list takes one name at most");
    TRY(ModelRegistry registry, registry_of(args));
    std::vector<ModelRef> refs;
    if (args.positional.size() == 2) {
        TRY(const ModelRef ref, read_model_ref(args.positional[1]));
        TRY(const std::vector<int> versions, registry.versions(ref.name));
        if (versions.empty()) return registry.find(ref).error();
        for (const int version : versions)
            if (ref.version == 0 || ref.version == version) refs.push_back({ref.name, version});
        std::reverse(refs.begin(), refs.end());
    } else {
        TRY(const std::vector<std::string> names, registry.names());
        for (const std::string& name : names) refs.push_back({name, 0});
    }
    constexpr std::size_t kMostRows = 500;
    const std::size_t all = refs.size();
    if (refs.size() > kMostRows) refs.resize(kMostRows);
    std::vector<std::vector<std::string>> rows;
    Json json = Json::array();
    const std::int64_t now = wall_clock_us();
    for (const ModelRef& ref : refs) {
        TRY(const ModelVersion version, registry.find(ref));
        json.push(json_of_version(version, false));
        rows.push_back({version.ref(), decimal_text(version.bytes), std::string(enum_word(version.header.format)),
                        version.header.main_type(), format_count(version.header.parameters),
                        ago_text(version.created_at, now), printable(version.created_by, 40),
                        printable(version.note, 60)});
    }
    std::string text =
        rows.empty() ? fmt::format("{} has no models; stoker models push NAME FILES puts one there\n", registry.url())
                     : table_text(session.style,
                                  {{"model"},
                                   {"size", Align::right},
                                   {"format"},
                                   {"weights"},
                                   {"parameters", Align::right},
                                   {"pushed ago", Align::right},
                                   {"by"},
                                   {"note"}},
                                  rows);
    if (all > refs.size()) text += fmt::format("and {} more: stoker models list NAME\n", all - refs.size());
    return model_answer(session, Json::object().set("registry", registry.url()).set("models", std::move(json)),
                        std::move(text));
}

Result<CommandOutput> show_model(Session& session, const Args& args) {
    TRY(ModelRegistry registry, registry_of(args));
    TRY(const ModelVersion version, version_of(registry, args));
    if (const auto file = args.get("file")) {
        TRY(std::string text, registry.read(version, *file, 64u << 20));
        return CommandOutput{std::move(text)};
    }
    // Where weights do not say their shape, config.json beside them does.
    TRY(const ScratchFolder beside, ScratchFolder::make("model"));
    const std::string served = served_path(version, "");
    const std::string config = served.empty() ? "config.json" : served.substr(1) + "/config.json";
    const std::string kept = beside.path() + "/config.json";
    if (version.header.format == WeightsFormat::safetensors) {
        const auto text = registry.read(version, config, 4u << 20);
        if (!text && text.error().kind() != ErrorKind::not_found) return text.error();
        if (text) TRY_VOID(write_file_atomic(kept, *text));
    }
    TRY(CommandOutput page, weights_page(session, args, version.header,
                                         fmt::format("{}, pushed {} by {}", version.ref(), version.created_at,
                                                     printable(version.created_by, 80)),
                                         beside.path() + "/model"));
    // The copy is gone when this ends: the workload file names one that is made by a command of its own.
    if (const std::size_t at = page.out.find(kept); args.has("workload") && at != std::string::npos) {
        const std::string own = version.ref() + ".config.json";
        page.out.replace(at, kept.size(), own);
        page.out = fmt::format("# stoker models show {} --file {} > {}\n", version.ref(), config, own) + page.out;
    }
    return page;
}

Result<CommandOutput> pull_model(Session& session, const Args& args) {
    TRY(ModelRegistry registry, registry_of(args));
    TRY(const ModelVersion version, version_of(registry, args));
    TransferLine line(session, version.ref());
    if (const auto to = args.get("to")) {
        const Status fetched = registry.fetch(version, *to, line.transfer());
        line.clear();
        if (!fetched) return fetched.error();
        return model_answer(session, json_of_version(version, true).set("folder", *to).set("was_there", false),
                            *to + "\n");
    }
    TRY(WeightsCache cache, cache_of(args));
    auto held = cache.hold(registry, version, line.transfer());
    line.clear();
    if (!held) return std::move(held).error();
    Json removed = Json::array();
    for (const std::string& each : held->removed) removed.push(each);
    return model_answer(session,
                        json_of_version(version, true)
                            .set("folder", held->folder)
                            .set("was_there", held->was_there)
                            .set("removed", std::move(removed)),
                        held->folder + "\n");
}

Result<CommandOutput> exec_model(Session& session, const Args& args) {
    if (session.format != Format::text)
        return Error(ErrorKind::unsupported, "what a program prints is not ours to format", {}, "leave out -o");
    if (args.program.empty())
        return Error(ErrorKind::invalid, "which program is to be started with the weights?", {},
                     "stoker models exec NAME -- vllm serve {weights}");
    TRY(ModelRegistry registry, registry_of(args));
    TRY(const ModelVersion version, version_of(registry, args));
    TRY(WeightsCache cache, cache_of(args));
    TransferLine line(session, version.ref());
    auto held = cache.hold(registry, version, line.transfer());
    line.clear();
    if (!held) return std::move(held).error();
    const std::string weights = served_path(version, held->folder);
    std::vector<std::string> words = args.program;
    for (std::string& word : words) word = replace_all(word, "{weights}", weights);
    ::setenv("MODEL", weights.c_str(), 1);
    // The program has the lock open, and whatever it starts: the files stay until the last of them has ended.
    ::fcntl(held->lock.get(), F_SETFD, 0);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const int code = errno;
    return Error(code == ENOENT ? ErrorKind::not_found : ErrorKind::denied,
                 fmt::format("cannot start {}: {}", printable(words[0]), std::strerror(code)));
}

Result<CommandOutput> verify_model(Session& session, const Args& args) {
    TRY(ModelRegistry registry, registry_of(args));
    TRY(const ModelVersion version, version_of(registry, args));
    TransferLine line(session, version.ref());
    auto problems = registry.verify(version, line.transfer());
    line.clear();
    if (!problems) return std::move(problems).error();
    std::string text;
    Json list = Json::array();
    for (const std::string& each : *problems) {
        text += each + "\n";
        list.push(each);
    }
    if (problems->empty())
        text = fmt::format("{}: {}, every chunk is what was pushed\n", version.ref(), decimal_text(version.bytes));
    return model_answer(session, Json::object().set("ref", version.ref()).set("problems", std::move(list)),
                        std::move(text), problems->empty() ? 0 : 1);
}

CommandOutput cleaned_page(const Session& session, const ModelRegistry::Cleaned& cleaned, std::string first) {
    std::string text = std::move(first);
    text +=
        fmt::format("{} of no version removed, {}\n", counted(cleaned.chunks, "chunk"), decimal_text(cleaned.bytes));
    Json given_up = Json::array();
    for (const std::string& each : cleaned.given_up) {
        text += fmt::format("  a push of {} that was cut off more than a day ago is given up\n", printable(each, 80));
        given_up.push(each);
    }
    return model_answer(
        session,
        Json::object().set("chunks", cleaned.chunks).set("bytes", cleaned.bytes).set("given_up", std::move(given_up)),
        std::move(text));
}

Result<CommandOutput> remove_model(Session& session, const Args& args) {
    TRY(ModelRegistry registry, registry_of(args));
    if (args.positional.size() == 2) {
        TRY(const ModelRef ref, read_model_ref(args.positional[1]));
        if (ref.version == 0)
            return Error(ErrorKind::invalid, "which version is to be removed?", {},
                         fmt::format("stoker models list {0}; stoker models remove {0}@N", ref.name));
    }
    TRY(const ModelVersion version, version_of(registry, args));
    TRY_VOID(registry.remove(version));
    const auto cleaned = registry.clean({});
    if (cleaned) return cleaned_page(session, *cleaned, fmt::format("{} is removed\n", version.ref()));
    if (cleaned.error().kind() != ErrorKind::conflict) return cleaned.error();
    return model_answer(session,
                        Json::object().set("chunks", 0).set("bytes", 0).set("waits_for", cleaned.error().text()),
                        fmt::format("{} is removed; its bytes stay until stoker models clean: {}\n", version.ref(),
                                    cleaned.error().text()));
}

Result<CommandOutput> clean_model(Session& session, const Args& args) {
    TRY(ModelRegistry registry, registry_of(args));
    TRY(const ModelRegistry::Cleaned cleaned, registry.clean({}));
    return cleaned_page(session, cleaned, "");
}

Result<CommandOutput> show_cache(Session& session, const Args& args) {
    TRY(WeightsCache cache, cache_of(args));
    std::string text;
    Json removed = Json::array();
    if (args.has("cache-limit")) {
        TRY(const auto gone, cache.shrink(cache.limit_bytes()));
        for (const std::string& each : gone) {
            text += each + " removed\n";
            removed.push(each);
        }
    }
    TRY(const auto all, cache.list());
    std::vector<std::vector<std::string>> rows;
    Json json = Json::array();
    std::int64_t held = 0;
    for (const CachedWeights& each : all) {
        held += each.bytes;
        rows.push_back({each.ref, decimal_text(each.bytes),
                        each.in_use  ? "in use"
                        : each.whole ? ""
                                     : "not whole",
                        ago_text(rfc3339(each.used_us), wall_clock_us()), each.digest.substr(0, 12)});
        json.push(Json::object()
                      .set("ref", each.ref)
                      .set("digest", each.digest)
                      .set("bytes", each.bytes)
                      .set("whole", each.whole)
                      .set("in_use", each.in_use)
                      .set("used_at", rfc3339(each.used_us)));
    }
    if (!rows.empty())
        text += table_text(session.style,
                           {{"model"}, {"size", Align::right}, {""}, {"used ago", Align::right}, {"digest"}}, rows);
    text += fmt::format("{} of {} in {}\n", decimal_text(held), decimal_text(cache.limit_bytes()), cache.folder());
    return model_answer(session,
                        Json::object()
                            .set("folder", cache.folder())
                            .set("limit_bytes", cache.limit_bytes())
                            .set("bytes", held)
                            .set("removed", std::move(removed))
                            .set("models", std::move(json)),
                        std::move(text));
}

}  // namespace

Result<std::string> registry_url(const Args& args) {
    std::string url = args.get_or("registry", environment_word("STOKER_MODELS"));
    if (!url.empty()) {
        if (looks_like_object_url(url)) return url;
        return Error(ErrorKind::invalid, fmt::format("'{}' is no address of a registry", printable(url, 80)), {},
                     "file:///FOLDER, s3://BUCKET/PREFIX or az://ACCOUNT/CONTAINER/PREFIX");
    }
    TRY(const std::string folder, state_folder(""));
    return "file://" + std::filesystem::absolute(folder).lexically_normal().string() + "/models";
}

std::vector<std::string> with_weights(const Args& args, const ModelVersion& version, const std::string& registry,
                                      std::vector<std::string> command) {
    std::error_code code;
    std::string self = std::filesystem::read_symlink("/proc/self/exe", code).string();
    if (code || self.empty()) self = "stoker";
    std::vector<std::string> words{self, "models", "exec", version.ref(), "--registry", registry};
    // A replica has its run's environment, not that of who deploys it.
    const std::string cache = args.get_or("cache", environment_word("STOKER_MODEL_CACHE"));
    const std::string limit = args.get_or("cache-limit", environment_word("STOKER_MODEL_CACHE_LIMIT"));
    if (!cache.empty()) words.insert(words.end(), {"--cache", std::filesystem::absolute(cache).string()});
    if (!limit.empty()) words.insert(words.end(), {"--cache-limit", limit});
    words.emplace_back("--");
    words.insert(words.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
    return words;
}

Result<CommandOutput> run_models_registry(Session& session, const Args& args) {
    static const std::map<std::string, Result<CommandOutput> (*)(Session&, const Args&)> all = {
        {"push", push_model},     {"list", list_model},   {"show", show_model},
        {"pull", pull_model},     {"exec", exec_model},   {"verify", verify_model},
        {"remove", remove_model}, {"clean", clean_model}, {"cache", show_cache}};
    const std::string& word = args.positional[0];
    if (!args.program.empty() && word != "exec")
        return Error(ErrorKind::invalid, fmt::format("stoker models {} starts no program", word));
    if ((word == "clean" || word == "cache") && args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("stoker models {} takes no name", word));
    return all.at(word)(session, args);
}

}  // namespace stoker
