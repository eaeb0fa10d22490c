// Reads YAML into a Document from the events of libyaml. libyaml scans YAML 1.1; what its scalars mean is decided here,
// by the core schema of YAML 1.2: yes and no are text, 0o17 is octal, 1_000 is text (which the reader of a count
// understands).
#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/document.h"
#include "base/document_reader.h"
#include "base/text.h"

namespace stoker {
namespace {

using document_reader::check_unique_keys;
using document_reader::too_deep;
using document_reader::too_many_nodes;

// libyaml counts characters and ends lines at U+0085 and U+2028 too; people and editors count bytes or columns of lines
// that end at \n. Its character index is translated through checkpoints, for text that is not all ASCII.
class Places {
public:
    Places(std::string_view text, FileName file) : text_(text), file_(file) {
        line_starts_.push_back(0);
        for (std::size_t i = text.find('\n'); i != std::string_view::npos; i = text.find('\n', i + 1))
            line_starts_.push_back(i + 1);
        ascii_ = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
        if (ascii_) return;
        std::size_t characters = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (is_continuation(text[i])) continue;
            if (characters++ % kStep == 0) checkpoints_.push_back(i);
        }
    }

    std::size_t offset(std::size_t index) const {
        if (ascii_) return std::min(index, text_.size());
        if (index / kStep >= checkpoints_.size()) return text_.size();
        std::size_t i = checkpoints_[index / kStep];
        for (std::size_t left = index % kStep; left > 0 && i < text_.size(); --left) {
            ++i;
            while (i < text_.size() && is_continuation(text_[i])) ++i;
        }
        return i;
    }

    SourcePos pos(const yaml_mark_t& mark) const { return pos_of_byte(offset(mark.index)); }

    SourcePos pos_of_byte(std::size_t at) const {
        const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), at);
        const auto line = static_cast<std::uint32_t>(after - line_starts_.begin());
        return {file_, line, static_cast<std::uint32_t>(at - line_starts_[line - 1] + 1)};
    }

private:
    static constexpr std::size_t kStep = 128;
    static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

    std::string_view text_;
    FileName file_;
    std::vector<std::size_t> line_starts_;
    std::vector<std::size_t> checkpoints_;  // byte offset of every kStep-th character
    bool ascii_ = true;
};

// Owns what libyaml allocates for one event.
class Event {
public:
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { clear(); }
    void clear() {
        if (filled_) yaml_event_delete(&event_);
        filled_ = false;
    }
    bool parse(yaml_parser_t& parser) {
        clear();
        filled_ = yaml_parser_parse(&parser, &event_) != 0;
        return filled_;
    }
    yaml_event_type_t type() const { return event_.type; }
    const yaml_event_t* operator->() const { return &event_; }

private:
    yaml_event_t event_{};
    bool filled_ = false;
};

std::string_view text_of(const yaml_char_t* text) {
    return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text));
}

enum class NumberForm { no, yes, not_finite };

NumberForm read_float(std::string_view digits, double& out) {
    std::size_t i = 0, before = 0, after = 0;
    const auto is_digit = [&] { return i < digits.size() && digits[i] >= '0' && digits[i] <= '9'; };
    for (; is_digit(); ++i) ++before;
    if (i < digits.size() && digits[i] == '.')
        for (++i; is_digit(); ++i) ++after;
    if (before + after == 0) return NumberForm::no;
    if (i < digits.size() && (digits[i] == 'e' || digits[i] == 'E')) {
        ++i;
        if (i < digits.size() && (digits[i] == '+' || digits[i] == '-')) ++i;
        if (!is_digit()) return NumberForm::no;
        while (is_digit()) ++i;
    }
    if (i != digits.size()) return NumberForm::no;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return result.ec == std::errc() ? NumberForm::yes : NumberForm::not_finite;
}

NumberForm read_yaml_number(std::string_view text, double& out) {
    if (text.starts_with("0x") || text.starts_with("0o")) {
        std::uint64_t value = 0;
        const auto [end, error] =
            std::from_chars(text.data() + 2, text.data() + text.size(), value, text[1] == 'x' ? 16 : 8);
        if (text.size() == 2 || end != text.data() + text.size()) return NumberForm::no;
        out = static_cast<double>(value);
        return error == std::errc() ? NumberForm::yes : NumberForm::not_finite;
    }
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    for (const std::string_view word : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
        if (text == word) return NumberForm::not_finite;
    const NumberForm form = read_float(text, out);
    if (negative) out = -out;
    return form;
}

class YamlDocumentReader {
public:
    YamlDocumentReader(std::string_view text, FileName file, const ReadLimits& limits)
        : text_(text), places_(text, file), limits_(limits) {
        CHECK(yaml_parser_initialize(&parser_) == 1);
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    }
    YamlDocumentReader(const YamlDocumentReader&) = delete;
    YamlDocumentReader& operator=(const YamlDocumentReader&) = delete;
    ~YamlDocumentReader() { yaml_parser_delete(&parser_); }

    Result<Document> read() {
        Event event;
        TRY_VOID(next(event));  // the start of the stream
        TRY_VOID(next(event));
        if (event.type() == YAML_STREAM_END_EVENT) {
            const std::string what =
                trim(text_).empty() ? "the file is empty" : "the file holds no value, only comments";
            return error(places_.pos(yaml_mark_t{}), what);
        }
        TRY_VOID(next(event));
        TRY(auto root, read_node(event, 0));
        TRY_VOID(next(event));  // the end of the document
        TRY_VOID(next(event));
        if (event.type() != YAML_STREAM_END_EVENT) {
            const SourcePos second = places_.pos(event->start_mark);
            return error(second,
                         fmt::format("one document is expected, and a second one starts at line {}", second.line),
                         "keep one document per file");
        }
        return Document(std::move(root));
    }

private:
    using NodePtr = std::unique_ptr<Node>;

    static Error error(SourcePos pos, std::string message, std::string remedy = {}) {
        return Error(ErrorKind::invalid, std::move(message), pos, std::move(remedy));
    }

    Status next(Event& event) {
        if (event.parse(parser_)) return done();
        return parser_error();
    }

    // libyaml's words, in those of someone who has never seen its source.
    Error parser_error() const {
        const std::string_view problem = parser_.problem == nullptr ? "unreadable YAML" : parser_.problem;
        const std::string_view context = parser_.context == nullptr ? "" : parser_.context;
        if (parser_.error == YAML_MEMORY_ERROR) return Error(ErrorKind::internal, "out of memory");
        if (parser_.error == YAML_READER_ERROR) {
            return error(places_.pos_of_byte(parser_.problem_offset),
                         fmt::format("the character U+{:04X} is not allowed in YAML",
                                     static_cast<unsigned>(parser_.problem_value)));
        }
        const SourcePos start = places_.pos(parser_.context_mark);
        const std::size_t at = places_.offset(parser_.problem_mark.index);
        // Behind the last line there is nothing to show: what was opened and not closed is.
        const bool at_end = trim(text_.substr(at)).empty() && parser_.context_mark.index > 0;
        const SourcePos pos = at_end ? start : places_.pos(parser_.problem_mark);
        const char c = at < text_.size() ? text_[at] : '\0';
        if (problem.find("tab character") != std::string_view::npos ||
            (c == '\t' && problem.find("cannot start any token") != std::string_view::npos))
            return error(pos, "a tab stands where YAML allows only blanks", "indent with blanks");
        if (problem.find("cannot start any token") != std::string_view::npos)
            return error(pos, fmt::format("a value cannot begin with '{}'", c), "put the value in quotes");
        if (problem == "mapping values are not allowed in this context") {
            if (const auto glued = glued_colon(at))
                return error(places_.pos_of_byte(*glued), "a blank is missing behind this ':'", "write key: value");
            return error(pos, "a ':' is not expected here",
                         "check the indentation, or put the value before it in quotes");
        }
        if (context == "while scanning an alias" || context == "while scanning an anchor")
            return error(start, fmt::format("a name is expected behind '{}'", context.ends_with("alias") ? '*' : '&'),
                         "put the value in quotes if text is meant");
        if (problem == "found unknown escape character")
            return error(pos, "a backslash in double quotes begins an escape, and there is none of this letter",
                         "write two backslashes, or use single quotes");
        if (problem == "could not find expected ':'")
            return error(start, "a ':' is missing behind the key that begins here", "write key: value");
        if (problem == "found unexpected end of stream" && context == "while scanning a quoted scalar")
            return error(start, "the quote that opens here is not closed");
        if (problem == "did not find expected key")
            return error(pos,
                         fmt::format("a key is expected here, inside the mapping that begins at {}:{}", start.line,
                                     start.column),
                         "check the indentation");
        if (problem == "did not find expected node content") return error(pos, "a value is expected here");
        if (problem == "did not find expected <document start>")
            return error(pos, "this does not belong to the value above it, which has ended", "check the indentation");
        if (problem == "did not find expected '-' indicator")
            return error(pos,
                         fmt::format("an item with '-' is expected here, inside the list that begins at {}:{}",
                                     start.line, start.column),
                         "check the indentation");
        if (problem == "did not find expected ',' or '}'")
            return error(pos, fmt::format("a comma or }} is expected here, inside the {{ that opens at {}:{}",
                                          start.line, start.column));
        if (problem == "did not find expected ',' or ']'")
            return error(pos, fmt::format("a comma or ] is expected here, inside the [ that opens at {}:{}", start.line,
                                          start.column));
        std::string message(problem);
        if (!context.empty()) message += fmt::format(", {}", context);
        return error(parser_.problem_mark.index == 0 && parser_.context_mark.index > 0 ? start : pos,
                     std::move(message));
    }

    // "version:1" is text to YAML, and the line behind it is where the reader stumbles. The ':' of the line before
    // `at`.
    std::optional<std::size_t> glued_colon(std::size_t at) const {
        const std::size_t line = text_.rfind('\n', at);
        if (line == std::string_view::npos || line == 0) return std::nullopt;
        const std::size_t before = text_.rfind('\n', line - 1) + 1;  // npos + 1 is 0
        const std::string_view text = text_.substr(before, line - before);
        const std::size_t colon = text.find(':');
        if (colon == std::string_view::npos || colon + 1 >= text.size() || trim(text.substr(colon + 1, 1)).empty())
            return std::nullopt;
        return before + colon;
    }

    // Adds to what has been built; refused before anything is allocated for it.
    Status count_node(SourcePos pos) {
        if (++nodes_ > limits_.max_nodes) return too_many_nodes(pos, limits_);
        return done();
    }

    Result<NodePtr> read_node(const Event& event, std::size_t depth) {
        const SourcePos pos = places_.pos(event->start_mark);
        if (event.type() == YAML_ALIAS_EVENT) return read_alias(text_of(event->data.alias.anchor), pos, depth);
        TRY_VOID(count_node(pos));
        auto node = std::make_unique<Node>();
        node->pos = pos;
        std::string anchor;
        if (event.type() == YAML_SCALAR_EVENT) {
            anchor = text_of(event->data.scalar.anchor);
            TRY_VOID(read_scalar(event, *node));
        } else {
            const bool is_list = event.type() == YAML_SEQUENCE_START_EVENT;
            CHECK(is_list || event.type() == YAML_MAPPING_START_EVENT);
            if (depth + 1 > limits_.max_depth) return too_deep(pos, limits_);
            anchor = text_of(is_list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor);
            const std::string_view tag =
                text_of(is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag);
            if (!tag.empty() && tag != (is_list ? YAML_SEQ_TAG : YAML_MAP_TAG) && tag != "!")
                return unknown_tag(tag, pos);
            if (!anchor.empty()) anchors_[anchor] = nullptr;  // open: an alias in here would be a circle
            TRY_VOID(is_list ? read_sequence(*node, depth + 1) : read_mapping(*node, depth + 1));
        }
        // The node keeps its address while it lives, and it lives as long as the tree.
        if (!anchor.empty()) anchors_[anchor] = node.get();
        return node;
    }

    static Error unknown_tag(std::string_view tag, SourcePos pos) {
        return error(pos, fmt::format("the tag {} is not supported", printable(tag, 60)),
                     "write the value without a tag");
    }

    Status read_scalar(const Event& event, Node& node) {
        const auto& scalar = event->data.scalar;
        node.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
        node.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
        node.kind = NodeKind::string;
        const std::string_view tag = text_of(scalar.tag);
        if (tag == YAML_STR_TAG || tag == "!") return done();
        if (tag.empty() && node.quoted) return done();
        TRY_VOID(resolve(node));
        if (tag.empty() || (tag == YAML_NULL_TAG && node.kind == NodeKind::null) ||
            (tag == YAML_BOOL_TAG && node.kind == NodeKind::boolean) ||
            ((tag == YAML_INT_TAG || tag == YAML_FLOAT_TAG) && node.kind == NodeKind::number)) {
            return done();
        }
        if (tag == YAML_NULL_TAG || tag == YAML_BOOL_TAG || tag == YAML_INT_TAG || tag == YAML_FLOAT_TAG)
            return error(node.pos, fmt::format("'{}' is not what its tag {} says", printable(node.text, 40), tag));
        return unknown_tag(tag, node.pos);
    }

    static Status resolve(Node& node) {
        const std::string& text = node.text;
        if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
            node.kind = NodeKind::null;
        } else if (text == "true" || text == "True" || text == "TRUE" || text == "false" || text == "False" ||
                   text == "FALSE") {
            node.kind = NodeKind::boolean;
            node.boolean = (text[0] | 0x20) == 't';
        } else {
            const NumberForm form = read_yaml_number(text, node.number);
            if (form == NumberForm::not_finite)
                return error(node.pos, fmt::format("'{}' is not a finite number in range", printable(text, 40)),
                             "put it in quotes if text is meant");
            if (form == NumberForm::yes) node.kind = NodeKind::number;
        }
        return done();
    }

    Status read_sequence(Node& node, std::size_t depth) {
        node.kind = NodeKind::sequence;
        Event event;
        for (;;) {
            TRY_VOID(next(event));
            if (event.type() == YAML_SEQUENCE_END_EVENT) return done();
            TRY(auto item, read_node(event, depth));
            node.items.push_back(std::move(item));
        }
    }

    Status read_mapping(Node& node, std::size_t depth) {
        node.kind = NodeKind::mapping;
        Member merge;  // the value of <<, if any
        Event event;
        for (;;) {
            TRY_VOID(next(event));
            if (event.type() == YAML_MAPPING_END_EVENT) break;
            Member member;
            member.key_pos = places_.pos(event->start_mark);
            TRY_VOID(read_key(event, member.key));
            const bool is_merge = member.key == "<<" && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
            TRY_VOID(next(event));
            TRY(member.value, read_node(event, depth));
            if (is_merge && merge.value != nullptr)
                return error(member.key_pos, "the key '<<' is already set in this mapping",
                             "merge a list: <<: [*a, *b]");
            if (is_merge)
                merge = std::move(member);
            else
                node.members.push_back(std::move(member));
        }
        TRY_VOID(check_unique_keys(node.members));
        if (merge.value == nullptr) return done();
        TRY_VOID(merge_into(node, *merge.value, depth));
        retired_.push_back(std::move(merge.value));
        return done();
    }

    Status read_key(const Event& event, std::string& key) {
        const SourcePos pos = places_.pos(event->start_mark);
        if (event.type() != YAML_SCALAR_EVENT) {
            // {{ .Values.gpus }} reads as a mapping that is the key of a mapping.
            const bool is_template = text_.substr(places_.offset(event->start_mark.index)).starts_with('{');
            return error(pos, "a key must be plain text",
                         is_template ? "if this file is a template, render it first" : "");
        }
        const auto& scalar = event->data.scalar;
        if (scalar.anchor != nullptr)
            return error(pos, "an anchor on a key is not supported", "put the anchor on a value");
        const std::string_view tag = text_of(scalar.tag);
        if (!tag.empty() && tag != YAML_STR_TAG && tag != "!") return unknown_tag(tag, pos);
        if (scalar.length == 0 && scalar.style == YAML_PLAIN_SCALAR_STYLE)
            return error(pos, "a key is missing before this ':'");
        key.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
        return done();
    }

    // Own keys win over merged ones, and earlier sources over later ones, as the YAML merge key type has it.
    Status merge_into(Node& node, const Node& value, std::size_t depth) {
        std::vector<const Node*> sources;
        if (value.is_mapping()) sources.push_back(&value);
        for (const auto& item : value.items) sources.push_back(item.get());
        const bool all_mappings =
            std::all_of(sources.begin(), sources.end(), [](const Node* source) { return source->is_mapping(); });
        if (!all_mappings || value.is_scalar())
            return error(value.pos, "'<<' merges a mapping or a list of mappings", "write <<: *anchor");
        std::set<std::string, std::less<>> present;
        for (const Member& member : node.members) present.insert(member.key);
        for (const Node* source : sources) {
            for (const Member& member : source->members) {
                if (!present.insert(member.key).second) continue;
                TRY_VOID(count_copied(member.key.size(), value.pos));
                TRY(auto copied, copy(*member.value, value.pos, depth));
                node.members.push_back({member.key, member.key_pos, std::move(copied)});
            }
        }
        return done();
    }

    Result<NodePtr> read_alias(std::string_view name, SourcePos pos, std::size_t depth) {
        const auto found = anchors_.find(name);
        if (found == anchors_.end())
            return error(pos, fmt::format("the alias *{0} has no anchor &{0} before it", printable(name, 60)));
        if (found->second == nullptr)
            return error(pos, fmt::format("the alias *{} stands inside the value it names", printable(name, 60)));
        if (++aliases_ > limits_.max_aliases)
            return error(pos, fmt::format("more than {} aliases", limits_.max_aliases));
        return copy(*found->second, pos, depth);
    }

    // Values keep the place where they were written, which is where a person would change them.
    Result<NodePtr> copy(const Node& from, SourcePos alias, std::size_t depth) {
        TRY_VOID(count_node(alias));
        TRY_VOID(count_copied(from.text.size(), alias));
        if (!from.is_scalar() && depth + 1 > limits_.max_depth) return too_deep(alias, limits_);
        auto node = std::make_unique<Node>();
        node->kind = from.kind;
        node->boolean = from.boolean;
        node->number = from.number;
        node->text = from.text;
        node->quoted = from.quoted;
        node->pos = from.pos;
        for (const auto& item : from.items) {
            TRY(auto copied, copy(*item, alias, depth + 1));
            node->items.push_back(std::move(copied));
        }
        for (const Member& member : from.members) {
            TRY_VOID(count_copied(member.key.size(), alias));
            TRY(auto copied, copy(*member.value, alias, depth + 1));
            node->members.push_back({member.key, member.key_pos, std::move(copied)});
        }
        return node;
    }

    Status count_copied(std::size_t bytes, SourcePos alias) {
        copied_bytes_ += bytes;
        if (copied_bytes_ > limits_.max_bytes)
            return error(alias, fmt::format("the aliases expand to more than {} bytes", limits_.max_bytes));
        return done();
    }

    std::string_view text_;
    Places places_;
    const ReadLimits& limits_;
    yaml_parser_t parser_{};
    std::map<std::string, const Node*, std::less<>> anchors_;  // nullptr while the anchored value is still being read
    std::vector<NodePtr> retired_;  // merged values, which are not in the tree but may hold anchors
    std::size_t nodes_ = 0, aliases_ = 0, copied_bytes_ = 0;
};

}  // namespace

Result<Document> Document::parse_yaml(std::string_view text, std::string file, const ReadLimits& limits) {
    const FileName name(file);
    TRY(const std::string_view body, document_reader::check_text(text, name, limits));
    return YamlDocumentReader(body, name, limits).read();
}

}  // namespace stoker
