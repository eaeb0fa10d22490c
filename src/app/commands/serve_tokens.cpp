#include "app/commands/serve_tokens.h"

#include <fmt/format.h>

#include "app/listing.h"
#include "base/text.h"
#include "serve/tokens/tokenizer_cache.h"
#include "serve/wire/json_cursor.h"

namespace stoker {

Result<CommandOutput> count_tokens(Session& session, const Args& args) {
    if (args.positional.size() < 2)
        return Error(ErrorKind::invalid, "tokens are those of a tokenizer", {},
                     "write for example stoker serve tokens tokenizer.json text.txt");
    TRY(const auto tokenizer, tokens::load_tokenizer(args.positional[1]));
    TRY(const std::string text, session.read_source(args.positional.size() > 2 ? args.positional[2] : "-"));
    if (args.has("lines")) {
        std::string counts;
        Json::Array rows;
        std::size_t number = 0;
        for (const std::string_view line : split_lines(text)) {
            ++number;
            std::string plain(line);
            if (line.starts_with('"')) {
                wire::JsonCursor cursor(line);
                wire::JsonSpan span;
                const bool sound = cursor.string(span) && cursor.at_end();
                const auto said = sound ? wire::json_unescaped(span.of(line)) : std::nullopt;
                if (!said)
                    return Error(ErrorKind::invalid,
                                 fmt::format("line {} begins as a text of JSON and is none", number));
                plain = *said;
            }
            const std::uint32_t count = tokenizer->count(plain);
            counts += fmt::format("{}\n", count);
            rows.push_back(Json(std::uint64_t{count}));
        }
        if (session.format == Format::text) return CommandOutput{counts};
        return CommandOutput{dump(session, Json::object().set("tokens", Json(std::move(rows))))};
    }
    const std::uint32_t count = tokenizer->count(text);
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("tokens", std::uint64_t{count})
                                               .set("bytes", text.size())
                                               .set("tokenizer", tokenizer->kind())
                                               .set("vocabulary", tokenizer->size()))};
    return CommandOutput{
        fmt::format("{} token{} in {} bytes{}; {} of {} pieces\n", count, count == 1 ? "" : "s", text.size(),
                    count == 0 ? "" : fmt::format(", {:.2f} a token", static_cast<double>(text.size()) / count),
                    tokenizer->kind(), tokenizer->size())};
}

}  // namespace stoker
