// Any bytes: the YAML reader returns a document or an error with a place, in bounded time and memory. What it read can
// be written as YAML and JSON, and reads back the same.
#include <cstdint>
#include <string>

#include "base/document.h"
#include "base/json.h"
#include "base/text.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

namespace {

using namespace stoker;

Json to_json(const Node& node) {
    switch (node.kind) {
        case NodeKind::null: return Json();
        case NodeKind::boolean: return Json(node.boolean);
        case NodeKind::number: return Json(node.number);
        case NodeKind::string: return Json(node.text);
        case NodeKind::sequence: break;
        case NodeKind::mapping: {
            Json::Object object;
            for (const Member& member : node.members) object.emplace_back(member.key, to_json(*member.value));
            return Json(std::move(object));
        }
    }
    Json::Array array;
    for (const auto& item : node.items) array.push_back(to_json(*item));
    return Json(std::move(array));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ReadLimits limits;
    limits.max_nodes = 20'000;
    const auto document = Document::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", limits);
    if (!document) {
        // With the line that it is about, whatever that holds.
        const auto source = [&](FileName) { return std::string_view(reinterpret_cast<const char*>(data), size); };
        const std::string text = document.error().text(source);
        REQUIRE(!text.empty() && find_invalid_utf8(text) == std::string_view::npos);
        REQUIRE(document.error().problems().front().pos.file == "fuzz.yaml");
        return 0;
    }
    const Json json = to_json(document->root());
    const auto from_yaml = Document::parse_yaml(json.dump_yaml(), "again.yaml");
    REQUIRE(from_yaml.ok());
    REQUIRE(to_json(from_yaml->root()).dump() == json.dump());
    const auto from_json = Document::parse_json(json.dump(), "again.json");
    REQUIRE(from_json.ok());
    REQUIRE(to_json(from_json->root()).dump() == json.dump());
    return 0;
}
