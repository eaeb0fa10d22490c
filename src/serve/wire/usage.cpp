#include "serve/wire/usage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "serve/wire/json_cursor.h"

namespace stoker::wire {
namespace {

constexpr int kDepth = 128;
constexpr std::size_t kLongestMessage = 2000;

std::uint32_t bounded(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

class UsageScan {
public:
    UsageScan(Meter meter, std::string_view json, std::vector<GeneratedText>* texts, std::vector<ChoiceSeen>* choices)
        : json_(json), cursor_(json, kDepth), meter_(meter), texts_(texts), choices_(choices) {}

    AnswerScan read() {
        const bool object = cursor_.peek() == '{';
        const bool sound =
            object ? cursor_.object([&](std::string_view name, std::size_t at) { return top(name, at); }) : ranked();
        if (!sound || !cursor_.at_end()) return {};
        scan_.sound = true;
        if (meter_ == Meter::responses && scan_.type.ends_with("audio.delta")) {  // sound, written in letters
            scan_.text_bytes = 0;
            if (texts_ != nullptr) texts_->clear();
        }
        if (scan_.usage_end != 0) cut_usage();
        return std::move(scan_);
    }

private:
    bool skip() {
        JsonSpan span;
        return cursor_.skip_value(span);
    }
    // SGLang ranks with a bare list, each of which says what was read for it.
    bool ranked() {
        if (meter_ != Meter::ranking || cursor_.peek() != '[') return false;
        return cursor_.array([&] {
            if (cursor_.peek() != '{') return skip();
            return cursor_.object([&](std::string_view name, std::size_t) {
                if (name != "meta_info" || cursor_.peek() != '{') return skip();
                return cursor_.object([&](std::string_view inner, std::size_t) {
                    if (inner != "prompt_tokens") return skip();
                    std::uint32_t one = 0;
                    if (!number(one)) return false;
                    if (!scan_.usage) scan_.usage.emplace();
                    scan_.usage->in = bounded(std::uint64_t{scan_.usage->in} + one);
                    return true;
                });
            });
        });
    }
    bool top(std::string_view name, std::size_t at) {
        if (name == "usage") {
            scan_.usage_begin = at;
            if (!usage()) return false;
            scan_.usage_end = cursor_.at();
            return true;
        }
        if (name == "choices" && cursor_.peek() == '[') {
            scan_.choices = scan_.choices_empty = true;
            return cursor_.array([&] {
                scan_.choices_empty = false;
                return cursor_.peek() == '{' ? choice() : skip();
            });
        }
        if (name == "error" && cursor_.peek() == '"') {  // as TGI says it
            scan_.failed = true;
            return text_of(scan_.error_message);
        }
        if (name == "error" && cursor_.peek() == '{') {
            scan_.failed = true;
            return cursor_.object([&](std::string_view inner, std::size_t) {
                return inner == "message" && cursor_.peek() == '"' ? text_of(scan_.error_message) : skip();
            });
        }
        if (name == "type" && cursor_.peek() == '"') return text_of(scan_.type);
        if (name == "model" && cursor_.peek() == '"') return who();
        if (name == "timings" && cursor_.peek() == '{')
            return cursor_.object([&](std::string_view inner, std::size_t) {
                return inner == "predicted_n" ? number(scan_.timed_out_tokens.emplace()) : skip();
            });
        if (meter_ == Meter::image && name == "data" && cursor_.peek() == '[')
            return cursor_.array([&] {
                ++scan_.data_items;
                return skip();
            });
        if (meter_ == Meter::messages) return message(name);
        if (meter_ != Meter::responses) return skip();
        if (name == "delta" && cursor_.peek() == '"') return generated();
        // Of an event: what it was made of came before, piece by piece.
        if (name == "response" && cursor_.peek() == '{')
            return cursor_.object([&](std::string_view inner, std::size_t) {
                if (inner == "usage") return usage();
                return inner == "model" && cursor_.peek() == '"' ? who() : skip();
            });
        return name == "output" ? output() : skip();
    }
    // Of the messages API: content[*].text of an answer; in a stream message.usage at its begin, delta.text and its
    // likes.
    bool message(std::string_view name) {
        if (name == "message" && cursor_.peek() == '{')
            return cursor_.object([&](std::string_view inner, std::size_t) {
                if (inner == "model" && cursor_.peek() == '"') return who();
                return inner == "usage" ? usage() : skip();
            });
        if (name == "delta" && cursor_.peek() == '{')
            return cursor_.object([&](std::string_view inner, std::size_t) {
                const bool text = inner == "text" || inner == "thinking" || inner == "partial_json";
                return text && cursor_.peek() == '"' ? generated() : skip();
            });
        if (name != "content" || cursor_.peek() != '[') return skip();
        return cursor_.array([&] {
            if (cursor_.peek() != '{') return skip();
            return cursor_.object([&](std::string_view inner, std::size_t) {
                if ((inner == "text" || inner == "thinking") && cursor_.peek() == '"') return generated();
                if (inner != "input") return skip();
                JsonSpan span;  // of a tool that is called
                if (!cursor_.skip_value(span)) return false;
                wrote(span.of(json_));
                return true;
            });
        });
    }
    // The texts of the responses API: output[*].{content, summary}[*].{text, refusal}, and of tools that are called.
    bool output() {
        if (cursor_.peek() != '[') return skip();
        return cursor_.array([&] {
            if (cursor_.peek() != '{') return skip();
            return cursor_.object([&](std::string_view name, std::size_t) {
                const char next = cursor_.peek();
                if (next == '"' && (name == "name" || name == "arguments" || name == "input")) return generated();
                return next == '[' && (name == "content" || name == "summary") ? parts() : skip();
            });
        });
    }
    bool parts() {
        return cursor_.array([&] {
            if (cursor_.peek() != '{') return skip();
            return cursor_.object([&](std::string_view name, std::size_t) {
                const char next = cursor_.peek();
                if (next == '[' && name == "thinking") return parts();
                return next == '"' && (name == "text" || name == "refusal" || name == "thinking") ? generated()
                                                                                                  : skip();
            });
        });
    }
    bool choice() {
        const std::size_t first = texts_ == nullptr ? 0 : texts_->size();
        const std::uint64_t before = scan_.text_bytes;
        ChoiceSeen seen;
        const bool sound = cursor_.object([&](std::string_view name, std::size_t) {
            if (name == "finish_reason") {
                seen.finished = cursor_.peek() == '"';
                JsonSpan span;
                if (!cursor_.skip_value(span)) return false;
                seen.at_limit = span.of(json_) == "\"length\"";
                return true;
            }
            if (name == "index") return number(seen.index);
            if (name == "text" && cursor_.peek() == '"') return generated();
            if ((name == "delta" || name == "message") && cursor_.peek() == '{') return message_of_choice();
            return skip();
        });
        for (std::size_t i = first; texts_ != nullptr && i < texts_->size(); ++i) (*texts_)[i].choice = seen.index;
        seen.text_bytes = scan_.text_bytes - before;
        scan_.finished = scan_.finished || seen.finished;
        if (choices_ != nullptr) choices_->push_back(seen);
        return sound;
    }
    bool message_of_choice() {
        bool reasoned = false;  // some say the same under two names
        return cursor_.object([&](std::string_view inner, std::size_t) {
            const char next = cursor_.peek();
            if (next == '"' && (inner == "reasoning_content" || inner == "reasoning"))
                return std::exchange(reasoned, true) ? skip() : generated();
            if (next == '"' && (inner == "content" || inner == "refusal")) return generated();
            if (next == '[' && inner == "content") return parts();  // as Mistral's models reason
            if (next == '{' && inner == "function_call") return called();
            if (inner != "tool_calls") return skip();
            if (next == '{') return tool_call();  // TGI streams no list
            if (next != '[') return skip();
            return cursor_.array([&] { return cursor_.peek() == '{' ? tool_call() : skip(); });
        });
    }
    // Of each piece of a stream the names that it is wrapped in stand there again, and were generated by nobody.
    bool tool_call() {
        return cursor_.object([&](std::string_view name, std::size_t) {
            return (name == "function" || name == "custom") && cursor_.peek() == '{' ? called() : skip();
        });
    }
    bool called() {
        return cursor_.object([&](std::string_view name, std::size_t) {
            if (name != "name" && name != "arguments" && name != "input") return skip();
            if (cursor_.peek() == '"') return generated();
            JsonSpan span;  // TGI's arguments are no text
            if (!cursor_.skip_value(span)) return false;
            if (span.of(json_) != "null") wrote(span.of(json_));
            return true;
        });
    }
    void wrote(std::string_view text) {
        scan_.text_bytes += text.size();
        if (texts_ != nullptr) texts_->push_back({0, std::string(text)});
    }
    bool generated() {
        JsonSpan span;
        if (!cursor_.string(span)) return false;
        const std::string_view text = span.of(json_).substr(1, span.size() - 2);
        if (texts_ != nullptr && !text.empty())
            texts_->push_back({0, json_unescaped(span.of(json_)).value_or(std::string(text))});
        scan_.text_bytes += text.size();
        if (text.find('\\') == std::string_view::npos) return true;
        for (std::size_t i = 0; i + 1 < text.size(); ++i)
            if (text[i] == '\\') {
                scan_.text_bytes -= text[i + 1] == 'u' ? 3 : 1;
                ++i;
            }
        return true;
    }
    bool text_of(std::string& out) {
        JsonSpan span;
        if (!cursor_.string(span)) return false;
        if (span.size() <= kLongestMessage) out = json_unescaped(span.of(json_)).value_or("");
        return true;
    }
    bool who() {
        JsonSpan span;
        if (!cursor_.string(span)) return false;
        scan_.model = span.of(json_).substr(1, span.size() - 2);
        return true;
    }
    bool number(std::uint32_t& out) {
        JsonSpan span;
        if (!cursor_.skip_value(span)) return false;
        if (const auto value = json_integer(span.of(json_)); value && *value > 0)
            out = bounded(static_cast<std::uint64_t>(*value));
        return true;
    }
    bool usage() {
        if (cursor_.peek() != '{') {
            scan_.usage_null = true;
            return skip();
        }
        Usage found;
        std::uint32_t total = 0, cache_read = 0, cache_written = 0;
        const bool sound = cursor_.object([&](std::string_view name, std::size_t) {
            if (name == "prompt_tokens" || name == "input_tokens") return number(found.in);
            if (name == "completion_tokens" || name == "output_tokens") return number(found.out);
            if (name == "total_tokens") return number(total);
            if (name == "reasoning_tokens") return number(found.reasoning);
            if (name == "cache_read_input_tokens") return number(cache_read);
            if (name == "cache_creation_input_tokens") return number(cache_written);
            const bool in = name == "prompt_tokens_details" || name == "input_tokens_details";
            const bool out = name == "completion_tokens_details" || name == "output_tokens_details";
            if ((!in && !out) || cursor_.peek() != '{') return skip();
            return cursor_.object([&](std::string_view inner, std::size_t) {
                if (in && inner == "cached_tokens") return number(found.cached_in);
                return out && inner == "reasoning_tokens" ? number(found.reasoning) : skip();
            });
        });
        if (found.in == 0 && total > found.out) found.in = total - found.out;
        // Of the messages API what was cached is not in input_tokens.
        found.cached_in = bounded(std::uint64_t{std::min(found.cached_in, found.in)} + cache_read);
        found.in = bounded(std::uint64_t{found.in} + cache_read + cache_written);
        scan_.usage = found;
        return sound;
    }
    void cut_usage() {
        std::size_t& begin = scan_.usage_begin;
        std::size_t& end = scan_.usage_end;
        std::size_t before = begin;
        while (before > 0 && std::string_view(" \n\r\t").find(json_[before - 1]) != std::string_view::npos) --before;
        if (before > 0 && json_[before - 1] == ',') {
            begin = before - 1;
            return;
        }
        std::size_t behind = end;
        while (behind < json_.size() && std::string_view(" \n\r\t").find(json_[behind]) != std::string_view::npos)
            ++behind;
        if (behind < json_.size() && json_[behind] == ',') end = behind + 1;
    }

    std::string_view json_;
    JsonCursor cursor_;
    Meter meter_;
    AnswerScan scan_;
    std::vector<GeneratedText>* texts_;
    std::vector<ChoiceSeen>* choices_;
};

std::uint32_t prompt_tokens(std::uint64_t bytes, std::uint64_t items, double ratio) {
    return bounded(static_cast<std::uint64_t>(std::ceil(static_cast<double>(bytes) / ratio)) + items * kItemTokens +
                   kTemplateTokens);
}

}  // namespace

AnswerScan scan_answer(Meter meter, std::string_view json, std::vector<GeneratedText>* texts,
                       std::vector<ChoiceSeen>* choices) {
    return UsageScan(meter, json, texts, choices).read();
}

std::string without_usage(std::string_view event, std::string_view data, const AnswerScan& scan) {
    const auto at = static_cast<std::size_t>(data.data() - event.data());
    std::string out(event.substr(0, at + scan.usage_begin));
    return out.append(event.substr(at + scan.usage_end));
}

std::uint32_t BytesPerToken::tokens(std::uint64_t bytes) const {
    return bounded(static_cast<std::uint64_t>(std::ceil(static_cast<double>(bytes) / ratio_)));
}

void BytesPerToken::learn(std::uint64_t bytes, std::uint32_t tokens) {
    if (tokens < 8 || bytes == 0) return;  // too short to tell
    constexpr double kWeight = 0.05;
    const double seen = std::clamp(static_cast<double>(bytes) / tokens, 1.0, 16.0);
    ratio_ += kWeight * (seen - ratio_);
}

std::uint32_t media_tokens(std::uint64_t parts) {
    return bounded(parts * kMediaTokens);
}

std::uint32_t TemplateTokens::tokens(std::uint64_t items) const {
    const double more = items > 1 ? each_ * static_cast<double>(items - 1) : 0;
    return bounded(static_cast<std::uint64_t>(std::llround(std::max(0.0, first_ + more))));
}

void TemplateTokens::learn(std::uint64_t items, double added) {
    constexpr double kWeight = 0.1, kMost = 10'000;
    if (items == 0 || added < 0 || added > kMost) return;
    const auto move = [](double& value, bool& seen, double to) {
        value += (std::exchange(seen, true) ? kWeight : 1) * (to - value);
    };
    if (items == 1)
        move(first_, seen_first_, added);
    else if (seen_first_)
        move(each_, seen_each_, std::max(0.0, added - first_) / static_cast<double>(items - 1));
}

std::uint32_t most_prompt_tokens(std::uint64_t bytes, std::uint64_t items) {
    return prompt_tokens(bytes, items, 1.0);
}
std::uint32_t likely_prompt_tokens(std::uint64_t bytes, std::uint64_t items) {
    return prompt_tokens(bytes, items, kLikelyBytesPerToken);
}

}  // namespace stoker::wire
