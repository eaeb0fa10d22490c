#include "server/openapi.h"

#include <gmock/gmock.h>

#include <set>

#include "base/document.h"
#include "server/router.h"

namespace stoker {
namespace {

void collect_references(const Node& node, std::set<std::string>& found) {
    for (const Member& member : node.members) {
        if (member.key == "$ref") found.insert(member.value->text);
        collect_references(*member.value, found);
    }
    for (const auto& item : node.items) collect_references(*item, found);
}

// A generated client is as good as this document: nothing dangles, nothing is left out.
TEST(OpenApiTest, EveryRouteAndEveryReferenceIsThere) {
    const std::string text = openapi_document().dump();
    const auto document = Document::parse_json(text, "openapi.json", {.max_bytes = 16u << 20});
    ASSERT_TRUE(document.ok()) << document.error().text();
    const Node& root = document->root();
    EXPECT_THAT(root.find("openapi")->text, testing::StartsWith("3.1"));
    const Node& paths = *root.find("paths");
    for (const api::Route& route : api::routes()) {
        std::string path(route.path);
        if (const std::size_t rest = path.find("...}"); rest != std::string::npos) path.erase(rest, 3);
        const Node* item = paths.find(path);
        ASSERT_NE(item, nullptr) << path;
        std::string method(route.method);
        for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
        const Node* operation = item->find(method);
        ASSERT_NE(operation, nullptr) << route.method << " " << path;
        EXPECT_EQ(operation->find("operationId")->text, route.operation);
        for (const int problem : route.problems)
            EXPECT_NE(operation->find("responses")->find(std::to_string(problem)), nullptr) << path << " " << problem;
    }
    std::set<std::string> references;
    collect_references(root, references);
    EXPECT_GT(references.size(), 10u);
    for (const std::string& reference : references) {
        ASSERT_THAT(reference, testing::StartsWith("#/"));
        const Node* at = &root;
        std::string_view rest = std::string_view(reference).substr(2);
        while (at != nullptr && !rest.empty()) {
            const std::size_t slash = rest.find('/');
            at = at->find(rest.substr(0, slash));
            rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
        }
        EXPECT_NE(at, nullptr) << reference;
    }
}

TEST(OpenApiTest, TheReferencePageNamesEveryRoute) {
    const std::string page = api_reference();
    for (const api::Route& route : api::routes())
        EXPECT_THAT(page, testing::HasSubstr(std::string(route.method) + " " + std::string(route.path)));
}

}  // namespace
}  // namespace stoker
