#include "lint/shell/directives.h"

#include <array>

#include "lint/shell/directive_values.h"

namespace stoker::lint {

namespace {

// sbatch(1) of Slurm 22.05, and what 23.02 to 24.11 added.
constexpr BatchOption kSbatch[] = {
    {"account", 'A', 'y'},
    {"acctg-freq", 0, 'y'},
    {"array", 'a', 'y'},
    {"batch", 0, 'y'},
    {"bb", 0, 'y'},
    {"bbf", 0, 'y'},
    {"begin", 'b', 'y'},
    {"chdir", 'D', 'y'},
    {"cluster-constraint", 0, 'y'},
    {"clusters", 'M', 'y'},
    {"comment", 0, 'y'},
    {"consolidate-segments", 0, 'n'},
    {"constraint", 'C', 'y'},
    {"container", 0, 'y'},
    {"container-id", 0, 'y'},
    {"contiguous", 0, 'n'},
    {"core-spec", 'S', 'y'},
    {"cores-per-socket", 0, 'y'},
    {"cpu-freq", 0, 'y'},
    {"cpus-per-gpu", 0, 'y'},
    {"cpus-per-task", 'c', 'y'},
    {"deadline", 0, 'y'},
    {"delay-boot", 0, 'y'},
    {"dependency", 'd', 'y'},
    {"distribution", 'm', 'y'},
    {"error", 'e', 'y'},
    {"exclude", 'x', 'y'},
    {"exclusive", 0, 'o'},
    {"export", 0, 'y'},
    {"export-file", 0, 'y'},
    {"extra", 0, 'y'},
    {"extra-node-info", 'B', 'y'},
    {"get-user-env", 0, 'o'},
    {"gid", 0, 'y'},
    {"gpu-bind", 0, 'y'},
    {"gpu-freq", 0, 'y'},
    {"gpus", 'G', 'y'},
    {"gpus-per-node", 0, 'y'},
    {"gpus-per-socket", 0, 'y'},
    {"gpus-per-task", 0, 'y'},
    {"gres", 0, 'y'},
    {"gres-flags", 0, 'y'},
    {"help", 'h', 'n'},
    {"hint", 0, 'y'},
    {"hold", 'H', 'n'},
    {"ignore-pbs", 0, 'n'},
    {"input", 'i', 'y'},
    {"job-name", 'J', 'y'},
    {"kill-on-invalid-dep", 0, 'y'},
    {"licenses", 'L', 'y'},
    {"mail-type", 0, 'y'},
    {"mail-user", 0, 'y'},
    {"mcs-label", 0, 'y'},
    {"mem", 0, 'y'},
    {"mem-bind", 0, 'y'},
    {"mem-per-cpu", 0, 'y'},
    {"mem-per-gpu", 0, 'y'},
    {"mincpus", 0, 'y'},
    {"network", 0, 'y'},
    {"nice", 0, 'o'},
    {"no-kill", 'k', 'o'},
    {"no-requeue", 0, 'n'},
    {"nodefile", 'F', 'y'},
    {"nodelist", 'w', 'y'},
    {"nodes", 'N', 'y'},
    {"ntasks", 'n', 'y'},
    {"ntasks-per-core", 0, 'y'},
    {"ntasks-per-gpu", 0, 'y'},
    {"ntasks-per-node", 0, 'y'},
    {"ntasks-per-socket", 0, 'y'},
    {"oom-kill-step", 0, 'o'},
    {"open-mode", 0, 'y'},
    {"output", 'o', 'y'},
    {"overcommit", 'O', 'n'},
    {"oversubscribe", 's', 'n'},
    {"parsable", 0, 'n'},
    {"partition", 'p', 'y'},
    {"power", 0, 'y'},
    {"prefer", 0, 'y'},
    {"priority", 0, 'y'},
    {"profile", 0, 'y'},
    {"propagate", 0, 'o'},
    {"qos", 'q', 'y'},
    {"quiet", 'Q', 'n'},
    {"reboot", 0, 'n'},
    {"requeue", 0, 'n'},
    {"reservation", 0, 'y'},
    {"resv-ports", 0, 'o'},
    {"segment", 0, 'y'},
    {"share", 0, 'n'},
    {"signal", 0, 'y'},
    {"sockets-per-node", 0, 'y'},
    {"spread-job", 0, 'n'},
    {"stepmgr", 0, 'n'},
    {"switches", 0, 'y'},
    {"tasks", 0, 'y', "ntasks"},
    {"tasks-per-node", 0, 'y', "ntasks-per-node"},
    {"test-only", 0, 'n'},
    {"thread-spec", 0, 'y'},
    {"threads-per-core", 0, 'y'},
    {"time", 't', 'y'},
    {"time-min", 0, 'y'},
    {"tmp", 0, 'y'},
    {"tres-bind", 0, 'y'},
    {"tres-per-task", 0, 'y'},
    {"uid", 0, 'y'},
    {"usage", 0, 'n'},
    {"use-min-nodes", 0, 'n'},
    {"verbose", 'v', 'n'},
    {"version", 'V', 'n'},
    {"wait", 'W', 'n'},
    {"wait-all-nodes", 0, 'y'},
    {"wckey", 0, 'y'},
    {"workdir", 0, 'y'},
    {"wrap", 0, 'y'},
};

bool directive_blank(char c) {
    return c == ' ' || c == '\t';
}

struct DirectiveReader {
    const Source& source;
    std::string_view text;
    std::uint32_t at, end;
    bool unmatched = false;  // a quote without its end

    void skip() {
        while (at < end && directive_blank(text[at])) ++at;
        if (at < end && text[at] == '#') at = end;  // sbatch knows comments behind options
    }
    // One argument as sbatch's own tokenizer has it; the value is without its quotes.
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
        unmatched |= quote != 0;
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
        // Not expanded by the scheduler, and what a template puts there is not known.
        for (const std::string_view mark : {"$", "`", "{{", "<", "%%"})
            if (written.find(mark) != std::string_view::npos) result.state = Value::State::unknown;
        return result;
    }
};

void read_sbatch(DirectiveReader in, Directive directive, Script& script) {
    std::size_t count = 0;
    const auto put = [&](Span span) {
        directive.span = span;
        script.directives.push_back(directive);
        ++count;
    };
    // The next argument as the value; where it ends.
    const auto argument = [&](std::uint32_t end) {
        in.skip();
        const Span next = in.token();
        if (next.empty()) return end;
        directive.value = in.value(next);
        return next.end;
    };
    const auto judge = [&](const BatchOption& known) {
        directive.option = known.name;
        if (!directive.expected.empty()) return;
        if (in.unmatched)
            directive.expected = "a closing quote";
        else if (directive.value.known())
            directive.expected = expected_by_sbatch(directive.option, directive.value.text);
        else if (directive.value.absent() && known.value == 'y')
            directive.expected = "a value";
    };
    while (in.skip(), in.at < in.end && count < 64) {
        directive.value = {};
        directive.malformed = false;
        directive.expected = {};
        const Span token = in.token();
        std::string_view word = in.text.substr(token.begin, token.size());
        if (word == "--") return;  // what follows is no option
        if (word.size() < 2 || word[0] != '-') {
            directive.option = word;
            directive.malformed = true;
            put(token);
            continue;
        }
        if (word[1] == '-') {
            const std::size_t equals = word.find('=');
            directive.option = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
            const BatchOption* known = sbatch_option(directive.option);
            Span span = token;
            if (equals != std::string_view::npos) {
                directive.value = in.value({token.begin + static_cast<std::uint32_t>(equals) + 1, token.end});
            } else if (known && known->value == 'y') {
                span.end = argument(token.end);
            } else if (!known) {  // of a plug-in: its value is not an argument of its own
                while (in.at < in.end && directive_blank(in.text[in.at])) ++in.at;
                if (in.at < in.end && in.text[in.at] != '-' && in.text[in.at] != '#') {
                    const Span next = in.token();
                    directive.value = in.value(next);
                    span.end = next.end;
                }
            }
            if (known && known->value == 'n' && equals != std::string_view::npos) directive.expected = "no value";
            if (known)
                judge(*known);
            else
                directive.malformed = !directive.option.starts_with("container-") &&
                                      !directive.option.starts_with("no-container-") &&
                                      directive.option.find_first_of("{$<") == std::string_view::npos;
            put(span);
            continue;
        }
        // -N4, -N 4; several switches in one word are rare: -Q -H.
        const BatchOption* known = sbatch_letter(word[1]);
        directive.option = known ? known->name : word.substr(1);
        directive.malformed = !known && word.find_first_of("{$<") == std::string_view::npos;
        Span span = token;
        if (word.size() > 2) {
            directive.value = in.value({token.begin + 2, token.end});
        } else if (known && known->value == 'y') {
            span.end = argument(token.end);
        }
        if (known) judge(*known);
        put(span);
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

const BatchOption* sbatch_option(std::string_view name) {
    const BatchOption* found = nullptr;
    for (const BatchOption& option : kSbatch) {
        if (option.name == name) return option.means.empty() ? &option : sbatch_option(option.means);
        if (name.size() > 1 && option.name.starts_with(name)) {
            if (found) return nullptr;  // ambiguous; an exact name would come first in order of length
            found = &option;
        }
    }
    return found;
}
const BatchOption* sbatch_letter(char letter) {
    for (const BatchOption& option : kSbatch)
        if (option.letter != '\0' && option.letter == letter) return &option;
    return nullptr;
}

void read_directive(const Source& source, Span line, bool after_command, Script& script) {
    const std::string_view text = source.text(line);
    Directive directive;
    directive.line = line;
    directive.after_command = after_command;
    if (text.starts_with("#SBATCH") || text.starts_with("#PBS") || text.starts_with("#$ ")) {
        const std::size_t size = text[1] == 'S' ? 7 : text[1] == 'P' ? 4 : 2;
        directive.prefix = text.substr(0, size);
        DirectiveReader in{source, source.text(), line.begin + static_cast<std::uint32_t>(size), line.end};
        if (in.at < in.end && !directive_blank(in.text[in.at])) {
            if (in.text[in.at] != '-') return;  // #SBATCHES, #PBSPRO: a comment
            const Span token = in.token();
            directive.option = in.text.substr(token.begin, token.size());
            directive.span = token;
            directive.malformed = true;
            script.directives.push_back(directive);
        } else if (size == 7) {
            read_sbatch(in, directive, script);
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
