// Steps of workflows: GitHub Actions, Azure Pipelines, GitLab CI. Each script is read as one, with the environment that
// stands above it.
// Longer than 500 lines because one walk keeps the environment, the rounds of a matrix and what earlier steps hand on.
#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/knowledge.h"
#include "lint/read.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/node_text.h"
#include "lint/shell/playbook_variables.h"
#include "lint/shell/read_script_files.h"
#include "lint/shell/step_files.h"

namespace stoker::lint {

namespace {

constexpr int kMostWorkflowDepth = 24;
constexpr int kMostTemplatesDeep = 3;
constexpr std::size_t kMostCallsOfAll = 64;  // of one workflow, with those of its templates
constexpr std::size_t kMostWorkflowSteps = 200;
constexpr std::size_t kMostWorkflowCalls = 16, kMostWorkflowBytes = 256u << 10;

class WorkflowFinder {
public:
    WorkflowFinder(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void run() {
        dialect_ = step_dialect_of(file_.path(), file_.source().text());
        if (!dialect_) dialect_ = step_dialect_of("action.yml", "");  // --kind, a template that a pipeline calls
        if (dialect_->tool == "GitLab CI" && !file_.call) included_ = documents_taken_in(file_, options_);
        if (dialect_->tool == "Ansible" && !file_.host) playbook_.learn_beside(file_, options_);
        for (const Node* root : file_.tree.roots) {
            devices(*root);
            inputs(*root);
            walk(*root, 0);
        }
        file_.services.reserve(file_.services.size() + steps_.size());  // guests point at them
        for (Step& step : steps_) {
            Container& around = file_.services.emplace_back();
            around.node = step.texts.front();
            around.address = "workflow:step/" + std::to_string(file_.services.size());
            around.anchor = step.texts.front()->key_span;
            around.environment = std::move(step.environment);
            around.resources = devices_;
            std::string text;
            std::vector<Piece> pieces;
            for (const Node* part : step.texts) {
                if (!text.empty() && !text.ends_with('\n')) {
                    const Span before = part->span;
                    pieces.push_back({static_cast<std::uint32_t>(text.size()),
                                      1,
                                      {before.begin, before.begin},
                                      Piece::Kind::changed});
                    text += '\n';
                }
                for (Piece piece : pieces_of_scalar(part->text, *part->source, part->span)) {
                    piece.guest += static_cast<std::uint32_t>(text.size());
                    pieces.push_back(piece);
                }
                text += part->text;
            }
            step.variables.fill(text, pieces);
            hide_templates(text);
            Kinds kinds = classify("", text);  // a heredoc in it may look like something else
            if (!kinds.has(Kind::launch)) kinds = {Kind::launch};
            const Source* written = step.texts.front()->source;
            File* guest = read_guest(file_, std::move(text), std::move(pieces), kinds, options_, &around, written);
            if (guest && !guest->problems.empty())
                file_.guests.pop_back();  // of a shell that is none of ours
            else if (guest)
                around.scripts.push_back(guest);
        }
    }

private:
    struct Step {
        std::vector<const Node*> texts;  // lines of one shell
        std::vector<EnvVar> environment;
        PlaybookVariables variables;
    };

    // accelerators: H100:8, gpu: {name: H100, count: 8}: GPUs beside each node's script.
    void devices(const Node& root) {
        const Node* resources = root.find("resources");
        for (const std::string_view key : {"accelerators", "gpu"}) {
            const Node* asked = resources ? resources->find(key) : nullptr;
            if (!asked) continue;
            const Node* count_of = asked->find("count");
            if (!count_of && key == "accelerators" && asked->count() == 1) count_of = asked->first;  // {H100: 8}
            Value amount = Value::of(count_of ? count_of : asked);
            if (asked->is_scalar()) {
                const std::size_t colon = asked->text.rfind(':');
                const std::string_view count = colon == std::string_view::npos ? "1" : asked->text.substr(colon + 1);
                if (count.empty() || count.find_first_not_of("0123456789") != std::string_view::npos) continue;
                amount.text = file_.tree.keep(count);
            } else if (!count_of) {
                continue;
            }
            devices_.push_back({"nvidia.com/gpu", amount, asked->key_span, true});
        }
        const Node* nodes = root.find("num_nodes");
        if (nodes && resources) environment_.push_back({"SKYPILOT_NUM_NODES", Value::of(nodes), nodes->key_span});
        if (const Node* list = root.find("instance_types");
            list && list->first && Knowledge::looks_like_size(list->first->text))
            sizes(*list);
    }
    void sizes(const Node& written) {
        Resource& made = file_.resources.emplace_back();
        made.address = "task:" + std::string(written.key);
        made.written = dialect_->tool;
        made.header = written.key_span;
        made.whole = written.whole();
        made.file = &file_;
        made.source = written.source;
        made.node = &written;
        if (written.is_scalar()) made.set(Attr::size, Value::of(&written));
        for (const Node& each : children(&written))
            if (each.is_scalar()) made.set(Attr::size, Value::of(&each));
    }

    // What a step gives an action, or a job a workflow of another repository: a size, or a variable that is one.
    void handed_over(const Node& step) {
        // What is here is read with what it is given: see calls().
        if (step.find("uses")->text.starts_with("./")) return;
        for (const Node& each : children(step.find("with"))) {
            // A script is read as one.
            if (!each.is_scalar() || each.text.size() > 4096 || each.key == "inlineScript" || each.key == "script")
                continue;
            if (Knowledge::looks_like_size(each.text)) sizes(each);
            std::vector<std::string_view> seen;  // the innermost of one name counts
            for (auto it = environment_.rbegin(); it != environment_.rend(); ++it) {
                const EnvVar& variable = *it;
                if (std::find(seen.begin(), seen.end(), variable.name) != seen.end()) continue;
                seen.push_back(variable.name);
                if (!variable.value.known() || !variable.value.node || !Knowledge::looks_like_size(variable.value.text))
                    continue;
                const std::string use = "env." + std::string(variable.name);
                const std::size_t at = each.text.find(use);
                if (at == std::string_view::npos || !env_sign_ends(each.text, at + use.size())) continue;
                const bool there = std::any_of(file_.resources.begin(), file_.resources.end(),
                                               [&](const Resource& made) { return made.node == variable.value.node; });
                if (!there) sizes(*variable.value.node);
            }
        }
    }
    static bool env_sign_ends(std::string_view text, std::size_t at) {
        return at >= text.size() || !(std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
    }

    // ${{ inputs.x }}, ${{ parameters.x }}: their defaults.
    void inputs(const Node& root) {
        for (const std::string_view on : {"on", "true"})  // "on" is a truth value to some readers
            for (const std::string_view how : {"workflow_dispatch", "workflow_call"})
                for (const Node& input : children(root.at({on, how, "inputs"})))
                    given("inputs.", input.key, input.find("default"));
        if (file_.call)  // what the workflow that calls this one gives comes before its defaults
            for (const auto& [name, value] : file_.call->inputs)
                for (const std::string_view space : {"inputs.", "parameters."}) given(space, name, value);
        for (const Node& input : children(root.find("inputs"))) given("inputs.", input.key, input.find("default"));
        for (const Node& parameter : children(root.find("parameters")))
            if (const Node* name = parameter.find("name"); name && name->is_scalar())
                given("parameters.", name->text, parameter.find("default"));
    }
    void given(std::string_view space, std::string_view name, const Node* value) {
        const std::string whole = std::string(space) + std::string(name);
        if (!value || !value->is_scalar() || (file_.call && known_as(whole))) return;
        environment_.push_back({file_.tree.keep(whole), filled(Value::of(value)), value->key_span});
    }
    // A value that names others: ${{ parameters.size }}, $(size).
    Value filled(Value value) {
        std::string text(value.text);
        bool changed = false;
        for (std::size_t at = text.find('$'), rounds = 0; at != std::string::npos && rounds < 20;
             at = text.find('$', at + 1), ++rounds) {
            const bool braces = text.compare(at, 3, "${{") == 0, bracket = text.compare(at, 2, "$(") == 0;
            const std::size_t end = text.find(braces ? "}}" : ")", at);
            if ((!braces && !bracket) || end == std::string::npos) continue;
            std::string_view name =
                trim(std::string_view(text).substr(at + (braces ? 3 : 2), end - at - (braces ? 3 : 2)));
            for (const std::string_view space : {"env.", "variables.", "vars."})
                if (name.starts_with(space) && !known_as(name)) name.remove_prefix(space.size());
            const EnvVar* other = known_as(name);
            if (!other || !other->value.known()) continue;
            text.replace(at, end + (braces ? 2 : 1) - at, other->value.text);
            changed = true;
            if (text.size() > 4096) return value;
        }
        if (!changed) return value;
        value.text = file_.tree.keep(text);
        value.state = Value::State::known;
        return value;
    }
    const EnvVar* known_as(std::string_view name) const {
        for (auto it = environment_.rbegin(); it != environment_.rend(); ++it)
            if (it->name == name) return &*it;
        for (auto it = said_.rbegin(); it != said_.rend(); ++it)
            if (it->name == name) return &*it;
        return nullptr;
    }
    // echo "size=x" >> "$GITHUB_OUTPUT", ::set-output, GITHUB_ENV, ##vso[task.setvariable]: what later steps are given.
    void said(const Node& step, const Node& script) {
        const std::string_view text = script.text;
        const std::vector<std::string> worked_out = echoed(script);
        auto next = worked_out.begin();
        const Node* id = step.find("id") ? step.find("id") : step.find("name");
        for (const std::string_view raw : split(text, '\n')) {
            const std::string_view line = trim(raw);
            const bool output = line.find("GITHUB_OUTPUT") != std::string_view::npos,
                       environment = line.find("GITHUB_ENV") != std::string_view::npos;
            std::string_view pair;
            bool azure = false;
            if (const std::size_t at = line.find("##vso[task.setvariable variable="); at != std::string_view::npos) {
                pair = line.substr(at + 32);
                azure = true;
            } else if ((output || environment) && line.starts_with("echo ")) {
                pair = trim(line.substr(
                    5, line.find(">>") == std::string_view::npos ? std::string_view::npos : line.find(">>") - 5));
                if (next != worked_out.end()) {
                    if (pair.find('$') != std::string_view::npos && !next->empty()) pair = *next;
                    ++next;
                }
            } else {
                continue;
            }
            while (!pair.empty() && (pair.front() == '"' || pair.front() == '\'')) pair.remove_prefix(1);
            while (!pair.empty() && (pair.back() == '"' || pair.back() == '\'' || pair.back() == ' '))
                pair.remove_suffix(1);
            const std::size_t mark = azure ? pair.find_first_of(";]") : pair.find('=');
            const std::size_t from = azure ? pair.find(']') : mark;
            if (mark == std::string_view::npos || from == std::string_view::npos) continue;
            Value value = Value::known_text(pair.substr(from + 1), {}, file_.source());
            value = filled(value);
            if (value.text.find_first_of("$`") != std::string_view::npos) continue;
            value.text = file_.tree.keep(value.text);
            std::string name(pair.substr(0, mark));
            if (output && id && id->is_scalar())
                name = "steps." + std::string(id->text) + ".outputs." + name;
            else if (output)
                continue;
            said_.push_back({file_.tree.keep(name), value, step.key_span});
        }
    }
    // The words that echo hands on to $GITHUB_OUTPUT and $GITHUB_ENV, one by one as the script works them out; none
    // where their number is not that of the lines that say so.
    std::vector<std::string> echoed(const Node& script) {
        const std::string_view text = script.text;
        if (text.find("GITHUB_") == std::string_view::npos || text.find('$') == std::string_view::npos) return {};
        Container around;
        around.environment = environment_;
        File* guest = read_guest(file_, std::string(text), pieces_of_scalar(text, *script.source, script.span),
                                 {Kind::launch}, {}, &around, script.source);
        if (!guest) return {};
        std::vector<std::string> found;
        for (const Command& command : guest->script.commands) {
            if (command.name() != "echo" || command.words.size() < 2) continue;
            for (const Redirect& each : command.redirects)
                if (each.target.text.find("GITHUB_OUTPUT") != std::string_view::npos ||
                    each.target.text.find("GITHUB_ENV") != std::string_view::npos)
                    found.emplace_back(command.words[1].known() ? command.words[1].text : std::string_view());
        }
        file_.guests.pop_back();
        std::size_t lines = 0;
        for (const std::string_view line : split(text, '\n'))
            lines += trim(line).starts_with("echo ") && (line.find("GITHUB_OUTPUT") != std::string_view::npos ||
                                                         line.find("GITHUB_ENV") != std::string_view::npos)
                         ? 1
                         : 0;
        return lines == found.size() ? found : std::vector<std::string>();
    }
    // extends: .base of GitLab: its variables below the job's own, and its scripts where the job has none.
    void extended(const Node& job, std::vector<const Node*>& bases) {
        const Node* names = job.find("extends");
        std::vector<std::string_view> wanted;
        if (names && names->is_scalar()) wanted.push_back(names->text);
        for (const Node& name : children(names))
            if (name.is_scalar()) wanted.push_back(name.text);
        std::vector<const Node*> roots(file_.tree.roots.begin(), file_.tree.roots.end());
        roots.insert(roots.end(), included_.begin(), included_.end());
        for (const std::string_view name : wanted)
            for (const Node* root : roots)
                if (const Node* base = root->find(name); base && base->is_object() && bases.size() < 8 &&
                                                         std::find(bases.begin(), bases.end(), base) == bases.end()) {
                    extended(*base, bases);
                    bases.push_back(base);
                }
    }

    // uses: ./.github/workflows/x.yml of GitHub, template: x.yml of Azure Pipelines: read with what they are given
    // here.
    void calls(const Node& node) {
        const Node *uses = node.find("uses"), *other = node.find("template");
        const Node* named = uses ? uses : other;
        if (!named || !named->is_scalar() || !options_.neighbour || file_.host ||
            file_.calls.size() >= kMostWorkflowCalls)
            return;
        const int depth = file_.call ? file_.call->depth + 1 : 1;
        if (depth > kMostTemplatesDeep || (file_.call && uses)) return;
        File* root = &file_;
        while (root->call) root = root->call->caller;
        std::string path(named->text);
        const std::size_t github = file_.path().rfind(".github/");
        if (uses && (!path.starts_with("./") || github == std::string::npos)) return;
        if (other && (path.find('@') != std::string::npos || path.starts_with('/'))) return;
        if (uses) {
            path = to_the_top(file_) + path.substr(2);
            if (!path.ends_with(".yml") && !path.ends_with(".yaml")) path += "/action.yml";
        }
        auto text = options_.neighbour(path);
        if (!text || text->size() > kMostWorkflowBytes) return;
        // What a template names in turn is seen from its folder.
        ReadOptions inside;
        if (const std::size_t slash = path.rfind('/'); other && slash != std::string::npos)
            inside.neighbour = [outer = options_.neighbour, folder = path.substr(0, slash + 1)](
                                   const std::string& name) { return outer(folder + name); };
        else if (other)
            inside.neighbour = options_.neighbour;
        const Node* arguments = node.find(uses ? "with" : "parameters");
        const auto make_call = [&]() {
            ModuleCall call;
            call.name = uses ? "uses" : "template";
            call.caller = &file_;
            call.span = named->span;
            call.depth = depth;
            add_inputs(arguments, call);
            if (!call.inputs.empty() && file_.calls.size() < kMostWorkflowCalls &&
                ++root->module_calls <= kMostCallsOfAll)
                read_called(file_, path_from(file_.path(), path), *text, std::move(call), inside);
        };
        bool once = true;  // else once for each round that an argument names
        for (const auto& round : rounds_)
            for (const EnvVar& variable : round)
                for (const Node& argument : children(arguments))
                    once = once && argument.text.find(variable.name) == std::string_view::npos;
        if (once) return make_call();
        for (const auto& round : rounds_) {
            const std::size_t outer = environment_.size();
            environment_.insert(environment_.end(), round.begin(), round.end());
            make_call();
            environment_.resize(outer);
        }
    }
    void add_inputs(const Node* arguments, ModuleCall& call) {
        for (const Node& value : children(arguments)) {
            if (!value.is_scalar()) {  // a list that the template goes through
                call.inputs.emplace_back(value.key, &value);
                continue;
            }
            if (const Node* list = list_named_by(value.text)) {
                call.inputs.emplace_back(value.key, list);
                continue;
            }
            Node& given = file_.tree.make(*value.source, value.shape, value.span);
            const Value worked_out = filled(Value::of(&value));
            given.text = worked_out.text, given.known = worked_out.known(), given.key_span = value.key_span;
            call.inputs.emplace_back(value.key, &given);
        }
    }
    // ${{ parameters.pools }} as a whole: what this file was given under that name, or its default.
    const Node* list_named_by(std::string_view text) const {
        text = trim(text);
        if (!text.starts_with("${{") || !text.ends_with("}}")) return nullptr;
        text = trim(text.substr(3, text.size() - 5));
        const Node* value = text.starts_with("parameters.") ? parameter(text.substr(11)) : nullptr;
        return value && !value->is_scalar() ? value : nullptr;
    }
    const Node* parameter(std::string_view name) const {
        if (file_.call)
            for (const auto& [given, value] : file_.call->inputs)
                if (given == name) return value;
        for (const Node* root : file_.tree.roots)
            for (const Node& each : children(root->find("parameters")))
                if (const Node* named = each.find("name"); named && named->text == name) return each.find("default");
        return nullptr;
    }
    // script: [!reference [.base, script]] of GitLab.
    void line(const Node& text) {
        if (!text.is_array()) return script(text);
        const Node *name = text.first, *part = name ? name->next : nullptr;
        for (const Node* root : file_.tree.roots) {
            const Node* base =
                name && part && name->is_scalar() && part->is_scalar() ? root->find(name->text) : nullptr;
            const Node* there = base ? base->find(part->text) : nullptr;
            if (!there) continue;
            script(*there);
            for (const Node& each : children(there)) script(each);
            return;
        }
        for (const Node& each : children(&text)) script(each);
    }

    void learn(const Node* names) {
        for (const Node& entry : children(names)) {
            if (const Node* other = entry.find("template"); other && other->is_scalar()) learn_file(other->text);
            learn_entry(entry);
        }
    }
    void learn_entry(const Node& entry) {
        const Node *name = entry.find("name"), *value = entry.find("value");
        if (entry.is_scalar() && !entry.key.empty())
            environment_.push_back({entry.key, filled(Value::of(&entry)), entry.key_span});
        else if (name && value && name->is_scalar() && value->is_scalar())
            environment_.push_back({name->text, filled(Value::of(value)), name->span});
    }
    // variables: - template: prod.yml of Azure Pipelines.
    void learn_file(std::string_view path) {
        if (!options_.neighbour || path.find('@') != std::string_view::npos || path.starts_with('/') ||
            ++variable_files_ > kMostWorkflowCalls)
            return;
        auto text = options_.neighbour(std::string(path));
        if (!text || text->size() > kMostWorkflowBytes || text->find('\0') != std::string::npos) return;
        file_.neighbours.push_back(std::make_unique<File>(path_from(file_.path(), path), std::move(*text)));
        File& read = *file_.neighbours.back();
        read_yaml(read);
        for (const Node* root : read.tree.roots) {
            const Node* names = root->find("variables");
            for (const Node& entry : children(names))
                if (!entry.find("template")) learn_entry(entry);
        }
    }
    // PowerShell and Python are nobody's shell here.
    static bool other_language(const Node& step) {
        const Node* inputs = step.find("inputs");
        for (const Node* from : {&step, inputs ? inputs : &step})
            for (const std::string_view key : {"shell", "scriptType"})
                if (const Node* named = from->find(key); named && named->is_scalar())
                    return named->text.find("bash") == std::string_view::npos && named->text != "sh";
        return false;
    }
    bool is_script(const Node& text) const {
        const bool other = std::any_of(included_.begin(), included_.end(),
                                       [&](const Node* root) { return root->source == text.source; });
        return text.is_scalar() && !text.text.empty() && (text.source == &file_.source() || other);
    }
    void script(const Node& text) {
        if (is_script(text)) scripts({&text});
    }
    // The lines of a list: of one shell where the tool has it so, and they are all written here.
    void lines_of(const Node& list) {
        std::vector<const Node*> texts;
        for (const Node& each : children(&list)) {
            if (!dialect_->one_shell || !is_script(each) || (!texts.empty() && each.source != texts[0]->source)) {
                texts.clear();
                break;
            }
            texts.push_back(&each);
        }
        if (!texts.empty()) return scripts(std::move(texts));
        for (const Node& each : children(&list)) line(each);
    }
    void scripts(std::vector<const Node*> texts) {
        if (steps_.size() >= kMostWorkflowSteps) return;
        // The innermost of one name counts, and each name once.
        const auto with = [&](const std::vector<EnvVar>& round) {
            Step step;
            step.texts = texts;
            step.variables = playbook_;
            const auto add = [&](const EnvVar& variable) {
                if (std::none_of(step.environment.begin(), step.environment.end(),
                                 [&](const EnvVar& each) { return each.name == variable.name; }))
                    step.environment.push_back(variable);
            };
            for (auto it = said_.rbegin(); it != said_.rend(); ++it) add(*it);
            for (const EnvVar& variable : round) add(variable);
            for (auto it = environment_.rbegin(); it != environment_.rend(); ++it) add(*it);
            steps_.push_back(std::move(step));
        };
        // A round of a matrix that the text does not name is like any other.
        bool asks = false;
        for (const auto& round : rounds_)
            for (const EnvVar& variable : round)
                asks |= std::any_of(texts.begin(), texts.end(),
                                    [&](const Node* text) {
                                        return text->text.find(variable.name) != std::string_view::npos;
                                    }) ||
                        std::any_of(environment_.begin(), environment_.end(), [&](const EnvVar& each) {
                            return each.value.text.find(variable.name) != std::string_view::npos;
                        });
        if (!asks) return with({});
        for (const auto& round : rounds_) {
            if (steps_.size() >= kMostWorkflowSteps) return;
            const auto outer = environment_;
            environment_.insert(environment_.end(), round.begin(), round.end());
            for (EnvVar& variable : environment_) variable.value = filled(variable.value);
            with(round);
            environment_ = outer;
        }
    }
    // ${{ each pool in parameters.pools }}: of Azure Pipelines, once for each that the parameter has by default.
    bool repeated(const Node& node, int depth) {
        std::string_view key = trim(node.key);
        if (!key.starts_with("${{") || !key.ends_with("}}")) return false;
        key = trim(key.substr(3, key.size() - 5));
        if (!key.starts_with("each ")) return false;
        const std::size_t in = key.find(" in ");
        if (in == std::string_view::npos) return false;
        const std::string name(trim(key.substr(5, in - 5)));
        std::string_view list = trim(key.substr(in + 4));
        if (!list.starts_with("parameters.")) return false;
        list.remove_prefix(11);
        const Node* values = parameter(list);
        std::vector<std::vector<EnvVar>> made;
        for (const Node& value : children(values)) {
            if (made.size() >= kMostRounds) break;
            std::vector<EnvVar>& round = made.emplace_back();
            if (value.is_scalar()) round.push_back({file_.tree.keep(name), Value::of(&value), value.span});
            for (const Node& field : children(&value))
                if (field.is_scalar())
                    round.push_back(
                        {file_.tree.keep(name + "." + std::string(field.key)), Value::of(&field), field.key_span});
        }
        if (made.empty()) return false;
        const auto outer_rounds = rounds_;
        rounds_ = std::move(made);
        walk(node, depth + 1);
        rounds_ = outer_rounds;
        return true;
    }
    void walk(const Node& node, int depth) {
        if (depth > kMostWorkflowDepth || node.is_scalar()) return;
        const std::size_t outer = environment_.size();
        const auto outer_rounds = rounds_;
        const auto outer_said = said_.size();
        std::optional<PlaybookVariables> outer_playbook;
        const bool task = dialect_->tool == "Task";
        if (const Node* vars = dialect_->tool == "Ansible" || task ? node.find("vars") : nullptr) {
            outer_playbook = playbook_;
            playbook_.learn(vars, task ? "." : "");
        }
        if (node.is_object()) {
            std::vector<const Node*> bases;
            if (depth == 1) extended(node, bases);
            for (const Node* base : bases) learn(base->find("variables"));
            for (const std::string_view key : {"env", "envs", "environment", "variables"}) learn(node.find(key));
            if (node.find("uses")) handed_over(node);
            if (node.find("strategy") || node.find("parallel"))
                if (auto made = matrix_rounds(file_, node, [&](Value value) { return filled(value); }); !made.empty())
                    rounds_ = std::move(made);
            const bool other = dialect_->tool != "Ansible" && other_language(node);
            for (const Node* base : bases) {  // what it runs is run with the job's variables
                if (node.find("script")) break;
                script(base->find("script") ? *base->find("script") : node);
                if (base->find("script")) lines_of(*base->find("script"));
            }
            for (const Node& child : children(&node)) {
                const auto& keys = dialect_->keys;
                if (std::find(keys.begin(), keys.end(), child.key) == keys.end() || other) continue;
                const Node* items = task && child.is_scalar() ? node.find("for") : nullptr;
                if (items && !items->is_array()) items = nullptr;
                for (const Node& item : children(items)) {  // cmd: of Task, once for each
                    if (!item.is_scalar()) continue;
                    playbook_.set(".ITEM", std::string(item.text));
                    script(child);
                }
                playbook_.forget(".ITEM");
                if (!items) script(child);
                if (child.is_scalar()) said(node, child);
                if (child.is_array()) lines_of(child);
            }
            calls(node);
            if (const Node* name = task && node.find("vars") ? node.find("task") : nullptr;
                name && name->is_scalar() && task_calls_ < 2) {  // - task: pool, with variables of its own
                ++task_calls_;
                for (const Node* root : file_.tree.roots)
                    if (const Node* called = root->at({"tasks", name->text})) walk(*called, depth + 1);
                --task_calls_;
            }
            for (const std::string_view key : kSizeKeys)
                if (const Node* size = node.find(key);
                    size && size->is_scalar() && Knowledge::looks_like_size(size->text))
                    sizes(*size);
        }
        for (const Node& child : children(&node)) {
            if (repeated(child, depth)) continue;
            walk(child, depth + 1);
        }
        environment_.resize(outer);
        if (outer_playbook) playbook_ = std::move(*outer_playbook);
        rounds_ = outer_rounds;
        if (node.is_object() && node.find("steps")) {
            std::vector<EnvVar> outputs;  // of a job: what those that need it are given
            for (const Node& output : children(node.find("outputs"))) {
                if (!output.is_scalar()) continue;
                const Value value = filled(Value::of(&output));
                if (value.text.find("${{") == std::string_view::npos)
                    outputs.push_back(
                        {file_.tree.keep("needs." + std::string(node.key) + ".outputs." + std::string(output.key)),
                         value, output.key_span});
            }
            said_.resize(std::min(outer_said, said_.size()));
            said_.insert(said_.end(), outputs.begin(), outputs.end());
        }
    }

    File& file_;
    const ReadOptions& options_;
    std::vector<EnvVar> environment_;
    std::vector<EnvVar> said_;                 // what earlier steps give to later ones
    std::vector<std::vector<EnvVar>> rounds_;  // of the matrix around here
    std::vector<Step> steps_;
    std::vector<const Node*> included_;  // documents of GitLab that this one takes in
    std::vector<Quantity> devices_;      // what a task of SkyPilot or dstack asks for on each node
    const StepDialect* dialect_ = nullptr;
    std::size_t variable_files_ = 0;
    int task_calls_ = 0;  // within one another
    PlaybookVariables playbook_;
};

}  // namespace

void find_workflow(File& file, const ReadOptions& options) {
    if (file.kinds.has(Kind::workflow) && !file.tree.roots.empty() &&
        !is_script_file(file.path(), file.source().text()))
        WorkflowFinder(file, options).run();
}

}  // namespace stoker::lint
