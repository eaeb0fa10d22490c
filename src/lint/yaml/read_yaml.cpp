// YAML by libyaml's events under our own composer, which keeps what a linter needs and libyaml's own composer drops:
// exact spans in bytes, comments, both of two equal keys, merged children where they were written.
#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/read.h"
#include "lint/yaml/scalars.h"

namespace stoker::lint {

namespace {

// libyaml looks at every open flow collection for each token: time grows with the square of this depth.
constexpr std::size_t kMostFlowDepth = 64;
// Problems of one kind that are told; a file with more of them has one cause.
constexpr std::size_t kMostTold = 50;
// Documents that cannot be read before the rest of the file is given up.
constexpr std::size_t kMostBroken = 8;

// libyaml counts characters, we count bytes: where every 64th character begins. Empty for ASCII, where both agree.
class CharacterTable {
public:
    explicit CharacterTable(std::string_view text) : text_(text) {
        const bool ascii = std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
        if (ascii) return;
        std::size_t characters = 0;
        for (std::size_t at = 0; at < text.size(); ++at) {
            if ((text[at] & 0xC0) == 0x80) continue;
            if (characters++ % kStep == 0) starts_.push_back(static_cast<std::uint32_t>(at));
        }
    }
    std::uint32_t byte_of(std::size_t character) const {
        if (starts_.empty()) return static_cast<std::uint32_t>(std::min(character, text_.size()));
        const std::size_t step = character / kStep;
        if (step >= starts_.size()) return static_cast<std::uint32_t>(text_.size());
        std::size_t at = starts_[step];
        for (std::size_t left = character % kStep; left > 0 && at < text_.size(); --left) {
            ++at;
            while (at < text_.size() && (text_[at] & 0xC0) == 0x80) ++at;
        }
        return static_cast<std::uint32_t>(at);
    }

private:
    static constexpr std::size_t kStep = 64;
    std::string_view text_;
    std::vector<std::uint32_t> starts_;
};

struct YamlParser {
    yaml_parser_t it;
    YamlParser() { yaml_parser_initialize(&it); }
    ~YamlParser() { yaml_parser_delete(&it); }
    YamlParser(const YamlParser&) = delete;
    YamlParser& operator=(const YamlParser&) = delete;
};
struct YamlEvent {
    yaml_event_t it{};
    ~YamlEvent() { yaml_event_delete(&it); }
    YamlEvent() = default;
    YamlEvent(const YamlEvent&) = delete;
    YamlEvent& operator=(const YamlEvent&) = delete;
};

bool is_template_word(std::string_view line) {
    for (const char mark : {'@', '%'})
        for (std::size_t at = line.find(mark); at != std::string_view::npos; at = line.find(mark, at + 1)) {
            std::size_t end = at + 1;
            while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_'))
                ++end;
            if (end > at + 1 && end < line.size() && line[end] == mark) return true;
        }
    return false;
}

// !!int "5" is a number; !!str 5 is text.
bool is_core_tag(const yaml_char_t* tag) {
    if (!tag) return false;
    const std::string_view name(reinterpret_cast<const char*>(tag));
    return name == YAML_INT_TAG || name == YAML_FLOAT_TAG || name == YAML_BOOL_TAG || name == YAML_NULL_TAG;
}

class YamlComposer {
public:
    explicit YamlComposer(File& file) : file_(file), source_(file.source()), text_(source_.text()) {
        counts_duplicates_ = file.kinds.any({Kind::k8s, Kind::compose, Kind::azureml});
        kubernetes_ = file.kinds.has(Kind::k8s);
        copies_left_ = 200 + text_.size() / 8;
    }

    void read() {
        std::uint32_t begin = text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
        for (std::size_t broken = 0; broken < kMostBroken && begin < text_.size(); ++broken) {
            const std::uint32_t stopped = read_from(begin);
            if (stopped == kDone || over_) break;
            // The next document may be sound.
            const std::size_t next = text_.find("\n---", std::min<std::size_t>(stopped, text_.size()));
            if (next == std::string_view::npos) break;
            begin = static_cast<std::uint32_t>(next + 1);
        }
        scan_comments();
    }

private:
    static constexpr std::uint32_t kDone = ~0u;

    struct Frame {
        Node* node = nullptr;
        std::string_view anchor;
        bool flow = false;
        bool is_key = false;      // a list or an object in the place of a key: it is read and dropped
        bool has_key = false;     // of an object: the key is there, its value comes next
        bool key_merges = false;  // that key is <<
        std::string_view key;
        Span key_span;
        std::uint32_t depth = 0;   // the deepest of its children
        std::size_t expanded = 1;  // nodes, with those of aliases
        std::size_t keys = 0;
        std::vector<const Node*> merges;
        std::unordered_map<std::string_view, const Node*> seen;  // of large objects only
    };
    struct Anchored {
        const Node* node = nullptr;
        std::size_t expanded = 1;
        std::uint32_t depth = 0;
    };

    void tell(std::string_view rule, Span span, std::string message) {
        if (file_.problems.size() < kMostTold) file_.problems.push_back({rule, span, std::move(message), &source_});
    }
    // Nothing more is read: the input is beyond what any honest file needs.
    void refuse(Span span, std::string message) {
        tell("SYN005", span, std::move(message));
        over_ = true;
    }

    // The offset where reading stopped, or kDone.
    std::uint32_t read_from(std::uint32_t begin) {
        base_ = begin;
        const std::string_view rest = text_.substr(begin);
        const CharacterTable characters(rest);
        characters_ = &characters;
        YamlParser parser;
        yaml_parser_set_encoding(&parser.it, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser.it, reinterpret_cast<const unsigned char*>(rest.data()), rest.size());
        frames_.clear();
        anchors_.clear();
        for (;;) {
            YamlEvent event;
            if (!yaml_parser_parse(&parser.it, &event.it)) return broken(parser.it);
            if (event.it.type == YAML_STREAM_END_EVENT) return kDone;
            if (event.it.type == YAML_DOCUMENT_END_EVENT) anchors_.clear();
            take(event.it);
            if (over_) return kDone;
        }
    }

    std::uint32_t at(const yaml_mark_t& mark) const { return base_ + characters_->byte_of(mark.index); }

    std::uint32_t broken(const yaml_parser_t& parser) {
        std::uint32_t place = parser.error == YAML_READER_ERROR
                                  ? base_ + static_cast<std::uint32_t>(parser.problem_offset)
                                  : at(parser.problem_mark);
        place = std::min(place, static_cast<std::uint32_t>(text_.size()));
        comments_end_ = std::min(comments_end_, place);
        std::string message =
            fmt::format("this is not YAML: {}", parser.problem ? parser.problem : "it cannot be read");
        if (parser.context)
            message += fmt::format(
                " ({}, line {})", parser.context,
                source_
                    .place(std::min<std::uint32_t>(at(parser.context_mark), static_cast<std::uint32_t>(text_.size())))
                    .line);
        const Span line = source_.line_at(place);
        const bool templated = text_.find("{{") != std::string_view::npos ||
                               text_.find("{%") != std::string_view::npos ||
                               text_.find("<%") != std::string_view::npos || is_template_word(source_.text(line));
        const auto end = std::min<std::uint32_t>(place + 1, static_cast<std::uint32_t>(text_.size()));
        if (templated)
            tell("SYN003", {place, end}, "a template that is not rendered: it is read as text only");
        else
            tell("SYN001", {place, end}, std::move(message));
        // What was open when the text broke off is not kept: a half object would look as if keys were absent.
        return std::max(place, base_ + 1);
    }

    // Past the anchor and the tag in front of a node.
    std::uint32_t after_properties(std::uint32_t at, std::uint32_t end) const {
        while (at < end && (text_[at] == '&' || text_[at] == '!')) {
            while (at < end && !std::isspace(static_cast<unsigned char>(text_[at])) && text_[at] != ',') ++at;
            for (;;) {
                while (at < end && std::isspace(static_cast<unsigned char>(text_[at]))) ++at;
                if (at >= end || text_[at] != '#') break;
                while (at < end && text_[at] != '\n') ++at;
            }
        }
        return at;
    }

    void take(const yaml_event_t& event) {
        switch (event.type) {
            case YAML_SCALAR_EVENT: scalar(event); break;
            case YAML_ALIAS_EVENT: alias(event); break;
            case YAML_SEQUENCE_START_EVENT:
                open(event, Shape::array, event.data.sequence_start.anchor, event.data.sequence_start.tag,
                     event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
                break;
            case YAML_MAPPING_START_EVENT:
                open(event, Shape::object, event.data.mapping_start.anchor, event.data.mapping_start.tag,
                     event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
                break;
            case YAML_SEQUENCE_END_EVENT:
            case YAML_MAPPING_END_EVENT: close(event); break;
            default: break;
        }
    }

    std::string_view anchor_name(const yaml_char_t* name) {
        return name ? file_.tree.keep(reinterpret_cast<const char*>(name)) : std::string_view();
    }

    // The text of a scalar: a piece of the file where it stands there as it is.
    std::string_view text_of(const yaml_event_t& event, Span span, Style style) {
        const std::string_view value(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
        std::string_view written = source_.text(span);
        if (style == Style::single_quoted || style == Style::double_quoted) {
            if (written.size() < 2) return file_.tree.keep(std::string(value));
            written = written.substr(1, written.size() - 2);
        }
        return written == value ? written : file_.tree.keep(std::string(value));
    }

    void scalar(const yaml_event_t& event) {
        const auto& data = event.data.scalar;
        Span span{at(event.start_mark), at(event.end_mark)};
        if (data.anchor || data.tag) span.begin = after_properties(span.begin, span.end);
        Style style = Style::plain;
        switch (data.style) {
            case YAML_SINGLE_QUOTED_SCALAR_STYLE: style = Style::single_quoted; break;
            case YAML_DOUBLE_QUOTED_SCALAR_STYLE: style = Style::double_quoted; break;
            case YAML_LITERAL_SCALAR_STYLE: style = Style::literal; break;
            case YAML_FOLDED_SCALAR_STYLE: style = Style::folded; break;
            default: break;
        }
        if (style == Style::literal || style == Style::folded || style == Style::plain)
            while (span.end > span.begin && std::isspace(static_cast<unsigned char>(text_[span.end - 1]))) --span.end;
        remember_marks(span, style);
        Frame* frame = frames_.empty() ? nullptr : &frames_.back();
        if (frame && frame->node->is_object() && !frame->has_key) {
            frame->has_key = true;
            frame->key = text_of(event, span, style);
            frame->key_span = span;
            frame->key_merges = style == Style::plain && frame->key == "<<";
            return;
        }
        Node& node = file_.tree.make(source_, Shape::string, span);
        node.style = style;
        node.text = text_of(event, span, style);
        if ((style == Style::plain && !data.tag) || is_core_tag(data.tag)) node.shape = shape_of_plain(node.text);
        if (data.tag && std::string_view(reinterpret_cast<const char*>(data.tag)).starts_with('!'))
            node.known = false;  // !Ref, !secret: an application says what it is
        if (kubernetes_ && is_placeholder(node.text)) node.known = false;
        add(node, anchor_name(data.anchor), 1, 0);
    }

    void open(const yaml_event_t& event, Shape shape, const yaml_char_t* anchor, const yaml_char_t* tag, bool flow) {
        std::uint32_t begin = at(event.start_mark);
        if (anchor || tag) begin = after_properties(begin, static_cast<std::uint32_t>(text_.size()));
        frame_end_ = begin;
        flow_depth_ = frames_.empty() ? 0 : flow_depth_;
        if (flow && ++flow_depth_ > kMostFlowDepth)
            return refuse({begin, begin}, fmt::format("brackets nest deeper than {}: it is not read", kMostFlowDepth));
        if (frames_.size() >= kMostDepth)
            return refuse({begin, begin}, fmt::format("it nests deeper than {}: it is not read", kMostDepth));
        Node& node = file_.tree.make(source_, shape, {begin, begin});
        Frame frame;
        frame.node = &node;
        frame.flow = flow;
        frame.anchor = anchor_name(anchor);
        if (anchor) anchors_.erase(frame.anchor);  // until it is closed: an alias in here would be a circle
        frame.is_key = !frames_.empty() && frames_.back().node->is_object() && !frames_.back().has_key;
        frames_.push_back(std::move(frame));
    }

    void close(const yaml_event_t& event) {
        Frame frame = std::move(frames_.back());
        frames_.pop_back();
        Node& node = *frame.node;
        if (frame.flow) {
            --flow_depth_;
            node.span.end = at(event.end_mark);
        } else {
            node.span.end = std::max(node.span.begin, frame_end_);
        }
        frame_end_ = node.span.end;
        merge(frame);
        if (frame.is_key) {
            Frame& outer = frames_.back();
            outer.has_key = true;
            outer.key = {};
            outer.key_span = node.span;
            outer.key_merges = false;
            return;
        }
        add(node, frame.anchor, frame.expanded, frame.depth);
    }

    void alias(const yaml_event_t& event) {
        const std::string_view name(reinterpret_cast<const char*>(event.data.alias.anchor));
        const Span use{at(event.start_mark), at(event.end_mark)};
        const auto found = anchors_.find(name);
        Frame* frame = frames_.empty() ? nullptr : &frames_.back();
        if (found == anchors_.end())
            tell("SYN001", use, fmt::format("no anchor &{} stands before this alias", printable(name, 60)));
        if (frame && frame->node->is_object() && !frame->has_key) {  // an alias as a key
            frame->has_key = true;
            frame->key = found == anchors_.end() ? std::string_view() : found->second.node->text;
            frame->key_span = use;
            frame->key_merges = false;
            return;
        }
        Node& node = file_.tree.make(source_, Shape::null, use);
        if (found == anchors_.end()) {
            node.known = false;
            return add(node, {}, 1, 0);
        }
        // The children are shared with the anchor's node: an alias costs one node, whatever it stands for.
        const Anchored& anchored = found->second;
        const Span place = anchored.node->span;
        node = *anchored.node;
        node.key = {};
        node.key_span = {};
        node.next = nullptr;
        node.parent = nullptr;
        node.span = place;
        node.merged = true;
        frame_end_ = use.end;
        if (anchored.depth + frames_.size() >= kMostDepth)
            return refuse(use, fmt::format("with its aliases it nests deeper than {}: it is not read", kMostDepth));
        // An alias ends where it stands, not where its anchor does.
        alias_end_ = use.end;
        add(node, {}, anchored.expanded, anchored.depth);
        alias_end_ = 0;
    }

    void add(Node& node, std::string_view anchor, std::size_t expanded, std::uint32_t depth) {
        if (!anchor.empty()) anchors_[anchor] = {&node, expanded, depth};
        frame_end_ = alias_end_ ? alias_end_ : node.span.end;
        if (frames_.empty()) {
            file_.tree.roots.push_back(&node);
            return;
        }
        Frame& frame = frames_.back();
        frame.expanded += expanded;
        frame.depth = std::max(frame.depth, depth + 1);
        if (frame.expanded > kMostNodes)
            return refuse({frame_end_, frame_end_}, "its aliases stand for more than 1,000,000 values: it is not read");
        if (frame.node->is_object()) {
            frame.has_key = false;
            if (frame.key_merges) {
                if (node.is_object()) {
                    frame.merges.push_back(&node);
                } else if (node.is_array()) {
                    for (const Node& each : children(&node))
                        if (each.is_object()) frame.merges.push_back(&each);
                }
                return;
            }
            node.key = frame.key;
            node.key_span = frame.key_span;
            look_for_double(frame, node);
        }
        file_.tree.append(*frame.node, node);
    }

    void look_for_double(Frame& frame, const Node& node) {
        if (node.key.empty()) return;
        const Node* before = nullptr;
        constexpr std::size_t kFew = 24;
        if (++frame.keys <= kFew) {
            before = frame.node->find(node.key);
        } else {
            if (frame.seen.empty())
                for (const Node& each : children(frame.node)) frame.seen.emplace(each.key, &each);
            const auto [it, fresh] = frame.seen.emplace(node.key, &node);
            if (!fresh) before = it->second;
        }
        if (before && counts_duplicates_)
            tell("SYN002", node.key_span,
                 fmt::format("the key {} stands twice in one mapping, first in line {}: readers keep one of the two",
                             printable(node.key, 60), source_.place(before->key_span.begin).line));
    }

    // Children of `<<: *base` behind the own ones, except those that are there already; the first base wins.
    void merge(Frame& frame) {
        if (frame.merges.empty()) return;
        std::unordered_set<std::string_view> keys;
        for (const Node& own : children(frame.node)) keys.insert(own.key);
        for (const Node* base : frame.merges)
            for (const Node& child : children(base)) {
                if (!keys.insert(child.key).second) continue;
                if (copies_left_ == 0)
                    return refuse(frame.node->span, "its merge keys copy more than the file holds: it is not read");
                --copies_left_;
                Node& copy = file_.tree.make(source_, child.shape, child.span);
                copy = child;
                copy.next = nullptr;
                copy.merged = true;
                file_.tree.append(*frame.node, copy);
            }
    }

    // Scalars that hold a '#' are remembered, so that the scan for comments knows them.
    void remember_marks(Span span, Style style) {
        Span inside = span;
        if (style == Style::literal || style == Style::folded) {  // its header line may have a comment
            const std::size_t end = text_.find('\n', span.begin);
            inside.begin = static_cast<std::uint32_t>(std::min<std::size_t>(end, span.end));
        }
        if (inside.empty() || !std::memchr(text_.data() + inside.begin, '#', inside.size())) return;
        marked_.push_back(inside);
    }

    void scan_comments() {
        const std::uint32_t end = std::min<std::uint32_t>(comments_end_, static_cast<std::uint32_t>(text_.size()));
        std::size_t next = 0;
        for (std::size_t at = text_.find('#'); at < end; at = text_.find('#', at)) {
            while (next < marked_.size() && marked_[next].end <= at) ++next;
            if (next < marked_.size() && marked_[next].begin <= at) {
                at = marked_[next].end;
                continue;
            }
            const char before = at == 0 ? '\n' : text_[at - 1];
            if (before != ' ' && before != '\t' && before != '\n' && before != '\r' &&
                !(at == 3 && text_.starts_with("\xEF\xBB\xBF"))) {
                ++at;
                continue;
            }
            const Span line = source_.line_at(static_cast<std::uint32_t>(at));
            Comment comment;
            comment.span = {static_cast<std::uint32_t>(at), std::max(line.end, static_cast<std::uint32_t>(at))};
            comment.own_line = text_.substr(line.begin, at - line.begin).find_first_not_of(" \t\xEF\xBB\xBF") ==
                               std::string_view::npos;
            file_.comments.push_back(comment);
            at = std::max<std::size_t>(comment.span.end, at + 1);
        }
    }

    File& file_;
    const Source& source_;
    std::string_view text_;
    std::uint32_t base_ = 0;
    const CharacterTable* characters_ = nullptr;
    std::vector<Frame> frames_;
    std::unordered_map<std::string_view, Anchored> anchors_;
    std::vector<Span> marked_;
    std::size_t flow_depth_ = 0, copies_left_ = 0;
    std::uint32_t frame_end_ = 0, alias_end_ = 0;
    std::uint32_t comments_end_ = ~0u;
    bool counts_duplicates_ = false, kubernetes_ = false, over_ = false;
};

}  // namespace

void read_yaml(File& file) {
    YamlComposer(file).read();
}

}  // namespace stoker::lint
