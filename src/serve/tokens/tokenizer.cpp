#include "serve/tokens/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker::tokens {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
    for (const std::string& each : parts_.added)
        if (!each.empty()) added_by_first_[static_cast<unsigned char>(each.front())].push_back(each);
    for (auto& each : added_by_first_)
        std::sort(each.begin(), each.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::size_t Tokenizer::added_at(std::string_view text, std::size_t from, bool written, std::size_t& size) const {
    if (parts_.added.empty() && !written) return std::string_view::npos;
    for (; from < text.size(); ++from) {
        if (written && text.substr(from, kReplacement.size()) == kReplacement) {
            size = kReplacement.size();
            return from;
        }
        for (const std::string& each : added_by_first_[static_cast<unsigned char>(text[from])])
            if (text.substr(from).starts_with(each)) {
                size = each.size();
                return from;
            }
    }
    return std::string_view::npos;
}

void Tokenizer::stage(std::size_t number, std::string_view text,
                      const std::function<void(std::string_view)>& sink) const {
    if (number == parts_.stages.size()) return sink(text);
    parts_.stages[number].split(text, [&](std::string_view piece) { stage(number + 1, piece, sink); });
}

void Tokenizer::section(std::string_view text, std::size_t at, bool begins, const PieceSink& sink) const {
    std::string changed;
    const bool blank_changes = parts_.blank != " ";
    const bool begins_blank = text.front() == ' ' || text.substr(0, parts_.blank.size()) == parts_.blank;
    const bool asked =
        parts_.prefix == TokenizerParts::Prefix::every || (parts_.prefix == TokenizerParts::Prefix::first && at == 0);
    const bool prefixed = begins && asked && !(parts_.prefix_unless_blank && begins_blank);
    std::string_view seen = text;
    if (prefixed || blank_changes) {
        if (prefixed) changed = parts_.prefix_text;
        changed += blank_changes ? replace_all(text, " ", parts_.blank) : std::string(text);
        seen = changed;
    }
    // How far in the text as it came: a blank that became longer is one byte there.
    std::size_t raw = 0, shown = prefixed ? parts_.prefix_text.size() : 0;
    const auto raw_end = [&](std::size_t end) {
        while (shown < end && raw < text.size()) {
            shown += text[raw] == ' ' ? parts_.blank.size() : 1;
            ++raw;
        }
        return at + raw;
    };
    stage(0, seen, [&](std::string_view piece) {
        const auto end = static_cast<std::size_t>(piece.data() - seen.data()) + piece.size();
        sink({.end = raw_end(end), .tokens = count_bpe(parts_.model, piece)});
    });
}

void Tokenizer::each_piece(std::string_view text, Source source, const PieceSink& sink) const {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t size = 0;
        const std::size_t added = added_at(text, at, source == Source::written, size);
        const std::size_t end = std::min(added, text.size());
        if (end > at)
            section(text.substr(at, end - at), at, source != Source::written && (at > 0 || source == Source::begin),
                    sink);
        if (added != std::string_view::npos) sink({.end = added + size, .tokens = 1});
        at = added == std::string_view::npos ? text.size() : added + size;
    }
}

std::uint32_t Tokenizer::count(std::string_view text, bool begins) const {
    std::uint32_t tokens = 0;
    // What is no text is counted by its bytes: no vocabulary has it.
    for (std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos; bad = find_invalid_utf8(text)) {
        tokens += count(text.substr(0, bad), begins) + 1;
        text.remove_prefix(bad + 1);
        begins = false;
    }
    each_piece(text, begins ? Source::begin : Source::middle, [&](const Piece& piece) { tokens += piece.tokens; });
    return tokens;
}

std::uint32_t Tokenizer::count_written(std::string_view text) const {
    if (find_invalid_utf8(text) != std::string_view::npos) return count(text, false);
    std::uint32_t tokens = 0;
    each_piece(text, Source::written, [&](const Piece& piece) { tokens += piece.tokens; });
    return tokens;
}

Tokenizer::Settled Tokenizer::settled(std::string_view text) const {
    // The last two may end elsewhere: an expression looks one character further than it matches.
    constexpr std::size_t kOpen = 2;
    std::vector<Piece> pieces;
    each_piece(text, Source::written, [&](const Piece& piece) { pieces.push_back(piece); });
    Settled all;
    for (std::size_t i = 0; i + kOpen < pieces.size(); ++i) {
        all.bytes = pieces[i].end;
        all.tokens += pieces[i].tokens;
    }
    return all;
}

void StreamCount::add(std::string_view text) {
    open_ += text;
    if (open_.size() < look_at_) return;
    Tokenizer::Settled done =
        find_invalid_utf8(open_) == std::string::npos ? tokenizer_->settled(open_) : Tokenizer::Settled{};
    // One piece without an end is cut somewhere, so that what is kept has one.
    if (done.bytes == 0 && open_.size() > kMostOpen)
        done = {.bytes = open_.size(), .tokens = tokenizer_->count_written(open_)};
    settled_ += done.tokens;
    settled_bytes_ += done.bytes;
    open_.erase(0, done.bytes);
    if (open_.capacity() > 2 * kMostOpen) open_.shrink_to_fit();
    seen_bytes_ = open_.size();
    seen_ = open_.empty() ? 0 : tokenizer_->count_written(open_);
    look_at_ = open_.size() + kLookEvery;
}

std::uint32_t StreamCount::tokens() const {
    return settled_ + (open_.empty() ? 0 : tokenizer_->count_written(open_));
}

std::uint32_t StreamCount::about() const {
    constexpr double kBytes = 4;  // a token, of a text that has only begun
    const std::uint32_t known = settled_ + seen_;
    const double each = known == 0 ? kBytes : static_cast<double>(settled_bytes_ + seen_bytes_) / known;
    return known + static_cast<std::uint32_t>(std::ceil(static_cast<double>(open_.size() - seen_bytes_) / each));
}

Status add_blank_stage(TokenizerParts& parts) {
    if (parts.model.of_bytes || parts.blank != kLowerOneEighth) return done();
    for (const auto& [piece, id] : parts.model.pieces) {
        std::size_t at = 0;
        while (piece.compare(at, kLowerOneEighth.size(), kLowerOneEighth) == 0) at += kLowerOneEighth.size();
        if (piece.find(kLowerOneEighth, at) != std::string::npos) return done();
    }
    TRY(auto stage, SplitStage::make("\xe2\x96\x81+[^\xe2\x96\x81]*|[^\xe2\x96\x81]+", SplitBehavior::isolated, false));
    parts.stages.push_back(std::move(stage));
    return done();
}

Result<std::shared_ptr<const Tokenizer>> read_tokenizer(const WeightsSource& source) {
    constexpr std::size_t kMostText = 128u << 20, kMagic = 4;
    if (source.bytes < kMagic)
        return Error(ErrorKind::invalid,
                     source.name + " is no tokenizer: it has " + std::to_string(source.bytes) + " bytes");
    TRY(const std::string magic, source.read(0, kMagic));
    if (magic == "GGUF") {
        TRY(TokenizerParts parts, read_gguf_tokenizer(source));
        return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(parts)));
    }
    if (source.bytes > kMostText)
        return Error(ErrorKind::invalid, source.name + " is too large for a tokenizer: more than 128 MiB");
    TRY(const std::string text, source.read(0, static_cast<std::size_t>(source.bytes)));
    const bool json = trim(std::string_view(text).substr(0, 256)).starts_with('{');
    TRY(TokenizerParts parts, json ? read_tokenizer_json(text, source.name) : read_tiktoken(text, source.name));
    return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(parts)));
}

}  // namespace stoker::tokens
