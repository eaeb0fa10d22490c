// Vocabularies that do not say how their text is cut: GGUF, and ranks of tiktoken.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "serve/models/gguf_vocabulary.h"
#include "serve/tokens/byte_letters.h"
#include "serve/tokens/tokenizer.h"
#include "serve/wire/json_cursor.h"

namespace stoker::tokens {
namespace {

constexpr int kNormal = 1, kControl = 3, kUserDefined = 4;  // llama.cpp's kinds of tokens

Result<TokenizerParts> pieces_of_bytes(GgufVocabulary& said, const std::string& name) {
    TokenizerParts parts;
    parts.kind = "gguf gpt2, " + said.cut;
    TRY(parts.stages, named_stages(said.cut, parts.model.whole_first));
    PieceMap ids;
    for (std::uint32_t id = 0; id < said.tokens.size(); ++id) ids.emplace(said.tokens[id], id);
    std::uint32_t rank = 0;
    for (const std::string& merge : said.merges) {
        const std::size_t blank = merge.find(' ', 1);
        const std::string left = merge.substr(0, blank),
                          right = blank == std::string::npos ? "" : merge.substr(blank + 1);
        const auto a = ids.find(left), b = ids.find(right), both = ids.find(left + right);
        if (a == ids.end() || b == ids.end() || both == ids.end())
            return Error(ErrorKind::invalid,
                         fmt::format("{}: the merge '{}' names what is no piece", name, printable(merge, 60)));
        parts.model.merges.emplace(BpeModel::pair_of(a->second, b->second),
                                   BpeMerge{.rank = rank++, .id = both->second});
    }
    for (const auto& [token, id] : ids)
        if (auto bytes = bytes_of_letters(token)) parts.model.pieces.emplace(std::move(*bytes), id);
    return parts;
}

Result<TokenizerParts> pieces_of_characters(GgufVocabulary& said, const std::string& name) {
    TokenizerParts parts;
    parts.kind = "gguf llama";
    parts.blank = kLowerOneEighth;
    if (said.blank_before) {
        parts.prefix = TokenizerParts::Prefix::every;
        parts.prefix_text = kLowerOneEighth;
    }
    parts.model.of_bytes = parts.model.by_pair = false;
    if (said.scores.size() != said.tokens.size())
        return Error(ErrorKind::invalid,
                     fmt::format("{}: {} scores of {} tokens", name, said.scores.size(), said.tokens.size()));
    std::vector<float> order = said.scores;
    std::sort(order.begin(), order.end(), std::greater<>{});
    order.erase(std::unique(order.begin(), order.end()), order.end());
    for (std::size_t i = 0; i < said.tokens.size(); ++i) {
        const int kind = said.kinds.empty() ? kNormal : said.kinds[i];
        if (kind != kNormal && kind != kUserDefined) continue;
        const auto rank = std::lower_bound(order.begin(), order.end(), said.scores[i], std::greater<>{});
        parts.model.pieces.emplace(said.tokens[i], static_cast<std::uint32_t>(rank - order.begin()));
    }
    TRY_VOID(add_blank_stage(parts));
    return parts;
}

std::optional<std::string> from_base64(std::string_view text) {
    std::string out;
    std::uint32_t bits = 0;
    int held = 0;
    while (text.ends_with('=')) text.remove_suffix(1);
    for (const char c : text) {
        const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                          : c >= 'a' && c <= 'z' ? c - 'a' + 26
                          : c >= '0' && c <= '9' ? c - '0' + 52
                          : c == '+'             ? 62
                          : c == '/'             ? 63
                                                 : -1;
        if (value < 0) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out += static_cast<char>(bits >> held & 0xff);
    }
    return out;
}

}  // namespace

Result<std::vector<SplitStage>> named_stages(std::string_view name, bool& whole_first) {
    constexpr const char* kFile = "serve/pretokenizers.tsv";
    TRY(const Tsv table, Tsv::read(embedded_bytes(kFile), kFile));
    TRY(const std::size_t names, table.column("name"));
    TRY(const std::size_t whole, table.column("whole_first"));
    TRY(const std::size_t expression, table.column("expression"));
    std::vector<SplitStage> stages;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto all = split(table.at(row, names), ',');
        if (std::find(all.begin(), all.end(), name) == all.end()) continue;
        whole_first = table.at(row, whole) == "yes";
        TRY(SplitStage stage, SplitStage::make(table.at(row, expression), SplitBehavior::isolated, false));
        stages.push_back(std::move(stage));
    }
    if (stages.empty())
        return Error(ErrorKind::unsupported,
                     fmt::format("how '{}' cuts a text is not known; tokenizer.json of the same model says it",
                                 printable(name, 60)));
    return stages;
}

Result<TokenizerParts> read_gguf_tokenizer(const WeightsSource& source) {
    TRY(GgufVocabulary said, read_gguf_vocabulary(source));
    if (said.tokens.empty()) return Error(ErrorKind::unsupported, source.name + " has no vocabulary");
    if (!said.kinds.empty() && said.kinds.size() != said.tokens.size())
        return Error(ErrorKind::invalid,
                     fmt::format("{}: {} kinds of {} tokens", source.name, said.kinds.size(), said.tokens.size()));
    if (said.model != "gpt2" && said.model != "llama")
        return Error(ErrorKind::unsupported,
                     fmt::format("{} has a tokenizer of kind {}; gpt2 and llama are counted", source.name,
                                 said.model.empty() ? "none" : printable(said.model, 40)));
    TRY(TokenizerParts parts,
        said.model == "gpt2" ? pieces_of_bytes(said, source.name) : pieces_of_characters(said, source.name));
    for (std::size_t i = 0; i < said.kinds.size(); ++i)
        if (said.kinds[i] == kControl || said.kinds[i] == kUserDefined) parts.added.push_back(said.tokens[i]);
    return parts;
}

Result<TokenizerParts> read_tiktoken(std::string_view text, const std::string& name) {
    TokenizerParts parts;
    std::string_view word = name;
    word.remove_prefix(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1);
    word = word.substr(0, word.rfind(".tiktoken"));
    parts.kind = fmt::format("tiktoken, {}", word);
    parts.model.by_pair = false;
    std::size_t number = 0;
    for (const std::string_view line : split_lines(text)) {
        ++number;
        if (trim(line).empty()) continue;
        const auto cells = split_words(line);
        const auto bytes = from_base64(cells[0]);
        const std::int64_t rank = cells.size() == 2 ? wire::json_integer(cells[1]).value_or(-1) : -1;
        if (!bytes || bytes->empty() || rank < 0 || rank >= UINT32_MAX)
            return Error(ErrorKind::invalid,
                         fmt::format("{} is no tokenizer: line {} is no piece in base64 and its rank", name, number));
        parts.model.pieces.emplace(*bytes, static_cast<std::uint32_t>(rank));
    }
    TRY(parts.stages, named_stages(fmt::format("tiktoken:{}", word), parts.model.whole_first));
    parts.model.whole_first = true;
    return parts;
}

}  // namespace stoker::tokens
