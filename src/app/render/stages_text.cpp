#include "app/render/stages_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "app/render/short_answer.h"
#include "base/text.h"

namespace stoker {
namespace {

const AnswerLine* line_of(const ShortAnswer& answer, std::string_view label) {
    for (const AnswerLine& line : answer.lines)
        if (line.label == label) return &line;
    return nullptr;
}

std::string names_of(const std::vector<PlannedStage>& stages, const std::vector<int>& indices) {
    std::vector<std::string> names;
    for (const int i : indices) names.push_back(stages[static_cast<std::size_t>(i)].name);
    return join(names, ", ");
}

std::string total_money(const StagesTotal& total) {
    std::vector<std::string> parts;
    if (total.jobs > 0 && total.jobs_usd.mid > 0)
        parts.push_back(rounded_money_range(total.jobs_usd) + (total.services > 0 ? " once" : ""));
    if (total.services > 0 && total.month_usd > 0) parts.push_back(rounded_money(total.month_usd) + " a month");
    std::string text = parts.empty() ? std::string("no price") : join(parts, ", then ");
    if (!total.priced) text += ", and a stage without a known price";
    return text;
}

std::string quota_of(const std::vector<PlannedStage>& stages, const QuotaNeed& need) {
    std::string text =
        fmt::format("{} vCPUs of {} quota in {}", format_thousands(need.vcpus), need.family, need.region);
    if (need.users.size() > 1) text += fmt::format(" ({} at the same time)", names_of(stages, need.users));
    return text;
}

// Weights that are made in one place and used in another.
std::string move_of(const std::vector<PlannedStage>& stages) {
    for (const PlannedStage& stage : stages)
        for (const int before : stage.after) {
            const Plan& from = stages[static_cast<std::size_t>(before)].plan;
            if (!from.feasible() || !stage.plan.feasible() || !is_training(from.workload.kind)) continue;
            const std::string &there = from.candidates.front().region, &here = stage.plan.candidates.front().region;
            if (there.empty() || here.empty() || there == here) continue;
            return fmt::format(
                "{} ends in {} and {} starts in {}: copying the weights takes egress, which is in no total",
                stages[static_cast<std::size_t>(before)].name, there, stage.name, here);
        }
    return {};
}

class Screen {
public:
    explicit Screen(const Style& style) : style_(style), width_(static_cast<std::size_t>(std::max(style.width, 20))) {}

    void heading(const std::string& text) {
        for (const std::string& part : wrap(text, width_)) out_ += part + "\n";
    }
    void blank() { out_ += "\n"; }
    // The facts of a stage side by side where they fit.
    void facts(const std::vector<std::string>& cells) {
        std::string line;
        const auto flush = [&] {
            if (kIndent + display_width(line) <= width_) {  // as it stands, with its gaps
                out_ += std::string(kIndent, ' ') + line + "\n";
                line.clear();
                return;
            }
            for (const std::string& part : wrap(line, width_ - std::min(kIndent, width_ / 2)))
                out_ += std::string(kIndent, ' ') + part + "\n";
            line.clear();
        };
        for (const std::string& cell : cells) {
            if (cell.empty()) continue;
            if (!line.empty() && kIndent + display_width(line) + 3 + display_width(cell) > width_) flush();
            line += (line.empty() ? "" : "   ") + cell;
        }
        if (!line.empty()) flush();
    }
    void labelled(std::string_view label, const std::string& text) {
        if (text.empty()) return;
        bool first = true;
        for (const std::string& part : wrap(text, width_ - std::min(kIndent, width_ / 2))) {
            out_ +=
                (first ? "  " + style_.dim(pad_right(std::string(label), kIndent - 2)) : std::string(kIndent, ' ')) +
                part + "\n";
            first = false;
        }
    }
    void command(std::string_view label, const std::string& text, const std::string& what) {
        const bool fits = kIndent + display_width(text) + 3 + display_width(what) <= width_;
        out_ += "  " + style_.dim(pad_right(std::string(label), kIndent - 2)) + text +
                (fits && !what.empty() ? "   " + style_.dim(what) : "") + "\n";
    }
    std::string take() { return std::move(out_); }

private:
    static constexpr std::size_t kIndent = 11;
    const Style& style_;
    std::size_t width_;
    std::string out_;
};

}  // namespace

std::string render_stages(const std::vector<PlannedStage>& stages, const Catalog& catalog, std::string_view title,
                          std::string_view file, const Style& style) {
    const StagesTotal total = total_of(stages, catalog);
    Screen screen(style);
    screen.heading(fmt::format("{}{} stage{}{}", title.empty() ? "" : fmt::format("{}: ", title), stages.size(),
                               stages.size() == 1 ? "" : "s", total.feasible ? "" : ", not all possible"));
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const PlannedStage& stage = stages[i];
        const ShortAnswer answer = short_answer(stage.plan, catalog, file);
        screen.blank();
        std::string head = fmt::format("{}. {}: {}", i + 1, stage.name, answer.task);
        if (!stage.after.empty()) head += fmt::format(" (after {})", names_of(stages, stage.after));
        if (!stage.plan.feasible()) head += ": no plan";
        screen.heading(head);
        if (!stage.plan.feasible()) {
            for (const AnswerLine& line : answer.lines)
                if (line.label != "next") screen.labelled(line.label, line.text);
            continue;
        }
        screen.facts({style.bold(answer.machines), answer.hardware});
        screen.facts({answer.time, style.bold(answer.money), answer.chance});
        for (const char* label : {"how", "watch", "saves"})
            if (const AnswerLine* line = line_of(answer, label)) screen.labelled(label, line->text);
    }
    screen.blank();
    if (total.feasible) {
        screen.labelled("total", style.bold(total_money(total)));
        if (total.jobs > 0) {
            const bool serves = total.services > 0;
            screen.labelled("time", duration_in_one_unit(total.hours) +
                                        (serves ? " until the last job has ended" : " from the first to the last"));
        }
        std::vector<std::string> quota;
        for (const QuotaNeed& need : total.quota) quota.push_back(quota_of(stages, need));
        if (!quota.empty()) screen.labelled("first", "needs " + join(quota, "; ") + ": --usage checks it");
        screen.labelled("watch", move_of(stages));
        screen.labelled("cost", "storage and egress not included");
    }
    for (const PlannedStage& stage : stages)
        screen.command(&stage == stages.data() ? "next" : "",
                       fmt::format("stoker plan {} --stage {}{}", file, stage.name,
                                   stage.plan.feasible() ? "" : " --show rejected"),
                       &stage == stages.data() ? "one stage, with all that is behind it" : "");
    return screen.take();
}

Json stages_json(const std::vector<PlannedStage>& stages, const Catalog& catalog, std::string_view file) {
    const StagesTotal total = total_of(stages, catalog);
    const auto range = [](const Range& r) {
        return Json::object().set("low", r.low).set("mid", r.mid).set("high", r.high);
    };
    const auto names = [&](const std::vector<int>& indices) {
        Json array = Json::array();
        for (const int i : indices) array.push(stages[static_cast<std::size_t>(i)].name);
        return array;
    };
    Json list = Json::array();
    for (std::size_t i = 0; i < stages.size(); ++i)
        list.push(Json::object()
                      .set("name", stages[i].name)
                      .set("after", names(stages[i].after))
                      .set("starts_hours", total.starts_hours[i])
                      .set("plan", plan_json(stages[i].plan, catalog, file)));
    Json quota = Json::array();
    for (const QuotaNeed& need : total.quota)
        quota.push(Json::object()
                       .set("family", need.family)
                       .set("region", need.region)
                       .set("vcpus", need.vcpus)
                       .set("stages", names(need.users)));
    return Json::object()
        .set("schema", "stoker.stages/1")
        .set("feasible", total.feasible)
        .set("stages", std::move(list))
        .set("total", Json::object()
                          .set("priced", total.priced)
                          .set("jobs_usd", range(total.jobs_usd))
                          .set("services_usd_per_month", total.month_usd)
                          .set("hours", range(total.hours))
                          .set("quota", std::move(quota)));
}

}  // namespace stoker
