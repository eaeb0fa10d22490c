// How many tokens a text is, by the file that the model itself reads: tokenizer.json, the vocabulary of a GGUF, or
// ranks of tiktoken. Counts are those of the model's own tokenizer; what a file asks for beyond what is known here is
// an error that names it, and never a count that is nearly right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/models/weights_header.h"
#include "serve/tokens/bpe.h"
#include "serve/tokens/splitter.h"

namespace stoker::tokens {

// What a file comes to.
struct TokenizerParts {
    std::string kind;  // "tokenizer.json", "gguf gpt2", ...: for people
    BpeModel model;
    std::vector<SplitStage> stages;
    std::vector<std::string> added;  // tokens of their own wherever they stand in a text
    std::string blank = " ";         // what a blank becomes before all else
    enum class Prefix : std::uint8_t { none, first, every } prefix = Prefix::none;  // of which sections
    std::string prefix_text;
    bool prefix_unless_blank = false;  // not where the section begins with one already
};

class Tokenizer {
public:
    explicit Tokenizer(TokenizerParts parts);

    const std::string& kind() const { return parts_.kind; }
    std::size_t size() const { return parts_.model.pieces.size() + parts_.added.size(); }
    // `begins`: it is the begin of a text, before which some models see a blank.
    std::uint32_t count(std::string_view text, bool begins = true) const;
    // Of what a model wrote: bytes that are no text are shown as U+FFFD, and were one token at least, and no letter.
    std::uint32_t count_written(std::string_view text) const;
    // Of what a model wrote and goes on writing: what no continuation changes any more.
    struct Settled {
        std::size_t bytes = 0;
        std::uint32_t tokens = 0;
    };
    Settled settled(std::string_view text) const;

private:
    struct Piece {
        std::size_t end = 0;  // in the text as it came
        std::uint32_t tokens = 0;
    };
    using PieceSink = std::function<void(const Piece&)>;
    enum class Source : std::uint8_t { begin, middle, written };
    void each_piece(std::string_view text, Source source, const PieceSink& sink) const;
    void section(std::string_view text, std::size_t at, bool begins, const PieceSink& sink) const;
    void stage(std::size_t number, std::string_view text, const std::function<void(std::string_view)>& sink) const;
    std::size_t added_at(std::string_view text, std::size_t from, bool written, std::size_t& size) const;

    TokenizerParts parts_;
    std::array<std::vector<std::string>, 256> added_by_first_;  // longest first
};

// By its first bytes. invalid: damaged, with the place; unsupported: another kind of tokenizer, named.
Result<std::shared_ptr<const Tokenizer>> read_tokenizer(const WeightsSource& source);

// Each format by itself.
Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& name);
Result<TokenizerParts> read_gguf_tokenizer(const WeightsSource& source);
Result<TokenizerParts> read_tiktoken(std::string_view text, const std::string& name);

// How GGUF and tiktoken files, which do not say it, have their text cut: data/serve/pretokenizers.tsv. unsupported: a
// name that is not there.
Result<std::vector<SplitStage>> named_stages(std::string_view name, bool& whole_first);
inline constexpr std::string_view kLowerOneEighth = "\xe2\x96\x81";  // what stands for a blank in many vocabularies
// Where no token joins a character with a blank behind it, none is lost by cutting there.
Status add_blank_stage(TokenizerParts& parts);

// A text that comes in pieces, counted as it comes: of it only what may still change is kept.
class StreamCount {
public:
    explicit StreamCount(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
    void add(std::string_view text);
    std::uint32_t tokens() const;  // of all of it
    std::uint32_t about() const;   // the same without looking at its end once more

private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::string open_;
    std::uint64_t settled_bytes_ = 0;
    std::uint32_t settled_ = 0;
    // Of what is open, when it was last looked at.
    std::size_t seen_bytes_ = 0, look_at_ = kFirstLook;
    std::uint32_t seen_ = 0;

    static constexpr std::size_t kFirstLook = 128, kLookEvery = 512, kMostOpen = 8192;
};

}  // namespace stoker::tokens
