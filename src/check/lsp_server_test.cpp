// An editor that gets no answer hangs. The protocol itself is tested with a real client in tests/e2e/lsp_test.py.
#include "check/lsp_server.h"

#include <gtest/gtest.h>

#include "check/lsp_message.h"
#include "check/test_folder.h"

namespace stoker {
namespace {

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
