#include "formats/xml_text.h"

#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

constexpr int kMostXmlDepth = 32;
constexpr std::size_t kMostXmlElements = 100'000;

class XmlParser {
public:
    explicit XmlParser(std::string_view text) : text_(text) {}

    Result<XmlElement> document() {
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
        TRY_VOID(skip_between());
        XmlElement root;
        TRY_VOID(element(root, 0));
        TRY_VOID(skip_between());
        if (at_ != text_.size()) return wrong("something follows the last element");
        return root;
    }

private:
    Error wrong(std::string_view what) const {
        return Error(ErrorKind::invalid, fmt::format("the XML cannot be read at byte {}: {}", at_, what));
    }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    Status skip_to(std::string_view end) {
        const std::size_t found = text_.find(end, at_);
        if (found == std::string_view::npos) return wrong(fmt::format("no '{}' follows", end));
        at_ = found + end.size();
        return done();
    }
    // White space, comments and instructions.
    Status skip_between() {
        for (;;) {
            while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
            if (take("<?")) {
                TRY_VOID(skip_to("?>"));
            } else if (take("<!--")) {
                TRY_VOID(skip_to("-->"));
            } else {
                return done();
            }
        }
    }

    Status element(XmlElement& out, int depth) {
        if (depth > kMostXmlDepth || ++elements_ > kMostXmlElements) return wrong("it is too deep or too long");
        if (!take("<")) return wrong("expected an element");
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(" \t\r\n/>", at_), text_.size());
        std::string_view name = text_.substr(begin, at_ - begin);
        if (name.empty() || name.front() == '!' || name.front() == '?') return wrong("expected the name of an element");
        const std::string_view whole = name;
        if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
        out.name = name;
        TRY(const bool empty, skip_attributes());
        if (empty) return done();
        TRY_VOID(content(out, depth));
        if (!take(whole)) return wrong(fmt::format("'{}' is not closed", printable(whole, 60)));
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        if (!take(">")) return wrong("expected '>'");
        return done();
    }

    // True: the element ends here.
    Result<bool> skip_attributes() {
        while (at_ < text_.size() && text_[at_] != '>') {
            if (take("/>")) return true;
            if (const char quote = text_[at_]; quote == '"' || quote == '\'') {
                ++at_;
                TRY_VOID(skip_to(std::string_view(&quote, 1)));
            } else {
                ++at_;
            }
        }
        if (!take(">")) return wrong("expected '>'");
        return false;
    }

    // Up to and with the "</" that closes it.
    Status content(XmlElement& out, int depth) {
        for (;;) {
            const std::size_t next = std::min(text_.find('<', at_), text_.size());
            TRY_VOID(add_text(text_.substr(at_, next - at_), out.text));
            at_ = next;
            if (at_ == text_.size()) return wrong(fmt::format("'{}' is not closed", printable(out.name, 60)));
            if (take("</")) return done();
            if (take("<!--")) {
                TRY_VOID(skip_to("-->"));
            } else if (take("<![CDATA[")) {
                const std::size_t begin = at_;
                TRY_VOID(skip_to("]]>"));
                out.text += text_.substr(begin, at_ - 3 - begin);
            } else {
                TRY_VOID(element(out.children.emplace_back(), depth + 1));
            }
        }
    }

    Status add_text(std::string_view raw, std::string& out) const {
        while (!raw.empty()) {
            const std::size_t mark = std::min(raw.find('&'), raw.size());
            out += raw.substr(0, mark);
            raw.remove_prefix(mark);
            if (raw.empty()) break;
            const std::size_t end = raw.find(';');
            // None at all is npos, which is more.
            if (end > 12) return wrong("'&' without an entity");
            const std::string_view name = raw.substr(1, end - 1);
            raw.remove_prefix(end + 1);
            if (name == "amp") {
                out += '&';
            } else if (name == "lt") {
                out += '<';
            } else if (name == "gt") {
                out += '>';
            } else if (name == "quot") {
                out += '"';
            } else if (name == "apos") {
                out += '\'';
            } else if (name.starts_with('#')) {
                const bool hex = name.starts_with("#x");
                const std::string_view digits = name.substr(hex ? 2 : 1);
                std::uint32_t code = 0;
                const auto [stop, failed] =
                    std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
                if (failed != std::errc() || stop != digits.data() + digits.size() || code == 0 || code > 0x10FFFF ||
                    (code >= 0xD800 && code <= 0xDFFF))
                    return wrong("a character that does not exist");
                append_utf8(out, static_cast<char32_t>(code));
            } else {
                return wrong("an unknown entity");
            }
        }
        return done();
    }

    std::string_view text_;
    std::size_t at_ = 0, elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
    for (const XmlElement& each : children)
        if (each.name == child) return &each;
    return nullptr;
}

std::string_view XmlElement::text_of(std::string_view child) const {
    const XmlElement* found = find(child);
    return found == nullptr ? std::string_view() : std::string_view(found->text);
}

Result<XmlElement> parse_xml(std::string_view text) {
    return XmlParser(text).document();
}

std::string xml_escaped(std::string_view text, const MarkupPlace& place) {
    using Controls = MarkupPlace::Controls;
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (c == '\'' && place.apostrophe)
            out += "&#39;";
        else if (c == '\n' && place.line_end)
            out += "&#10;";
        else if (static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n' || place.controls == Controls::keep)
            out += c;
        else if (place.controls == Controls::question_mark)
            out += '?';
    }
    return out;
}

}  // namespace stoker
