#include "serve/wire/body_scan.h"

#include <algorithm>
#include <limits>

#include "base/json_text.h"
#include "base/text.h"
#include "serve/wire/prompt_text.h"

namespace stoker::wire {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000, kMostChoices = 128;
constexpr std::size_t kLongestModel = 256, kMostMembers = 256;
constexpr std::size_t kLongestSession = 1024;

constexpr std::string_view kWrongType = "invalid_type";

class BodyReader {
public:
    explicit BodyReader(std::string_view body) : body_(body), cursor_(body) {}

    BodyResult read() {
        cursor_.peek();
        scan_.object_begin = cursor_.at();
        const bool sound =
            cursor_.object([&](std::string_view raw, std::size_t at) { return member(raw, at); }) && cursor_.at_end();
        if (!sound) {
            JsonFault fault = *cursor_.fault();
            if (fault.code == kWrongType && !names_.empty()) fault.field = names_.back();
            return {std::nullopt, std::move(fault)};
        }
        scan_.empty_object = names_.empty();
        scan_.max_tokens = limits_[0] ? limits_[0] : limits_[1] ? limits_[1] : limits_[2];
        return {std::move(scan_), {}};
    }

private:
    bool member(std::string_view raw, std::size_t at) {
        std::string name(raw);
        if (raw.find('\\') != std::string_view::npos) {
            const auto plain = json_unescaped(body_.substr(at, raw.size() + 2));
            if (!plain) return cursor_.fail("invalid_utf8", "half of a surrogate pair", at);
            name = *plain;
        }
        if (std::find(names_.begin(), names_.end(), name) != names_.end())
            return cursor_.fail("duplicate_key", "the name '" + printable(name, 60) + "' stands twice in the body", at);
        if (names_.size() >= kMostMembers)
            return cursor_.fail("invalid_json", "the body has more than 256 members", at);
        names_.push_back(name);
        const std::size_t begin = cursor_.at();
        if (name == "model") return model();
        if (name == "stream_options") return stream_options();
        if (is_prompt_member(name)) return prompt(name);
        JsonSpan span;
        if (!cursor_.skip_value(span)) return false;
        const std::string_view value = span.of(body_);
        if (name == "stream") {
            if (value != "true" && value != "false" && value != "null")
                return cursor_.fail("invalid_type", "stream: true or false was expected", begin);
            scan_.stream = value == "true";
        } else if (name == "max_completion_tokens") {
            return whole(name, value, begin, 0, kMostTokens, limits_[0]);
        } else if (name == "max_tokens") {
            return whole(name, value, begin, 0, kMostTokens, limits_[1]);
        } else if (name == "max_output_tokens") {
            return whole(name, value, begin, 0, kMostTokens, limits_[2]);
        } else if (name == "prompt_cache_key") {
            if (value.size() > 2 && value.front() == '"' && value.size() <= kLongestSession)
                scan_.session = value.substr(1, value.size() - 2);
        } else if (name == "n" || name == "best_of") {
            std::optional<std::int64_t> count;
            if (!whole(name, value, begin, 1, kMostChoices, count)) return false;
            scan_.choices = std::max(scan_.choices, count.value_or(1));
            if (name == "n") scan_.answers = count.value_or(1);
        }
        return true;
    }
    bool whole(const std::string& name, std::string_view value, std::size_t at, std::int64_t least, std::int64_t most,
               std::optional<std::int64_t>& out) {
        if (value == "null") return true;
        out = json_integer(value);
        return (out && *out >= least && *out <= most) ||
               cursor_.fail("invalid_type",
                            name + ": a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                                " was expected",
                            at);
    }
    bool model() {
        const std::size_t begin = cursor_.at();
        if (cursor_.peek() != '"') return cursor_.fail("invalid_type", "model: a text was expected", begin);
        if (!cursor_.string(scan_.model_span)) return false;
        auto name = json_unescaped(scan_.model_span.of(body_));
        if (!name) return cursor_.fail("invalid_utf8", "half of a surrogate pair", begin);
        if (name->empty() || name->size() > kLongestModel || name->find('\0') != std::string::npos)
            return cursor_.fail("invalid_type", "model: a name of up to 256 bytes was expected", begin);
        scan_.model = std::move(*name);
        return true;
    }
    bool stream_options() {
        JsonSpan span{.begin = cursor_.at(), .end = 0};
        if (cursor_.peek() == 'n') {
            scan_.stream_options_null = true;
            scan_.stream_options.emplace();
            return cursor_.skip_value(*scan_.stream_options);
        }
        bool any = false;
        const bool sound = cursor_.object([&](std::string_view raw, std::size_t at) {
            JsonSpan value;
            if (!cursor_.skip_value(value)) return false;
            any = true;
            // Escaped, it would be read by the upstream and not by us.
            if (raw.find('\\') != std::string_view::npos)
                return cursor_.fail("invalid_type", "stream_options: an escaped name", at);
            if (raw != "include_usage") return true;
            if (scan_.include_usage_span) return cursor_.fail("duplicate_key", "include_usage stands twice", at);
            const std::string_view text = value.of(body_);
            if (text != "true" && text != "false" && text != "null")
                return cursor_.fail("invalid_type", "include_usage: true or false was expected", value.begin);
            scan_.include_usage = text == "true";
            scan_.include_usage_span = value;
            return true;
        });
        span.end = cursor_.at();
        scan_.stream_options_empty = !any;
        scan_.stream_options = span;
        return sound;
    }
    bool prompt(std::string_view name) {
        JsonSpan span;
        cursor_.peek();
        span.begin = cursor_.at();
        PromptSeen seen;
        bool sound = true;
        if (cursor_.peek() == '[') {
            std::uint64_t texts = 0;
            bool numbers = false;  // one prompt, as tokens
            sound = cursor_.array([&] {
                const char next = cursor_.peek();
                numbers = numbers || (next >= '0' && next <= '9');
                ++texts;
                return walk_prompt(cursor_, body_, name, seen);
            });
            if (numbers) texts = 1;
            scan_.items += texts;
            if (name == "prompt") scan_.prompts = std::max<std::int64_t>(1, static_cast<std::int64_t>(texts));
        } else {
            ++scan_.items;
            sound = walk_prompt(cursor_, body_, name, seen);
        }
        span.end = cursor_.at();
        if (!sound) return false;
        scan_.media_parts += seen.media_parts;
        scan_.prompt_bytes += span.size() - seen.media_bytes;
        if (scan_.prompt_span.size() == 0 && (name == "messages" || name == "prompt" || name == "input"))
            scan_.prompt_span = span;
        if (name == "input" && span.size() >= 2 && body_[span.begin] == '"')
            scan_.input_characters = characters(span.of(body_).substr(1, span.size() - 2));
        return true;
    }

    // Of a text as it stands in JSON.
    static std::uint64_t characters(std::string_view text) {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;  // goes on
            ++count;
            if (text[i] == '\\') i += i + 1 < text.size() && text[i + 1] == 'u' ? 5 : 1;
        }
        return count;
    }

    std::string_view body_;
    JsonCursor cursor_;
    BodyScan scan_;
    std::vector<std::string> names_;
    std::optional<std::int64_t> limits_[3];
};

}  // namespace

BodyResult scan_body(std::string_view body) {
    return BodyReader(body).read();
}

std::string with_edits(std::string_view body, const std::vector<BodyEdit>& edits) {
    std::string out;
    std::size_t extra = 0, at = 0;
    for (const BodyEdit& edit : edits) extra += edit.insert.size();
    out.reserve(body.size() + extra);
    for (const BodyEdit& edit : edits) {
        out.append(body.substr(at, edit.at - at)).append(edit.insert);
        at = edit.at + edit.remove;
    }
    return out.append(body.substr(at));
}

BodyEdit naming(const BodyScan& scan, std::string_view model) {
    std::string name;
    append_json_text(name, model);
    if (scan.model_span.size() > 0) return {scan.model_span.begin, scan.model_span.size(), std::move(name)};
    return {scan.object_begin + 1, 0, "\"model\":" + name + (scan.empty_object ? "" : ",")};
}

std::vector<BodyEdit> edits_for(const BodyScan& scan, std::string_view upstream_model, bool ask_usage) {
    std::vector<BodyEdit> edits;
    if (!upstream_model.empty() && upstream_model != scan.model && scan.model_span.size() > 0)
        edits.push_back(naming(scan, upstream_model));
    if (ask_usage && !scan.include_usage) {
        if (!scan.stream_options)
            edits.push_back(
                {scan.object_begin + 1, 0,
                 std::string(R"("stream_options":{"include_usage":true})") + (scan.empty_object ? "" : ",")});
        else if (scan.stream_options_null)
            edits.push_back({scan.stream_options->begin, scan.stream_options->size(), R"({"include_usage":true})"});
        else if (scan.include_usage_span)
            edits.push_back({scan.include_usage_span->begin, scan.include_usage_span->size(), "true"});
        else
            edits.push_back({scan.stream_options->begin + 1, 0,
                             std::string(R"("include_usage":true)") + (scan.stream_options_empty ? "" : ",")});
    }
    std::sort(edits.begin(), edits.end(), [](const BodyEdit& a, const BodyEdit& b) { return a.at < b.at; });
    return edits;
}

}  // namespace stoker::wire
