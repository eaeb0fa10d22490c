#include "lint/shell/read_script_files.h"

#include <algorithm>

#include "base/text.h"
#include "lint/shell/node_text.h"
#include "lint/shell/playbook_variables.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_words.h"
#include "lint/shell/step_files.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostScripts = 200;

class ScriptFileReader {
public:
    ScriptFileReader(File& file, const ReadOptions& options)
        : file_(file), options_(options), all_(file.source().text()) {}

    void jenkins() {
        // sh '...', sh(script: """..."""): the step of a pipeline.
        for (std::size_t at = all_.find("sh"); at != std::string_view::npos; at = all_.find("sh", at)) {
            const bool word = at == 0 || std::string_view(" \t\n{(").find(all_[at - 1]) != std::string_view::npos;
            at += 2;
            std::size_t from = all_.find_first_not_of(" (", at);
            if (!word || from == std::string_view::npos) continue;
            const std::string_view line = all_.substr(from, all_.find('\n', from) - from);
            if (const std::size_t named = line.find("script:"); named != std::string_view::npos)
                from = all_.find_first_of("'\"", from + named);
            if (from == std::string_view::npos || (all_[from] != '\'' && all_[from] != '"')) continue;
            const bool three = all_.substr(from, 3) == std::string(3, all_[from]);
            const std::string quote(three ? 3 : 1, all_[from]);
            const std::size_t begin = from + quote.size();
            const std::size_t end = all_.find(quote, begin);
            if (end == std::string_view::npos) return;
            keep(begin, end);
            run();
            at = end + quote.size();
        }
    }

    // Lines of one recipe; @ and - before a line are for just.
    void just() {
        bool recipe = false, goes_on = false;
        learn_just();
        const PlaybookVariables everywhere = variables_;
        each_line([&](std::size_t begin, std::size_t end) {
            const std::string_view line = all_.substr(begin, end - begin);
            const bool inside = line.starts_with(' ') || line.starts_with('\t');
            if (!inside && !trim(line).empty()) {
                run();
                recipe = line.find(':') != std::string_view::npos && line.find(":=") == std::string_view::npos;
                variables_ = everywhere;
                if (recipe) parameters_of(line);
            }
            if (!inside || !recipe) return;
            begin += std::min(line.find_first_not_of(" \t"), line.size());
            while (!goes_on && begin < end && (all_[begin] == '@' || all_[begin] == '-')) ++begin;
            keep(begin, end);
            goes_on = line.ends_with('\\');
        });
        run();
    }

    void systemd() {
        bool goes_on = false;
        each_line([&](std::size_t begin, std::size_t end) {
            const std::string_view line = all_.substr(begin, end - begin);
            if (goes_on) {
                keep(begin, end);
            } else if (line.starts_with("Environment=")) {
                add("export ", begin);
                keep(begin + 12, end);
            } else if (line.starts_with("ExecStart")) {
                const std::size_t equals = line.find('=');
                if (equals == std::string_view::npos) return;
                const std::size_t skipped = line.find_first_not_of(" -@+!:", equals + 1);
                if (skipped == std::string_view::npos) return;
                keep(begin + skipped, end);
            } else {
                return;
            }
            goes_on = line.ends_with('\\');
        });
        run();
    }

    // %%bash cells, and lines behind a ! in others.
    void notebook() {
        const Node* cells = file_.tree.roots.empty() ? nullptr : file_.tree.roots.front()->find("cells");
        for (const Node& cell : children(cells)) {
            const Node *kind = cell.find("cell_type"), *source = cell.find("source");
            if (!kind || kind->text != "code" || !source) continue;
            const Node* first = source->is_array() ? source->first : source;
            const bool shell = first && (first->text.starts_with("%%bash") || first->text.starts_with("%%sh"));
            if (source->is_scalar())
                cell_line(*source, shell);
            else
                for (const Node& line : children(source)) cell_line(line, shell);
            run();
        }
    }

private:
    // NAME := "value", export NAME := OTHER + "-value": what recipes name in braces, or have in their environment.
    void learn_just() {
        std::vector<std::string> exported;
        bool all_exported = false;
        each_line([&](std::size_t begin, std::size_t end) {
            std::string_view line = trim(all_.substr(begin, end - begin));
            if (line.starts_with("set export") && line.find("false") == std::string_view::npos) all_exported = true;
            const bool exports = line.starts_with("export ");
            if (exports) line = trim(line.substr(7));
            const std::size_t sign = line.find(":=");
            if (sign == std::string_view::npos || line.starts_with("set ")) return;
            const std::string_view name = trim(line.substr(0, sign));
            if (name.empty() || !std::all_of(name.begin(), name.end(), shell_name_char)) return;
            const auto value = just_value(line.substr(sign + 2));
            if (!value) return variables_.forget(name);
            variables_.set(name, *value);
            if (exports || all_exported) exported.emplace_back(name);
        });
        if (exported.empty()) return;
        file_.services.reserve(file_.services.size() + 1);  // guests point at it
        around_ = &file_.services.emplace_back();
        around_->address = "just:environment";
        for (const std::string& name : exported) {
            std::string value = "{{" + name + "}}";
            std::vector<Piece> pieces;
            variables_.fill(value, pieces);
            if (value.find("{{") == std::string::npos)
                around_->environment.push_back(
                    {file_.tree.keep(name), Value::known_text(file_.tree.keep(value), {0, 0}, file_.source()), {0, 0}});
        }
    }
    // Texts and names with + between them; nothing for what only just works out.
    static std::optional<std::string> just_value(std::string_view expression) {
        std::string out;
        for (expression = trim(expression); !expression.empty();) {
            const char first = expression[0];
            if (first == '"' || first == '\'') {
                const std::size_t close = expression.find(first, 1);
                if (close == std::string_view::npos || expression.starts_with("\"\"\"") ||
                    expression.starts_with("'''"))
                    return std::nullopt;
                out += expression.substr(1, close - 1);
                expression = trim(expression.substr(close + 1));
            } else {
                std::size_t end = 0;
                while (end < expression.size() && shell_name_char(expression[end])) ++end;
                if (end == 0 || (first >= '0' && first <= '9')) return std::nullopt;
                out += "{{" + std::string(expression.substr(0, end)) + "}}";
                expression = trim(expression.substr(end));
            }
            if (expression.starts_with('#')) break;
            if (!expression.empty() && !expression.starts_with('+')) return std::nullopt;
            if (!expression.empty()) expression = trim(expression.substr(1));
        }
        return out;
    }
    // recipe name="default" *rest: who calls it may give another.
    void parameters_of(std::string_view header) {
        header = header.substr(0, header.rfind(':'));
        for (std::string_view word : split(header, ' ')) {
            const std::size_t equals = word.find('=');
            if (word.starts_with('*') || word.starts_with('+') || word.starts_with('$')) word.remove_prefix(1);
            const std::string_view name = word.substr(0, word.find('='));
            if (name.empty() || !std::all_of(name.begin(), name.end(), shell_name_char)) continue;
            const auto value =
                equals == std::string_view::npos ? std::nullopt : just_value(word.substr(word.find('=') + 1));
            if (value && value->find_first_of("{}$`\"\\ ") == std::string::npos && !value->empty())
                variables_.set(name, "${just_default:-" + *value + "}");
            else
                variables_.forget(name);
        }
    }

    template <typename F>
    void each_line(F&& use) {
        for (std::size_t at = 0; at < all_.size();) {
            const std::size_t end = std::min(all_.find('\n', at), all_.size());
            use(at, end);
            at = end + 1;
        }
    }
    void add(std::string_view text, std::size_t at) {
        const auto place = static_cast<std::uint32_t>(at);
        pieces_.push_back({static_cast<std::uint32_t>(text_.size()),
                           static_cast<std::uint32_t>(text.size()),
                           {place, place},
                           Piece::Kind::changed});
        text_ += text;
    }
    void keep(std::size_t begin, std::size_t end) {
        if (begin >= end) return;
        pieces_.push_back({static_cast<std::uint32_t>(text_.size()),
                           static_cast<std::uint32_t>(end - begin),
                           {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)},
                           Piece::Kind::verbatim});
        text_ += all_.substr(begin, end - begin);
        add("\n", end);
    }
    void cell_line(const Node& line, bool shell) {
        std::string_view text = trim(line.text);
        if (text.starts_with("%%") && text.find('\n') == std::string_view::npos) return;
        if (!shell) {
            if (!text.starts_with('!')) return;
            text.remove_prefix(1);
        }
        pieces_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size()), line.span,
                           Piece::Kind::changed});
        text_ += text;
        add("\n", line.span.end);
    }
    // What was kept so far is one script.
    void run() {
        if (!trim(text_).empty() && file_.guests.size() < kMostScripts) {
            variables_.fill(text_, pieces_);
            hide_templates(text_);
            const bool other = text_.starts_with("#!") && text_.substr(0, text_.find('\n')).find("sh") == text_.npos;
            File* guest = other ? nullptr
                                : read_guest(file_, std::move(text_), std::move(pieces_), {Kind::launch, Kind::az},
                                             options_, around_);
            if (guest && !guest->problems.empty()) file_.guests.pop_back();  // holes of a template, another language
        }
        text_.clear();
        pieces_.clear();
    }

    File& file_;
    const ReadOptions& options_;
    std::string_view all_;
    std::string text_;
    std::vector<Piece> pieces_;
    PlaybookVariables variables_;  // of just
    Container* around_ = nullptr;  // with what just exports
};

bool is_notebook(std::string_view path) {
    return path.ends_with(".ipynb");
}

bool is_unit(std::string_view path, std::string_view text) {
    return (path.empty() || path.ends_with(".service")) && text.find("\nExecStart") != std::string_view::npos &&
           (text.starts_with("[Service]") || text.find("\n[Service]") != std::string_view::npos);
}

}  // namespace

bool is_script_file(std::string_view path, std::string_view text) {
    const std::string_view name = base_name_of(path);
    return name.starts_with("Jenkinsfile") || name == "justfile" || name == "Justfile" || name == ".justfile" ||
           name.ends_with(".just") || is_unit(path, text) || is_notebook(path);
}

void read_script_file(File& file, const ReadOptions& options) {
    const std::string_view path = file.host ? std::string_view() : std::string_view(file.path());
    if (is_notebook(path)) read_json(file);
    ScriptFileReader reader(file, options);
    if (is_notebook(path))
        reader.notebook();
    else if (is_unit(path, file.source().text()))
        reader.systemd();
    else if (base_name_of(path).starts_with("Jenkinsfile"))
        reader.jenkins();
    else
        reader.just();
}

}  // namespace stoker::lint
