#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool sec009_is_notebook(const std::vector<Value>& words) {
    for (std::size_t i = 0; i < words.size() && i < 30; ++i)
        if (words[i].known()) {
            const std::string_view program = program_name(words[i].text);
            for (const std::string_view known :
                 {"jupyter", "jupyter-lab", "jupyter-notebook", "jupyterlab", "start-notebook.sh", "start-notebook.py",
                  "start-singleuser.sh", "start-singleuser.py", "start.sh"})
                if (program == known) return true;
        }
    return false;
}

bool sec009_is_empty(std::string_view text) {
    return text.empty() || text == "''" || text == "\"\"";
}

// The option that empties the token; null: none does.
const Value* sec009_open(const std::vector<Value>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (!words[i].known()) continue;
        for (const std::string_view name :
             {"--NotebookApp.token", "--ServerApp.token", "--IdentityProvider.token", "--LabApp.token"}) {
            if (!words[i].text.starts_with(name)) continue;
            const std::string_view rest = words[i].text.substr(name.size());
            if (rest.starts_with('=') && sec009_is_empty(rest.substr(1))) return &words[i];
            if (rest.empty() && i + 1 < words.size() && words[i + 1].known() && sec009_is_empty(words[i + 1].text))
                return &words[i];
        }
    }
    return nullptr;
}

// JUPYTER_TOKEN= does the same, for images that bind to all interfaces by themselves.
void sec009_by_environment(const Container& container, Report& report) {
    const EnvVar* token = container.env("JUPYTER_TOKEN");
    if (!token || !token->value.known() || !token->value.text.empty()) return;
    bool notebook = container.image.known() && contains_nocase(container.image.text, "jupyter");
    for (const WordList& command : commands_of(container)) notebook |= sec009_is_notebook(*command.words);
    if (!notebook) return;
    report.add(*token->value.source, token->span, container.address,
               "a notebook server with an empty token: whoever reaches the port runs code on the GPU");
}

// A password beside the empty token closes the door again.
bool sec009_has_password(const std::vector<Value>& words) {
    for (const Value& word : words)
        for (const std::string_view name :
             {"--NotebookApp.password=", "--ServerApp.password=", "--PasswordIdentityProvider.hashed_password="})
            if (word.present() && word.text.starts_with(name) &&
                (!word.known() || !sec009_is_empty(word.text.substr(name.size()))))
                return true;
    return false;
}

bool sec009_binds_all(const std::vector<Value>& words) {
    for (const std::string_view option : {"--ip", "--NotebookApp.ip", "--ServerApp.ip"}) {
        const Value ip = option_of(words, {option});
        if (ip.known()) {
            const std::string_view text = ip.text;
            if (text == "0.0.0.0" || text == "*" || text == "::" || text == "'0.0.0.0'" || text == "'*'") return true;
        }
    }
    return false;
}

void sec009_judge(const std::vector<Value>& words, const std::string& address, Report& report) {
    if (!sec009_is_notebook(words)) return;
    const Value* open = sec009_open(words);
    if (!open || sec009_has_password(words) || !sec009_binds_all(words)) return;
    Finding* finding =
        report.add(*open->source, open->span, address,
                   "a notebook server without token on all interfaces: whoever reaches the port runs code "
                   "on the GPU");
    if (finding) finding->advice = "leave the token out (a random one is printed) or bind to 127.0.0.1";
}

}  // namespace

void check_sec009(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        for (const WordList& command : commands_of(container)) sec009_judge(*command.words, container.address, report);
        sec009_by_environment(container, report);
    });
    each_service(file, [&](const Container& service) {
        for (const WordList& command : commands_of(service)) sec009_judge(*command.words, service.address, report);
        sec009_by_environment(service, report);
    });
    for_each_part(file, [&](const File& part) {
        if (part.host_container) return;  // told above
        for (const Command& command : part.script.commands)
            sec009_judge(command.words, "sh:jupyter@" + std::to_string(command.list), report);
    });
}

}  // namespace stoker::lint
