#include "lint/shell/read_makefile.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/shell_parser.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostTargets = 200, kMostIncluded = 8, kMostMakeBytes = 256u << 10, kMostMakeValue = 4096;

// A variable of the shell that nothing sets: what only make knows.
constexpr std::string_view kMakeKnows = "MAKE_KNOWS_IT";

struct MakeVariable {
    std::string value;
    bool known = true;
};

class MakeReader {
public:
    MakeReader(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void run() {
        learn(file_.source().text(), 0);
        recipes();
    }

private:
    // The next line with those that a backslash joins to it; `at` behind it afterwards.
    static std::string_view next_line(std::string_view text, std::size_t& at) {
        const std::size_t begin = at;
        while (true) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            at = std::min(end + 1, text.size());
            const bool joined = end > begin && text[end - 1] == '\\' && end < text.size();
            if (!joined) return text.substr(begin, end - begin);
        }
    }

    // NAME = value and its kin; false for any other line.
    bool assignment(std::string_view line, bool branch) {
        bool exports = false;
        for (const std::string_view word : {"override ", "export "})
            if (line.starts_with(word)) {
                exports = exports || word == "export ";
                line = trim(line.substr(word.size()));
            }
        std::size_t end = 0;
        while (end < line.size() && shell_name_char(line[end])) ++end;
        const std::string name(line.substr(0, end));
        std::string_view rest = trim(line.substr(end));
        if (name.empty()) return false;
        if (exports) exported_.insert(name);
        if (rest.empty()) return exports;
        const std::size_t equals = rest.find('=');
        if (equals > 3) return false;  // nowhere, or behind more than a sign
        const std::string_view sign = rest.substr(0, equals);
        if (sign.find_first_not_of(":?+!") != std::string_view::npos) return false;
        std::string_view value = rest.substr(equals + 1);
        if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos)
            value = value.substr(0, comment);
        value = trim(value);
        if (sign == "?" && variables_.contains(name)) return true;
        MakeVariable& variable = variables_[name];
        if (branch && sign == "+") {
            variable.value += " $(" + std::string(kMakeKnows) + ")";  // perhaps more behind it
        } else if (branch || sign == "!") {
            variable.known = false;
        } else if (sign == "+") {
            variable.value += " " + std::string(value);
        } else {
            variable = {std::string(value), true};
        }
        return true;
    }

    void learn(std::string_view text, int depth) {
        int branches = 0;
        bool defining = false;
        for (std::size_t at = 0; at < text.size();) {
            const std::string_view raw = next_line(text, at);
            if (raw.starts_with('\t')) continue;
            const std::string_view line = trim(raw);
            if (line.starts_with("define ")) defining = true;
            if (line == "endef") defining = false;
            if (defining || line.starts_with('#')) continue;
            if (line.starts_with("ifeq") || line.starts_with("ifneq") || line.starts_with("ifdef") ||
                line.starts_with("ifndef"))
                ++branches;
            if (line.starts_with("endif")) --branches;
            if (line.starts_with("include ") || line.starts_with("-include ")) {
                for (const std::string_view name : split(line.substr(line.find(' ') + 1), ' ')) include(name, depth);
                continue;
            }
            assignment(line, branches > 0);
        }
    }
    void include(std::string_view name, int depth) {
        if (name.empty() || name.find_first_of("$*/\\") == 0 || depth > 2 || ++included_ > kMostIncluded ||
            !options_.neighbour || name.find('$') != std::string_view::npos)
            return;
        const auto text = options_.neighbour(std::string(name));
        if (text && text->size() <= kMostMakeBytes && text->find('\0') == std::string::npos) learn(*text, depth + 1);
    }

    // What stands between the brackets of $(...): the value of a variable, with those that it names.
    std::optional<std::string> value_of(std::string_view name, int depth) const {
        if (name == kMakeKnows) return "${" + std::string(kMakeKnows) + "}";
        const auto it = variables_.find(std::string(name));
        if (it == variables_.end() || !it->second.known || depth > 8) return std::nullopt;
        std::string out;
        const std::string& text = it->second.value;
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] != '$' || at + 1 >= text.size()) {
                out += text[at++];
                continue;
            }
            if (text[at + 1] == '$') {
                out += '$';
                at += 2;
                continue;
            }
            const char open = text[at + 1];
            const std::size_t close = open == '(' || open == '{' ? text.find(open == '(' ? ')' : '}', at) : text.npos;
            if (close == std::string::npos) return std::nullopt;
            const std::string_view named = std::string_view(text).substr(at + 2, close - at - 2);
            // A folder that make knows is one word, or part of one; what else it works out may be any number.
            const auto inner = named == "CURDIR" || named == "PWD" || named == "MAKECMDGOALS"
                                   ? std::optional<std::string>("${" + std::string(kMakeKnows) + "}")
                                   : value_of(named, depth + 1);
            if (!inner || out.size() + inner->size() > kMostMakeValue) return std::nullopt;
            out += *inner;
            at = close + 1;
        }
        return out;
    }

    // train: export NAME := value: for the recipe of that target alone.
    void learn_of_targets() {
        const std::string_view all = file_.source().text();
        for (std::size_t at = 0; at < all.size() && of_targets_.size() < kMostTargets;) {
            const std::string_view line = next_line(all, at);
            if (line.starts_with('\t') || line.starts_with('#')) continue;
            const std::size_t colon = line.find(':');
            if (colon == std::string_view::npos || line.find_first_of("=$%") < colon) continue;
            const std::string_view rest = trim(line.substr(colon + 1));
            if (rest.starts_with('=') || rest.starts_with(':') || rest.find('=') == std::string_view::npos) continue;
            for (const std::string_view target : split(line.substr(0, colon), ' '))
                if (!target.empty()) of_targets_.emplace(target, rest);
        }
    }

    struct Recipe {
        std::vector<EnvVar> environment;
        std::string text;
        std::vector<Piece> pieces;
        void add(std::string_view part, Span host, Piece::Kind kind) {
            if (part.empty()) return;
            pieces.push_back(
                {static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(part.size()), host, kind});
            text += part;
        }
    };

    // A line of a recipe as the shell gets it. What only make knows becomes a variable that nothing sets.
    void shell_line(std::size_t begin, std::size_t end, Recipe& recipe) const {
        const std::string_view all = file_.source().text();
        while (begin < end && std::string_view("\t @+-").find(all[begin]) != std::string_view::npos) ++begin;
        const auto span = [](std::size_t from, std::size_t to) {
            return Span{static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)};
        };
        std::size_t plain = begin;
        for (std::size_t at = begin; at < end;) {
            if (all[at] != '$' || at + 1 >= end) {
                ++at;
                continue;
            }
            recipe.add(all.substr(plain, at - plain), span(plain, at), Piece::Kind::verbatim);
            const char next = all[at + 1];
            std::size_t to = at + 2;
            if (next == '$') {
                recipe.add("$", span(at, to), Piece::Kind::changed);
            } else if (next == '(' || next == '{') {
                int level = 1;
                for (; to < end && level > 0; ++to)
                    level += all[to] == next ? 1 : all[to] == (next == '(' ? ')' : '}') ? -1 : 0;
                const auto value = value_of(all.substr(at + 2, to - at - 3), 0);
                recipe.add(value ? *value : "${" + std::string(kMakeKnows) + "}", span(at, to), Piece::Kind::changed);
            } else {
                recipe.add("${" + std::string(kMakeKnows) + "}", span(at, to), Piece::Kind::changed);
            }
            plain = at = to;
        }
        recipe.add(all.substr(plain, end - plain), span(plain, end), Piece::Kind::verbatim);
        recipe.add("\n", span(end, std::min(end + 1, all.size())), Piece::Kind::changed);
    }

    void recipes() {
        const std::string_view all = file_.source().text();
        std::vector<Recipe> found;
        bool in_recipe = false;
        learn_of_targets();
        const auto variables = variables_;
        const auto exported = exported_;
        for (std::size_t at = 0; at < all.size() && found.size() < kMostTargets;) {
            const std::size_t begin = at;
            const std::string_view line = next_line(all, at);
            if (line.starts_with('\t')) {
                if (!in_recipe) {
                    found.emplace_back();
                    for (const std::string& name : exported_)
                        if (const auto value = value_of(name, 0); value && value->find("${") == std::string::npos)
                            found.back().environment.push_back(
                                {file_.tree.keep(name),
                                 Value::known_text(file_.tree.keep(*value), {0, 0}, file_.source()),
                                 {0, 0}});
                }
                in_recipe = true;
                shell_line(begin, begin + line.size(), found.back());
            } else if (!trim(line).empty() && !trim(line).starts_with('#')) {
                in_recipe = false;
                if (of_targets_.empty()) continue;
                variables_ = variables;
                exported_ = exported;
                for (const std::string_view target : split(line.substr(0, line.find(':')), ' ')) {
                    const auto [first, last] = of_targets_.equal_range(target);
                    for (auto it = first; it != last; ++it) assignment(it->second, false);
                }
            }
        }
        file_.services.reserve(found.size());  // guests point at them
        for (Recipe& recipe : found) {
            Container& around = file_.services.emplace_back();
            around.address = "make:recipe/" + std::to_string(file_.services.size());
            around.environment = std::move(recipe.environment);
            File* guest = read_guest(file_, std::move(recipe.text), std::move(recipe.pieces), {Kind::launch, Kind::az},
                                     options_, &around);
            if (guest && !guest->problems.empty())
                file_.guests.pop_back();  // a shell of its own, or one line in another
        }
    }

    File& file_;
    const ReadOptions& options_;
    std::map<std::string, MakeVariable> variables_;
    std::set<std::string> exported_;
    std::multimap<std::string, std::string, std::less<>> of_targets_;  // target to assignment
    std::size_t included_ = 0;
};

}  // namespace

bool is_makefile(std::string_view path) {
    const std::string_view name = base_name_of(path);
    return name == "Makefile" || name == "makefile" || name == "GNUmakefile" ||
           (name.ends_with(".mk") && name.size() > 3);
}

void read_makefile(File& file, const ReadOptions& options) {
    MakeReader(file, options).run();
}

}  // namespace stoker::lint
