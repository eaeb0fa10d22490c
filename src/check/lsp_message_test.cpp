// An editor and stoker lsp talk in frames and in UTF-16: where these are counted wrongly, every squiggle behind an
// emoji is off by one, and a message that comes in two parts stops the server.
#include "check/lsp_message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace stoker {
namespace {

std::string framed(std::string_view body) {
    return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// However the bytes of a stream are cut, the same messages come out of it.
RC_GTEST_PROP(LspFrames, DoNotCareHowTheyAreCut, ()) {
    const auto bodies = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
    std::string stream;
    for (const std::string& body : bodies) stream += framed(body);
    LspFrames frames;
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < stream.size();) {
        const auto length = *rc::gen::inRange<std::size_t>(1, stream.size() - at + 1);
        frames.feed(std::string_view(stream).substr(at, length));
        at += length;
        for (;;) {
            auto next = frames.next();
            RC_ASSERT(next.ok());
            if (!*next) break;
            seen.push_back(**next);
        }
    }
    RC_ASSERT(seen == bodies);
}

TEST(LspFrames, ReadTheLengthAmongOtherHeadersInAnyCase) {
    LspFrames frames;
    frames.feed("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:2\r\n\r\n{}");
    const auto message = frames.next();
    ASSERT_TRUE(message);
    EXPECT_EQ(*message, "{}");
}

TEST(LspFrames, RefuseWhatIsNoneOfTheProtocol) {
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("Content-Length: two\r\n\r\n{}"),
          std::string("Content-Length: 2x\r\n\r\n{}"), std::string("Content-Length: -1\r\n\r\n"),
          std::string("Content-Length: 99999999999\r\n\r\n"), std::string(5000, 'x')}) {
        LspFrames frames;
        frames.feed(bytes);
        EXPECT_FALSE(frames.next()) << bytes.substr(0, 60);
    }
}

TEST(LspPositions, CountUtf16Units) {
    const std::string text = "a\xC3\xA9\xF0\x9F\x98\x80z\r\nsecond\n";  // e with an accent: 1 unit, a face: 2
    const auto at = [&](std::uint32_t line, std::uint32_t character) { return lsp_offset(text, {line, character}); };
    EXPECT_EQ(at(0, 0), 0u);
    EXPECT_EQ(at(0, 2), 3u);
    EXPECT_EQ(at(0, 4), 7u);
    EXPECT_EQ(at(0, 5), 8u);
    EXPECT_EQ(at(0, 99), 8u) << "the end of the line, before its CR";
    EXPECT_EQ(at(1, 3), 13u);
    EXPECT_EQ(at(7, 0), text.size());
    EXPECT_EQ(lsp_offset("ends in half a face \xF0\x9F", {0, 99}), 22u) << "never beyond the text";
}

// Whatever the bytes are, an offset stays in the text.
RC_GTEST_PROP(LspPositions, StayInTheText, (std::string text, std::uint8_t line, std::uint8_t character)) {
    RC_ASSERT(lsp_offset(text, {line, character}) <= text.size());
}

// What is shown at a place is found there again when the editor asks what is at it.
RC_GTEST_PROP(LspPositions, AndOffsetsAreEachOthersInverse, ()) {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("a", "\n", "\r\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", " "));
    std::string text;
    std::vector<std::uint32_t> starts;
    for (const std::string& piece : pieces) {
        starts.push_back(static_cast<std::uint32_t>(text.size()));
        text += piece;
    }
    const lint::Source source("a.yaml", text);
    for (const std::uint32_t start : starts) {
        const lint::Place place = source.place(start, lint::Columns::utf16);
        RC_ASSERT(lsp_offset(text, {place.line - 1, place.column - 1}) == start);
    }
}

TEST(LspUris, OfPathsComeBackWhole) {
    for (const char* path : {"/home/a b/c#d?.tf", "/x/100%.yaml", "/\xC3\xA9/~_-.bicep"})
        EXPECT_EQ(path_of_uri(uri_of_path(path)), path);
    EXPECT_EQ(uri_of_path("/a b"), "file:///a%20b");
    EXPECT_EQ(path_of_uri("file://host/a%2fb"), "/a/b");
    EXPECT_EQ(path_of_uri("file:///a%"), "/a%");
    EXPECT_EQ(path_of_uri("file:///a%zz%4"), "/a%zz%4") << "a percent sign that begins nothing stays";
    EXPECT_EQ(path_of_uri("untitled:Untitled-1"), "");
}

}  // namespace
}  // namespace stoker
