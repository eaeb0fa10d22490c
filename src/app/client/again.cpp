#include "app/client/again.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "app/client/submission.h"
#include "app/client/typed.h"
#include "base/text.h"
#include "run/spec/source.h"
#include "server/views.h"

namespace stoker {
namespace {

constexpr auto kAgainGitTime = std::chrono::seconds(10);
constexpr std::size_t kShownCommit = 12;

std::string shell_word(const std::string& text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("/._-+=:@%").find(c) != std::string_view::npos;
    });
    return plain ? text : "'" + replace_all(text, "'", "'\\''") + "'";
}

std::string commit_in_words(const SourceSpec& source) {
    if (source.commit.empty()) return "no git commit";
    return "commit " + source.commit.substr(0, kShownCommit) + (source.dirty_sha256.empty() ? "" : " with changes");
}

}  // namespace

Status check_again(const Args& args, std::string_view command) {
    if (!args.positional.empty() || !args.program.empty())
        return Error(ErrorKind::invalid, "--again submits what was submitted: no file or program beside it");
    Problems problems;
    for (const OptionSpec& option : override_options())
        if (args.has(option.name) && option.name != "name" && option.name != "dry-run")
            problems.push_back(
                {fmt::format("--again submits the spec as it is stored: --{} would change it", option.name),
                 fmt::format("leave it out, or change the file and stoker {} FILE", command)});
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return done();
}

std::vector<std::string> source_notes(const std::string& run, const std::string& folder, const SourceSpec& then,
                                      const SourceSpec& now) {
    std::vector<std::string> notes;
    if (then.commit == now.commit && then.dirty_sha256 == now.dirty_sha256) return notes;
    notes.push_back(
        fmt::format("the code is not what {} ran: {} then, {} now", run, commit_in_words(then), commit_in_words(now)));
    if (!then.commit.empty() && then.commit != now.commit)
        notes.push_back(fmt::format("git -C {} checkout {} brings that commit back", shell_word(printable(folder, 400)),
                                    printable(then.commit, 80)));
    if (!then.dirty_sha256.empty() && then.dirty_sha256 != now.dirty_sha256)
        notes.push_back(fmt::format("what had been changed on top of it is not kept, only its hash: {}",
                                    then.dirty_sha256.substr(0, kShownCommit)));
    return notes;
}

Result<LoadedRun> load_again(Session& session, Client& client, const Args& args) {
    TRY(const RunId old, find_run(client, *args.get("again")));
    TRY(const auto view, get<api::RunView>(client, "/api/v1/runs/" + old.text()));
    LoadedRun loaded;
    loaded.spec = view.spec;
    if (const auto name = args.get("name")) loaded.spec.name = *name;
    loaded.spec.after.reset();  // of that time
    loaded.spec.begin_at_us.reset();
    loaded.spec.repeat.reset();
    loaded.spec.labels[kAgainLabel] = old.text();
    std::vector<std::string> notes;
    const std::string& folder = view.spec.folder;
    std::error_code code;
    if (!folder.empty() && std::filesystem::is_directory(folder, code)) {
        SourceState today = source_of(folder, std::chrono::steady_clock::now() + kAgainGitTime);
        const SourceSpec then = view.spec.source.value_or(SourceSpec{});
        SourceSpec now = then;
        now.commit = std::move(today.commit);
        now.dirty_sha256 = std::move(today.dirty_sha256);
        if (!today.note.empty()) notes.push_back(std::move(today.note));
        const auto differ = source_notes(old.text(), folder, then, now);
        notes.insert(notes.end(), differ.begin(), differ.end());
        if (now != SourceSpec{}) loaded.spec.source = std::move(now);
    } else if (view.spec.source && !view.spec.source->commit.empty()) {
        notes.push_back("the working folder is not on this machine, so nobody looked whether its code is the same: " +
                        printable(folder, 200));
    }
    const std::string& checkpoints = view.spec.checkpoint.folder;
    if (checkpoints.starts_with('/'))
        notes.push_back("it goes on from what lies in its checkpoint folder: " + printable(checkpoints, 200));
    if (!session.quiet)
        for (const std::string& note : notes) fmt::print(stderr, "{:<8} {}\n", "note", note);
    return loaded;
}

}  // namespace stoker
