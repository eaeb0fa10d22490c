// The little XML that object stores answer with: elements, text and the five entities. Attributes, comments and
// processing instructions are passed over; a document type, which could define more, is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct XmlElement {
    std::string name;  // without its namespace prefix
    std::string text;  // of its own, entities replaced
    std::vector<XmlElement> children;

    const XmlElement* find(std::string_view child) const;
    std::string_view text_of(std::string_view child) const;  // empty when there is none
};

// invalid: not well-formed, nested deeper than 32, or more than 100,000 elements.
Result<XmlElement> parse_xml(std::string_view text);

// Where a text goes decides what becomes of the characters that markup has no other way for; & < > " are always
// escaped.
struct MarkupPlace {
    bool apostrophe = false;  // as &#39;
    bool line_end = false;    // as &#10;, so that an attribute keeps it
    enum class Controls : std::uint8_t { keep, drop, question_mark } controls = Controls::keep;  // all but tab, \n
};
inline constexpr MarkupPlace kXmlElement{};
inline constexpr MarkupPlace kXmlAttribute{.line_end = true, .controls = MarkupPlace::Controls::question_mark};
inline constexpr MarkupPlace kHtml{.apostrophe = true, .controls = MarkupPlace::Controls::drop};
std::string xml_escaped(std::string_view text, const MarkupPlace& place = kXmlElement);

}  // namespace stoker
