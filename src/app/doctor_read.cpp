#include "app/doctor_read.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/doctor_join.h"
#include "doctor/tool_text.h"
#include "io/files.h"
#include "observe/health_lines.h"
#include "readings/tool_output.h"

namespace stoker {

namespace {

constexpr std::size_t kMostToolBytes = 64u << 20, kMostToolFiles = 256;

}  // namespace

Result<CommandOutput> read_tools(Session& session, const Args& args) {
    for (const char* other : {"full", "peer", "link-token", "link-gbps", "mtu", "disk", "baseline", "forget", "listen"})
        if (args.has(other))
            return Error(ErrorKind::invalid, fmt::format("--read looks at files; --{} measures here", other));
    if (!args.positional.empty())
        return Error(ErrorKind::invalid,
                     fmt::format("--read measures nothing: '{}' is one word too many", args.positional[0]));
    const std::vector<std::string> names = args.all("read");
    if (names.size() > kMostToolFiles)
        return Error(ErrorKind::invalid, fmt::format("more than {} files", kMostToolFiles), {}, "name fewer at once");
    ToolContext context;
    TRY(context.catalog, session.catalog());
    if (const auto size = args.get("size")) {
        const auto index = context.catalog->find_node_type(*size);
        if (!index && !facts_of_size(*size)) return index.error();
        context.size = *size;
    }
    std::vector<ToolFile> files;
    std::vector<Problem> problems;
    for (const std::string& name : names) {
        auto text = read_file(name, kMostToolBytes);
        if (!text) {
            problems.insert(problems.end(), text.error().problems().begin(), text.error().problems().end());
            continue;
        }
        const std::string shown = name == "-" ? "stdin" : name;
        session.sources[shown] = *text;
        files.push_back({shown, std::move(*text)});
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    std::vector<ScriptReading> scripts;
    for (std::size_t i = files.size(); i-- > 0;) {
        if (recognise(files[i].text) != Tool::unknown || !looks_like_script(files[i].name, files[i].text)) continue;
        scripts.insert(scripts.begin(), read_script(files[i], session.today));
        files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    }
    ToolReport report{.conclusion = "no output of a tool is among the files: what is there is what stoker check says"};
    if (!files.empty()) {
        TRY(report, read_tool_files(files, context));
    }
    join_scripts(report, std::move(scripts), context);
    const HealthVerdict verdict = report.verdict();
    const int exit = verdict == HealthVerdict::fail ? 1 : verdict == HealthVerdict::skipped ? 3 : 0;
    if (session.format != Format::text) return CommandOutput{dump(session, tool_json_answer(report)), exit};
    return CommandOutput{tool_text(report, session.style), exit};
}

}  // namespace stoker
