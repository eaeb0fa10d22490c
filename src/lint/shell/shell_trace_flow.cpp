// Which parts of a script run: branches, loops, pipelines, and what both ways of a condition leave behind.
#include <algorithm>

#include "lint/shell/shell_trace.h"

namespace stoker::lint {

// What two ways leave different is not known behind them; of a list, what they begin with alike stays.
void ShellTrace::merge(const Variables& other) {
    spend(16 * other.size());
    for (const auto& [name, theirs] : other) {
        const auto it = variables_.find(name);
        if (it == variables_.end()) {
            Variable maybe = theirs;
            maybe.open = true;
            if (!maybe.list) maybe.items.clear();
            maybe.items.resize(0);
            variables_.emplace(name, std::move(maybe));
            continue;
        }
        Variable& ours = it->second;
        if (ours == theirs) continue;
        std::size_t alike = 0;
        if (ours.list && theirs.list && !ours.keyed)
            while (alike < ours.items.size() && alike < theirs.items.size() && ours.items[alike].known &&
                   ours.items[alike].text == theirs.items[alike].text)
                ++alike;
        ours.items.resize(alike);
        if (ours.keys.size() > alike) ours.keys.resize(alike);
        ours.open = true;
        ours.set = true;
    }
    for (auto& [name, ours] : variables_)
        if (!other.contains(name)) {
            ours.open = true;
            ours.items.clear();
            ours.keys.clear();
        }
}

// Both ways from here; a way that ends the script, the function or the turn leaves nothing behind.
template <typename Yes, typename No>
ShellTrace::Status ShellTrace::both_ways(Yes&& yes, No&& no) {
    if (!spend(64 * variables_.size())) return Status::unknown;
    Variables before = variables_;
    const auto arguments = arguments_;
    const Status first = yes();
    const Flow first_flow = flow_;
    if (spent()) return Status::unknown;
    flow_ = Flow::on;
    std::swap(variables_, before);
    auto after_first = arguments_;
    arguments_ = arguments;
    const Status second = no();
    if (spent()) return Status::unknown;
    if (first_flow != Flow::on && flow_ != Flow::on) return Status::unknown;
    if (first_flow != Flow::on) return second;
    if (flow_ != Flow::on) {
        flow_ = Flow::on;
        std::swap(variables_, before);
        arguments_ = after_first;
        return first;
    }
    merge(before);
    return first == second ? first : Status::unknown;
}

ShellTrace::Status ShellTrace::run(int at) {
    if (at < 0 || flow_ != Flow::on || depth_ > kMostTraceDepth || !spend(8)) return Status::unknown;
    struct Deeper {
        int& depth;
        explicit Deeper(int& d) : depth(d) { ++depth; }
        ~Deeper() { --depth; }
    } const deeper(depth_);
    const ShellNode& node = unit_->tree.nodes[static_cast<std::size_t>(at)];
    // `< file`, `<<LIST` behind a loop or a group
    const auto outer = input_;
    if (!node.feeds.empty() && node.kind != ShellNode::Kind::simple) {
        auto feed = std::make_shared<Feed>();
        if (feed_of(node, *feed)) input_ = std::move(feed);
    }
    Status status = Status::yes;
    switch (node.kind) {
        case ShellNode::Kind::simple: status = simple(node); break;
        case ShellNode::Kind::sequence:
        case ShellNode::Kind::group:
            for (const int kid : node.kids) {
                status = run(kid);
                if (flow_ != Flow::on) break;
            }
            break;
        case ShellNode::Kind::subshell: {
            const Variables before = variables_;
            spend(64 * before.size());
            status = run(node.kids[0]);
            variables_ = before;
            if (flow_ == Flow::leave_script && !spent()) flow_ = Flow::on;
            break;
        }
        case ShellNode::Kind::pipeline: status = pipeline(node); break;
        case ShellNode::Kind::both:
        case ShellNode::Kind::either: {
            const Status left = run(node.kids[0]);
            if (flow_ != Flow::on) break;
            const Status goes_on = node.kind == ShellNode::Kind::both ? Status::yes : Status::no;
            if (left == goes_on)
                status = run(node.kids[1]);
            else if (left != Status::unknown)
                status = left;
            else
                status = both_ways([&] { return run(node.kids[1]); },
                                   [&] { return goes_on == Status::yes ? Status::no : Status::yes; });
            break;
        }
        case ShellNode::Kind::negated:
            status = run(node.kids[0]);
            status = status == Status::yes ? Status::no : status == Status::no ? Status::yes : status;
            break;
        case ShellNode::Kind::choice: status = choice(node, 0); break;
        case ShellNode::Kind::loop: status = loop(node); break;
        case ShellNode::Kind::each: status = each(node); break;
        case ShellNode::Kind::counting: status = counting(node); break;
        case ShellNode::Kind::cases: status = cases(node); break;
        case ShellNode::Kind::function:
            functions_.insert_or_assign(std::string(node.name), Function{unit_, node.kids[0]});
            break;
        case ShellNode::Kind::test: status = tested(node.words); break;
        case ShellNode::Kind::arithmetic: {
            const auto value = number(all().substr(node.words[0].begin, node.words[0].size()));
            status = !value ? Status::unknown : *value != 0 ? Status::yes : Status::no;
            break;
        }
    }
    input_ = outer;
    return status;
}

ShellTrace::Status ShellTrace::choice(const ShellNode& node, std::size_t at) {
    if (at >= node.kids.size()) return Status::yes;
    if (at + 1 == node.kids.size()) return run(node.kids[at]);  // else
    const Status condition = run(node.kids[at]);
    if (flow_ != Flow::on) return condition;
    if (condition == Status::yes) return run(node.kids[at + 1]);
    if (condition == Status::no) return choice(node, at + 2);
    return both_ways([&] { return run(node.kids[at + 1]); }, [&] { return choice(node, at + 2); });
}

ShellTrace::Status ShellTrace::cases(const ShellNode& node) {
    const TracedText subject = text_of(node.words[0]);
    return cases_from(node, subject, 0);
}

ShellTrace::Status ShellTrace::cases_from(const ShellNode& node, const TracedText& subject, std::size_t at) {
    if (at >= node.kids.size()) return Status::yes;
    Status match = Status::no;
    for (const Span pattern : node.patterns[at]) {
        const TracedText one = text_of(pattern);
        if (one.known && one.text == "*")
            match = Status::yes;
        else if (!one.known || !subject.known)
            match = match == Status::yes ? match : Status::unknown;
        else if (shell_pattern_matches(subject.text, one.text))
            match = Status::yes;
        if (match == Status::yes) break;
    }
    if (match == Status::yes) return run(node.kids[at]);
    if (match == Status::no) return cases_from(node, subject, at + 1);
    return both_ways([&] { return run(node.kids[at]); }, [&] { return cases_from(node, subject, at + 1); });
}

// After a turn of a loop: false where it ends.
bool ShellTrace::ended_turn() {
    if (flow_ == Flow::next_turn) flow_ = Flow::on;
    if (flow_ == Flow::on) return false;
    if (flow_ == Flow::break_loop) flow_ = Flow::on;
    return true;
}

ShellTrace::Status ShellTrace::loop(const ShellNode& node) {
    for (int turn = 0; turn < kMostTurns; ++turn) {
        Status condition = run(node.kids[0]);
        if (flow_ != Flow::on) return Status::unknown;
        if (node.until && condition != Status::unknown) condition = condition == Status::yes ? Status::no : Status::yes;
        if (condition == Status::no) return Status::yes;
        if (condition == Status::unknown) {  // a turn, or none
            both_ways(
                [&] {
                    const Status status = run(node.kids[1]);
                    if (flow_ == Flow::next_turn || flow_ == Flow::break_loop) flow_ = Flow::on;
                    return status;
                },
                [] { return Status::yes; });
            return Status::unknown;
        }
        run(node.kids[1]);
        if (ended_turn()) return Status::yes;
    }
    return Status::unknown;
}

ShellTrace::Status ShellTrace::each(const ShellNode& node) {
    Fields words;
    if (node.listed)
        for (const Span word : node.words) expand(word, words);
    else if (arguments_)
        words.assign(arguments_->begin(), arguments_->end());
    else
        words.push_back(written({}, false));
    int turn = 0;
    for (TracedText& word : words) {
        if (++turn > kMostTurns) break;
        if (word.known && word.text.find_first_of("*?[") != std::string::npos) word.known = false;  // files
        set(node.name, word);
        run(node.kids[0]);
        if (ended_turn()) break;
    }
    return Status::yes;
}

ShellTrace::Status ShellTrace::counting(const ShellNode& node) {
    const auto part = [&](std::size_t k) { return all().substr(node.words[k].begin, node.words[k].size()); };
    const auto blank = [](std::string_view text) { return text.find_first_not_of(" \t\n") == std::string_view::npos; };
    if (!blank(part(0))) number(part(0));
    for (int turn = 0; turn < kMostTurns; ++turn) {
        const auto goes_on = blank(part(1)) ? std::optional<std::int64_t>(1) : number(part(1));
        if (goes_on == 0) return Status::yes;
        run(node.kids[0]);
        if (ended_turn() || !goes_on) break;
        number(part(2));
    }
    return Status::unknown;
}

ShellTrace::Status ShellTrace::pipeline(const ShellNode& node) {
    const Variables before = variables_;
    spend(64 * before.size());
    TracedText* const outer_output = output_;
    const auto outer = input_;
    Status status = Status::yes;
    for (std::size_t k = 0; k < node.kids.size() && flow_ == Flow::on; ++k) {
        TracedText said;
        const bool last = k + 1 == node.kids.size();
        output_ = last ? outer_output : &said;
        status = run(node.kids[k]);
        if (!last) {
            auto feed = std::make_shared<Feed>();
            feed->text = std::move(said);
            input_ = std::move(feed);
        }
    }
    if (flow_ == Flow::leave_script && !spent()) flow_ = Flow::on;
    output_ = outer_output;
    input_ = outer;
    variables_ = before;
    return status;
}

}  // namespace stoker::lint
