#include "formats/sbatch_line.h"

#include "base/text.h"

namespace stoker::sbatch {

namespace {

bool is_sbatch_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

}  // namespace

std::string_view directive_prefix(std::string_view line) {
    return line.starts_with("#SBATCH") ? line.substr(0, 7) : std::string_view();
}

void LineReader::skip_blanks() {
    while (at_ < end_ && is_sbatch_blank(text_[at_])) ++at_;
}

bool LineReader::word(Word& word) {
    skip_blanks();
    word = {at_, at_, {}, false};
    char quote = 0;
    bool plain = true;
    std::string changed;
    const auto change = [&] {
        if (plain) changed = text_.substr(word.begin, at_ - word.begin);
        plain = false;
    };
    for (; at_ < end_; ++at_) {
        const char c = text_[at_];
        if (c == '\\') {
            change();
            if (at_ + 1 < end_) changed += text_[++at_];
            continue;
        }
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                changed += c;
            continue;
        }
        if (c == '"' || c == '\'') {
            change();
            quote = c;
            continue;
        }
        if (is_sbatch_blank(c) || c == '#') break;
        if (!plain) changed += c;
    }
    word.end = at_;
    word.open_quote = quote != 0;
    if (plain)
        word.text = text_.substr(word.begin, word.end - word.begin);
    else
        word.text = kept_.emplace_front(std::move(changed));
    // sbatch stops at a word of nothing: a comment, or two quotes.
    if (word.text.empty() && !word.open_quote) at_ = end_;
    return !word.text.empty() || word.open_quote;
}

void LineReader::take_value(Argument& argument, const Word& from, std::size_t skipped) {
    argument.has_value = true;
    argument.spaced = skipped == 0;
    argument.value = from.text.substr(skipped);
    argument.value_begin = from.begin + static_cast<std::uint32_t>(skipped);
    argument.value_end = argument.end = from.end;
    const std::string_view raw = text_.substr(argument.value_begin, argument.value_end - argument.value_begin);
    if (from.open_quote) {
        argument.fault = Fault::open_quote;
        argument.value = raw;
    } else if (raw.size() >= 2 && (raw.front() == '"' || raw.front() == '\'') && raw.front() == raw.back()) {
        ++argument.value_begin;
        --argument.value_end;
    }
}

void LineReader::long_option(Argument& argument, const Word& first) {
    const std::size_t equals = first.text.find('=');
    argument.name = first.text.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    argument.found = find_option(argument.name);
    const bool known = static_cast<bool>(argument.found);
    if (!known && !is_plugin_option(argument.name)) argument.fault = Fault::unknown;
    if (equals != std::string_view::npos) {
        if (known && argument.found.named->takes == Takes::nothing) argument.fault = Fault::surplus_value;
        take_value(argument, first, equals + 1);
        return;
    }
    if (first.open_quote) argument.fault = Fault::open_quote;
    if (known && argument.found.named->takes != Takes::value) return;
    // Of an option that is not known the next word is its value where it does not look like an option.
    skip_blanks();
    if (!known && at_ < end_ && text_[at_] == '-') return;
    Word next;
    const bool there = word(next);
    if (there)
        take_value(argument, next, 0);
    else if (known)
        argument.fault = Fault::no_value;
}

// Several in one word: of -HQ one after the other, of -N4 what follows is the value.
void LineReader::letter_option(Argument& argument) {
    const Word first = letters_;
    const std::size_t at = letter_;
    argument.letter = true;
    argument.name = first.text.substr(at, 1);
    if (at > 1) argument.begin = first.begin + static_cast<std::uint32_t>(at);
    const Option* option = find_letter(first.text[at]);
    argument.found = {option, option};
    letter_ = 0;
    if (option == nullptr) {
        argument.name = first.text.substr(at);
        argument.fault = Fault::unknown;
    } else if (option->takes == Takes::nothing) {
        if (at + 1 < first.text.size()) {
            argument.end = first.begin + static_cast<std::uint32_t>(at) + 1;
            letter_ = at + 1;
        }
    } else if (at + 1 < first.text.size()) {
        take_value(argument, first, at + 1);
    } else if (option->takes == Takes::maybe) {
    } else if (Word next; word(next)) {
        take_value(argument, next, 0);
    } else {
        argument.fault = Fault::no_value;
    }
}

bool LineReader::next(Argument& argument) {
    argument = {};
    Word first = letters_;
    if (letter_ == 0 && !word(first)) return false;
    argument.begin = first.begin;
    argument.end = first.end;
    if (letter_ == 0) {
        if (equals_ignore_case(first.text, "hetjob") || equals_ignore_case(first.text, "packjob")) {
            argument.separator = true;
            argument.name = first.text;
            return true;
        }
        if (!only_words_ && first.text == "--") {
            only_words_ = true;
            return next(argument);
        }
        if (only_words_ || first.text.size() < 2 || first.text[0] != '-') {
            argument.fault = Fault::no_option;
            argument.name = first.text;
            return true;
        }
        if (first.text[1] == '-') {
            long_option(argument, first);
            return true;
        }
        letters_ = first;
        letter_ = 1;
    }
    letter_option(argument);
    if (first.open_quote && argument.fault == Fault::none) argument.fault = Fault::open_quote;
    return true;
}

}  // namespace stoker::sbatch
