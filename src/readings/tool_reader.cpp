#include "readings/tool_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "readings/cuda_driver.h"

namespace stoker {
namespace {

constexpr std::size_t kMostToolJson = 64u << 20;

// Without the codes that colour and underline on a terminal: ESC [ ... letter. Line ends stay.
std::string without_terminal_codes(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '\x1b' || at + 1 >= text.size() || text[at + 1] != '[') {
            plain += text[at];
            continue;
        }
        at += 2;
        while (at < text.size() && (text[at] == ';' || text[at] == '?' || (text[at] >= '0' && text[at] <= '9'))) ++at;
        if (at < text.size() && text[at] == '\n') plain += '\n';
    }
    return plain;
}

}  // namespace

ToolLines::ToolLines(std::string_view text) : plain_(without_terminal_codes(text)), lines_(split_lines(plain_)) {}

void ReadingBuilder::fact(std::string name, std::string value) {
    for (const ToolFact& each : reading_.facts)
        if (each.name == name && each.value == value) return;
    if (reading_.facts.size() < kMostToolNotes) reading_.facts.push_back({std::move(name), std::move(value)});
}

void ReadingBuilder::tell(ToolPlace place, HealthLayer layer, std::string message) {
    reading_.notes.push_back({place.line, place.column, layer, HealthVerdict::skipped, std::move(message), {}});
}

void ReadingBuilder::check(std::string name, ToolPlace place, ToolFinding finding) {
    reading_.notes.push_back({place.line, place.column, finding.layer, finding.verdict, finding.message, finding.fix});
    reading_.checks.push_back({.layer = finding.layer,
                               .name = std::move(name),
                               .node = {},
                               .peer = std::move(finding.peer),
                               .verdict = finding.verdict,
                               .measured = finding.measured,
                               .expected = finding.expected,
                               .unit = std::move(finding.unit),
                               .source = std::move(finding.source),
                               .detail = std::move(finding.message),
                               .fix = std::move(finding.fix)});
}

void ReadingBuilder::repeated(std::string name, const std::string& key, ToolPlace place, const ToolFinding& finding) {
    const auto [found, fresh] = at_.try_emplace(name + '\n' + key, repeats_.size());
    if (fresh) repeats_.push_back({std::move(name), place, finding, 0});
    ++repeats_[found->second].count;
}

void ReadingBuilder::needs_cuda(std::string cuda, std::string what, bool brings_compat, ToolPlace place) {
    for (const CudaNeed& each : reading_.needs)
        if (each.cuda == cuda && each.what == what) return;
    if (reading_.needs.size() < kMostToolNotes)
        reading_.needs.push_back({place.line, place.column, std::move(cuda), std::move(what), brings_compat});
}

void ReadingBuilder::needs_cuda_of_image(const std::string& image, ToolPlace place) {
    if (const auto cuda = cuda_of_image(image))
        needs_cuda(cuda->text(), "the image " + printable(image, 100), brings_cuda_compat(image), place);
}

Error ReadingBuilder::broken(ToolPlace place, std::string what, std::string remedy) const {
    return Error(ErrorKind::invalid, fmt::format("{}: {}", word_of(reading_.tool), what),
                 SourcePos{reading_.file, place.line, place.column}, std::move(remedy));
}

ToolReading ReadingBuilder::finish(std::string conclusion) {
    for (Repeat& each : repeats_) {
        if (each.count > 1)
            each.finding.message += fmt::format(" (and {} more like it)", counted(each.count - 1, "line"));
        check(std::move(each.name), each.place, std::move(each.finding));
    }
    repeats_.clear();
    at_.clear();
    auto& notes = reading_.notes;
    if (notes.size() > kMostToolNotes) {
        std::stable_sort(notes.begin(), notes.end(),
                         [](const ToolNote& a, const ToolNote& b) { return a.verdict > b.verdict; });
        notes.resize(kMostToolNotes);
    }
    std::stable_sort(notes.begin(), notes.end(), [](const ToolNote& a, const ToolNote& b) { return a.line < b.line; });
    reading_.conclusion = std::move(conclusion);
    return std::move(reading_);
}

std::optional<double> tool_number(std::string_view text) {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size() || !(value > -1e300 && value < 1e300))
        return std::nullopt;
    return value;
}

std::optional<double> leading_number(std::string_view text) {
    text = trim(text);
    const std::size_t end = std::min(text.find_first_not_of("0123456789.-"), text.size());
    return tool_number(text.substr(0, end));
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const std::size_t begin = text.find(before);
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin + before.size());
    return after.empty() ? text : text.substr(0, std::min(text.find(after), text.size()));
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

ToolPlace place_at(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto lines = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t begin = before.rfind('\n');
    const std::size_t column = begin == std::string_view::npos ? before.size() : before.size() - begin - 1;
    return {lines + 1, static_cast<std::uint32_t>(column + 1)};
}

ToolPlace place_of(const SourcePos& pos) {
    return {std::max(pos.line, 1U), std::max(pos.column, 1U)};
}

Result<Document> tool_json(std::string_view text, const std::string& file) {
    return Document::parse_json(text, file, {.max_bytes = kMostToolJson, .max_nodes = 8'000'000});
}

std::string_view node_text(const Node* node) {
    return node != nullptr && node->is_scalar() && node->kind != NodeKind::null ? std::string_view(node->text)
                                                                                : std::string_view();
}

const Node* node_at(const Node* node, std::initializer_list<std::string_view> path) {
    for (const std::string_view key : path) {
        if (node == nullptr || !node->is_mapping()) return nullptr;
        node = node->find(key);
    }
    return node;
}

std::string_view text_at(const Node* node, std::initializer_list<std::string_view> path) {
    return node_text(node_at(node, path));
}

}  // namespace stoker
