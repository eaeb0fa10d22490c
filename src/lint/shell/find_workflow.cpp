// Steps of workflows: GitHub Actions, Azure Pipelines, GitLab CI. Each script is read as one, with the environment that
// stands above it.
#include <algorithm>
#include <array>

#include "lint/read.h"
#include "lint/shell/node_text.h"

namespace stoker::lint {

namespace {

constexpr int kMostWorkflowDepth = 24;
constexpr std::size_t kMostWorkflowSteps = 200;

class WorkflowFinder {
public:
    WorkflowFinder(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void run() {
        for (const Node* root : file_.tree.roots) walk(*root, 0);
        file_.services.reserve(file_.services.size() + steps_.size());  // guests point at them
        for (Step& step : steps_) {
            Container& around = file_.services.emplace_back();
            around.node = step.text;
            around.address = "workflow:step/" + std::to_string(file_.services.size());
            around.anchor = step.text->key_span;
            around.environment = std::move(step.environment);
            File* guest =
                read_guest(file_, std::string(step.text->text),
                           pieces_of_scalar(step.text->text, file_.source(), step.text->span), {}, options_, &around);
            // Of a shell that is none of ours.
            if (guest && !guest->problems.empty()) file_.guests.pop_back();
        }
    }

private:
    struct Step {
        const Node* text = nullptr;
        std::vector<EnvVar> environment;
    };

    void learn(const Node* names) {
        for (const Node& entry : children(names)) {
            const Node* name = entry.find("name");
            const Node* value = entry.find("value");
            if (entry.is_scalar() && !entry.key.empty())
                environment_.push_back({entry.key, Value::of(&entry), entry.key_span});
            else if (name && value && name->is_scalar() && value->is_scalar())
                environment_.push_back({name->text, Value::of(value), name->span});
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
    void script(const Node& text) {
        if (steps_.size() >= kMostWorkflowSteps || !text.is_scalar() || text.text.empty() ||
            text.source != &file_.source())
            return;
        // The innermost of one name counts, and each name once.
        Step step;
        step.text = &text;
        for (auto it = environment_.rbegin(); it != environment_.rend(); ++it)
            if (std::none_of(step.environment.begin(), step.environment.end(),
                             [&](const EnvVar& each) { return each.name == it->name; }))
                step.environment.push_back(*it);
        steps_.push_back(std::move(step));
    }
    void walk(const Node& node, int depth) {
        if (depth > kMostWorkflowDepth || node.is_scalar()) return;
        const std::size_t outer = environment_.size();
        if (node.is_object()) {
            for (const std::string_view key : {"env", "variables"}) learn(node.find(key));
            const bool other = other_language(node);
            for (const Node& child : children(&node)) {
                static constexpr std::array kScripts = {"run", "script", "bash", "inlineScript", "before_script"};
                if (std::find(kScripts.begin(), kScripts.end(), child.key) == kScripts.end() || other) continue;
                script(child);
                for (const Node& line : children(&child)) script(line);
            }
        }
        for (const Node& child : children(&node)) walk(child, depth + 1);
        environment_.resize(outer);
    }

    File& file_;
    const ReadOptions& options_;
    std::vector<EnvVar> environment_;
    std::vector<Step> steps_;
};

}  // namespace

void find_workflow(File& file, const ReadOptions& options) {
    if (file.kinds.has(Kind::workflow) && !file.tree.roots.empty()) WorkflowFinder(file, options).run();
}

}  // namespace stoker::lint
