#include "base/result.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/text.h"

namespace stoker {

FileName::FileName(std::string_view name) {
    if (name.empty()) return;
    static std::mutex mutex;  // guards names
    // Never destroyed, so that positions held by static objects stay valid at exit. Nodes of the set do not move.
    static auto* const names = new std::unordered_set<std::string>();
    std::lock_guard lock(mutex);
    std::string_view::operator=(*names->emplace(name).first);
}

std::string SourcePos::text() const {
    std::string out(file);
    if (line == 0) return out;
    if (out.empty())
        out = "line ";
    else
        out += ':';
    out += std::to_string(line);
    if (column != 0) out += ':' + std::to_string(column);
    return out;
}

std::string_view to_string(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid: return "invalid";
        case ErrorKind::not_found: return "not_found";
        case ErrorKind::conflict: return "conflict";
        case ErrorKind::denied: return "denied";
        case ErrorKind::exhausted: return "exhausted";
        case ErrorKind::unavailable: return "unavailable";
        case ErrorKind::timed_out: return "timed_out";
        case ErrorKind::unsupported: return "unsupported";
        case ErrorKind::infeasible: return "infeasible";
        case ErrorKind::internal: return "internal";
    }
    return "internal";
}

int exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::infeasible: return 1;
        case ErrorKind::invalid:
        case ErrorKind::not_found:
        case ErrorKind::conflict:
        case ErrorKind::unsupported: return 2;
        case ErrorKind::denied:
        case ErrorKind::exhausted:
        case ErrorKind::unavailable:
        case ErrorKind::timed_out: return 3;
        case ErrorKind::internal: return 4;
    }
    return 4;
}

Error::Error(ErrorKind kind, std::string message, SourcePos pos, std::string remedy) : kind_(kind) {
    problems_.push_back({std::move(message), std::move(remedy), pos});
}

Error::Error(ErrorKind kind, std::vector<Problem> problems) : kind_(kind), problems_(std::move(problems)) {
    CHECK(!problems_.empty());
}

Error&& Error::while_doing(std::string what) && {
    context_.push_back(std::move(what));
    return std::move(*this);
}

namespace {

constexpr std::size_t kColumns = 100;

// Lines that people read are broken at blanks; further ones are set in.
std::string broken(std::string_view text, std::size_t first_indent) {
    std::string out;
    for (const std::string& line : wrap(text, kColumns - std::max<std::size_t>(first_indent, 2)))
        out += (out.empty() ? "" : "\n  ") + line;
    return out;
}

}  // namespace

std::string Error::text(const std::function<std::string_view(FileName)>& source) const {
    std::string out;
    std::string_view advised;
    SourcePos shown;  // what is missing in one mapping all stands at its place: that line is shown once
    for (const Problem& problem : problems_) {
        out += "error: " + (source ? broken(problem.message, 7) : problem.message) + '\n';
        if (problem.pos.known()) out += "  at " + problem.pos.text() + '\n';
        if (source && problem.pos.known() && !(problem.pos == shown))
            out += source_excerpt(source(problem.pos.file), problem.pos);
        shown = problem.pos;
        if (!problem.remedy.empty() && !(source && problem.remedy == advised))
            out += "  " + (source ? broken(problem.remedy, 2) : problem.remedy) + '\n';
        advised = problem.remedy;
    }
    for (const std::string& what : context_) out += "  while " + what + '\n';
    return out;
}

void check_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr, "stoker: this is a bug in Stoker: %s is false at %s:%d\n", expression, file, line);
    std::fflush(stderr);
    std::_Exit(4);
}

}  // namespace stoker
