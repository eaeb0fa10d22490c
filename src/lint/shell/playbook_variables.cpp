#include "lint/shell/playbook_variables.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostVariableFiles = 24, kMostVariableBytes = 64u << 10, kMostVariableValue = 4096,
                      kMostTemplates = 64;
constexpr int kMostTemplateDepth = 4;

bool is_variable_name(std::string_view text) {
    return !text.empty() && (text[0] < '0' || text[0] > '9') && std::all_of(text.begin(), text.end(), [](char c) {
        return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
}

}  // namespace

void PlaybookVariables::learn(const Node* names, std::string_view space) {
    for (const Node& entry : children(names)) {
        if (entry.key.empty()) continue;
        const std::string name = std::string(space) + std::string(entry.key);
        if (entry.is_scalar() && entry.text.size() < kMostVariableValue)
            values_.insert_or_assign(name, std::string(entry.text));
        else
            values_.erase(name);
        if (entry.is_object() && std::count(name.begin(), name.end(), '.') < kMostTemplateDepth)
            learn(&entry, name + ".");
    }
}

// `beside_others`: of one group among several; what two of them give otherwise is not known.
void PlaybookVariables::learn_file(const std::string& path, const ReadOptions& options, bool beside_others) {
    if (!path.ends_with(".yml") && !path.ends_with(".yaml")) return;
    auto text = ++files_ <= kMostVariableFiles ? options.neighbour(path) : std::nullopt;
    if (!text || text->size() > kMostVariableBytes || text->find('\0') != std::string::npos ||
        text->starts_with("$ANSIBLE"))
        return;
    File file(path, std::move(*text));
    read_yaml(file);
    if (!file.problems.empty() || file.tree.roots.size() != 1) return;
    const auto before = values_;
    learn(file.tree.roots[0]);
    if (!beside_others) return;
    for (auto& [name, value] : values_) {
        const auto other = before.find(name);
        if (other != before.end() && other->second != value) several_[name] = true;
    }
}

void PlaybookVariables::learn_folder(const std::string& path, const ReadOptions& options) {
    std::vector<std::string> groups;
    for (const std::string& each : options.list(path))
        if (each.starts_with("all."))
            learn_file(path + "/" + each, options, false);
        else
            groups.push_back(each);
    for (const std::string& each : options.list(path + "/all")) learn_file(path + "/all/" + each, options, false);
    for (const std::string& each : groups) learn_file(path + "/" + each, options, true);
}

void PlaybookVariables::learn_beside(const File& playbook, const ReadOptions& options) {
    if (!options.neighbour || !options.list) return;
    const std::string& path = playbook.path();
    const bool role = path.find("/tasks/") != std::string::npos || path.starts_with("tasks/");
    if (role)
        for (const std::string_view folder : {"../defaults", "../vars"})
            for (const std::string& each : options.list(std::string(folder)))
                learn_file(std::string(folder) + "/" + each, options, false);
    const std::string up = role ? "../../../" : "";
    for (const std::string& root : {up, up + "../"})
        for (const std::string_view folder : {"group_vars", "inventory/group_vars", "inventories/group_vars"})
            learn_folder(root + std::string(folder), options);
}

// What stands between the braces; empty: not known.
std::string PlaybookVariables::worked_out(std::string_view expression, int depth) const {
    std::string_view name = trim(expression.substr(0, expression.find('|')));
    std::string fallback, value;
    bool defaults = false;
    std::string_view filters = expression.find('|') == std::string_view::npos
                                   ? std::string_view()
                                   : expression.substr(expression.find('|') + 1);
    for (std::string_view filter : split(filters, '|')) {
        filter = trim(filter);
        if (filter.empty() || filter == "quote" || filter == "string" || filter == "int" || filter == "trim") continue;
        const bool call = filter.starts_with("default(") || filter.starts_with("d(");
        if (!call && !filter.starts_with("default ")) return {};  // the latter: Task
        filter = trim(filter.substr(filter.find(call ? '(' : ' ') + 1));
        if (filter.size() < 2 || (filter[0] != '"' && filter[0] != '\'')) return {};
        const std::size_t close = filter.find(filter[0], 1);
        if (close == std::string_view::npos) return {};
        fallback = filter.substr(1, close - 1);
        defaults = true;
    }
    if (!is_variable_name(name)) return {};
    const auto it = values_.find(name);
    if (it == values_.end())
        return defaults && fallback.find_first_of("{}$`\"\\") == std::string::npos
                   ? "${ansible_default:-" + fallback + "}"
                   : std::string();
    if (several_.contains(it->first)) return {};
    value = it->second;
    for (std::size_t at = value.find("{{"); at != std::string::npos; at = value.find("{{", at)) {
        const std::size_t end = value.find("}}", at);
        if (end == std::string::npos || depth >= kMostTemplateDepth) return {};
        const std::string inner = worked_out(std::string_view(value).substr(at + 2, end - at - 2), depth + 1);
        if (inner.empty() || value.size() + inner.size() > kMostVariableValue) return {};
        value.replace(at, end + 2 - at, inner);
        at += inner.size();
    }
    return value.find("{%") == std::string::npos ? value : std::string();
}

void PlaybookVariables::fill(std::string& text, std::vector<Piece>& pieces) const {
    std::size_t filled = 0;
    for (std::size_t at = text.find("{{"); at != std::string::npos && filled < kMostTemplates;
         at = text.find("{{", at)) {
        const std::size_t end = text.find("}}", at);
        if (end == std::string::npos) return;
        const std::string value = worked_out(std::string_view(text).substr(at + 2, end - at - 2), 0);
        if (value.empty() || (at > 0 && text[at - 1] == '$')) {
            at = end;
            continue;
        }
        ++filled;
        // The pieces up to it, one for the value, and those behind it.
        std::vector<Piece> cut;
        const auto from = static_cast<std::uint32_t>(at), to = static_cast<std::uint32_t>(end + 2);
        const auto size = static_cast<std::uint32_t>(value.size());
        const auto host_at = [](const Piece& piece, std::uint32_t offset) {
            return piece.kind == Piece::Kind::verbatim ? piece.host.begin + offset : piece.host.begin;
        };
        Piece made{from, size, {0, 0}, Piece::Kind::changed};
        bool put = false;
        for (const Piece& piece : pieces) {
            const std::uint32_t stop = piece.guest + piece.length;
            const bool verbatim = piece.kind == Piece::Kind::verbatim;
            if (piece.guest < from) {
                Piece left = piece;
                left.length = std::min(stop, from) - piece.guest;
                if (verbatim) left.host.end = left.host.begin + left.length;
                cut.push_back(left);
            }
            if (stop > from && piece.guest < to) {
                const std::uint32_t begin = std::max(from, piece.guest) - piece.guest;
                const std::uint32_t last = std::min(to, stop) - piece.guest;
                if (!put) made.host.begin = host_at(piece, begin);
                made.host.end = verbatim ? piece.host.begin + last : piece.host.end;
                put = true;
            }
            if (stop >= to && put) {
                cut.push_back(made);
                put = false;
                if (stop > to) {
                    Piece right = piece;
                    const std::uint32_t skip = to > piece.guest ? to - piece.guest : 0;
                    right.guest = from + size;
                    right.length = piece.length - skip;
                    if (verbatim) right.host.begin += skip;
                    cut.push_back(right);
                }
            } else if (piece.guest >= to) {
                Piece right = piece;
                right.guest = piece.guest - (to - from) + size;
                cut.push_back(right);
            }
        }
        pieces = std::move(cut);
        text.replace(at, end + 2 - at, value);
        at += value.size();
    }
}

}  // namespace stoker::lint
