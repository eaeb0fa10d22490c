#include "govern/idle.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/enum_words.h"
#include "base/text.h"
#include "base/units.h"
#include "govern/admission_rules.h"

namespace stoker {
namespace {

constexpr double kLeastS = 1, kMostS = 366.0 * 86'400, kUs = 1e6;

const std::vector<std::string>& idle_kinds() {
    static const std::vector<std::string> words = {"train", "batch", "notebook"};
    return words;
}

bool in_list(const std::vector<std::string>& patterns, std::string_view text) {
    return patterns.empty() || any_matches(patterns, text);
}

std::string time_text(double seconds) {
    return format_seconds(Seconds(std::max(0.0, seconds)));
}

// One stretch after the other, each wholly idle, in order.
struct Stretch {
    std::int64_t from_us = 0, to_us = 0;
};
std::vector<Stretch> idle_stretches(const WasteSubject& subject) {
    std::vector<Stretch> stretches;
    bool open = false;
    for (const WasteSample& sample : subject.samples) {
        const std::int64_t from = std::max(sample.from_us, subject.running_us),
                           to = std::min(sample.to_us, subject.until_us);
        if (to <= from) continue;
        if (!is_idle(sample, subject)) {
            open = false;
            continue;
        }
        // A hole is time that nobody saw.
        if (open && from > stretches.back().to_us + kIdleEvidenceUs) open = false;
        if (!open) stretches.push_back({from, to});
        open = true;
        stretches.back().to_us = std::max(stretches.back().to_us, to);
    }
    return stretches;
}

}  // namespace

RecordTable<IdleRule> idle_rule_table() {
    RecordTable<IdleRule> t("idle rule",
                            "What becomes of runs that hold machines while nothing moves: processors, disks, network, "
                            "steps and GPUs, as far as they are measured; what is not known counts as busy. The first "
                            "rule that a run is in decides. In patterns * stands for anything.");
    t.list_of_text("organisations", &IdleRule::organisations, "About the runs of these, by name.", "hospital");
    t.list_of_text("projects", &IdleRule::projects, "Of these: PROJECT, or ORGANISATION/PROJECT.", "hospital/imaging");
    t.list_of_text("users", &IdleRule::users, "Of these people and programs.", "anna");
    t.list_of_text("kinds", &IdleRule::kinds, "Of these kinds: train, batch, notebook.", "notebook");
    t.list_of_text("classes", &IdleRule::classes, "Of these classes: guaranteed, interactive, spot.", "interactive");
    t.choice(
        "then", &IdleRule::then,
        {{"leave", IdleStep::leave}, {"tell", IdleStep::tell}, {"park", IdleStep::park}, {"stop", IdleStep::stop}},
        "How far it may go; tell when nothing is said. leave: nothing is done. tell: its owner is. park: what writes "
        "checkpoints is told to write one, gives its places back and is held until somebody releases it. stop: "
        "what writes none is ended.",
        "park");
    t.other_names({"action", "policy"});
    t.seconds("after", &IdleRule::after, "Told when nothing moved for so long; 30min when nothing is said.", "1h",
              kLeastS, kMostS);
    t.other_names({"idle_timeout", "timeout", "threshold"});
    t.seconds("notice", &IdleRule::notice,
              "Nothing is taken before so long after it was told; 15min when nothing is said.", "30min", kLeastS,
              kMostS);
    t.other_names({"grace", "grace_period"});
    t.seconds("horizon", &IdleRule::horizon,
              "How far ahead what would be saved is counted, where no lease or timeout ends the run before; 8h when "
              "nothing is said.",
              "12h", kLeastS, kMostS);
    t.seconds("longest_hold", &IdleRule::longest_hold,
              "How long somebody may keep a run from this (stoker idle keep); 7d when nothing is said.", "2d", kLeastS,
              kMostS);
    t.seconds("parked_for", &IdleRule::parked_for,
              "What was parked and not released within this time is ended; never when nothing is said.", "14d", kLeastS,
              kMostS);
    return t;
}

void check_idle_rules(const IdleRules& rules, Problems& problems) {
    const auto at = [](const IdleRule& rule, const char* key) {
        const auto found = rule.at.find(key);
        return found == rule.at.end() ? SourcePos{} : found->second;
    };
    if (rules.size() > kMostIdleRules)
        problems.push_back({fmt::format("idle: {} rules, at most {} are taken", rules.size(), kMostIdleRules), "",
                            at(rules.front(), "")});
    const IdleRule* everybody = nullptr;
    for (const IdleRule& rule : rules) {
        check_patterns("idle", "kinds", rule.kinds, idle_kinds(), at(rule, "kinds"), problems);
        check_patterns("idle", "classes", rule.classes, class_words(), at(rule, "classes"), problems);
        if (everybody != nullptr)
            problems.push_back({fmt::format("idle: no run comes to this rule: the one in line {} is about all runs",
                                            at(*everybody, "").line),
                                "put the rule about all runs last", at(rule, "")});
        if (rule.organisations.empty() && rule.projects.empty() && rule.users.empty() && rule.kinds.empty() &&
            rule.classes.empty())
            everybody = &rule;
        if (rule.parked_for && rule.furthest() != IdleStep::park && rule.furthest() != IdleStep::stop)
            problems.push_back({"idle: parked_for: this rule parks nothing", "say then: park, or leave parked_for out",
                                at(rule, "parked_for")});
    }
}

std::string exact_text(const IdleRules& rules) {
    std::string text;
    for (const IdleRule& r : rules) {
        for (const auto* list : {&r.organisations, &r.projects, &r.users, &r.kinds, &r.classes})
            text += join(*list, "\1") + "\n";
        text += std::string(enum_word(r.furthest()));
        for (const auto* time : {&r.after, &r.notice, &r.horizon, &r.longest_hold, &r.parked_for})
            text += fmt::format(" {}", *time ? (*time)->value() : -1.0);
        text += "\n";
    }
    return text;
}

std::string in_words(const IdleRule& rule) {
    std::string who;
    const auto add = [&](const char* before, const std::vector<std::string>& list) {
        if (!list.empty()) who += (who.empty() ? "" : ", ") + std::string(before) + join_or(list);
    };
    add("", rule.kinds);
    add("of class ", rule.classes);
    add("of ", rule.organisations);
    add("in ", rule.projects);
    add("by ", rule.users);
    if (who.empty()) who = "all runs";
    if (rule.furthest() == IdleStep::leave) return who + ": left alone";
    std::string text = fmt::format("{}: told after {}", who, time_text(rule.after_s()));
    if (rule.furthest() == IdleStep::tell) return text;
    text += fmt::format(", parked {} later at the earliest", time_text(rule.notice_s()));
    if (rule.furthest() == IdleStep::stop) text += ", or ended where it writes no checkpoints";
    return text;
}

const IdleRule* idle_rule_for(const IdleRules& rules, const IdleOwner& owner) {
    for (const IdleRule& rule : rules) {
        const bool in_project = in_list(rule.projects, owner.project) ||
                                std::any_of(rule.projects.begin(), rule.projects.end(), [&](const std::string& each) {
                                    return matches_pattern(each, owner.organisation + "/" + owner.project);
                                });
        if (in_project && in_list(rule.organisations, owner.organisation) && in_list(rule.users, owner.user) &&
            in_list(rule.kinds, owner.kind) && in_list(rule.classes, owner.run_class))
            return &rule;
    }
    return nullptr;
}

std::optional<std::int64_t> idle_since(const WasteSubject& subject) {
    if (subject.samples.empty() || subject.running_us == 0) return std::nullopt;
    const WasteSample& last = subject.samples.back();
    if (last.to_us + kIdleEvidenceUs < subject.until_us || !is_idle(last, subject)) return std::nullopt;
    const std::vector<Stretch> stretches = idle_stretches(subject);
    if (stretches.empty()) return std::nullopt;
    return stretches.back().from_us;
}

int pauses_before(const WasteSubject& subject, std::int64_t at_least_us) {
    const std::vector<Stretch> stretches = idle_stretches(subject);
    int pauses = 0;
    for (std::size_t i = 0; i + 1 < stretches.size(); ++i)
        if (stretches[i].to_us - stretches[i].from_us >= at_least_us) ++pauses;
    return pauses;
}

std::vector<WasteSample> coarser(const std::vector<WasteSample>& samples, std::int64_t piece_us) {
    std::vector<WasteSample> pieces;
    struct Sum {
        double value = 0;
        std::int64_t us = 0;
    };
    Sum cores, bytes, blocked, gpus;
    const auto close = [&] {
        if (pieces.empty()) return;
        const auto put = [](const Sum& sum, std::optional<double>& to) {
            if (sum.us > 0) to = sum.value / static_cast<double>(sum.us);
        };
        WasteSample& piece = pieces.back();
        put(cores, piece.cores), put(bytes, piece.bytes_per_s), put(blocked, piece.blocked), put(gpus, piece.gpus);
        cores = bytes = blocked = gpus = {};
    };
    std::int64_t of = 0;
    for (const WasteSample& sample : samples) {
        const std::int64_t length = std::max<std::int64_t>(1, sample.to_us - sample.from_us);
        const std::int64_t number = sample.from_us / std::max<std::int64_t>(1, piece_us);
        // What lies apart stays apart: a hole is not covered.
        if (pieces.empty() || number != of || sample.from_us > pieces.back().to_us + piece_us) {
            close();
            pieces.push_back({.from_us = sample.from_us, .to_us = sample.to_us});
            of = number;
        }
        WasteSample& piece = pieces.back();
        piece.to_us = std::max(piece.to_us, sample.to_us);
        piece.stepped = piece.stepped || sample.stepped;
        const auto add = [&](const std::optional<double>& value, Sum& sum) {
            if (!value) return;
            sum.value += *value * static_cast<double>(length);
            sum.us += length;
        };
        add(sample.cores, cores), add(sample.bytes_per_s, bytes), add(sample.blocked, blocked), add(sample.gpus, gpus);
    }
    close();
    return pieces;
}

IdleVerdict judge_idle(const IdleRule& rule, const IdleFacts& facts, std::int64_t now_us) {
    IdleVerdict verdict;
    if (facts.since_us == 0 || now_us <= facts.since_us) {
        verdict.why = "it moves, or nobody knows";
        return verdict;
    }
    const double t = static_cast<double>(now_us - facts.since_us) / kUs;
    double h = rule.horizon_s();
    if (facts.ends_us > 0) h = std::clamp(static_cast<double>(facts.ends_us - now_us) / kUs, 0.0, h);
    const double chances = 1.0 + facts.pauses;
    verdict.wrong = 1 - std::pow(t / (t + h), chances);
    verdict.saved_s = t * std::log1p(h / t) / chances;
    verdict.lost_s = verdict.wrong * static_cast<double>(facts.again_us) / kUs;

    const auto at = [](double s) { return static_cast<std::int64_t>(std::llround(s * kUs)); };
    const std::int64_t told_at = facts.since_us + at(rule.after_s());
    const IdleStep furthest = rule.furthest();
    if (furthest == IdleStep::leave) {
        verdict.why = "its rule leaves it alone";
        return verdict;
    }
    if (facts.kept_until_us > now_us) {
        verdict.why = fmt::format("somebody keeps it for {} more",
                                  time_text(static_cast<double>(facts.kept_until_us - now_us) / kUs));
        verdict.next_us = std::max(facts.kept_until_us, told_at);
        return verdict;
    }
    if (facts.told_us == 0) {
        if (now_us < told_at) {
            verdict.why = "a pause so far";
            verdict.next_us = told_at;
            return verdict;
        }
        verdict.act = IdleAct::tell;
        verdict.why = fmt::format("nothing moved for {}", time_text(t));
        verdict.next_us = furthest == IdleStep::tell ? 0 : now_us + at(rule.notice_s());
        return verdict;
    }
    if (furthest == IdleStep::tell) {
        verdict.why = "its owner is told, and its rule does no more";
        return verdict;
    }
    if (!facts.goes_on && furthest == IdleStep::park) {
        verdict.why = "its owner is told; it writes no checkpoints, so parking it would lose its work";
        return verdict;
    }
    const std::int64_t due = facts.told_us + at(rule.notice_s());
    if (now_us < due) {
        verdict.why = "its owner is told";
        verdict.next_us = due;
        return verdict;
    }
    if (verdict.saved_s <= verdict.lost_s) {
        verdict.why =
            fmt::format("taking it would save {} and, at a chance of {:.0f} % that it goes on by itself, lose {}",
                        time_text(verdict.saved_s), 100 * verdict.wrong, time_text(verdict.lost_s));
        verdict.next_us = now_us + at(std::max(60.0, rule.after_s() / 4));
        return verdict;
    }
    verdict.act = facts.goes_on ? IdleAct::park : IdleAct::stop;
    verdict.why = fmt::format("nothing moved for {}; taking it saves {}, and at a chance of {:.0f} % loses {}",
                              time_text(t), time_text(verdict.saved_s), 100 * verdict.wrong, time_text(verdict.lost_s));
    return verdict;
}

}  // namespace stoker
