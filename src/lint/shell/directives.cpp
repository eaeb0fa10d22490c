#include "lint/shell/directives.h"

#include <algorithm>

#include "formats/sbatch_line.h"
#include "formats/sbatch_values.h"

namespace stoker::lint {

namespace {

bool directive_blank(char c) {
    return c == ' ' || c == '\t';
}

// Not expanded by the scheduler, and what a template puts there is not known.
bool is_filled_in_later(std::string_view written) {
    for (const std::string_view mark : {"$", "`", "{{", "<", "%%"})
        if (written.find(mark) != std::string_view::npos) return true;
    return false;
}

struct DirectiveReader {
    const Source& source;
    std::string_view text;
    std::uint32_t at, end;

    void skip() {
        while (at < end && directive_blank(text[at])) ++at;
        if (at < end && text[at] == '#') at = end;
    }
    // A word, with its quotes.
    Span token() {
        const std::uint32_t begin = at;
        char quote = 0;
        for (; at < end; ++at) {
            const char c = text[at];
            if (quote != 0) {
                if (c == quote) quote = 0;
            } else if (c == '"' || c == '\'') {
                quote = c;
            } else if (directive_blank(c) || c == '#') {
                break;
            }
        }
        return {begin, at};
    }
    Value value(Span span) const {
        if (span.size() >= 2 && (text[span.begin] == '"' || text[span.begin] == '\'') &&
            text[span.end - 1] == text[span.begin]) {
            ++span.begin;
            --span.end;
        }
        const std::string_view written = text.substr(span.begin, span.end - span.begin);
        Value result = Value::known_text(written, span, source);
        if (is_filled_in_later(written)) result.state = Value::State::unknown;
        return result;
    }
};

// Of the file where it stands there as it is, else a copy that lives as long.
std::string_view kept_in(File& file, std::string_view text) {
    const std::string_view all = file.source().text();
    return text.data() >= all.data() && text.data() + text.size() <= all.data() + all.size() ? text
                                                                                             : file.tree.keep(text);
}

std::string_view expected_of(const sbatch::Argument& argument, const Value& value) {
    switch (argument.fault) {
        case sbatch::Fault::surplus_value: return "no value";
        case sbatch::Fault::open_quote: return "a closing quote";
        case sbatch::Fault::no_value: return "a value";
        default: break;
    }
    return argument.found && value.known() ? sbatch::expected_value(*argument.found.option, value.text)
                                           : std::string_view();
}

void read_sbatch(File& file, Span options, Directive directive, Script& script) {
    const Source& source = file.source();
    sbatch::LineReader line(source.text(), options.begin, options.end);
    sbatch::Argument argument;
    for (int count = 0; count < 64 && line.next(argument); ++count) {
        directive.span = {argument.begin, argument.end};
        directive.value = {};
        if (argument.has_value) {
            directive.value =
                Value::known_text(kept_in(file, argument.value), {argument.value_begin, argument.value_end}, source);
            if (is_filled_in_later(argument.value)) directive.value.state = Value::State::unknown;
        }
        directive.option = argument.found ? argument.found.option->name : kept_in(file, argument.name);
        directive.separator = argument.separator;
        directive.malformed =
            argument.fault == sbatch::Fault::no_option ||
            (argument.fault == sbatch::Fault::unknown && argument.name.find_first_of("{$<") == std::string_view::npos);
        directive.expected = expected_of(argument, directive.value);
        script.directives.push_back(directive);
    }
}

// #PBS -l select=2:ngpus=8, #$ -pe mpi 8: the letter, and all that follows as its value.
void read_pbs(DirectiveReader in, Directive directive, Script& script) {
    in.skip();
    if (in.at >= in.end || in.text[in.at] != '-') return;
    const Span token = in.token();
    directive.option = in.text.substr(token.begin + 1, token.size() - 1);
    in.skip();
    std::uint32_t stop = in.end;
    for (std::uint32_t j = in.at; j + 1 < in.end; ++j)
        if (directive_blank(in.text[j]) && in.text[j + 1] == '#') {
            stop = j;
            break;
        }
    while (stop > in.at && directive_blank(in.text[stop - 1])) --stop;
    if (in.at < stop) directive.value = in.value({in.at, stop});
    directive.span = {token.begin, std::max(token.end, stop)};
    script.directives.push_back(directive);
}

}  // namespace

void read_directive(File& file, Span line, bool after_command, Script& script) {
    const Source& source = file.source();
    const std::string_view text = source.text(line);
    Directive directive;
    directive.line = line;
    directive.after_command = after_command;
    if (const std::string_view prefix = sbatch::directive_prefix(text); !prefix.empty()) {
        directive.prefix = prefix;
        read_sbatch(file, {line.begin + static_cast<std::uint32_t>(prefix.size()), line.end}, directive, script);
        return;
    }
    if (text.starts_with("#PBS") || text.starts_with("#$ ")) {
        const std::size_t size = text[1] == 'P' ? 4 : 2;
        directive.prefix = text.substr(0, size);
        DirectiveReader in{source, source.text(), line.begin + static_cast<std::uint32_t>(size), line.end};
        if (in.at < in.end && !directive_blank(in.text[in.at])) {
            if (in.text[in.at] != '-') return;  // #PBSPRO: a comment
            const Span token = in.token();
            directive.option = in.text.substr(token.begin, token.size());
            directive.span = token;
            directive.malformed = true;
            script.directives.push_back(directive);
        } else {
            read_pbs(in, directive, script);
        }
        return;
    }
    // "# SBATCH --nodes=2": with an option behind it, or it is prose.
    std::size_t at = 1;
    while (at < text.size() && directive_blank(text[at])) ++at;
    if (at == 1 || !text.substr(at).starts_with("SBATCH")) return;
    std::size_t option = at + 6;
    while (option < text.size() && directive_blank(text[option])) ++option;
    if (option == at + 6 || option + 1 >= text.size() || text[option] != '-') return;
    directive.prefix = text.substr(0, at + 6);
    DirectiveReader in{source, source.text(), line.begin + static_cast<std::uint32_t>(option), line.end};
    const Span token = in.token();
    directive.option = in.text.substr(token.begin, token.size());
    directive.span = token;
    directive.malformed = true;
    script.directives.push_back(directive);
}

}  // namespace stoker::lint
