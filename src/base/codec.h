// Structs to canonical JSON and back, for the journal, snapshots and specs. A struct names its fields once:
//     template <class V>
//     void fields(V& visit, Lease& lease) {
//         visit("stop_at_us", lease.stop_at_us);
//     }
// and an enum its words: `constexpr std::array kNames...; auto enum_names(E)`. Keys are written in sorted order,
// numbers are integers. Empty texts, maps and optionals are left out and read back as empty; everything else is always
// written, so that a default that changes later does not change what was recorded.
//
// Journals and snapshots are written and read without a tree in between (encode, decode); whatever is not exactly as we
// write it goes through Document, which says where it is wrong. All of it works on shapes (base/shape.h): what a struct
// adds to a build is its list of fields, once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/shape.h"
#include "base/table.h"

namespace stoker::codec {

Json write_shaped(const void* value, const Shape& shape);
void read_shaped(const Node& node, std::string_view key, void* value, const Shape& shape, Problems& problems);
// Appends what write_shaped().dump(0) would be. False when a list of fields is not sorted: that text is of no use.
bool append_shaped(std::string& out, const void* value, const Shape& shape);
std::string encode_shaped(const void* value, const Shape& shape);
// A text exactly as we write it: no space, keys in our order, nothing unknown. False from the first thing that is not
// so; what was read until then is of no use.
bool decode_exactly(std::string_view text, void* value, const Shape& shape);
// `value` is as it was made. The texts of problems begin with `what`.
Status decode_document(std::string_view text, std::string what, const ReadLimits& limits, void* value,
                       const Shape& shape);

void unknown_keys(const Node& node, const std::vector<std::string_view>& known, Problems& problems);

template <class T>
Json write(const T& value) {
    return write_shaped(&value, kShape<T>);
}

// Every problem is added with its place; what cannot be read keeps its default.
template <class T>
void read(const Node& node, std::string_view key, T& value, Problems& problems) {
    read_shaped(node, key, &value, kShape<T>, problems);
}

template <class T>
std::string encode(const T& value) {
    return encode_shaped(&value, kShape<T>);
}

// `what` names the text in problems: "record 17", "request".
template <class T>
Result<T> decode(std::string_view text, std::string what, const ReadLimits& limits = {}) {
    if (T value{}; text.size() <= limits.max_bytes && decode_exactly(text, &value, kShape<T>)) return value;
    T value{};
    TRY_VOID(decode_document(text, std::move(what), limits, &value, kShape<T>));
    return value;
}

}  // namespace stoker::codec
