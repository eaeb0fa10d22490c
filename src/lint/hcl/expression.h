// Expressions of HCL, Bicep and ARM template strings: one reader and one evaluator for the three, since they differ in
// little but their names. A literal becomes a Node at once; everything else an unknown Node with a pending expression,
// which settles when all names of the file are known.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lint/file.h"
#include "lint/pattern.h"
#include "lint/read.h"

namespace stoker::lint {

enum class Dialect : std::uint8_t { hcl, bicep, arm };

struct Expression {
    enum class Kind : std::uint8_t {
        value,
        name,
        member,
        index,
        call,
        unary,
        binary,
        choice,
        text,
        loop,
        lambda,
        unknown
    };
    // Of unary and binary; two letters for two: '=' is ==, '!' is != (and not), 'l' is <=, 'g' is >=, '&', '|', '?' is
    // ??, '~' is =~ and !~.
    char op = 0;
    Kind kind = Kind::unknown;
    bool object = false;  // of a loop: makes an object
    Span span;
    std::string_view name;          // of a name, member or call; of a loop its only or last variable
    std::string_view other;         // of a loop: the variable before it
    Node* node = nullptr;           // of a value: literal, list or object; of a text: the heredoc with its holes
    const Expression* a = nullptr;  // operands; collection, value and condition of a loop
    const Expression* b = nullptr;
    const Expression* c = nullptr;
    const Expression* key = nullptr;    // of a loop that makes an object
    const Expression* first = nullptr;  // arguments of a call, parts of a text, names that a lambda is given
    const Expression* next = nullptr;   // behind this one among arguments or parts
};

// Bounds: what lies deeper is a problem (SYN005) for the reader and unknown for the evaluator.
inline constexpr int kExpressionDepth = 250;

// The expressions of one file.
class Expressions {
public:
    // Written by the user: func of Bicep, members of `functions` of an ARM template.
    struct Function {
        std::vector<std::string_view> parameters;
        const Expression* body = nullptr;
        bool elsewhere = false;  // of another file: its places are none of this one
    };
    std::unordered_map<std::string, Function> functions;  // "name", "namespace.name"
    enum class State : std::uint8_t { waiting, under_way, done };
    struct Pending {
        const Expression* expression = nullptr;
        State state = State::waiting;
    };
    Expression& make(Expression::Kind kind, Span span) {
        Expression& made = pool_.emplace_back();
        made.kind = kind;
        made.span = span;
        return made;
    }
    // Of a literal that has become a node: nobody asks for it again, and most values are such.
    void drop(const Expression* expression) {
        if (!pool_.empty() && &pool_.back() == expression) pool_.pop_back();
    }
    std::unordered_map<const Node*, Pending> pending;

private:
    std::deque<Expression> pool_;
};

class ExpressionReader {
public:
    // Reads `text` from `at`; spans are those of `text` within `source`.
    ExpressionReader(File& file, Expressions& expressions, Dialect dialect, std::string_view text)
        : file_(file), expressions_(expressions), dialect_(dialect), text_(text) {}
    // All nodes get this span: the string of a JSON file that holds the expression.
    void fix_span(Span span) { fixed_ = span, is_fixed_ = true; }

    std::uint32_t at = 0;
    // What was wrong, once; a reader that has a fault goes on only after clear().
    struct Fault {
        Span span;
        std::string message;
        bool depth = false;
    };
    const Fault* fault() const { return faulty_ ? &fault_ : nullptr; }
    void clear() { faulty_ = false; }
    void fail(std::string message, Span span);
    void fail(std::string message) { fail(std::move(message), {at, std::min(at + 1, size())}); }

    std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }
    bool done() const { return at >= size(); }
    char peek(std::uint32_t ahead = 0) const { return at + ahead < size() ? text_[at + ahead] : '\0'; }
    bool starts(std::string_view word) const { return text_.substr(at, word.size()) == word; }
    bool word_is(std::string_view word) const;  // a whole identifier
    // Blanks and comments; line ends too when `lines`.
    void skip(bool lines);
    std::string_view identifier();  // empty: there is none
    std::string_view text(Span span) const { return text_.substr(span.begin, span.end - span.begin); }

    Node* value(int depth);                   // an expression as a node; null after a fault
    const Expression* expression(int depth);  // null after a fault
    Node* object(int depth);                  // at '{'
    Node* string_node(int depth);             // a string literal; pending when it holds a template
    // All of the text as what stands between quotes, without escapes: a string of Terraform's JSON.
    const Expression* bare_template(int depth);
    // At "(" of func: its parameters and, behind "=>", its body.
    bool function(std::string name);
    Node& node(Shape shape, Span span);
    Node* node_of(const Expression* expression);

private:
    static bool starts_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
    }
    static bool digit(char c) { return c >= '0' && c <= '9'; }

    const Expression* binary(int depth, int least);
    const Expression* unary(int depth);
    const Expression* postfix(int depth);
    const Expression* primary(int depth);
    const Expression* number();
    const Expression* list(int depth);
    const Expression* object_or_loop(int depth);
    const Expression* loop(int depth, bool object, std::uint32_t begin);
    const Expression* arguments(int depth, Expression& call, char close);
    const Expression* quoted(int depth);  // HCL "..."
    bool plain_text(const char* stops, std::uint32_t begin, std::string& part);
    void escaped(std::string& part);
    const Expression* heredoc(int depth);       // HCL <<EOF
    const Expression* bicep_string(int depth);  // '...' and '''...'''
    const Expression* arm_string();
    const Expression* literal(Node& made);
    bool hole(int depth, std::vector<const Expression*>& parts, char close);
    void add_text_part(std::vector<const Expression*>& parts, std::string text, Span span, Style style);
    const Expression* joined(std::vector<const Expression*> parts, Span span, Style style);
    const Expression* lambda(int depth);
    bool lambda_ahead() const;
    void blanks() { skip(lines_); }
    bool too_deep(int depth);

    File& file_;
    Expressions& expressions_;
    Dialect dialect_;
    std::string_view text_;
    Fault fault_;
    bool faulty_ = false;
    bool lines_ = false;  // line ends are blanks here: inside brackets
    Span fixed_;
    bool is_fixed_ = false;
};

// Gives pending nodes their values. What cannot be followed stays unknown, with the text that is written.
class Evaluator {
public:
    Evaluator(File& file, Expressions& expressions, Dialect dialect, const ReadOptions& options)
        : file_(file),
          expressions_(expressions),
          dialect_(dialect),
          options_(options),
          at_hand_(&file),
          written_(file.source().text().size()) {}
    virtual ~Evaluator() = default;

    void settle_all();
    // The node with its value, when it has one; not its children.
    const Node* settle(const Node* node);
    // The nodes below too, down to kExpressionDepth.
    void settle_below(const Node* node, int depth = 0);
    // ...defaults in the objects of Bicep: their members stand in its place, and the later of two counts.
    void flatten_spreads(Node& node, int depth = 0);
    // A copy of `body` with `key` and `value` under the names that `bind` was given.
    struct Binding {
        std::string_view name;
        const Node* value;
    };
    Node* copy_with(const Node* body, std::vector<Binding> bindings);
    // What a dynamic block of HCL makes, put into `parent`; false where its for_each cannot be followed.
    bool expand_dynamic(const Node& dynamic, Node& parent, int depth = 0);
    // The value rests on the default of a variable or parameter, which whoever uses the file may override: what is
    // switched off so is still on offer.
    bool rests_on_default(const Node* node) const { return by_default_.contains(node); }
    // Expressions of `other` are evaluated here too: files of one folder of Terraform know each other's names.
    void join(File& other) { joined_.push_back(&other), written_ += other.source().text().size(); }
    // Expressions were read from decoded text (strings of JSON): what they make stands at their string as a whole.
    void place_at_holder() { at_holder_ = true; }

protected:
    // var.x and local.x: ("var", "x"); a Bicep symbol: ("", "x"); ARM: ("parameters", "x"). Null: not known. Sets
    // on_default_ when what it gives is a default.
    virtual const Node* lookup(std::string_view space, std::string_view name) = 0;

    File& file_;
    Expressions& expressions_;
    Dialect dialect_;
    const ReadOptions& options_;
    bool on_default_ = false;  // what is being evaluated has met a default
    // That the expression under way was written in; spans count within it.
    const Source& at_hand() const { return at_hand_->source(); }

private:
    using Args = std::vector<const Node*>;
    const Node* evaluate(const Expression& e, int depth);
    const Node* evaluate_call(const Expression& e, int depth);
    const Node* evaluate_binary(const Expression& e, int depth);
    const Node* evaluate_text(const Expression& e, int depth);
    const Node* filled_heredoc(const Expression& e);
    const Node* evaluate_loop(const Expression& e, int depth);
    const Node* function(std::string_view name, const Args& args, const Expression& e);
    std::optional<const Node*> text_function(std::string_view name, const Args& args, const Expression& e);
    std::optional<const Node*> list_function(std::string_view name, const Args& args, const Expression& e);
    std::optional<const Node*> more_function(std::string_view name, const Args& args, const Expression& e);
    const Node* matched(std::string_view text, const std::vector<TextPattern::Group>& groups, const Expression& e);
    const Node* rows_of(const Node* text, const Expression& e);
    bool render(std::string_view text, std::size_t& at, bool emits, std::string& out, int depth);
    const Node* piece_of_template(std::string_view text, std::size_t& at);
    const Node* with_lambda(const Expression& e, int depth);
    const Node* product_of(const Args& args, const Expression& e);
    const Node* united(const Args& args, const Expression& e, int depth = 0);
    const Node* file_set(const Args& args, const Expression& e);
    const Node* called(const Expressions::Function& callee, const Expression& e, int depth);
    const Node* copy_index(const Expression& e, int depth);
    // A member that a known object or list does not have; what is only not followed is no such.
    bool lacks(const Expression& e, int depth);
    void put_copy(Node& parent, const Node* item, std::string_view key = {});
    const Node* formatted(const Args& args, const Expression& e);
    const Node* neighbour(const Node* name);
    const Node* file_above(const Node* name, const Expression& e);
    const Node* terragrunt_config(const Node* path);
    const Node* rendered(const Node* text, const Node* values, const Expression& e);
    const Node* decoded(const Node* text, bool yaml, const Expression& e);
    const Node* made(std::string text, Shape shape, const Expression& e);
    const Node* made_bool(bool value, const Expression& e) { return made(value ? "true" : "false", Shape::boolean, e); }
    const Node* made_number(double value, const Expression& e);
    Node* copy(const Node* node, int depth);
    const Node* item_at(const Node* list, std::size_t index);
    const Node* member_of(const Node* object, std::string_view key);
    bool spend();
    // Spans of an ARM expression count within its string: what it makes stands at the string as a whole.
    Span span_of(const Expression& e) const { return dialect_ == Dialect::arm || at_holder_ ? holder_ : e.span; }

    File* file_of(const Node& node) const;  // this one, or one that joined; null for all others

    File* at_hand_;
    std::vector<File*> joined_;
    std::size_t written_;  // bytes of all of them: what may be made is bounded by it
    std::vector<Binding> bindings_;
    Span holder_;
    std::size_t steps_ = 0, bytes_ = 0, copies_ = 0, decoded_ = 0;
    std::size_t open_holes_ = 0;  // of templates, that stay as they are written
    std::unordered_set<const Node*> by_default_;
    bool at_holder_ = false;
};

// The text of a string node as it stands in its file, with where each byte was written: for guests. Empty where it was
// put together from elsewhere.
struct Inlay {
    std::string text;
    std::vector<Piece> pieces;
};
Inlay inlay_of(const Node& node, Dialect dialect);
// The same with its holes as far as `made`, the evaluated text, fills them; as it was where the two do not fit.
Inlay filled_inlay(Inlay raw, std::string_view made);
// The same for a string of JSON.
Inlay inlay_of_json(const Node& node);
// Base64 as az and Terraform accept it; empty where it is none.
std::string decode_base64(std::string_view text);

}  // namespace stoker::lint
