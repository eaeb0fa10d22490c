#include "lint/hcl/parse_hcl.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostProblems = 20;

class HclReader {
public:
    HclReader(File& file, Expressions& expressions)
        : file_(file), in_(file, expressions, Dialect::hcl, file.source().text()) {}

    void read() {
        if (file_.source().text().starts_with("\xEF\xBB\xBF")) in_.at = 3;
        Node& root = file_.tree.make(file_.source(), Shape::object, {0, in_.size()});
        file_.tree.roots.push_back(&root);
        while (!in_.done()) {
            if (body(root, 0) && in_.done()) break;
            if (!in_.fault()) in_.fail("a \"}\" that closes nothing");
            report();
            recover();
        }
    }

private:
    void report() {
        const auto* fault = in_.fault();
        // A template of Jinja, which is no HCL before it is rendered.
        const bool templated = !fault->depth && file_.source().text().find("{%") != std::string_view::npos;
        if (file_.problems.size() < kMostProblems)
            file_.problems.push_back(
                {fault->depth ? "SYN005"
                 : templated  ? "SYN003"
                              : "SYN001",
                 fault->span, templated ? "a template that is not rendered: it is read as text only" : fault->message,
                 &file_.source()});
        in_.clear();
    }
    // To the next line that begins with a word: there a block of the file begins.
    void recover() {
        const std::string_view text = file_.source().text();
        for (std::size_t at = text.find('\n', in_.at); at != std::string_view::npos; at = text.find('\n', at + 1)) {
            const char c = at + 1 < text.size() ? text[at + 1] : '\0';
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
                in_.at = static_cast<std::uint32_t>(at + 1);
                return;
            }
        }
        in_.at = in_.size();
    }

    // To the "}" that ends it, or the end of the file. False after a fault.
    bool body(Node& parent, int depth) {
        if (depth > kExpressionDepth) return in_.fail("nested too deeply: it is not read"), false;
        for (;;) {
            in_.skip(true);
            if (in_.done() || in_.peek() == '}') return true;
            const std::uint32_t begin = in_.at;
            Span name{begin, begin};
            std::string_view key;
            if (in_.peek() == '"') {  // a quoted name: tfvars of other tools
                Node* written = in_.string_node(depth + 1);
                if (!written) return false;
                key = written->text;
            } else {
                key = in_.identifier();
            }
            name.end = in_.at;
            if (key.empty()) return in_.fail("expected a block or an attribute"), false;
            in_.skip(false);
            if (in_.peek() == '=' && in_.peek(1) != '=') {
                ++in_.at;
                Node* value = in_.value(depth + 1);
                if (!value) return false;
                value->key = key;
                value->key_span = name;
                file_.tree.append(parent, *value);
            } else if (!block(parent, key, name, depth)) {
                return false;
            }
            in_.skip(false);
            if (in_.peek() == ',' && depth > 0) ++in_.at;  // an object that was written as a block
            in_.skip(false);
            if (!in_.done() && in_.peek() != '\n' && in_.peek() != '}')
                return in_.fail("expected the end of the line"), false;
        }
    }

    bool block(Node& parent, std::string_view key, Span name, int depth) {
        std::vector<std::string_view> labels;
        while (in_.peek() != '{') {
            if (in_.peek() == '"') {
                Node* label = in_.string_node(depth + 1);
                if (!label) return false;
                labels.push_back(label->text);
            } else {
                const std::string_view label = in_.identifier();
                if (label.empty()) return in_.fail("expected \"=\", a label or \"{\""), false;
                labels.push_back(label);
            }
            in_.skip(false);
        }
        Node& made = file_.tree.make(file_.source(), Shape::object, {in_.at, in_.at});
        made.key = key;
        made.key_span = name;
        made.labels = file_.tree.keep_labels(labels);
        file_.tree.append(parent, made);
        const std::uint32_t open = in_.at++;
        if (!body(made, depth + 1)) return made.span.end = in_.at, false;
        if (in_.peek() != '}') return in_.fail("the block does not end: \"}\" is missing", {open, open + 1}), false;
        ++in_.at;
        made.span.end = in_.at;
        return true;
    }

    File& file_;
    ExpressionReader in_;
};

}  // namespace

void parse_hcl(File& file, Expressions& expressions) {
    HclReader(file, expressions).read();
}

}  // namespace stoker::lint
