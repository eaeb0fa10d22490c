// An editor that gets a wrong range marks the wrong word; one that gets no answer hangs. The protocol itself is tested
// with a real client in tests/e2e/lsp_test.py.
#include "app/check/lsp_server.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "app/check/lsp_message.h"
#include "app/check/test_folder.h"

namespace stoker {
namespace {

TEST(LspFrames, ComeInPiecesOfAnySize) {
    const std::string bytes = lsp_frame(Json::object().set("a", 1)) + lsp_frame(Json::object().set("b", "ü"));
    for (std::size_t step = 1; step < bytes.size(); ++step) {
        LspFrames frames;
        std::vector<std::string> messages;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            frames.feed(std::string_view(bytes).substr(at, step));
            for (;;) {
                const auto next = frames.next();
                ASSERT_TRUE(next);
                if (!*next) break;
                messages.push_back(**next);
            }
        }
        EXPECT_EQ(messages, (std::vector<std::string>{"{\"a\":1}", "{\"b\":\"ü\"}"})) << step;
    }
}

TEST(LspOffsets, CountUtf16AndStopAtLineEnds) {
    const std::string text = "ab\r\n\xC3\xBC\xF0\x9F\x98\x80x\nlast";
    EXPECT_EQ(lsp_offset(text, {0, 1}), 1u);
    EXPECT_EQ(lsp_offset(text, {0, 99}), 2u);
    EXPECT_EQ(lsp_offset(text, {1, 1}), 6u);
    EXPECT_EQ(lsp_offset(text, {1, 3}), 10u);
    EXPECT_EQ(lsp_offset(text, {1, 99}), 11u);
    EXPECT_EQ(lsp_offset(text, {2, 4}), text.size());
    EXPECT_EQ(lsp_offset(text, {9, 0}), text.size());
}

// Whatever the bytes are, an offset stays in the text.
RC_GTEST_PROP(LspOffsets, StayInTheText, (std::string text, std::uint8_t line, std::uint8_t character)) {
    RC_ASSERT(lsp_offset(text, {line, character}) <= text.size());
}

TEST(LspUris, AreDecodedAndEncoded) {
    EXPECT_EQ(path_of_uri("file:///a%20b/%C3%BC.tf"), "/a b/ü.tf");
    EXPECT_EQ(path_of_uri("file://host/a"), "/a");
    EXPECT_EQ(path_of_uri("untitled:Untitled-1"), "");
    EXPECT_EQ(path_of_uri("file:///a%"), "/a%");
    EXPECT_EQ(path_of_uri(uri_of_path("/x y/ä#?.yaml")), "/x y/ä#?.yaml");
}

std::string request(int id, const std::string& method, Json params) {
    return Json::object().set("id", id).set("method", method).set("params", std::move(params)).dump(0);
}

TEST(LspServers, PublishAtOnceAndJoinWhenQuiet) {
    const TestFolder folder;
    LspServer server("2026-11-20");
    server.handle(request(1, "initialize", Json::object().set("rootUri", uri_of_path(folder.path()))), 0);
    EXPECT_NE(server.take().find("\"capabilities\""), std::string::npos);
    const auto document = [&](std::string text) {
        return Json::object().set("textDocument", Json::object()
                                                      .set("uri", uri_of_path(folder.path("a.yaml")))
                                                      .set("version", 1)
                                                      .set("text", std::move(text)));
    };
    server.handle(request(2, "textDocument/didOpen", document("# stoker: ignore[SYN002]\napiVersion: v1\nkind: Pod\n")),
                  1);
    const std::string published = server.take();
    EXPECT_NE(published.find("publishDiagnostics"), std::string::npos);
    EXPECT_NE(published.find("\"code\":\"SYN004\""), std::string::npos);
    EXPECT_NEAR(*server.tick(1.05), 0.15, 1e-9);
    EXPECT_FALSE(server.tick(1.3));
    EXPECT_FALSE(server.tick(9));
    server.handle(request(3, "shutdown", {}), 10);
    EXPECT_FALSE(server.exit());
    server.handle("{\"method\":\"exit\"}", 10);
    EXPECT_EQ(server.exit(), 0);
}

TEST(LspServers, AnswerWhatTheyDoNotKnowAndSurviveNonsense) {
    LspServer server("2026-11-20");
    server.handle(request(1, "nothing/known", {}), 0);
    EXPECT_NE(server.take().find("-32601"), std::string::npos);
    for (const char* text :
         {"", "{", "[]", "7", "{\"method\":7}", "{\"id\":{},\"method\":\"textDocument/hover\"}",
          "{\"method\":\"textDocument/didChange\",\"params\":{\"textDocument\":{\"uri\":\"x\"}}}",
          "{\"id\":1,\"method\":\"textDocument/codeAction\",\"params\":{\"range\":{\"start\":{\"line\":-1}}}}"})
        server.handle(text, 0);
    EXPECT_FALSE(server.exit());
}

}  // namespace
}  // namespace stoker
