#include "app/commands/desk.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>

#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/run_file.h"
#include "app/session.h"
#include "app/workload_templates.h"
#include "base/text.h"
#include "io/clock.h"
#include "run/spec/run_spec.h"

namespace stoker {
namespace {

constexpr int kMostAtOnce = 2;  // a plan takes a tenth of a second of a core, and a catalogue of some 30 MB
constexpr std::size_t kMostName = 80, kMostPaths = 10'000;

class CommandDesk final : public Desk {
public:
    CommandDesk(std::string folder, std::string catalog_dir)
        : folder_(std::move(folder)), catalog_dir_(std::move(catalog_dir)) {}

    Result<std::string> plan(const PostedFile& file) override {
        return at_desk(file, [](Session& session, const std::string& path) -> Result<std::string> {
            Args args;
            args.positional = {path};
            TRY(CommandOutput output, plan_command().run(session, args));
            return std::move(output.out);
        });
    }

    Result<std::string> run_of(const PostedFile& file) override {
        return at_desk(file, [](Session& session, const std::string& path) -> Result<std::string> {
            TRY(const LoadedRun loaded, load_run_file(session, path, {.source = false}));
            return canonical_json(loaded.spec);
        });
    }

    Result<std::string> deploy(const PostedEndpoint& endpoint) override {
        return at_desk(endpoint.file, [&](Session& session, const std::string& path) -> Result<std::string> {
            Args args;
            args.positional = {path};
            args.add("endpoint", "");
            args.add("folder", folder_);
            if (endpoint.least) args.add("least", std::to_string(*endpoint.least));
            if (endpoint.most) args.add("most", std::to_string(*endpoint.most));
            TRY(const CommandOutput output,
                deploy_endpoint_file(session, args, {.project = endpoint.project, .user = endpoint.user}));
            TRY(const Document said, Document::parse_json(output.out, "deploy"));
            return said.root().find("endpoint")->text;
        });
    }

    TemplateList templates() override {
        TemplateList list;
        for (const WorkloadTemplate& each : workload_templates())
            list.items.push_back({each.name, each.title, each.group, std::string(each.text)});
        return list;
    }

private:
    // One file, as if it lay where its work is to run, and nothing beside it.
    Result<std::string> at_desk(const PostedFile& file,
                                const std::function<Result<std::string>(Session&, const std::string&)>& ask) {
        TRY(const std::string path, path_of(file));
        TRY_VOID(remember(path));
        if (at_once_.fetch_add(1) >= kMostAtOnce) {
            --at_once_;
            return Error(ErrorKind::unavailable, "other files are being planned", {}, "again in a moment");
        }
        const std::shared_ptr<void> place(nullptr, [this](void*) { --at_once_; });
        Session session;
        session.format = Format::json;
        session.quiet = true;
        session.today = today();
        session.catalog_dir = catalog_dir_;
        session.given[path] = file.text;
        auto answer = ask(session, path);
        if (answer) return answer;
        return shortened(answer.error(), path, std::filesystem::path(path).filename().string());
    }

    // Where messages point to: the name that it was given, not the place where it would lie.
    static Error shortened(const Error& error, const std::string& path, const std::string& name) {
        const auto without = [&](std::string text) {
            for (std::size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), name);
            return text;
        };
        Problems problems;
        for (Problem each : error.problems()) {
            each.message = without(std::move(each.message));
            each.remedy = without(std::move(each.remedy));
            if (each.pos.file.view() == path) each.pos.file = FileName(name);
            problems.push_back(std::move(each));
        }
        return Error(error.kind(), std::move(problems));
    }

    // Names of files are kept for as long as the program lives.
    Status remember(const std::string& path) {
        const std::lock_guard lock(mutex_);
        if (paths_.size() >= kMostPaths && !paths_.contains(path))
            return Error(ErrorKind::exhausted, "too many names of files were posted since the server began", {},
                         "use the name of an earlier one, such as workload.yaml");
        paths_.insert(path);
        return done();
    }

    static Result<std::string> path_of(const PostedFile& file) {
        const std::string name = file.name.empty() ? "workload.yaml" : file.name;
        if (name.size() > kMostName || name.find_first_of("/\\") != std::string::npos || name.front() == '.' ||
            printable(name) != name)
            return Error(ErrorKind::invalid, fmt::format("'{}' is no name of a file", printable(name, 80)), {},
                         "name: train.yaml, without a folder");
        if (!file.folder.empty() && !file.folder.starts_with('/'))
            return Error(ErrorKind::invalid, fmt::format("the folder {} is not absolute", printable(file.folder, 200)),
                         {}, "folder: /home/ann/project, as it is on the machine of the server");
        std::error_code error;
        const std::filesystem::path folder =
            file.folder.empty() ? std::filesystem::current_path(error) : std::filesystem::path(file.folder);
        return (folder / name).lexically_normal().string();
    }

    const std::string folder_, catalog_dir_;
    std::atomic<int> at_once_{0};
    std::mutex mutex_;  // guards paths_
    std::set<std::string> paths_;
};

}  // namespace

std::shared_ptr<Desk> make_desk(std::string folder, std::string catalog_dir) {
    return std::make_shared<CommandDesk>(std::move(folder), std::move(catalog_dir));
}

}  // namespace stoker
