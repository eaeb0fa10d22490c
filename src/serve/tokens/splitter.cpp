#include "serve/tokens/splitter.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"

namespace stoker::tokens {
namespace {

// Two dialects agree on all that tokenizers use but for classes within classes.
bool has_class_operation(std::string_view expression) {
    bool in_class = false;
    for (std::size_t i = 0; i < expression.size(); ++i) {
        const char c = expression[i];
        if (c == '\\') {
            ++i;
            continue;
        }
        if (!in_class) {
            in_class = c == '[';
            continue;
        }
        if (c == ']') in_class = false;
        if (c == '[' && expression.substr(i, 2) != "[:") return true;
        if (c == '&' && expression.substr(i, 2) == "&&") return true;
    }
    return false;
}

}  // namespace

Result<SplitStage> SplitStage::make(std::string_view expression, SplitBehavior behavior, bool invert) {
    if (has_class_operation(expression))
        return Error(ErrorKind::unsupported,
                     fmt::format("the expression {} has classes within a class", printable(expression, 100)));
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code* made = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
    if (made == nullptr) {
        PCRE2_UCHAR said[160];
        pcre2_get_error_message(code, said, sizeof said);
        return Error(ErrorKind::unsupported, fmt::format("the expression {}: {} at {}", printable(expression, 100),
                                                         reinterpret_cast<const char*>(said), at));
    }
    pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);  // where it cannot, the same is done more slowly
    SplitStage stage;
    stage.code_ = std::shared_ptr<void>(made, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
    stage.behavior_ = behavior;
    stage.invert_ = invert;
    return stage;
}

std::vector<SplitStage::Part> SplitStage::parts_of(std::string_view text) const {
    const auto* code = static_cast<const pcre2_code*>(code_.get());
    const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> found(
        pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
    std::vector<Part> parts;
    std::size_t done = 0, from = 0;
    while (from <= text.size() && found != nullptr) {
        const int rc = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                   PCRE2_NO_UTF_CHECK, found.get(), nullptr);
        if (rc < 0) break;  // no more; or too long a search, and the rest is one piece
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(found.get());
        const std::size_t begin = span[0], end = span[1];
        if (end <= begin) {  // nothing was matched: on to the next character
            from = begin + 1;
            while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0) == 0x80) ++from;
            continue;
        }
        if (begin > done) parts.push_back({text.substr(done, begin - done), invert_});
        parts.push_back({text.substr(begin, end - begin), !invert_});
        done = from = end;
    }
    if (done < text.size()) parts.push_back({text.substr(done), invert_});
    return parts;
}

void SplitStage::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
    std::vector<Part> parts = parts_of(text);
    const auto joined = [](std::string_view a, std::string_view b) {
        return std::string_view(a.data(), a.size() + b.size());
    };
    std::vector<std::string_view> pieces;
    bool match_before = false;
    switch (behavior_) {
        case SplitBehavior::isolated:
            for (const Part& part : parts) piece(part.text);
            return;
        case SplitBehavior::removed:
            for (const Part& part : parts)
                if (!part.match) piece(part.text);
            return;
        case SplitBehavior::contiguous:
            for (std::size_t i = 0; i < parts.size(); ++i) {
                if (i > 0 && parts[i].match == parts[i - 1].match)
                    pieces.back() = joined(pieces.back(), parts[i].text);
                else
                    pieces.push_back(parts[i].text);
            }
            break;
        case SplitBehavior::merged_with_previous:
            for (const Part& part : parts) {
                if (part.match && !match_before && !pieces.empty())
                    pieces.back() = joined(pieces.back(), part.text);
                else
                    pieces.push_back(part.text);
                match_before = part.match;
            }
            break;
        case SplitBehavior::merged_with_next:
            for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
                if (part->match && !match_before && !pieces.empty())
                    pieces.back() = joined(part->text, pieces.back());
                else
                    pieces.push_back(part->text);
                match_before = part->match;
            }
            for (auto each = pieces.rbegin(); each != pieces.rend(); ++each) piece(*each);
            return;
    }
    for (const std::string_view each : pieces) piece(each);
}

std::string literal_expression(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = static_cast<unsigned char>(c) >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z');
        if (!plain) out += '\\';
        out += c;
    }
    return out;
}

}  // namespace stoker::tokens
