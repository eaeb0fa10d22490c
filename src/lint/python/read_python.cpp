#include "lint/python/read_python.h"

#include <algorithm>

#include "base/text.h"
#include "lint/python/python_reader.h"
#include "lint/shell/programs.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostPython = 1u << 20, kMostPythonGuests = 100;

// Words that no shell takes for anything else.
bool plain_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-./:=,@%+").find(c) != std::string_view::npos;
    });
}

bool starts_programs(std::string_view word) {
    const std::string_view name = base_name_of(word);
    return program_of(name) != Program::other || name.ends_with(".sh") ||
           one_of(name, {"az", "kubectl", "helm", "gcloud", "aws", "python"});
}

// subprocess.run, os.system, run_command: what is given words or a text to run.
bool runs_what_it_is_given(std::string_view path) {
    const std::string name = lower(path.substr(path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1));
    if (one_of(name, {"run", "call", "popen", "sh", "bash", "system", "sbatch", "local", "sudo", "getoutput"}))
        return true;
    return has_part(name, {"check_", "exec", "spawn", "shell", "run_", "_run", "cmd", "command", "submit", "launch",
                           "getstatus", "subprocess"});
}
bool only_tells(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1);
    return path.starts_with("log") || path.find(".log") != std::string_view::npos ||
           one_of(name, {"print", "echo", "secho", "info", "debug", "warning", "error", "exception", "add_argument",
                         "Option", "Argument", "help", "print_help", "ValueError", "RuntimeError", "parametrize"});
}

bool holds_a_program(std::string_view text) {
    std::size_t at = 0;
    for (int words = 0; at < text.size() && words < 400; ++words) {
        at = text.find_first_not_of(" \t\r\n;&|(\"'`", at);
        if (at == std::string_view::npos) return false;
        const std::size_t end = std::min(text.find_first_of(" \t\r\n;&|)\"'`", at), text.size());
        if (starts_programs(text.substr(at, end - at))) return true;
        at = end;
    }
    return false;
}

}  // namespace

PythonReader::PythonReader(File& file, const ReadOptions& options)
    : file_(file), options_(options), all_(file.source().text()) {}

void PythonReader::Guest::add(std::string_view bytes, Span host, bool verbatim) {
    if (bytes.empty()) return;
    pieces.push_back({static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(bytes.size()), host,
                      verbatim ? Piece::Kind::verbatim : Piece::Kind::changed});
    text += bytes;
}

void PythonReader::run() {
    if (all_.size() > kMostPython) return;
    tokens_ = python_tokens(all_, {0, static_cast<std::uint32_t>(all_.size())});
    learn_functions();
    const auto lines = static_cast<std::uint32_t>(tokens_.lines.size());
    scopes_.emplace_back();
    block(0, lines, nullptr, 0);  // what the file's own names come to; functions may stand before them
    scopes_.resize(1);
    scopes_.front().environment.clear();
    settings_.clear();
    telling_ = true;
    steps_ = 0;
    block(0, lines, nullptr, 0);
    while (!scopes_.empty()) close_scope();
    for (const auto& [origin, dict] : settings_) guest_of_settings(dict);
}

// ---- Words for a shell

void PythonReader::shell_word(const PyValue& word, Guest& to) {
    bool any = false;
    for (const PyPiece& piece : word.pieces) {
        any = true;
        if (!piece.known) {
            to.add("\"${" + piece.text + "}\"", piece.host);
        } else if (plain_word(piece.text) && piece.assumed) {
            to.add("${py_default:-" + piece.text + "}", piece.host);
        } else if (plain_word(piece.text)) {
            to.add(piece.text, piece.host, piece.verbatim);
        } else if (piece.text.find('\'') == std::string::npos) {
            to.add("'", {piece.host.begin, piece.host.begin});
            to.add(piece.text, piece.host, piece.verbatim);
            to.add("'", {piece.host.end, piece.host.end});
        } else {
            std::string quoted = "\"";
            for (const char c : piece.text) {
                if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
                quoted += c;
            }
            to.add(quoted + "\"", piece.host);
        }
    }
    if (any) return;
    if (word.is_text())
        to.add("''", word.span);
    else
        to.add("\"${py_word}\"", word.span);
}

// As it stands, with what is not known as variables that nobody sets. `template_text`: {name} is such, too.
void PythonReader::shell_text(const PyValue& text, Guest& to, bool template_text) {
    for (const PyPiece& piece : text.pieces) {
        if (!piece.known) {
            to.add("${" + piece.text + "}", piece.host);
            continue;
        }
        if (piece.assumed && plain_word(piece.text)) {
            to.add("${py_default:-" + piece.text + "}", piece.host);
            continue;
        }
        std::size_t from = 0;
        const auto host_of = [&](std::size_t begin, std::size_t end) {
            return piece.verbatim ? Span{piece.host.begin + static_cast<std::uint32_t>(begin),
                                         piece.host.begin + static_cast<std::uint32_t>(end)}
                                  : piece.host;
        };
        for (std::size_t at = template_text ? piece.text.find('{') : std::string::npos; at != std::string::npos;
             at = piece.text.find('{', at + 1)) {
            const std::size_t end = piece.text.find('}', at);
            if (end == std::string::npos) break;
            const std::string_view name = std::string_view(piece.text).substr(at + 1, end - at - 1);
            if ((at > 0 && piece.text[at - 1] == '$') || !env_name(name)) continue;
            to.add(std::string_view(piece.text).substr(from, at - from), host_of(from, at), piece.verbatim);
            to.add("${py_" + std::string(name) + "}", host_of(at, end + 1));
            from = end + 1;
        }
        to.add(std::string_view(piece.text).substr(from), host_of(from, piece.text.size()), piece.verbatim);
    }
}

// What os.environ was given before, and what the call gives.
void PythonReader::environment_lines(const PyValue* environment, Guest& to) const {
    const auto line = [&](const std::string& name, const PyValue& value) {
        if (!env_name(name)) return;
        Guest made;
        made.add("export " + name + "=", {value.span.begin, value.span.begin});
        shell_word(value, made);
        made.add("\n", {value.span.end, value.span.end});
        for (const Piece& piece : made.pieces)
            to.add(std::string_view(made.text).substr(piece.guest, piece.length), piece.host,
                   piece.kind == Piece::Kind::verbatim);
    };
    for (const Scope& scope : scopes_)
        for (const auto& [name, value] : scope.environment) line(name, value);
    if (environment && environment->is_dict())
        for (const auto& [name, value] : environment->entries) line(name, value);
}

bool PythonReader::put_guest(std::uint32_t origin, Guest guest, Kinds kinds) {
    told_.insert(origin);
    if (file_.guests.size() >= kMostPythonGuests || !put_.emplace(origin, guest.text).second) return true;
    const File* made = read_guest(file_, std::move(guest.text), std::move(guest.pieces), kinds, options_);
    if (made && !made->problems.empty())
        file_.guests.pop_back();  // holes where the language has none
    else if (made && made->kinds.has(Kind::slurm))
        file_.kinds.add(Kind::slurm);
    return true;
}

// A batch script that it writes or gives sbatch.
bool PythonReader::batch_script(const PyValue& text) {
    const std::string whole = text.joined();
    if (!whole.starts_with("#!") || whole.find('\n') == std::string::npos) return false;
    const std::string_view first = std::string_view(whole).substr(0, whole.find('\n'));
    if (first.find("sh") == std::string_view::npos) return false;
    const bool batch = whole.find("\n#SBATCH") != std::string::npos;
    if (!batch && !holds_a_program(whole)) return false;
    Guest guest;
    shell_text(text, guest, true);
    return put_guest(text.origin, std::move(guest),
                     batch ? Kinds{Kind::slurm, Kind::launch, Kind::az} : Kinds{Kind::launch, Kind::az});
}

bool PythonReader::command(const PyValue& value, const PyValue* environment) {
    Guest guest;
    if (value.is_text()) {
        if (batch_script(value)) return true;
        if (!holds_a_program(value.joined())) return false;
        environment_lines(environment, guest);
        shell_text(value, guest, false);
        return put_guest(value.origin, std::move(guest), {Kind::launch, Kind::az});
    }
    if (!value.is_list() || value.items.empty()) return false;
    const PyValue& program = value.items.front();
    if (!program.is_text() || !program.known() || !starts_programs(program.joined())) return false;
    environment_lines(environment, guest);
    bool first = true;
    for (const PyValue& item : value.items) {
        if (!first) guest.add(" ", {item.span.begin, item.span.begin});
        first = false;
        shell_word(item, guest);
    }
    if (value.open) guest.add(" \"${py_more[@]}\"", {value.span.end, value.span.end});
    return put_guest(value.origin, std::move(guest), {Kind::launch, Kind::az});
}

void PythonReader::called(const Call& call) {
    if (only_tells(call.path)) return;
    const bool runs = runs_what_it_is_given(call.path);
    const PyValue* environment = call.argument(99, "env");
    for (const auto& [name, value] : call.named) {
        if (value.is_text() && batch_script(value)) continue;
        if (one_of(name, {"command", "cmd", "entrypoint", "entry_point", "startup_script", "args"}) ||
            (runs && one_of(name, {"script", "input"})))
            command(value, environment);
    }
    for (const PyValue& value : call.arguments) {
        if (value.is_list() && (runs || value.items.size() > 1) && command(value, environment)) continue;
        if (value.is_text() && (batch_script(value) || (runs && command(value, environment)))) continue;
    }
    // os.execlp("torchrun", "torchrun", ...), session.run("torchrun", ...): each word for itself.
    if (runs && call.arguments.size() > 1 && call.arguments.front().is_text() &&
        !told_.contains(call.arguments.front().origin)) {
        PyValue list = PyValue::of(PyValue::Kind::list, call.span);
        list.items = call.arguments;
        list.open = call.open;
        if (has_part(call.path, {"execl", "spawnl"}) && list.items.size() > 1) list.items.erase(list.items.begin());
        if (std::all_of(list.items.begin(), list.items.end(),
                        [](const PyValue& item) { return !item.is_list() && !item.is_dict(); }))
            command(list, environment);
    }
}

// A list or text that no call was given where it can be seen: its name says what it is for.
void PythonReader::seen(std::string_view name, const PyValue& value) {
    if (!telling_ || told_.contains(value.origin)) return;
    if (value.is_list() && value.items.size() > 1) {
        command(value, nullptr);
    } else if (value.is_text()) {
        if (batch_script(value)) return;
        if (name == "return" || has_part(name, {"cmd", "command", "entrypoint"})) {
            const std::vector<PyValue> words = py_words(value);
            if (words.size() > 1 && words.front().known() && starts_programs(words.front().joined()))
                command(value, nullptr);
        }
    }
}

// ---- Settings of DeepSpeed

void PythonReader::settings(const PyValue& dict) {
    if (!telling_ || inlined_ > 0 || !dict.is_dict()) return;
    const bool known = dict.find("zero_optimization") || dict.find("train_micro_batch_size_per_gpu") ||
                       (dict.find("train_batch_size") && (dict.find("bf16") || dict.find("fp16")));
    if (known || settings_.contains(dict.origin)) settings_.insert_or_assign(dict.origin, dict);
}

bool PythonReader::json_text(const PyValue& value, Guest& to, int depth) {
    using Sort = PyValue::Kind;
    const Span end{value.span.end, value.span.end};
    if (depth > 20 || value.open) return false;
    if (value.is_dict() || value.is_list()) {
        to.add(value.is_dict() ? "{" : "[", {value.span.begin, value.span.begin});
        bool first = true;
        const auto comma = [&](Span at) {
            if (!first) to.add(", ", {at.begin, at.begin});
            first = false;
        };
        for (const auto& [key, entry] : value.entries) {
            comma(entry.span);
            if (key.find_first_of("\"\\\n") != std::string::npos) return false;
            to.add("\"" + key + "\": ", {entry.span.begin, entry.span.begin});
            if (key == "stage" && (!entry.known() || entry.assumed())) return false;
            if (!json_text(entry, to, depth + 1)) return false;
        }
        for (const PyValue& item : value.items) {
            comma(item.span);
            if (!json_text(item, to, depth + 1)) return false;
        }
        to.add(value.is_dict() ? "}" : "]", end);
        return true;
    }
    if (value.kind == Sort::none) {
        to.add("null", value.span);
    } else if (!value.known() || value.assumed()) {
        to.add("\"auto\"", value.span);
    } else if (value.is_text()) {
        if (value.joined().find_first_of("\"\\\n") != std::string::npos) return false;
        to.add("\"", {value.span.begin, value.span.begin});
        for (const PyPiece& piece : value.pieces) to.add(piece.text, piece.host, piece.verbatim);
        to.add("\"", end);
    } else if (value.kind == Sort::truth) {
        to.add(value.joined() == "True" ? "true" : "false", value.span);
    } else {
        std::string digits = value.joined();
        std::erase(digits, '_');
        to.add(digits, value.span);
    }
    return true;
}

void PythonReader::guest_of_settings(const PyValue& dict) {
    Guest guest;
    if (json_text(dict, guest, 0)) put_guest(dict.origin, std::move(guest), {Kind::deepspeed});
}

bool is_python(std::string_view path, std::string_view text) {
    const std::string_view name = base_name_of(path);
    // A test has examples in it, wrong ones, too.
    if (!name.ends_with(".py") || name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py")
        return false;
    const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
    if (has("zero_optimization") || has("train_micro_batch_size_per_gpu") || has("#SBATCH")) return true;
    if (has("subprocess") || has("os.system(") || has("os.exec") || has("os.popen(") || has("Popen(")) return true;
    // Jobs of services and runners of one's own.
    return (has("command") || has("cmd") || has("entrypoint") || has("run(")) &&
           (has("torchrun") || has("torch.distributed") || has("deepspeed") || has("accelerate") || has("srun ") ||
            has("sbatch") || has("mpirun") || has("vllm") || has("sglang") || has("docker ") || has("kubectl ") ||
            has("tritonserver") || has("trtllm"));
}

void read_python(File& file, const ReadOptions& options) {
    PythonReader(file, options).run();
}

}  // namespace stoker::lint
