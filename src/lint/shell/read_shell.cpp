// Shell scripts: what is one, its comments and directives, and what its errors mean.
#include <algorithm>
#include <unordered_set>

#include "lint/shell/directives.h"
#include "lint/shell/programs.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_values.h"

namespace stoker::lint {

namespace {

constexpr int kShellDepth = 30;  // of $( ) inside $( ): rules look at each word, and each is within the one before

}  // namespace

void ShellParser::run() {
    if (s_.starts_with("\xEF\xBB\xBF")) i_ = 3;
    read_shebang();
    if (!is_shell()) {
        other_language();
        return;
    }
    strict_ = script_.interpreter != "zsh";
    // A command a line, as a rule: no growing, which holds the list twice. Never more than 17 bytes per byte of text.
    std::size_t lines = 1;
    for (std::size_t at = s_.find('\n'); at != std::string_view::npos && at + 1 < end_; at = s_.find('\n', at + 1))
        lines += s_[at + 1] != '\n' && s_[at + 1] != '#';
    script_.commands.reserve(std::min<std::size_t>(lines + lines / 16 + 4, end_ / 8 + 501));
    list('\0', {}, 0);
    for (Command& command : script_.commands)
        for (Redirect& redirect : command.redirects)
            if (redirect.op.starts_with("<<") && redirect.op != "<<<") {
                const std::uint32_t id = redirect.body.begin;
                redirect.body = id < bodies_.size() ? bodies_[id] : Span{};
            }
    if (exported_.empty()) return;
    const std::unordered_set<std::string_view> exported(exported_.begin(), exported_.end());
    for (Assignment& assignment : script_.assignments)
        if (!assignment.exported && exported.contains(assignment.name)) assignment.exported = true;
}

void ShellParser::read_shebang() {
    if (!s_.substr(i_).starts_with("#!")) return;
    const std::size_t stop = std::min(s_.find('\n', i_), s_.size());
    std::string_view line = s_.substr(i_, stop - i_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    script_.shebang = {i_, i_ + static_cast<std::uint32_t>(line.size())};
    line.remove_prefix(2);
    while (!line.empty()) {
        const std::size_t begin = line.find_first_not_of(" \t");
        if (begin == std::string_view::npos) break;
        line.remove_prefix(begin);
        std::string_view word = line.substr(0, line.find_first_of(" \t"));
        line.remove_prefix(word.size());
        if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word = word.substr(slash + 1);
        if (word == "env" || word.starts_with("-") || word.find('=') != std::string_view::npos) continue;
        script_.interpreter = word;
        break;
    }
}

bool ShellParser::is_shell() const {
    const std::string_view name = script_.interpreter;
    for (const std::string_view shell : {"", "bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "busybox"})
        if (name == shell) return true;
    return name.starts_with("bash") || name.starts_with("ksh");
}

// Python, csh ...: the scheduler reads the directives above the first line of the program.
void ShellParser::other_language() {
    while (i_ < end_) {
        const std::uint32_t stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
        std::uint32_t at = i_;
        while (at < stop && (shell_blank(s_[at]) || s_[at] == '\r')) ++at;
        if (at < stop && s_[at] != '#') seen_code_ = true;
        if (s_[i_] == '#' && i_ < stop) comment(i_, stop);
        i_ = stop + 1;
    }
    i_ = end_;
}

void ShellParser::comment(std::uint32_t begin, std::uint32_t stop) {
    if (stop > begin && s_[stop - 1] == '\r') --stop;
    const bool own_line = [&] {
        std::uint32_t at = begin;
        while (at > 0 && shell_blank(s_[at - 1])) --at;
        return at == 0 || s_[at - 1] == '\n';
    }();
    file_.comments.push_back({{begin, stop}, own_line});
    if (begin == 0 || s_[begin - 1] == '\n') read_directive(file_, {begin, stop}, seen_code_, script_);
}

void ShellParser::skip_comment() {
    const std::uint32_t stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
    comment(i_, stop);
    i_ = stop;
}

void ShellParser::fail(Span at, std::string_view message) {
    if (script_.error_message.empty()) {
        script_.error = at;
        script_.error_message = message;
    }
    i_ = end_;
}

// Refused by a shell; the rest can still be read.
void ShellParser::stray(Span at, std::string_view message) {
    if (!strict_) return;
    const std::uint32_t here = i_;
    fail(at, message);
    i_ = here;
}

bool ShellParser::too_deep(int depth) {
    if (depth < kShellDepth) return false;
    stop_too_deep();
    return true;
}

void ShellParser::stop_too_deep() {
    if (!deep_) file_.problems.push_back({"SYN005", {i_, i_}, "commands are nested too deeply", &file_.source()});
    deep_ = true;
    i_ = end_;
}

// Blanks and line continuations.
void ShellParser::skip_blanks() {
    while (i_ < end_) {
        const char c = s_[i_];
        if (shell_blank(c) || (c == '\r' && peek(1) == '\n'))
            ++i_;
        else if (c == '\\' && at_line_end(i_ + 1))
            i_ += s_[i_ + 1] == '\r' ? 3 : 2;
        else
            break;
    }
}

namespace {

// Jinja, Go, ERB: what makes no sense now may make sense once it is rendered.
bool is_template_text(std::string_view text) {
    for (const std::string_view mark : {"{{", "{%", "<%", "@@{"})
        if (text.find(mark) != std::string_view::npos) return true;
    return false;
}

// <PATH_TO_CHECKPOINT>: to be filled in before it is a script.
bool has_placeholder(std::string_view text) {
    for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
        std::size_t j = at + 1;
        while (j < text.size() && (shell_name_char(text[j]) || text[j] == ' ' || text[j] == '-')) ++j;
        if (j > at + 2 && j < text.size() && text[j] == '>' && shell_name_start(text[at + 1]) && text[j - 1] != ' ')
            return true;
    }
    return false;
}

// read -r -d '' NAME <<EOF: the text as the value of the name.
void assign_read_texts(File& file) {
    auto& assignments = file.script.assignments;
    for (const Command& command : file.script.commands) {
        if (command.name() != "read" || command.words.size() < 3) continue;
        const bool whole = std::any_of(command.words.begin(), command.words.end(), [](const Value& word) {
            return word.text == "-d" || (word.text.starts_with('-') && word.text.ends_with('d'));
        });
        const Value& name = command.words.back();
        for (const Redirect& redirect : command.redirects) {
            if (!whole || !redirect.op.starts_with("<<") || redirect.op == "<<<" || redirect.literal ||
                redirect.body.empty() || !name.known() || !env_name(name.text))
                continue;
            const auto read = std::find_if(assignments.begin(), assignments.end(), [&](const Assignment& each) {
                return each.name == name.text && each.value.unknown() && command.span.contains(each.span);
            });
            const auto before = static_cast<std::uint32_t>(name.text.size()) + 1;
            if (read == assignments.end() || redirect.body.begin < before) continue;
            read->span = {redirect.body.begin - before, redirect.body.end};  // as NAME= stood before the text
            read->value.text = file.source().text(redirect.body);
            read->value.span = redirect.body;
            read->value.source = &file.source();
        }
    }
}

}  // namespace

void read_shell(File& file, const ReadOptions& options) {
    ShellParser(file).run();
    assign_read_texts(file);
    ShellValues::read_sourced(file, options);
    if (!file.script.commands.empty() || !file.script.assignments.empty()) ShellValues::of(file).finish();
    if (file.script.error_message.empty()) return;
    const std::string_view text = file.source().text();
    const bool rendered_later = is_template_text(text) || has_placeholder(text) || file.host;
    file.problems.push_back({rendered_later ? "SYN003" : "SYN001", file.script.error,
                             std::string(file.script.error_message), &file.source()});
}

}  // namespace stoker::lint
