// tokenizer.json of the tokenizers library: byte-pair encoding, of bytes or of characters.
#include <fmt/format.h>

#include <vector>

#include "base/document.h"
#include "base/text.h"
#include "serve/tokens/byte_letters.h"
#include "serve/tokens/tokenizer.h"
#include "serve/wire/json_cursor.h"

namespace stoker::tokens {
namespace {

// Cut before every run of letters, digits and signs, each with the blank before it.
constexpr std::string_view kByteLevelExpression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string text_in(const Node* node, std::string_view key, std::string otherwise = "") {
    const Node* found = node == nullptr ? nullptr : node->find(key);
    return found != nullptr && found->kind == NodeKind::string ? found->text : otherwise;
}
bool flag_in(const Node* node, std::string_view key, bool otherwise) {
    const Node* found = node == nullptr ? nullptr : node->find(key);
    return found != nullptr && found->kind == NodeKind::boolean ? found->boolean : otherwise;
}

class JsonTokenizer {
public:
    JsonTokenizer(std::string_view text, std::string name) : text_(text), name_(std::move(name)), cursor_(text) {}

    Result<TokenizerParts> read() {
        parts_.kind = "tokenizer.json";
        const bool sound = cursor_.peek() == '{' &&
                           cursor_.object([&](std::string_view key, std::size_t) { return top(key); }) &&
                           cursor_.at_end();
        if (!sound) return damaged();
        if (type_.empty() ? vocabulary_.empty() : type_ != "BPE")
            return Error(ErrorKind::unsupported,
                         fmt::format("{} is a tokenizer of kind {}; byte-pair encoding is counted", name_,
                                     type_.empty() ? "none" : printable(type_, 40)));
        if (!prefix_.empty() || !suffix_.empty())
            return Error(ErrorKind::unsupported, fmt::format("{} marks parts of words ('{}'), which is not counted",
                                                             name_, printable(prefix_ + suffix_, 20)));
        TRY_VOID(normalizer());
        TRY_VOID(pre_tokenizer());
        TRY_VOID(model());
        TRY_VOID(add_blank_stage(parts_));
        return std::move(parts_);
    }

private:
    Error damaged() const {
        const auto& fault = cursor_.fault();
        return Error(ErrorKind::invalid, fmt::format("{} is no tokenizer.json: {}, at byte {}", name_,
                                                     fault ? fault->what : "something else", fault ? fault->at : 0));
    }
    bool skip(std::string_view& value) {
        wire::JsonSpan span;
        if (!cursor_.skip_value(span)) return false;
        value = span.of(text_);
        return true;
    }
    bool skip() {
        std::string_view value;
        return skip(value);
    }
    bool word(std::string& out) {
        std::string_view value;
        if (!skip(value)) return false;
        if (value.starts_with('"')) out = wire::json_unescaped(value).value_or("");
        return true;
    }
    bool flag(bool& out) {
        std::string_view value;
        if (!skip(value)) return false;
        out = value == "true";
        return true;
    }
    bool top(std::string_view key) {
        if (key == "normalizer") return skip(normalizer_);
        if (key == "pre_tokenizer") return skip(pre_tokenizer_);
        if (key == "added_tokens" && cursor_.peek() == '[')
            return cursor_.array([&] {
                if (cursor_.peek() != '{') return skip();
                return cursor_.object([&](std::string_view inner, std::size_t) {
                    if (inner != "content") return skip();
                    parts_.added.emplace_back();
                    return word(parts_.added.back());
                });
            });
        if (key != "model" || cursor_.peek() != '{') return skip();
        return cursor_.object([&](std::string_view inner, std::size_t) {
            const char next = cursor_.peek();
            if (inner == "type") return word(type_);
            if (inner == "vocab" && next == '{') return vocabulary();
            if (inner == "merges" && next == '[') return merges();
            if (inner == "unk_token") {
                parts_.model.drop_unknown = next != '"';
                return skip();
            }
            if (inner == "byte_fallback") return flag(byte_fallback_);
            if (inner == "fuse_unk") return flag(parts_.model.fuse_unknown);
            if (inner == "ignore_merges") return flag(parts_.model.whole_first);
            if (inner == "continuing_subword_prefix") return word(prefix_);
            if (inner == "end_of_word_suffix") return word(suffix_);
            return skip();
        });
    }
    bool vocabulary() {
        return cursor_.object([&](std::string_view raw, std::size_t at) {
            std::string_view value;
            if (!skip(value)) return false;
            const auto id = wire::json_integer(value);
            const auto piece = wire::json_unescaped(text_.substr(at, raw.size() + 2));
            if (!id || *id < 0 || *id >= UINT32_MAX || !piece)
                return cursor_.fail("invalid_json", "a piece without a number", at);
            vocabulary_.emplace(*piece, static_cast<std::uint32_t>(*id));
            return true;
        });
    }
    // "a b", or ["a", "b"] where a blank may be part of them.
    bool merges() {
        return cursor_.array([&] {
            const std::size_t at = cursor_.at();
            std::vector<std::string> pair;
            if (cursor_.peek() == '[') {
                if (!cursor_.array([&] { return word(pair.emplace_back()); })) return false;
            } else {
                std::string both;
                if (!word(both)) return false;
                for (const std::string_view each : split(both, ' ')) pair.emplace_back(each);
            }
            if (pair.size() != 2) return cursor_.fail("invalid_json", "a merge that is no pair", at);
            merges_.emplace_back(std::move(pair[0]), std::move(pair[1]));
            return true;
        });
    }

    Error not_counted(std::string_view what, std::string_view kind) const {
        return Error(ErrorKind::unsupported,
                     fmt::format("{} has a {} of kind {}, which is not counted", name_, what, printable(kind, 40)));
    }
    Status normalizer() {
        if (normalizer_.empty() || normalizer_ == "null") return done();
        TRY(const Document document, Document::parse_json(normalizer_, name_));
        return normalize(document.root());
    }
    Status normalize(const Node& node) {
        const std::string kind = text_in(&node, "type");
        if (kind == "Sequence") {
            if (const Node* all = node.find("normalizers"))
                for (const auto& each : all->items) TRY_VOID(normalize(*each));
            return done();
        }
        if (kind == "NFC") return done();  // nearly all text is composed
        if (kind == "Prepend") {
            parts_.prefix = TokenizerParts::Prefix::every;
            parts_.prefix_text = text_in(&node, "prepend");
            return done();
        }
        if (kind == "Replace" && text_in(node.find("pattern"), "String") == " ") {
            parts_.blank = text_in(&node, "content");
            return done();
        }
        return not_counted("normalizer", kind);
    }
    Status pre_tokenizer() {
        if (pre_tokenizer_.empty() || pre_tokenizer_ == "null") return done();
        TRY(const Document document, Document::parse_json(pre_tokenizer_, name_));
        return cut(document.root());
    }
    Status add(std::string_view expression, SplitBehavior behavior, bool invert = false) {
        TRY(SplitStage stage, SplitStage::make(expression, behavior, invert));
        parts_.stages.push_back(std::move(stage));
        return done();
    }
    Result<SplitBehavior> behavior_of(const Node& node, std::string_view otherwise) const {
        const std::string said = text_in(&node, "behavior", std::string(otherwise));
        if (said == "Isolated") return SplitBehavior::isolated;
        if (said == "Removed") return SplitBehavior::removed;
        if (said == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
        if (said == "MergedWithNext") return SplitBehavior::merged_with_next;
        if (said == "Contiguous") return SplitBehavior::contiguous;
        return not_counted("split", said);
    }
    Status cut(const Node& node) {
        const std::string kind = text_in(&node, "type");
        if (kind == "Sequence") {
            if (const Node* all = node.find("pretokenizers"))
                for (const auto& each : all->items) TRY_VOID(cut(*each));
            return done();
        }
        if (kind == "ByteLevel") {
            parts_.model.of_bytes = byte_level_ = true;
            if (flag_in(&node, "add_prefix_space", true)) {
                parts_.prefix = TokenizerParts::Prefix::every;
                parts_.prefix_text = " ";
                parts_.prefix_unless_blank = true;
            }
            return flag_in(&node, "use_regex", true) ? add(kByteLevelExpression, SplitBehavior::isolated) : done();
        }
        if (kind == "Split") {
            TRY(const SplitBehavior behavior, behavior_of(node, "Isolated"));
            const Node* pattern = node.find("pattern");
            const std::string expression = text_in(pattern, "Regex");
            return add(expression.empty() ? literal_expression(text_in(pattern, "String")) : expression, behavior,
                       flag_in(&node, "invert", false));
        }
        if (kind == "Digits")
            return add(flag_in(&node, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)", SplitBehavior::isolated);
        if (kind == "Punctuation") {
            TRY(const SplitBehavior behavior, behavior_of(node, "Isolated"));
            return add(R"([\p{P}$+<=>^`|~])", behavior);
        }
        if (kind == "Whitespace") return add(R"(\w+|[^\w\s]+)", SplitBehavior::removed, true);
        if (kind == "WhitespaceSplit") return add(R"(\s)", SplitBehavior::removed);
        if (kind == "Metaspace") {
            parts_.blank = text_in(&node, "replacement", std::string(kLowerOneEighth));
            const std::string scheme =
                text_in(&node, "prepend_scheme", flag_in(&node, "add_prefix_space", true) ? "always" : "never");
            parts_.prefix = scheme == "always"  ? TokenizerParts::Prefix::every
                            : scheme == "first" ? TokenizerParts::Prefix::first
                                                : TokenizerParts::Prefix::none;
            parts_.prefix_text = parts_.blank;
            parts_.prefix_unless_blank = true;
            return flag_in(&node, "split", true)
                       ? add(literal_expression(parts_.blank), SplitBehavior::merged_with_next)
                       : done();
        }
        return not_counted("pre-tokenizer", kind);
    }
    Status model() {
        BpeModel& model = parts_.model;
        model.of_bytes = byte_level_;
        model.byte_fallback = byte_fallback_;
        if (byte_fallback_) model.drop_unknown = false;
        model.merges.reserve(merges_.size());
        std::uint32_t rank = 0;
        for (const auto& [left, right] : merges_) {
            const auto a = vocabulary_.find(left), b = vocabulary_.find(right), both = vocabulary_.find(left + right);
            if (a == vocabulary_.end() || b == vocabulary_.end() || both == vocabulary_.end())
                return Error(ErrorKind::invalid, fmt::format("{}: the merge '{} {}' names what is no piece", name_,
                                                             printable(left, 40), printable(right, 40)));
            model.merges.emplace(BpeModel::pair_of(a->second, b->second), BpeMerge{.rank = rank++, .id = both->second});
        }
        if (!byte_level_) {
            model.pieces = std::move(vocabulary_);
            return done();
        }
        model.pieces.reserve(vocabulary_.size());
        for (const auto& [piece, id] : vocabulary_)
            if (auto bytes = bytes_of_letters(piece)) model.pieces.emplace(std::move(*bytes), id);
        return done();
    }

    std::string_view text_;
    std::string name_;
    wire::JsonCursor cursor_;
    TokenizerParts parts_;
    std::string type_, prefix_, suffix_;
    std::string_view normalizer_, pre_tokenizer_;
    bool byte_level_ = false, byte_fallback_ = false;
    PieceMap vocabulary_;
    std::vector<std::pair<std::string, std::string>> merges_;
};

}  // namespace

Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& name) {
    return JsonTokenizer(text, name).read();
}

}  // namespace stoker::tokens
