#include "govern/admission_rules.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

constexpr std::string_view kDigestMark = "@sha256:";
constexpr std::size_t kDigestHex = 64;

const std::vector<std::string>& kind_words() {
    static const std::vector<std::string> words = {"train", "batch", "notebook", "graph"};
    return words;
}

bool has_digest(std::string_view image) {
    const std::size_t at = image.find(kDigestMark);
    if (at == std::string_view::npos) return false;
    const std::string_view hex = image.substr(at + kDigestMark.size());
    return hex.size() == kDigestHex && hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_about(const AdmissionRule& rule, const AdmissionSubject& subject) {
    const auto in = [](const std::vector<std::string>& list, std::string_view text) {
        return list.empty() || any_matches(list, text);
    };
    const bool in_project =
        in(rule.projects, subject.project) || any_matches(rule.projects, subject.organisation + "/" + subject.project);
    return in(rule.organisations, subject.organisation) && in_project && in(rule.users, subject.user) &&
           in(rule.kinds, subject.kind) && in(rule.classes, subject.run_class);
}

std::string shown(std::string_view text, std::string_view empty) {
    return text.empty() ? std::string(empty) : printable(text, 120);
}

// KEY, or KEY=A|B: the values that are allowed.
std::pair<std::string, std::vector<std::string>> label_wanted(const std::string& text) {
    const std::size_t equals = text.find('=');
    std::vector<std::string> values;
    if (equals != std::string::npos)
        for (const std::string_view each : split(std::string_view(text).substr(equals + 1), '|'))
            values.emplace_back(trim(each));
    return {std::string(trim(std::string_view(text).substr(0, equals))), std::move(values)};
}

bool asks_nothing(const AdmissionRule& r) {
    return r.images.empty() && !r.by_digest && r.engines.empty() && r.regions.empty() && r.residency.empty() &&
           r.gpu_models.empty() && r.machines.empty() && !r.most_ranks && !r.most_nodes && !r.most_gpus &&
           !r.most_node_gpus && !r.longest && r.labels.empty() && !r.checkpoints;
}

// One demand after the other, each with what the run says and what would be right.
class Judge {
public:
    Judge(const AdmissionRule& rule, const AdmissionSubject& subject, std::vector<AdmissionRefusal>& out)
        : rule_(rule), subject_(subject), out_(out) {}

    void all() {
        one_of("image", "image", rule_.images, subject_.image, "no image", "take one of those", !subject_.planned);
        if (rule_.by_digest && !subject_.planned && !has_digest(subject_.image))
            refuse("image", fmt::format("it is {}, expected an image by its digest", shown(subject_.image, "none")),
                   "write NAME@sha256:DIGEST; skopeo inspect docker://NAME prints it");
        engines();
        one_of("per_rank.gpu_model", "gpu_model", rule_.gpu_models, subject_.gpu_model, "any GPU", "name one of those",
               subject_.gpus > 0);
        one_of("prediction.machine", "machines", rule_.machines, subject_.machine, "of no plan",
               "submit the file that stoker plan was made of, so that the size is known");
        at_most("ranks", rule_.most_ranks, subject_.ranks, "ranks");
        at_most("nodes", rule_.most_nodes, subject_.nodes, "nodes");
        at_most("per_rank.gpus", rule_.most_gpus, subject_.gpus, "GPUs in all");
        if (rule_.most_node_gpus && subject_.node_gpus > *rule_.most_node_gpus)
            refuse("nodes",
                   fmt::format("it could be put on {}, which has {} GPUs, at most {} are allowed",
                               shown(subject_.widest_node, "a node"), subject_.node_gpus, *rule_.most_node_gpus),
                   "submit it to an engine of smaller nodes (--engine), or name a GPU that only those have (--gpu)");
        if (subject_.planned) return;
        if (rule_.longest &&
            (subject_.longest_s == 0 || static_cast<double>(subject_.longest_s) > rule_.longest->value()))
            refuse(
                "lease",
                fmt::format("it may last {}, at most {} is allowed",
                            subject_.longest_s == 0 ? "for ever"
                                                    : format_seconds(Seconds(static_cast<double>(subject_.longest_s))),
                            format_seconds(*rule_.longest)),
                fmt::format("set lease.hard_max or timeout to {} or less", format_seconds(*rule_.longest)));
        for (const std::string& each : rule_.labels) label(each);
        if (rule_.checkpoints && !subject_.checkpoints)
            refuse("checkpoint", "it writes none", "set checkpoint.folder, so that it goes on after it was stopped");
    }

private:
    void refuse(std::string_view key, const std::string& what, const std::string& remedy) {
        const std::string step = subject_.step.empty() ? "" : "steps." + subject_.step + ".";
        out_.push_back({.rule = rule_.name,
                        .message = fmt::format("{}{}: {} (rule {})", step, key, what, rule_.name),
                        .remedy = rule_.remedy.empty() ? remedy : rule_.remedy,
                        .pos = place()});
    }
    bool within(std::string_view region) const {
        return std::any_of(rule_.residency.begin(), rule_.residency.end(), [&](const std::string& place) {
            return subject_.lies_in != nullptr && subject_.lies_in(place, region);
        });
    }
    // It goes to whichever of them has room first: all of them have to be right.
    void engines() {
        for (const EnginePlace& each : subject_.engines)
            if (!engine(each)) return;
    }
    // False: refused.
    bool engine(const EnginePlace& each) {
        const std::string key = subject_.planned ? "where.regions" : "engine";
        const std::string who = subject_.planned ? "the plan" : printable(each.name, 60);
        const char* cure = subject_.planned ? "name one of those under where.regions"
                                            : "submit it to an engine that stands there: --engine";
        if (!subject_.planned && !rule_.engines.empty() && !any_matches(rule_.engines, each.name)) {
            refuse(key,
                   fmt::format("it {} {}, expected {}", subject_.engines.size() > 1 ? "may go to" : "is",
                               shown(each.name, "none"), join_or(rule_.engines)),
                   "submit it to one of those: --engine");
            return false;
        }
        if (rule_.regions.empty() && rule_.residency.empty()) return true;
        const std::vector<std::string>& wanted = rule_.regions.empty() ? rule_.residency : rule_.regions;
        if (each.region.empty()) {
            refuse(key, fmt::format("nobody said in which region {} stands, expected {}", who, join_or(wanted)),
                   "the operator says it in the configuration of the server: engine: {kind: ..., region: westeurope}");
            return false;
        }
        const bool named = rule_.regions.empty() || any_matches(rule_.regions, each.region);
        if (named && (rule_.residency.empty() || within(each.region))) return true;
        refuse(key,
               named ? fmt::format("{} stands in {}, and what it works on may not leave {}", who,
                                   printable(each.region, 60), join_or(rule_.residency))
                     : fmt::format("{} stands in {}, expected {}", who, printable(each.region, 60),
                                   join_or(rule_.regions)),
               cure);
        return false;
    }
    SourcePos place() const {
        const auto found = rule_.at.find("");
        return found == rule_.at.end() ? SourcePos{} : found->second;
    }
    void one_of(std::string_view key, std::string_view, const std::vector<std::string>& patterns,
                std::string_view value, std::string_view empty, const char* remedy, bool asked = true) {
        if (patterns.empty() || !asked || any_matches(patterns, value)) return;
        refuse(key, fmt::format("it is {}, expected {}", shown(value, empty), join_or(patterns)), remedy);
    }
    void at_most(std::string_view key, const std::optional<int>& most, int value, std::string_view what) {
        if (most && value > *most)
            refuse(key, fmt::format("{} {}, at most {} are allowed", value, what, *most),
                   fmt::format("take {}", *most));
    }
    void label(const std::string& wanted) {
        const auto [key, values] = label_wanted(wanted);
        const auto found = subject_.labels == nullptr ? std::map<std::string, std::string>::const_iterator()
                                                      : subject_.labels->find(key);
        const bool there = subject_.labels != nullptr && found != subject_.labels->end() && !found->second.empty();
        if (!there)
            refuse("labels", "there is no " + key,
                   fmt::format("add --label {}={}", key, values.empty() ? "VALUE" : values.front()));
        else if (!values.empty() && !any_matches(values, found->second))
            refuse("labels", fmt::format("{} is {}, expected {}", key, printable(found->second, 80), join_or(values)),
                   fmt::format("add --label {}={}", key, values.front()));
    }

    const AdmissionRule& rule_;
    const AdmissionSubject& subject_;
    std::vector<AdmissionRefusal>& out_;
};

}  // namespace

const std::vector<std::string>& class_words() {
    static const std::vector<std::string> words = {"guaranteed", "interactive", "spot"};
    return words;
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view text) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& each) { return matches_pattern(each, text); });
}

void check_patterns(std::string_view section, std::string_view key, const std::vector<std::string>& given,
                    const std::vector<std::string>& words, const SourcePos& pos, Problems& problems) {
    for (const std::string& each : given)
        if (std::none_of(words.begin(), words.end(), [&](const std::string& w) { return matches_pattern(each, w); }))
            problems.push_back({fmt::format("{}: there is no {} in {}", section, printable(each, 60), key),
                                "it is " + join_or(words), pos});
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
    // The last star may take more whenever what follows it does not fit.
    const std::string p = lower(pattern), t = lower(text);
    std::size_t i = 0, j = 0, star = std::string::npos, from = 0;
    while (j < t.size()) {
        if (i < p.size() && p[i] == '*') {
            star = i++;
            from = j;
        } else if (i < p.size() && p[i] == t[j]) {
            ++i;
            ++j;
        } else if (star != std::string::npos) {
            i = star + 1;
            j = ++from;
        } else {
            return false;
        }
    }
    while (i < p.size() && p[i] == '*') ++i;
    return i == p.size();
}

RecordTable<AdmissionRule> admission_rule_table() {
    RecordTable<AdmissionRule> t("admission rule",
                                 "Which runs are taken. A rule is about the runs that are in each of its lists of "
                                 "organisations, projects, users, kinds and classes (all runs, where it has none), and "
                                 "each must do all that it asks. In patterns * stands for anything.");
    t.text("name", &AdmissionRule::name, "Told to whoever is refused.", "images-by-digest").required();
    t.list_of_text("organisations", &AdmissionRule::organisations, "About the runs of these, by name.", "hospital");
    t.list_of_text("projects", &AdmissionRule::projects, "Of these: PROJECT, or ORGANISATION/PROJECT.",
                   "hospital/imaging");
    t.list_of_text("users", &AdmissionRule::users, "Of these people and programs.", "ci-*");
    t.list_of_text("kinds", &AdmissionRule::kinds, "Of these kinds: train, batch, notebook, graph.", "notebook");
    t.list_of_text("classes", &AdmissionRule::classes, "Of these classes: guaranteed, interactive, spot.", "spot");
    t.list_of_text("images", &AdmissionRule::images, "The image is one of these.", "registry.example.org/*");
    t.other_names({"registries"});
    t.flag("by_digest", &AdmissionRule::by_digest, "The image is named by its digest.");
    t.list_of_text("engines", &AdmissionRule::engines, "Each engine that it may go to is one of these.", "slurm");
    t.other_names({"clusters"});
    t.list_of_text("regions", &AdmissionRule::regions,
                   "Each engine that it may go to stands in one of these (`region` of the engine); a plan is of one.",
                   "westeurope");
    t.list_of_text("residency", &AdmissionRule::residency,
                   "The same by geography, country or eu: what it works on does not leave there.", "eu");
    t.list_of_text("gpu_models", &AdmissionRule::gpu_models, "Where it takes GPUs, it names one of these.", "H100");
    t.list_of_text("machines", &AdmissionRule::machines,
                   "It was planned for one of these machine types; what was submitted without a plan was not.",
                   "Standard_ND96*");
    t.other_names({"sizes", "vm_sizes"});
    t.count("most_ranks", &AdmissionRule::most_ranks, "Ranks, at most.", "64", 0, 1e6);
    t.count("most_nodes", &AdmissionRule::most_nodes, "Nodes that it asks for, at most.", "8", 0, 1e6);
    t.count("most_gpus", &AdmissionRule::most_gpus, "GPUs of all ranks together, at most.", "8", 0, 1e6);
    t.count("most_node_gpus", &AdmissionRule::most_node_gpus,
            "GPUs of any node on which it could be put, at most: 1 keeps notebooks off machines with eight.", "1", 0,
            1e6);
    t.seconds("longest", &AdmissionRule::longest,
              "It ends by itself within this time: by lease.hard_max or by its timeout.", "24h", 1, 3e9);
    t.other_names({"longest_lease", "max_lease"});
    t.list_of_text("labels", &AdmissionRule::labels, "It has these: KEY, or KEY=A|B for those values.", "cost-centre");
    t.flag("checkpoints", &AdmissionRule::checkpoints, "It writes checkpoints.");
    t.text("remedy", &AdmissionRule::remedy, "What to do, told to whoever is refused; there is a usual one.",
           "ask the platform team");
    return t;
}

void check_admission_rules(const AdmissionRules& rules, Problems& problems) {
    std::set<std::string> names;
    const auto at = [](const AdmissionRule& rule, const char* key) {
        const auto found = rule.at.find(key);
        return found == rule.at.end() ? SourcePos{} : found->second;
    };
    if (rules.size() > kMostAdmissionRules)
        problems.push_back({fmt::format("admission: {} rules, at most {} are taken", rules.size(), kMostAdmissionRules),
                            "", at(rules.front(), "")});
    for (const AdmissionRule& rule : rules) {
        if (!rule.name.empty() && !names.insert(rule.name).second)
            problems.push_back({"admission: there is a rule " + printable(rule.name, 60) + " already",
                                "give it another name", at(rule, "name")});
        if (asks_nothing(rule))
            problems.push_back({"admission: rule " + printable(rule.name, 60) + " asks nothing of a run",
                                "add for example images, most_gpus, longest or labels", at(rule, "")});
        check_patterns("admission", "kinds", rule.kinds, kind_words(), at(rule, "kinds"), problems);
        check_patterns("admission", "classes", rule.classes, class_words(), at(rule, "classes"), problems);
        for (const std::string& each : rule.labels)
            if (label_wanted(each).first.empty())
                problems.push_back({"admission: a label has no key: '" + printable(each, 60) + "'",
                                    "write KEY, or KEY=A|B", at(rule, "labels")});
    }
}

std::string exact_text(const AdmissionRules& rules) {
    std::string text;
    for (const AdmissionRule& r : rules) {
        text += r.name + "\n" + r.remedy + "\n";
        for (const auto* list : {&r.organisations, &r.projects, &r.users, &r.kinds, &r.classes, &r.images, &r.engines,
                                 &r.regions, &r.residency, &r.gpu_models, &r.machines, &r.labels})
            text += join(*list, "\1") + "\n";
        const auto number = [](const std::optional<int>& n) { return n ? std::to_string(*n) : std::string("-"); };
        text += fmt::format("{} {} {} {} {} {} {}\n", r.by_digest, r.checkpoints, number(r.most_ranks),
                            number(r.most_nodes), number(r.most_gpus), number(r.most_node_gpus),
                            r.longest ? r.longest->value() : -1.0);
        // Where it stands is told to whoever is refused.
        if (const auto found = r.at.find(""); found != r.at.end()) text += fmt::format("{}\n", found->second.line);
    }
    return text;
}

std::string rules_text(const AdmissionRules& rules) {
    std::string text;
    for (const AdmissionRule& r : rules) {
        Json line = Json::object();
        line.set("name", r.name);
        const auto list = [&](const char* key, const std::vector<std::string>& words) {
            if (words.empty()) return;
            Json array = Json::array();
            for (const std::string& each : words) array.push(each);
            line.set(key, std::move(array));
        };
        list("organisations", r.organisations);
        list("projects", r.projects);
        list("users", r.users);
        list("kinds", r.kinds);
        list("classes", r.classes);
        list("images", r.images);
        if (r.by_digest) line.set("by_digest", true);
        list("engines", r.engines);
        list("regions", r.regions);
        list("residency", r.residency);
        list("gpu_models", r.gpu_models);
        list("machines", r.machines);
        const auto number = [&](const char* key, const std::optional<int>& n) {
            if (n) line.set(key, *n);
        };
        number("most_ranks", r.most_ranks);
        number("most_nodes", r.most_nodes);
        number("most_gpus", r.most_gpus);
        number("most_node_gpus", r.most_node_gpus);
        if (r.longest) line.set("longest", fmt::format("{}s", static_cast<std::int64_t>(r.longest->value())));
        list("labels", r.labels);
        if (r.checkpoints) line.set("checkpoints", true);
        if (!r.remedy.empty()) line.set("remedy", r.remedy);
        text += "- " + line.dump(0) + "\n";
    }
    return text;
}

std::string in_words(const AdmissionRule& r) {
    std::vector<std::string> about, asks;
    const auto list = [](std::vector<std::string>& out, std::string_view what, const std::vector<std::string>& words) {
        if (!words.empty()) out.push_back(fmt::format("{} {}", what, join_or(words)));
    };
    list(about, "of", r.organisations);
    list(about, "in", r.projects);
    list(about, "by", r.users);
    list(about, "of kind", r.kinds);
    list(about, "of class", r.classes);
    list(asks, "image", r.images);
    if (r.by_digest) asks.push_back("image by digest");
    list(asks, "on", r.engines);
    list(asks, "in", r.regions);
    list(asks, "within", r.residency);
    list(asks, "GPU", r.gpu_models);
    list(asks, "machine", r.machines);
    if (r.most_ranks) asks.push_back(fmt::format("at most {} ranks", *r.most_ranks));
    if (r.most_nodes) asks.push_back(fmt::format("at most {} nodes", *r.most_nodes));
    if (r.most_gpus) asks.push_back(fmt::format("at most {} GPUs", *r.most_gpus));
    if (r.most_node_gpus) asks.push_back(fmt::format("on nodes of at most {} GPUs", *r.most_node_gpus));
    if (r.longest) asks.push_back("ends within " + format_seconds(*r.longest));
    if (!r.labels.empty()) asks.push_back("labels " + join(r.labels, ", "));
    if (r.checkpoints) asks.push_back("writes checkpoints");
    return fmt::format("{}: {}", about.empty() ? "every run" : "runs " + join(about, " "), join(asks, ", "));
}

bool may_be_about(const AdmissionRule& rule, const std::string& organisation, const std::string& project) {
    if (!rule.organisations.empty() && !any_matches(rule.organisations, organisation)) return false;
    if (rule.projects.empty()) return true;
    if (!project.empty())
        return any_matches(rule.projects, project) || any_matches(rule.projects, organisation + "/" + project);
    return std::any_of(rule.projects.begin(), rule.projects.end(), [&](const std::string& each) {
        const std::size_t slash = each.find('/');
        return slash == std::string::npos || matches_pattern(each.substr(0, slash), organisation);
    });
}

std::vector<AdmissionRefusal> judge(const AdmissionRules& rules, const AdmissionSubject& subject) {
    std::vector<AdmissionRefusal> refusals;
    for (const AdmissionRule& rule : rules)
        if (is_about(rule, subject)) Judge(rule, subject, refusals).all();
    return refusals;
}

}  // namespace stoker
