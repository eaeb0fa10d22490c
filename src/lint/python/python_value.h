// What an expression of Python comes to, as far as the file tells: texts with the place of each of their parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/source.h"

namespace stoker::lint {

struct PyPiece {
    std::string text;  // of an unknown part: a name for it
    Span host;
    bool verbatim = false;  // stands there byte for byte
    bool known = true;
    bool assumed = false;  // the default of a parameter or of an environment
};

struct PyEntry;  // of a dict: its key and its value

struct PyValue {
    enum class Kind : std::uint8_t { unknown, text, number, truth, none, list, dict };
    Kind kind = Kind::unknown;
    std::vector<PyPiece> pieces;   // text, number, truth
    std::vector<PyValue> items;    // list
    std::vector<PyEntry> entries;  // dict
    bool open = false;             // a list or dict may hold more than is seen
    bool spread = false;           // *x among items
    Span span;
    std::uint32_t origin = 0;  // where the first literal of it begins: who it is, however it is changed later

    bool is_text() const { return kind == Kind::text; }
    bool is_list() const { return kind == Kind::list; }
    bool is_dict() const { return kind == Kind::dict; }
    // Scalars whose every part is known.
    bool known() const;
    bool assumed() const;
    void assume();               // known by a default alone
    std::string joined() const;  // unknown parts left out
    std::optional<long long> number() const;
    std::size_t bytes() const;   // of its own text
    std::size_t weight() const;  // how much there is to copy
    PyValue* find(std::string_view key);
    const PyValue* find(std::string_view key) const { return const_cast<PyValue*>(this)->find(key); }
    void put(std::string_view key, PyValue value);
    void add_text(std::string_view text, Span host);  // a part that stands nowhere
    void add_unknown(std::string_view name, Span host);

    static PyValue of(Kind kind, Span span);
    static PyValue unknown(Span span);
    static PyValue whole(long long number, Span span);
};

struct PyEntry {
    std::string first;
    PyValue second;
};

inline PyValue PyValue::unknown(Span span) {
    return of(Kind::unknown, span);
}

// The scalar as parts of a text: an unknown is one unknown part, named after `name`.
void append_text(PyValue& to, const PyValue& value, std::string_view name);

// A text byte for byte, an unknown part as one byte, so that it can be cut and joined without losing its places.
struct PyFlat {
    static constexpr char kUnknown = '\x01';
    std::string text;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> from;  // of each byte: its piece, and where in it

    explicit PyFlat(const PyValue& value);
    // [begin, end) as pieces behind those of `to`.
    void copy(const PyValue& of, std::size_t begin, std::size_t end, PyValue& to) const;
};

PyValue py_dedented(const PyValue& value);
PyValue py_stripped(const PyValue& value, bool front, bool back, std::string_view of);
PyValue py_replaced(const PyValue& value, std::string_view what, const PyValue& by);
std::vector<PyValue> py_words(const PyValue& value);
PyValue py_joined(const std::vector<PyValue>& items, const PyValue& by, bool open);

}  // namespace stoker::lint
