#include <algorithm>

#include "base/text.h"
#include "lint/rule.h"

namespace stoker::lint {

namespace {

// `helm template` says above each document which template it came from. The finding stands in what was rendered; a
// related place names the template.
void name_template(const Source& file, Finding& finding) {
    constexpr std::string_view kMark = "# Source: ";
    const std::string_view text = file.text();
    const std::size_t at = text.substr(0, finding.span.begin).rfind(kMark);
    if (at == std::string_view::npos || (at > 0 && text[at - 1] != '\n')) return;
    const Span line = file.line_at(static_cast<std::uint32_t>(at));
    finding.related.push_back({file.path(), line, file.place(line.begin, Columns::code_points),
                               "rendered from " + std::string(trim(file.text(line).substr(kMark.size())))});
}

}  // namespace

void Report::in_call(const File& called, bool all) {
    called_.push_back(&called);
    if (all) all_in_ = &called;
}

const File* Report::call_at(const Source& source) const {
    if (all_in_) return all_in_;
    for (const File* file : called_)
        if (&file->source() == &source.outermost()) return file;
    return nullptr;
}

Finding* Report::add(const Source& source, Span span, std::string address, std::string message) {
    if (options_.off.contains(page_->id)) return nullptr;
    const File* called = called_.empty() ? nullptr : call_at(source);
    if (called && !called->call->overlay)  // tf:azurerm_x.y of a module is tf:module.gpu.azurerm_x.y
        address.insert(address.find(':') == std::string::npos ? 0 : address.find(':') + 1, called->call->name + ".");
    const auto key = std::make_pair(page_->id, source.path() + '\0' + address);
    const Span outside = source.in_outermost(span);
    const Source& file = source.outermost();
    if (const auto it = by_address_.find(key); it != by_address_.end()) {
        Finding& first = findings_[it->second];
        if (first.span != outside)
            first.related.push_back(
                {source.path(), outside, file.place(outside.begin, Columns::code_points), "also here"});
        return nullptr;
    }
    // A command that a loop runs again says the same again.
    if (address.find("#launch/") != std::string::npos &&
        std::any_of(findings_.begin(), findings_.end(), [&](const Finding& told) {
            return told.rule == page_->id && told.path == source.path() && told.span == outside &&
                   told.message == message;
        }))
        return nullptr;
    by_address_.emplace(key, findings_.size());
    Finding& finding = findings_.emplace_back();
    finding.rule = page_->id;
    finding.slug = page_->slug;
    const auto wanted = options_.severity.find(page_->id);
    finding.severity = wanted == options_.severity.end() ? page_->severity : wanted->second;
    finding.path = source.path();
    finding.span = outside;
    finding.place = file.place(outside.begin, Columns::code_points);
    finding.end = file.place(outside.end, Columns::code_points);
    finding.address = std::move(address);
    finding.message = std::move(message);
    for (const char c : source.text(span)) {  // runs of blanks count as one
        const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank)
            finding.value += c;
        else if (!finding.value.empty() && finding.value.back() != ' ')
            finding.value += ' ';
        if (finding.value.size() > 200) break;
    }
    name_template(file, finding);
    if (called) {
        finding.call = called->call->name;
        if (&called->source() == &file && !called->call->overlay)
            relate(&finding, called->call->caller->source(), called->call->span, "called here as " + finding.call);
        // A kustomization is told in its own words; the others say with whose values.
        if (called->call->overlay && called->call->name != "kustomization" &&
            called->call->caller->path() != finding.path)
            relate(&finding, called->call->caller->source(), called->call->span, "with the values given here");
    }
    return &finding;
}

Finding* Report::add(const Value& at, std::string address, std::string message) {
    Finding* finding = add(*at.source, at.span, std::move(address), std::move(message));
    if (!finding) return nullptr;
    if (at.known()) finding->value = at.text.substr(0, 200);
    if (at.use_source) relate(finding, *at.use_source, at.use, "used here");
    return finding;
}

void Report::relate(Finding* finding, const Source& source, Span span, std::string message) {
    if (!finding) return;
    const Span outside = source.in_outermost(span);
    finding->related.push_back(
        {source.path(), outside, source.outermost().place(outside.begin, Columns::code_points), std::move(message)});
}

void Report::fix(Finding* finding, const Source& source, FixClass safety, std::string title, std::vector<Edit> edits) {
    if (!finding || edits.empty()) return;
    if (!finding->call.empty()) return;         // a module has other callers
    if (source.path().ends_with(".tf.json")) {  // rules write HCL: only what replaces a value within a line is JSON too
        for (const Edit& edit : edits)
            if (edit.span.empty() || edit.replacement.empty() || edit.replacement.find('\n') != std::string::npos)
                return;
    }
    for (Edit& edit : edits) {
        if (!source.editable(edit.span)) return;
        edit.span = source.in_outermost(edit.span);
    }
    std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
    for (std::size_t i = 1; i < edits.size(); ++i)
        if (edits[i].span.begin < edits[i - 1].span.end) return;
    finding->fix = Fix{safety, std::move(title), std::move(edits)};
}

}  // namespace stoker::lint
