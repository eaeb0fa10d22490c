#include "serve/load/stream_reader.h"

#include <algorithm>

#include "base/document.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostEventBytes = 1u << 20, kMostTextBytes = 1u << 20;

std::optional<std::int64_t> count_in(const Node& usage, const char* name, const char* other) {
    for (const char* key : {name, other})
        if (const Node* value = usage.find(key);
            value != nullptr && value->kind == NodeKind::number && value->number >= 0)
            return static_cast<std::int64_t>(std::min(value->number, 1e15));
    return std::nullopt;
}

std::optional<TokenUsage> usage_in(const Node& answer) {
    if (!answer.is_mapping()) return std::nullopt;
    const Node* usage = answer.find("usage");
    if (usage == nullptr)
        if (const Node* response = answer.find("response"); response != nullptr && response->is_mapping())
            usage = response->find("usage");
    if (usage == nullptr || !usage->is_mapping()) return std::nullopt;
    const auto prompt = count_in(*usage, "prompt_tokens", "input_tokens");
    const auto completion = count_in(*usage, "completion_tokens", "output_tokens");
    if (!prompt) return std::nullopt;
    return TokenUsage{*prompt, completion.value_or(0)};
}

std::string member_text(const Node& of, const char* key) {
    const Node* value = of.is_mapping() ? of.find(key) : nullptr;
    return value != nullptr && value->kind == NodeKind::string ? value->text : std::string();
}

// What a chunk adds to the answer: chat completions, completions, responses.
std::string added_text(const Node& chunk) {
    if (member_text(chunk, "type") == "response.output_text.delta") return member_text(chunk, "delta");
    std::string text;
    const Node* choices = chunk.find("choices");
    if (choices == nullptr || !choices->is_sequence()) return text;
    for (const auto& choice : choices->items) {
        text += member_text(*choice, "text");
        const Node* delta = choice->is_mapping() ? choice->find("delta") : nullptr;
        if (delta == nullptr) continue;
        text += member_text(*delta, "reasoning_content");
        text += member_text(*delta, "content");
    }
    return text;
}

std::string said_error(const Node& chunk) {
    const Node* error = chunk.find("error");
    if (error == nullptr || error->kind == NodeKind::null) return {};
    if (const std::string message = member_text(*error, "message"); !message.empty()) return printable(message);
    return error->is_scalar() ? printable(error->text) : "an error without a message";
}

}  // namespace

void StreamReader::add(std::string_view bytes, double at_s) {
    at_s_ = at_s;
    rest_ += bytes;
    std::size_t from = 0;
    for (std::size_t end; (end = rest_.find('\n', from)) != std::string::npos; from = end + 1) {
        std::string_view one(rest_.data() + from, end - from);
        if (!one.empty() && one.back() == '\r') one.remove_suffix(1);
        line(one);
    }
    rest_.erase(0, from);
    if (rest_.size() > kMostEventBytes) {
        error_ = "a line of more than 1 MiB";
        rest_.clear();
    }
}

void StreamReader::line(std::string_view line) {
    if (line.empty()) {
        if (has_data_) event(data_);
        data_.clear();
        has_data_ = false;
        return;
    }
    if (!line.starts_with("data:")) return;  // comments, event names and ids
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    has_data_ = true;
    if (data_.size() + line.size() <= kMostEventBytes)
        data_ += line;
    else
        error_ = "an event of more than 1 MiB";
}

void StreamReader::event(std::string_view data) {
    if (data == "[DONE]") {
        done_ = true;
        return;
    }
    const auto chunk = Document::parse_json(data, "event");
    if (!chunk || !chunk->root().is_mapping()) {
        error_ = "an event that is no JSON object: " + printable(data, 60);
        return;
    }
    if (std::string said = said_error(chunk->root()); !said.empty()) error_ = std::move(said);
    if (const auto usage = usage_in(chunk->root())) usage_ = usage;
    const std::string type = member_text(chunk->root(), "type");
    if (type == "response.completed" || type == "response.incomplete") done_ = true;
    const std::string text = added_text(chunk->root());
    if (text.empty()) return;
    if (first_s_ < 0)
        first_s_ = at_s_;
    else
        gaps_.push_back(at_s_ - last_s_);
    last_s_ = at_s_;
    ++chunks_;
    if (text_.size() + text.size() <= kMostTextBytes) text_ += text;
}

std::optional<TokenUsage> usage_of(std::string_view json) {
    const auto answer = Document::parse_json(json, "answer");
    return answer ? usage_in(answer->root()) : std::nullopt;
}

}  // namespace stoker
