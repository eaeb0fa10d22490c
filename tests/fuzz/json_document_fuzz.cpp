// Any bytes: the JSON reader returns a document or an error, and every place it names lies inside the text.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/document.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

namespace {

using namespace stoker;

bool inside(const SourcePos& pos, std::string_view text) {
    const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    return pos.line <= lines && pos.column <= text.size() + 1;
}

bool positions_are_inside(const Node& node, std::string_view text) {
    if (!inside(node.pos, text)) return false;
    for (const auto& item : node.items)
        if (!positions_are_inside(*item, text)) return false;
    for (const Member& member : node.members)
        if (!inside(member.key_pos, text) || !positions_are_inside(*member.value, text)) return false;
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto document = Document::parse_json(text, "fuzz.json");
    if (!document) {
        REQUIRE(inside(document.error().problems().front().pos, text));
        return 0;
    }
    REQUIRE(positions_are_inside(document->root(), text));
    return 0;
}
