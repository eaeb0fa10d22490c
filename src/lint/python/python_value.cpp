#include "lint/python/python_value.h"

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

static constexpr std::size_t kMostGrown = 256u << 10;  // bytes of a text that is put together

bool PyValue::known() const {
    if (kind != Kind::text && kind != Kind::number && kind != Kind::truth) return false;
    return std::all_of(pieces.begin(), pieces.end(), [](const PyPiece& piece) { return piece.known; });
}

bool PyValue::assumed() const {
    return std::any_of(pieces.begin(), pieces.end(), [](const PyPiece& piece) { return piece.assumed; });
}

void PyValue::assume() {
    for (PyPiece& piece : pieces) piece.assumed = true;
    for (PyValue& item : items) item.assume();
    for (auto& entry : entries) entry.second.assume();
}

std::string PyValue::joined() const {
    std::string all;
    for (const PyPiece& piece : pieces)
        if (piece.known) all += piece.text;
    return all;
}

std::size_t PyValue::bytes() const {
    std::size_t all = 0;
    for (const PyPiece& piece : pieces) all += piece.text.size();
    return all;
}

std::size_t PyValue::weight() const {
    std::size_t all = 1 + pieces.size() + bytes() / 64;
    for (const PyValue& item : items) all += item.weight();
    for (const auto& entry : entries) all += entry.second.weight();
    return all;
}

std::optional<long long> PyValue::number() const {
    if (kind != Kind::number || !known()) return std::nullopt;
    std::string digits = joined();
    std::erase(digits, '_');
    const bool minus = digits.starts_with('-');
    const std::string_view plain = std::string_view(digits).substr(minus ? 1 : 0);
    if (plain.empty() || plain.size() > 12 || plain.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    const long long number = std::stoll(std::string(plain));
    return minus ? -number : number;
}

PyValue* PyValue::find(std::string_view key) {
    for (auto it = entries.rbegin(); it != entries.rend(); ++it)
        if (it->first == key) return &it->second;
    return nullptr;
}

void PyValue::put(std::string_view key, PyValue value) {
    if (PyValue* there = find(key))
        *there = std::move(value);
    else
        entries.push_back({std::string(key), std::move(value)});
}

void PyValue::add_text(std::string_view text, Span host) {
    if (!text.empty()) pieces.push_back({std::string(text), host, false, true});
}

void PyValue::add_unknown(std::string_view name, Span host) {
    std::string plain = "py_";
    for (const char c : name.substr(0, 40))
        plain += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
    pieces.push_back({plain, host, false, false});
}

PyValue PyValue::of(Kind kind, Span span) {
    PyValue value;
    value.kind = kind;
    value.span = span;
    value.origin = span.begin;
    return value;
}

PyValue PyValue::whole(long long number, Span span) {
    PyValue value = of(Kind::number, span);
    value.add_text(std::to_string(number), span);
    return value;
}

void append_text(PyValue& to, const PyValue& value, std::string_view name) {
    using Sort = PyValue::Kind;
    if (value.kind == Sort::text || value.kind == Sort::number || value.kind == Sort::truth)
        to.pieces.insert(to.pieces.end(), value.pieces.begin(), value.pieces.end());
    else
        to.add_unknown(name, value.span);
}

PyFlat::PyFlat(const PyValue& value) {
    for (std::uint32_t k = 0; k < value.pieces.size(); ++k) {
        const PyPiece& piece = value.pieces[k];
        if (!piece.known) {
            text += kUnknown;
            from.emplace_back(k, 0);
            continue;
        }
        text += piece.text;
        for (std::uint32_t j = 0; j < piece.text.size(); ++j) from.emplace_back(k, j);
    }
}

void PyFlat::copy(const PyValue& of, std::size_t begin, std::size_t end, PyValue& to) const {
    end = std::min(end, text.size());
    while (begin < end) {
        const auto [k, offset] = from[begin];
        const PyPiece& piece = of.pieces[k];
        std::size_t stop = begin + 1;
        while (stop < end && from[stop].first == k && from[stop].second == offset + (stop - begin)) ++stop;
        PyPiece part = piece;
        if (piece.known) {
            part.text = piece.text.substr(offset, stop - begin);
            if (piece.verbatim)
                part.host = {piece.host.begin + offset,
                             piece.host.begin + offset + static_cast<std::uint32_t>(stop - begin)};
        }
        to.pieces.push_back(std::move(part));
        begin = stop;
    }
}

static PyValue empty_like(const PyValue& value) {
    PyValue made = PyValue::of(PyValue::Kind::text, value.span);
    made.origin = value.origin;
    return made;
}

PyValue py_dedented(const PyValue& value) {
    const PyFlat flat(value);
    std::size_t least = std::string::npos;
    const auto each_line = [&](auto&& use) {
        for (std::size_t at = 0; at <= flat.text.size();) {
            const std::size_t end = std::min(flat.text.find('\n', at), flat.text.size());
            const std::size_t code = std::min(flat.text.find_first_not_of(" \t", at), end);
            use(at, code, end);
            at = end + 1;
        }
    };
    each_line([&](std::size_t at, std::size_t code, std::size_t end) {
        if (code < end) least = std::min(least, code - at);
    });
    PyValue made = empty_like(value);
    each_line([&](std::size_t at, std::size_t code, std::size_t end) {
        const bool last = end == flat.text.size();
        if (code == end)
            flat.copy(value, end, last ? end : end + 1, made);
        else
            flat.copy(value, at + least, last ? end : end + 1, made);
    });
    return made;
}

PyValue py_stripped(const PyValue& value, bool front, bool back, std::string_view of) {
    const PyFlat flat(value);
    if (of.empty()) of = " \t\r\n";
    PyValue made = empty_like(value);
    std::size_t begin = 0, end = flat.text.size();
    if (front) begin = std::min(flat.text.find_first_not_of(of), end);
    if (back && begin < end) end = flat.text.find_last_not_of(of) + 1;
    flat.copy(value, begin, end, made);
    return made;
}

PyValue py_replaced(const PyValue& value, std::string_view what, const PyValue& by) {
    if (what.empty()) return value;
    const PyFlat flat(value);
    PyValue made = empty_like(value);
    std::size_t at = 0, grown = 0;
    const std::size_t each = by.bytes() + by.pieces.size() + 1;
    for (std::size_t next = flat.text.find(what); next != std::string::npos; next = flat.text.find(what, at)) {
        if ((grown += each) > kMostGrown) return PyValue::unknown(value.span);
        flat.copy(value, at, next, made);
        append_text(made, by, what);
        at = next + what.size();
    }
    flat.copy(value, at, flat.text.size(), made);
    return made;
}

std::vector<PyValue> py_words(const PyValue& value) {
    const PyFlat flat(value);
    std::vector<PyValue> words;
    for (std::size_t at = flat.text.find_first_not_of(" \t\r\n"); at != std::string::npos;) {
        const std::size_t end = std::min(flat.text.find_first_of(" \t\r\n", at), flat.text.size());
        PyValue word = empty_like(value);
        flat.copy(value, at, end, word);
        words.push_back(std::move(word));
        at = flat.text.find_first_not_of(" \t\r\n", end);
    }
    return words;
}

PyValue py_joined(const std::vector<PyValue>& items, const PyValue& by, bool open) {
    PyValue made = PyValue::of(PyValue::Kind::text, by.span);
    if (!items.empty()) made.origin = items.front().origin;
    bool first = true;
    std::size_t grown = 0;
    for (const PyValue& item : items) {
        if ((grown += item.bytes() + by.bytes() + 1) > kMostGrown) return PyValue::unknown(by.span);
        if (!first) made.pieces.insert(made.pieces.end(), by.pieces.begin(), by.pieces.end());
        first = false;
        append_text(made, item, "word");
    }
    if (open) {
        if (!first) made.pieces.insert(made.pieces.end(), by.pieces.begin(), by.pieces.end());
        made.add_unknown("more", by.span);
    }
    return made;
}

}  // namespace stoker::lint
