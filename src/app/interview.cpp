#include "app/interview.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "app/user_settings.h"
#include "base/text.h"
#include "io/files.h"

namespace stoker {

namespace {

constexpr const char* kName = "your answer";

// Written without quotes, as a person would.
bool is_plain_number(const std::string& answer) {
    constexpr std::size_t kMostDigits = 15;
    return !answer.empty() && answer.size() <= kMostDigits && (answer[0] != '0' || answer.size() == 1) &&
           answer.find_first_not_of("0123456789") == std::string::npos;
}

// "objective.deadline" and "14d" become nested YAML; answers are kept in the order of the questions.
void put(Json& at, std::string_view path, const std::string& answer) {
    const auto dot = path.find('.');
    if (dot == std::string_view::npos) {
        at.set(std::string(path),
               is_plain_number(answer) ? Json(static_cast<std::int64_t>(std::stoll(answer))) : Json(answer));
        return;
    }
    const std::string key(path.substr(0, dot));
    Json child = at.find(key) ? *at.find(key) : Json::object();
    put(child, path.substr(dot + 1), answer);
    at.set(key, child);
}

const Node* find(const Node& root, std::string_view path) {
    const Node* node = &root;
    for (const std::string_view key : split(path, '.')) {
        if (node == nullptr) return nullptr;
        node = node->find(key);
    }
    return node;
}

// What the reader of the file says about this answer, given those before it. What is still missing is not its fault.
std::vector<Problem> problems_of(Session& session, const Catalog& catalog, const Json& file, std::string_view key) {
    const auto document = Document::parse_yaml(file.dump_yaml(), kName);
    if (!document) return document.error().problems();
    const Node* answer = find(document->root(), key);
    const FileLoader load = [&](const std::string& name) { return session.read_document(name); };
    const auto workload = read_workload(*document, catalog, load);
    std::vector<Problem> found;
    if (workload || answer == nullptr) return found;
    for (const Problem& problem : workload.error().problems()) {
        if (problem.pos == answer->pos || (problem.pos.known() && problem.pos.file != FileName(kName)))
            found.push_back(problem);
    }
    return found;
}

std::size_t columns(const Style& style) {
    return static_cast<std::size_t>(style.width) - 2;
}

void print_lines(const std::string& text, const Style& style) {
    if (text.empty()) return;
    for (const std::string& line : wrap(text, columns(style))) fmt::print("  {}\n", line);
}

Result<std::string> ask(const Question& question, const Style& style) {
    fmt::print("\n{}\n  {}\n", style.bold(question.text), style.dim(question.why));
    const std::string hint = question.choices.empty() ? "for example " + question.example
                                                      : fmt::format("{}", fmt::join(question.choices, ", "));
    const std::string text = fmt::format("({}{})", hint, question.required ? "" : "; empty: skip");
    print_lines(text, style);
    fmt::print("  > ");
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer)) {
        fmt::print("\n");
        return Error(ErrorKind::invalid, "the questions ended before they were answered; nothing was written", {},
                     "start again, or begin with a template: stoker template list");
    }
    return std::string(trim(answer));
}

// Asks until the answer can be read.
Status answer_of(Session& session, const Catalog& catalog, const Question& question, Json& file) {
    for (;;) {
        TRY(const std::string answer, ask(question, session.style));
        if (answer.empty() && !question.required) return done();
        Json tried = file;
        put(tried, question.key, answer);
        std::vector<Problem> problems;
        if (answer.empty())
            problems.push_back({"this cannot be left open", "for example " + question.example, {}});
        else
            problems = problems_of(session, catalog, tried, question.key);
        if (problems.empty()) {
            file = std::move(tried);
            return done();
        }
        for (const Problem& problem : problems) {
            for (const std::string& line : wrap(problem.message, columns(session.style)))
                fmt::print("  {}\n", session.style.warn(line));
            print_lines(problem.remedy, session.style);
        }
    }
}

// Once for all files: where a plan looks when a file names no regions.
Status ask_for_home(Session& session, const Catalog& catalog) {
    TRY(UserSettings settings, load_user_settings());
    if (!settings.home.empty()) return done();
    const Question question{.key = "home",
                            .text = "where are you, and who uses it?",
                            .why = "Asked once, kept in your settings: plans look there first (stoker config home).",
                            .example = "westeurope, or eu"};
    for (;;) {
        TRY(const std::string answer, ask(question, session.style));
        if (answer.empty()) return done();
        auto place = place_named(catalog, answer);
        if (place) {
            settings.home = std::move(*place);
            return save_user_settings(settings);
        }
        fmt::print("  {}\n", session.style.warn(place.error().message()));
    }
}

}  // namespace

Result<std::string> interview(Session& session, const std::string& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
        return Error(ErrorKind::conflict, fmt::format("{} is there already", printable(path)), {},
                     fmt::format("stoker plan {} plans it; --save ANOTHER asks the questions and writes another file",
                                 printable(path)));
    }
    TRY(Catalog * catalog, session.catalog());
    fmt::print("{}\n",
               session.style.dim("No file is given: a few questions become one. Ctrl-D leaves without writing."));
    Json file = Json::object();
    file.set("version", 1);
    for (const Question& question : questions_for("")) TRY_VOID(answer_of(session, *catalog, question, file));
    const std::string kind = std::get<std::string>(file.find("kind")->value());
    for (const Question& question : questions_for(kind)) {
        if (question.key != "kind") TRY_VOID(answer_of(session, *catalog, question, file));
    }
    TRY_VOID(ask_for_home(session, *catalog));
    // The file that is planned is the file that runs, and it holds its place no longer than was said.
    const Json* period = file.find("period");
    if (kind == "notebook" && period != nullptr) {
        Json lease = Json::object(), run = Json::object();
        lease.set("stop_after", *period);
        run.set("command", "jupyter lab --no-browser").set("lease", std::move(lease));
        file.set("run", std::move(run));
    }
    TRY_VOID(write_file_atomic(path, file.dump_yaml()));
    fmt::print("\n{}\n{}\n", session.style.dim("written to " + path + ":"), file.dump_yaml());
    return path;
}

}  // namespace stoker
