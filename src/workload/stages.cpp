#include "workload/stages.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "workload/workload.h"

namespace stoker {
namespace {

std::unique_ptr<Node> copy_of(const Node& node) {
    auto copy = std::make_unique<Node>();
    copy->kind = node.kind;
    copy->boolean = node.boolean;
    copy->number = node.number;
    copy->text = node.text;
    copy->quoted = node.quoted;
    copy->pos = node.pos;
    for (const auto& item : node.items) copy->items.push_back(copy_of(*item));
    for (const Member& member : node.members)
        copy->members.push_back({member.key, member.key_pos, copy_of(*member.value)});
    return copy;
}

Member* member_of(Node& mapping, std::string_view key) {
    const auto found = std::find_if(mapping.members.begin(), mapping.members.end(),
                                    [&](const Member& member) { return member.key == key; });
    return found == mapping.members.end() ? nullptr : &*found;
}

// Of a mapping that both have, the keys of both; of everything else what is nearer.
void lay_over(Node& all, const Node& own) {
    for (const Member& member : own.members) {
        Member* known = member_of(all, member.key);
        if (known == nullptr)
            all.members.push_back({member.key, member.key_pos, copy_of(*member.value)});
        else if (known->value->is_mapping() && member.value->is_mapping())
            lay_over(*known->value, *member.value);
        else
            *known = {member.key, member.key_pos, copy_of(*member.value)};
    }
}

// Of the step of run.steps that goes by this name; nullptr: it says nothing.
const Node* after_of_step(const Node& root, const std::string& name) {
    const Node* run = root.find("run");
    const Node* steps = run != nullptr && run->is_mapping() ? run->find("steps") : nullptr;
    if (steps == nullptr || !steps->is_sequence()) return nullptr;
    for (const auto& step : steps->items) {
        const Node* own = step->is_mapping() ? step->find("name") : nullptr;
        if (own != nullptr && own->text == name) return step->find("after");
    }
    return nullptr;
}

class Splitter {
public:
    explicit Splitter(const Node& root) : root_(root) {}

    Result<std::vector<Stage>> run() {
        const Node& list = *root_.find("stages");
        if (!list.is_sequence() || list.items.empty())
            return Error(ErrorKind::invalid, fmt::format("expected a list of stages, found {}", to_string(list.kind)),
                         list.pos, "stages: [{name: tune, kind: fine-tuning, ...}, {name: serve, after: [tune], ...}]");
        if (const Node* kind = root_.find("kind"))
            wrong(kind->pos, "kind is said of each stage, and not of all", "move it into the stages");
        for (const auto& item : list.items) add(*item);
        for (std::size_t i = 0; i < stages_.size(); ++i) order(*list.items[i], i);
        if (problems_.empty()) refuse_circles();
        if (!problems_.empty()) return Error(ErrorKind::invalid, std::move(problems_));
        return std::move(stages_);
    }

private:
    void wrong(SourcePos pos, std::string message, std::string remedy) {
        problems_.push_back({std::move(message), std::move(remedy), std::move(pos)});
    }

    void add(const Node& item) {
        auto all = std::make_unique<Node>();
        all->kind = NodeKind::mapping;
        all->pos = item.pos;
        std::string name;
        if (!item.is_mapping()) {
            wrong(item.pos, fmt::format("expected a stage, found {}", to_string(item.kind)),
                  "{name: tune, kind: fine-tuning, model: ..., data: ...}");
        } else {
            const Node* own = item.find("name");
            if (own == nullptr || !own->is_scalar() || own->text.empty())
                wrong(item.pos, "the stage has no name", "add for example name: tune");
            else
                name = own->text;
            if (const Node* run = item.find("run"))
                wrong(run->pos, "run is said of the whole file, and not of a stage",
                      "write run: {steps: [{name: ..., command: ...}]} beside stages; steps go by the names of stages");
            const bool twice = !name.empty() && std::any_of(stages_.begin(), stages_.end(),
                                                            [&](const Stage& stage) { return stage.name == name; });
            if (twice) wrong(own->pos, fmt::format("a second stage is named {}", printable(name)), "");
        }
        for (const Member& member : root_.members)
            if (member.key != "stages" && member.key != "run" && member.key != "name")
                all->members.push_back({member.key, member.key_pos, copy_of(*member.value)});
        lay_over(*all, item);
        std::erase_if(all->members, [](const Member& member) { return member.key == "after" || member.key == "run"; });
        stages_.push_back({.name = name, .after = {}, .pos = item.pos, .document = Document(std::move(all))});
    }

    void order(const Node& item, std::size_t index) {
        const Node* own = item.is_mapping() ? item.find("after") : nullptr;
        const bool by_step = own == nullptr;
        const Node* after = by_step ? after_of_step(root_, stages_[index].name) : own;
        if (after == nullptr) return;
        if (!after->is_sequence()) {
            wrong(after->pos, fmt::format("expected a list of stages, found {}", to_string(after->kind)),
                  fmt::format("after: [{}]", after->is_scalar() ? printable(after->text) : "tune"));
            return;
        }
        for (const auto& one : after->items) {
            const auto found = std::find_if(stages_.begin(), stages_.end(),
                                            [&](const Stage& stage) { return stage.name == one->text; });
            if (found != stages_.end() && found != stages_.begin() + static_cast<std::ptrdiff_t>(index)) {
                stages_[index].after.push_back(static_cast<int>(found - stages_.begin()));
                continue;
            }
            if (by_step) continue;  // a step that is run and not planned
            std::vector<std::string> names;
            for (const Stage& stage : stages_) names.push_back(stage.name);
            wrong(one->pos, fmt::format("after names no other stage: {}", printable(one->text)),
                  "stages are " + join(names, ", "));
        }
    }

    void refuse_circles() {
        std::vector<bool> ready(stages_.size(), false);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t i = 0; i < stages_.size(); ++i) {
                const auto& after = stages_[i].after;
                if (ready[i] || !std::all_of(after.begin(), after.end(),
                                             [&](int other) { return ready[static_cast<std::size_t>(other)]; }))
                    continue;
                ready[i] = moved = true;
            }
        }
        for (std::size_t i = 0; i < stages_.size(); ++i)
            if (!ready[i])
                return wrong(stages_[i].pos,
                             fmt::format("{} waits for a stage that waits for it", printable(stages_[i].name)),
                             "take one name out of after");
    }

    const Node& root_;
    std::vector<Stage> stages_;
    Problems problems_;
};

constexpr std::string_view kStagesText =
    "Several workloads that follow each other, each with a name of its own: tune, then serve. What stands outside of "
    "stages holds for each of them; a stage says what is its own. stoker plan plans them all and adds them up.";

}  // namespace

bool has_stages(const Node& root) {
    return root.is_mapping() && root.find("stages") != nullptr;
}

Result<std::vector<Stage>> split_stages(const Document& document) {
    return Splitter(document.root()).run();
}

Document run_part(const Document& document) {
    auto part = std::make_unique<Node>();
    part->kind = NodeKind::mapping;
    part->pos = document.root().pos;
    for (const Member& member : document.root().members)
        if (member.key == "version" || member.key == "name" || member.key == "run")
            part->members.push_back({member.key, member.key_pos, copy_of(*member.value)});
    return Document(std::move(part));
}

Json workload_file_schema() {
    const Json one = workload_record().json_schema();
    const auto& fields = std::get<Json::Object>(one.value());
    Json stage_keys = Json::object(), shared_keys = Json::object();
    for (const auto& [key, value] : fields)
        if (key == "properties")
            for (const auto& [name, field] : std::get<Json::Object>(value.value())) {
                if (name != "run" && name != "version") stage_keys.set(name, field);
                if (name != "kind") shared_keys.set(name, field);
            }
    const Json text = Json::object().set("type", "string");
    stage_keys.set("after", Json::object()
                                .set("type", "array")
                                .set("items", text)
                                .set("description", "Stages that end before this one starts."));
    Json required = Json::array();
    required.push("name");
    shared_keys.set("stages", Json::object()
                                  .set("type", "array")
                                  .set("minItems", 1)
                                  .set("description", std::string(kStagesText))
                                  .set("items", Json::object()
                                                    .set("type", "object")
                                                    .set("additionalProperties", false)
                                                    .set("required", required)
                                                    .set("properties", std::move(stage_keys))));
    Json file_required = Json::array();
    file_required.push("stages");
    Json several = Json::object()
                       .set("type", "object")
                       .set("additionalProperties", false)
                       .set("required", std::move(file_required))
                       .set("properties", std::move(shared_keys));
    Json either = Json::array();
    Json out = Json::object();
    Json single = Json::object();
    for (const auto& [key, value] : fields) {
        if (key == "$schema" || key == "title" || key == "$defs")
            out.set(key, value);
        else
            single.set(key, value);
    }
    either.push(std::move(single)).push(std::move(several));
    return out.set("anyOf", std::move(either));
}

std::string stages_reference() {
    return fmt::format(
        "## stages\n\n{}\n\n"
        "| Key | Type | Required | Description | Example |\n|---|---|---|---|---|\n"
        "| `name` | text | yes | Which stage this is; run.steps go by the same names. | `tune` |\n"
        "| `after` | list of text |  | Stages that end before this one starts. Left out: those of the step of "
        "run.steps "
        "with its name, else none. | `[tune]` |\n\n"
        "All other keys of a workload but version and run may stand in a stage.\n",
        kStagesText);
}

}  // namespace stoker
