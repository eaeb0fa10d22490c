// Dockerfiles: instructions as commands, images as Containers, ENV as environment, RUN as shell inside.
#include <algorithm>
#include <map>

#include "lint/read.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

bool docker_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// One instruction: its lines without the marks of continuation, and where they stand.
struct DockerInstruction {
    std::string_view name;
    Span span, name_span;
    std::string text;  // of the arguments
    std::vector<Piece> pieces;
    std::string heredoc;
    std::vector<Piece> heredoc_pieces;
};

class DockerReader {
public:
    DockerReader(File& file, const ReadOptions& options) : file_(file), options_(options), s_(file.source().text()) {}

    void run() {
        std::uint32_t at = s_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
        bool directives = true;
        while (at < s_.size()) {
            const Span line = file_.source().line_at(at);
            std::uint32_t begin = line.begin;
            if (at > begin) begin = at;
            while (begin < line.end && docker_blank(s_[begin])) ++begin;
            const std::uint32_t next = next_line(line.end);
            if (begin >= line.end) {
                at = next;
                continue;
            }
            if (s_[begin] == '#') {
                file_.comments.push_back({{begin, line.end}, true});
                if (directives && contains_nocase(s_.substr(begin, line.end - begin), "escape=`")) escape_ = '`';
                at = next;
                continue;
            }
            directives = false;
            at = instruction(begin, line.end);
        }
    }

private:
    std::uint32_t next_line(std::uint32_t end) const {
        const std::size_t newline = s_.find('\n', end);
        return newline == std::string_view::npos ? static_cast<std::uint32_t>(s_.size())
                                                 : static_cast<std::uint32_t>(newline) + 1;
    }

    // Through the last of its continued lines; returns what is behind it.
    std::uint32_t instruction(std::uint32_t begin, std::uint32_t line_end) {
        DockerInstruction out;
        std::uint32_t stop = begin;
        while (stop < line_end && !docker_blank(s_[stop])) ++stop;
        out.name = s_.substr(begin, stop - begin);
        out.name_span = {begin, stop};
        std::uint32_t at = stop;
        while (at < line_end && docker_blank(s_[at])) ++at;
        std::uint32_t end = line_end, next = next_line(line_end);
        while (true) {
            std::uint32_t text_end = end;
            while (text_end > at && docker_blank(s_[text_end - 1])) --text_end;
            const bool continued = text_end > at && s_[text_end - 1] == escape_;
            if (continued) --text_end;
            add(out.text, out.pieces, {at, text_end});
            if (!continued || next >= s_.size()) break;
            // Comment lines and empty lines inside are no part of it.
            bool found = false;
            while (next < s_.size() && !found) {
                const Span line = file_.source().line_at(next);
                std::uint32_t content = line.begin;
                while (content < line.end && docker_blank(s_[content])) ++content;
                next = next_line(line.end);
                if (content < line.end && s_[content] == '#') {
                    file_.comments.push_back({{content, line.end}, true});
                    continue;
                }
                if (content >= line.end) continue;
                at = line.begin;
                end = line.end;
                found = true;
            }
            if (!found) break;
        }
        out.span = {begin, end};
        if (out.text.find("<<") != std::string::npos && (out.name == "RUN" || out.name == "COPY" || out.name == "ADD"))
            next = heredoc(out, next);
        take(out);
        return next;
    }
    void add(std::string& text, std::vector<Piece>& pieces, Span span) const {
        if (span.empty()) return;
        pieces.push_back({static_cast<std::uint32_t>(text.size()), span.size(), span, Piece::Kind::verbatim});
        text += s_.substr(span.begin, span.size());
    }

    std::uint32_t heredoc(DockerInstruction& out, std::uint32_t next) {
        std::size_t at = out.text.find("<<");
        at += 2;
        bool strip = false;
        if (at < out.text.size() && out.text[at] == '-') ++at, strip = true;
        std::string delimiter;
        while (at < out.text.size() && !docker_blank(out.text[at])) {
            if (out.text[at] != '"' && out.text[at] != '\'') delimiter += out.text[at];
            ++at;
        }
        if (delimiter.empty() || !((delimiter[0] >= 'A' && delimiter[0] <= 'Z') ||
                                   (delimiter[0] >= 'a' && delimiter[0] <= 'z') || delimiter[0] == '_'))
            return next;
        const std::uint32_t begin = next;
        std::uint32_t end = next;
        while (next < s_.size()) {
            const Span line = file_.source().line_at(next);
            std::uint32_t content = line.begin;
            while (strip && content < line.end && s_[content] == '\t') ++content;
            end = line.begin;
            next = next_line(line.end);
            if (s_.substr(content, line.end - content) == delimiter) break;
            end = next;
        }
        if (end > begin) {
            out.heredoc = s_.substr(begin, end - begin);
            out.heredoc_pieces.push_back({0, end - begin, {begin, end}, Piece::Kind::verbatim});
        }
        return next;
    }

    Value value_of(const DockerInstruction& in, std::size_t from, std::size_t to) {
        Value value;
        const std::string_view text = std::string_view(in.text).substr(from, to - from);
        value.text = file_.tree.keep(std::string(text));
        value.source = &file_.source();
        value.state = Value::State::known;
        auto piece = std::upper_bound(in.pieces.begin(), in.pieces.end(), from,
                                      [](std::size_t at, const Piece& each) { return at < each.guest; });
        if (piece != in.pieces.begin()) {
            --piece;
            value.span.begin = piece->host.begin + static_cast<std::uint32_t>(from) - piece->guest;
            value.span.end = std::min(value.span.begin + static_cast<std::uint32_t>(to - from), piece->host.end);
        }
        if (value.span.empty()) value.span = in.name_span;
        return value;
    }

    // Words by blanks, quotes respected.
    std::vector<Value> words_of(const DockerInstruction& in) {
        std::vector<Value> words;
        const std::string& t = in.text;
        for (std::size_t at = 0; at < t.size();) {
            while (at < t.size() && docker_blank(t[at])) ++at;
            const std::size_t begin = at;
            char quote = 0;
            while (at < t.size() && (quote != 0 || !docker_blank(t[at]))) {
                if (quote != 0) {
                    if (t[at] == quote) quote = 0;
                } else if (t[at] == '"' || t[at] == '\'') {
                    quote = t[at];
                } else if (t[at] == '\\' && at + 1 < t.size()) {
                    ++at;
                }
                ++at;
            }
            at = std::min(at, t.size());
            if (at > begin) words.push_back(value_of(in, begin, at));
        }
        return words;
    }
    // ["a", "b"]: the exec form. Empty when it is not.
    std::vector<Value> exec_form(const DockerInstruction& in) {
        std::vector<Value> words;
        const std::string& t = in.text;
        std::size_t at = t.find_first_not_of(" \t");
        if (at == std::string::npos || t[at] != '[') return words;
        while (at < t.size()) {
            const std::size_t open = t.find('"', at);
            if (open == std::string::npos) break;
            std::size_t close = open + 1;
            while (close < t.size() && t[close] != '"') close += t[close] == '\\' ? 2 : 1;
            if (close >= t.size()) break;
            Value value = value_of(in, open + 1, close);
            if (value.text.find('\\') != std::string_view::npos || value.text.find('$') != std::string_view::npos)
                value.state = Value::State::unknown;
            words.push_back(value);
            at = close + 1;
        }
        return words;
    }

    // $X and ${X:-d} by ARG and ENV defaults.
    void resolve(Value& value) {
        std::string_view raw = value.text;
        if (raw.size() >= 2 && (raw[0] == '"' || raw[0] == '\'') && raw.back() == raw[0]) {
            raw = raw.substr(1, raw.size() - 2);
            value.text = raw;
            if (value.span.size() >= 2) ++value.span.begin, --value.span.end;
        }
        if (raw.find('$') == std::string_view::npos) return;
        std::string out;
        for (std::size_t at = 0; at < raw.size();) {
            if (raw[at] != '$') {
                out += raw[at++];
                continue;
            }
            std::size_t from = at + 1, to;
            const bool braces = from < raw.size() && raw[from] == '{';
            if (braces) ++from;
            to = from;
            while (to < raw.size() && (std::isalnum(static_cast<unsigned char>(raw[to])) || raw[to] == '_')) ++to;
            const std::string name(raw.substr(from, to - from));
            const auto it = arguments_.find(name);
            std::string_view otherwise;
            bool has_default = false;
            if (braces) {
                const std::size_t close = raw.find('}', to);
                if (close == std::string_view::npos) {
                    value.state = Value::State::unknown;
                    return;
                }
                if (raw.substr(to, 2) == ":-") {
                    otherwise = raw.substr(to + 2, close - to - 2);
                    has_default = true;
                } else if (close != to) {
                    value.state = Value::State::unknown;
                    return;
                }
                to = close + 1;
            }
            if (it != arguments_.end() && it->second.known()) {
                out += it->second.text;
            } else if (has_default && otherwise.find('$') == std::string_view::npos) {
                out += otherwise;
            } else {
                value.state = Value::State::unknown;
                return;
            }
            value.assumed = true;
            at = to;
        }
        value.text = file_.tree.keep(std::move(out));
    }

    void pairs(const DockerInstruction& in, bool environment) {
        const std::vector<Value> words = words_of(in);
        if (words.empty()) return;
        const bool old_form = environment && words.front().text.find('=') == std::string_view::npos;
        if (old_form) {  // ENV NAME the rest
            if (words.size() < 2) return;
            Value value = words.size() == 2 ? words[1] : value_of(in, in.text.find(words[1].text), in.text.size());
            resolve(value);
            put(words.front().text, value, words.front().span, environment);
            return;
        }
        for (const Value& word : words) {
            const std::size_t equals = word.text.find('=');
            if (const Node* given = environment ? nullptr : given_by_the_build(word.text.substr(0, equals))) {
                arguments_[std::string(word.text.substr(0, equals))] = Value::of(given);
                continue;
            }
            if (equals == std::string_view::npos) {
                if (!environment) {
                    // A global ARG keeps its default where a stage names it again.
                    const std::string name(word.text);
                    if (!arguments_.contains(name)) {
                        Value unknown = word;
                        unknown.state = Value::State::unknown;
                        arguments_[name] = unknown;
                    }
                }
                continue;
            }
            Value value = part_of(word, equals + 1);
            resolve(value);
            put(word.text.substr(0, equals), value, word.span, environment);
        }
    }
    // --build-arg of the command that builds it comes before a default.
    const Node* given_by_the_build(std::string_view name) const {
        if (file_.call)
            for (const auto& [argument, value] : file_.call->inputs)
                if (argument == name) return value;
        return nullptr;
    }
    void put(std::string_view name, const Value& value, Span span, bool environment) {
        arguments_[std::string(name)] = value;
        if (environment) file_.environment.push_back({name, value, span});
        // RUN lines see it by its name.
        const std::string_view written = s_.substr(span.begin, span.size());
        if (written.size() > name.size() && written.starts_with(name) && written[name.size()] == '=') {
            Assignment assignment;
            assignment.name = file_.tree.keep(name);
            assignment.value = value;
            assignment.span = span;
            assignment.in_condition = !environment;  // a build may be given another
            file_.script.assignments.push_back(std::move(assignment));
        }
    }

    void take(DockerInstruction& in) {
        const std::string_view name = in.name;
        Command command;
        command.span = in.span;
        command.words.push_back(Value::known_text(name, in.name_span, file_.source()));
        if (equals_ignore_case(name, "FROM")) {
            std::vector<Value> words = words_of(in);
            std::erase_if(words, [](const Value& word) { return word.text.starts_with("--"); });
            if (words.empty()) return;
            Value image = words.front();
            resolve(image);
            const bool stage = image.known() && std::find(stages_.begin(), stages_.end(), image.text) != stages_.end();
            if (words.size() >= 3 && equals_ignore_case(words[1].text, "as")) stages_.emplace_back(words[2].text);
            if (!stage && !image.is("scratch")) {
                Container container;
                container.address = "docker:" + std::to_string(++images_);
                container.image = image;
                container.anchor = in.name_span;
                file_.services.push_back(std::move(container));
            }
            command.words.push_back(image);
        } else if (equals_ignore_case(name, "ENV")) {
            pairs(in, true);
        } else if (equals_ignore_case(name, "ARG")) {
            pairs(in, false);
        } else if (equals_ignore_case(name, "RUN")) {
            run_instruction(in);
        } else if (equals_ignore_case(name, "CMD") || equals_ignore_case(name, "ENTRYPOINT")) {
            std::vector<Value> words = exec_form(in);
            if (words.empty()) {
                guest(in.text, in.pieces);
            } else {
                if (words.size() == 3 && words[0].text.ends_with("sh") &&
                    words[1].text.find('c') != std::string_view::npos) {
                    read_guest(
                        file_, std::string(words[2].text),
                        {{0, static_cast<std::uint32_t>(words[2].text.size()), words[2].span,
                          words[2].span.size() == words[2].text.size() ? Piece::Kind::verbatim : Piece::Kind::changed}},
                        {Kind::launch}, options_);
                } else if (auto launch = launch_of_words(file_, words, in.span)) {
                    file_.launches.push_back(std::move(*launch));
                }
                for (const Value& word : words) command.words.push_back(word);
            }
        } else if (equals_ignore_case(name, "COPY") || equals_ignore_case(name, "ADD")) {
            for (Value& word : words_of(in)) {
                resolve(word);
                command.words.push_back(word);
            }
        }
        file_.script.commands.push_back(std::move(command));
    }
    void guest(const std::string& text, const std::vector<Piece>& pieces) {
        read_guest(file_, text, pieces, {Kind::launch}, options_);
    }
    void run_instruction(const DockerInstruction& in) {
        if (!in.heredoc.empty()) {
            guest(in.heredoc, in.heredoc_pieces);
            return;
        }
        if (!exec_form(in).empty()) return;
        // --mount=..., --network=... stand before the command.
        std::size_t at = 0;
        while (true) {
            while (at < in.text.size() && (docker_blank(in.text[at]) || in.text[at] == '\n')) ++at;
            if (in.text.compare(at, 2, "--") != 0) break;
            while (at < in.text.size() && !docker_blank(in.text[at])) ++at;
        }
        std::string text = in.text.substr(at);
        std::vector<Piece> pieces;
        for (Piece piece : in.pieces) {
            if (piece.guest + piece.length <= at) continue;
            if (piece.guest < at) {
                const auto cut = static_cast<std::uint32_t>(at) - piece.guest;
                piece.host.begin += cut;
                piece.length -= cut;
                piece.guest = 0;
            } else {
                piece.guest -= static_cast<std::uint32_t>(at);
            }
            pieces.push_back(piece);
        }
        guest(text, pieces);
    }

    File& file_;
    const ReadOptions& options_;
    std::string_view s_;
    char escape_ = '\\';
    int images_ = 0;
    std::vector<std::string> stages_;
    std::map<std::string, Value, std::less<>> arguments_;
};

}  // namespace

void read_dockerfile(File& file, const ReadOptions& options) {
    DockerReader(file, options).run();
    read_copied_scripts(file, options);
}

}  // namespace stoker::lint
