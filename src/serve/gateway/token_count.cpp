#include "serve/gateway/token_count.h"

#include <algorithm>
#include <string>

#include "serve/wire/prompt_text.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kWhole = 16u << 10;  // takes less than a millisecond
constexpr std::size_t kSamples = 8, kSample = kWhole / kSamples;

bool goes_on(char c) {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::uint64_t count_parts(const tokens::Tokenizer& tokenizer, std::string_view text) {
    std::uint64_t seen = 0, bytes = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
        std::size_t begin = (text.size() - kSample) / (kSamples - 1) * i;
        while (begin < text.size() && goes_on(text[begin])) ++begin;
        std::size_t end = std::min(text.size(), begin + kSample);
        while (end < text.size() && goes_on(text[end])) ++end;
        seen += tokenizer.count(text.substr(begin, end - begin), false);
        bytes += end - begin;
    }
    return seen * text.size() / std::max<std::uint64_t>(1, bytes);
}

}  // namespace

void TokenCount::use(std::shared_ptr<const tokens::Tokenizer> tokenizer) {
    if (tokenizer == tokenizer_) return;
    tokenizer_ = std::move(tokenizer);
    written_.clear();
}

void TokenCount::read_prompt(std::string_view body) {
    prompt_ = 0;
    prompt_is_whole_ = false;
    if (!tokenizer_) return;
    knows_prompt_ = true;
    std::string text;
    std::uint64_t tokens = 0;
    std::size_t by_itself = 0;
    const auto seen = wire::each_prompt_text(body, [&](std::string_view part) {
        // Each is a text of its own to the template, and long ones are looked at together.
        if (part.size() <= kSample && (by_itself += part.size()) <= kWhole)
            tokens += tokenizer_->count(part, false);
        else
            text.append(part).append("\n");
    });
    prompt_is_whole_ = text.size() <= kWhole;
    if (!text.empty()) tokens += prompt_is_whole_ ? tokenizer_->count(text, false) : count_parts(*tokenizer_, text);
    prompt_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens + seen.numbers, UINT32_MAX));
}

void TokenCount::take_texts() {
    for (const wire::GeneratedText& each : texts_) {
        auto at = std::find_if(written_.begin(), written_.end(), [&](const auto& w) { return w.first == each.choice; });
        if (at == written_.end()) at = written_.insert(at, {each.choice, tokens::StreamCount(tokenizer_)});
        at->second.add(each.text);
    }
    texts_.clear();
}

std::uint32_t TokenCount::written() const {
    std::uint32_t tokens = 0;
    for (const auto& [choice, count] : written_) tokens += count.tokens();
    return tokens;
}
std::uint32_t TokenCount::written(std::uint32_t choice) const {
    const auto at = std::find_if(written_.begin(), written_.end(), [&](const auto& w) { return w.first == choice; });
    return at == written_.end() ? 0 : at->second.tokens();
}
std::uint32_t TokenCount::about_written() const {
    std::uint32_t tokens = 0;
    for (const auto& [choice, count] : written_) tokens += count.about();
    return tokens;
}

}  // namespace stoker::gateway
