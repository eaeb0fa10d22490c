#include "lint/shell/shell_words.h"

namespace stoker::lint {

Value part_of(const Value& word, std::size_t from) {
    Value part = word;
    part.text = word.text.substr(std::min(from, word.text.size()));
    if (!word.source) return part;
    const std::string_view written = word.source->text(word.span);
    // The name of the option is written plainly; a quote may stand before it.
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
        const std::size_t same = std::min(from, word.text.size());
        if (written.size() >= shift + same && written.substr(shift, same) == word.text.substr(0, same)) {
            part.span.begin = word.span.begin + static_cast<std::uint32_t>(shift + same);
            if (shift == 1 && part.span.end > part.span.begin) --part.span.end;
            break;
        }
    }
    if (word.unknown() && part.text.ends_with('"') && word.text.starts_with('"')) part.text.remove_suffix(1);
    return part;
}

std::string_view base_name_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_open_word(const Value& word) {
    if (!word.unknown()) return false;
    std::string_view text = word.text;
    if (!text.empty() && (text[0] == '"' || text[0] == '\'')) text.remove_prefix(1);
    if (text.ends_with(".py") || text.ends_with(".py\"")) return false;  // "$HOME/train.py": a program
    return text.starts_with('$') || text.starts_with('`') || text.starts_with('<');
}

}  // namespace stoker::lint
