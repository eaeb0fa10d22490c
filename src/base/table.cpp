// Longer than 500 lines because each kind of value is read, held against its bounds and answered for in one place.
#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

// A file of nothing but mistakes should not become a megabyte of messages.
constexpr std::size_t kMostProblems = 100;

void add_problem(Problems& problems, SourcePos pos, std::string message, std::string remedy = {}) {
    if (problems.size() == kMostProblems) problems.push_back({"more problems follow; these are the first", "", pos});
    if (problems.size() > kMostProblems) return;
    problems.push_back({std::move(message), std::move(remedy), pos});
}

std::string found(const Node& node) {
    switch (node.kind) {
        case NodeKind::string: return node.text.empty() ? "empty text" : "the text '" + printable(node.text, 40) + "'";
        case NodeKind::number: return "the number " + printable(node.text, 40);
        case NodeKind::boolean: return node.boolean ? "true" : "false";
        default: return std::string(to_string(node.kind));
    }
}

std::string expected(const FieldInfo& info) {
    const std::string such_as = info.example.empty() ? "" : " such as " + info.example;
    if (info.type == "one of" || info.type == "list of one of") return join_or(info.choices);
    if (info.type == "yes/no") return "yes or no";
    if (info.type == "text" || info.type == "bytes")
        return (info.type == "text" ? "text" : "an amount of memory") + such_as;
    if (info.type == "money") return "an amount of dollars" + such_as;
    return "a " + info.type + such_as;
}

void wrong_type(const Node& node, const FieldInfo& info, Problems& problems, std::string remedy = {}) {
    add_problem(problems, node.pos, fmt::format("{}: expected {}, found {}", info.key, expected(info), found(node)),
                std::move(remedy));
}

template <class Format>
bool check_bounds(const Node& node, const FieldInfo& info, double value, Problems& problems, Format format) {
    if (info.low == info.high || (value >= info.low && value <= info.high)) return true;
    const auto bounds = value < info.low ? "at least " + format(info.low) : "at most " + format(info.high);
    add_problem(problems, node.pos,
                fmt::format("{}: {} is out of bounds: it must be {}", info.key, printable(node.text, 40), bounds));
    return false;
}

// Counts are read back as they are shown: 8,192 and 70B.
std::string show_bound(double value) {
    if (value < 0) return "-" + show_bound(-value);
    return value != 0 && value < 1 ? fmt::format("{:g}", value) : format_count(value);
}

// One row of the dynamic programme of the Damerau-Levenshtein distance needs the two rows before it.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::string letters_of(std::string_view word) {
    std::string out;
    for (const char c : lower(word))
        if (c != '-' && c != '_' && c != ' ') out += c;
    return out;
}

Json bounded(Json schema, const FieldInfo& field) {
    if (field.low != field.high) schema.set("minimum", field.low).set("maximum", field.high);
    return schema;
}

Json typed(const char* type) {
    return Json::object().set("type", type);
}
Json pattern(const char* regex) {
    return typed("string").set("pattern", regex);
}
Json any_of(Json::Array forms) {
    return Json::object().set("anyOf", Json(std::move(forms)));
}
// Words are read without regard to case and to separators, and a pattern has no flags in JSON Schema.
std::string any_spelling(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += out.empty() ? "" : "|";
        for (const char c : word) {
            const std::string small = lower(std::string_view(&c, 1)), large = upper(small);
            if (c == '-' || c == '_' || c == ' ')
                out += "[-_ ]?";
            else if (small != large)
                out += "[" + small + large + "]";
            else
                out += c == '.' ? std::string("[.]") : std::string(1, c);
        }
    }
    return out;
}

// An editor offers the words of the enum; the pattern keeps it from marking other spellings.
Json one_of(const std::vector<std::string>& choices) {
    Json names = Json::array();
    for (const std::string& choice : choices) {
        // `version: 1` is a number to every reader of YAML but ours.
        if (!choice.empty() && choice.find_first_not_of("0123456789") == std::string::npos)
            names.push(std::stoi(choice));
        names.push(choice);
    }
    return any_of(
        {Json::object().set("enum", std::move(names)), pattern(("^ *(" + any_spelling(choices) + ") *$").c_str())});
}

Json record_schema(const RecordInfo& info);

#define NUMBER_PATTERN "([0-9][0-9_,]*)?(\\.?[0-9]+)([eE][+-]?[0-9]+)?"
Json field_schema(const FieldInfo& field) {
    const std::string& type = field.type;
    if (type == "count" || type == "whole number") {
        Json number = bounded(typed(type == "count" ? "number" : "integer"), field);
        return any_of(
            {std::move(number), pattern(("^ *" NUMBER_PATTERN " *([kKmMbBtT]|" +
                                         any_spelling({"thousand", "million", "billion", "trillion"}) + ")? *$")
                                            .c_str())});
    }
    if (type == "number") return bounded(typed("number"), field);
    if (type == "bytes per second")
        return pattern("^ *" NUMBER_PATTERN " *([kKmMgGtTpP][iI]?[bB]|[kKmMgGtTpP][iI]|[bB]|bytes?) *(/s)?$");
    if (type == "bytes")
        return pattern("^ *(0|" NUMBER_PATTERN " *([kKmMgGtTpP][iI]?[bB]|[kKmMgGtTpP][iI]|[bB]|bytes?)) *$");
    if (type == "duration")
        return any_of({Json::object().set("const", 0), pattern("^ *(0|(" NUMBER_PATTERN " *[a-zA-Z]+ *)+)$")});
    if (type == "money")
        return any_of({bounded(typed("number"), field),
                       pattern("^ *\\$? *" NUMBER_PATTERN " *[a-zA-Z]* *([uU][sS][dD]|dollars?)? *$")});
    if (type == "text") return Json::object().set("type", Json::array().push("string").push("number"));
    if (type == "yes/no") return typed("boolean");
    if (type == "one of") return one_of(field.choices);
    const auto list_or_one = [](Json item) {
        Json list = typed("array").set("items", item);
        return any_of({std::move(item), std::move(list)});
    };
    if (type == "list of one of") return list_or_one(one_of(field.choices));
    if (type == "list of text")
        return list_or_one(Json::object().set("type", Json::array().push("string").push("number")));
    if (type == "text or list of text")
        return list_or_one(Json::object().set("type", Json::array().push("string").push("number").push("boolean")));
    if (type == "mapping of text")
        return typed("object").set(
            "additionalProperties",
            Json::object().set("type", Json::array().push("string").push("number").push("boolean")));
    if (type == "mapping of lists")
        return typed("object").set("minProperties", 1).set("additionalProperties", typed("array").set("minItems", 1));
    if (type == "list of whole number") return list_or_one(bounded(typed("integer"), field));
    if (field.record != nullptr) {
        Json record = record_schema(*field.record);
        return type.starts_with("list of ") ? typed("array").set("items", std::move(record)) : record;
    }
    return Json::object();  // a custom form: anything
}
#undef NUMBER_PATTERN

Json record_schema(const RecordInfo& info) {
    Json properties = Json::object(), required = Json::array();
    bool any_required = false;
    for (const FieldInfo& field : info.fields) {
        Json schema = field_schema(field);
        // A key without a value counts as not written.
        if (!field.required) schema = any_of({std::move(schema), typed("null")});
        if (!field.description.empty()) schema.set("description", field.description);
        if (!field.example.empty()) schema.set("examples", Json::array().push(field.example));
        properties.set(field.key, std::move(schema));
        if (field.required) required.push(field.key);
        any_required = any_required || field.required;
    }
    Json schema = typed("object");
    schema.set("title", info.name).set("description", info.description).set("properties", std::move(properties));
    if (any_required) schema.set("required", std::move(required));
    schema.set("additionalProperties", false);
    if (info.shorthand.empty()) return schema;
    Json text = Json::object().set("type", Json::array().push("string").push("number"));
    text.set("description", join(info.shorthand, "; "));
    return any_of({std::move(text), std::move(schema)});
}

std::string cell(std::string_view text) {
    return replace_all(replace_all(text, "|", "\\|"), "\n", " ");
}

std::string type_in_words(const FieldInfo& field) {
    if (field.type == "one of") return join_or(field.choices);
    if (field.type == "list of one of") return "list of " + join_or(field.choices);
    if (field.record != nullptr)
        return fmt::format("[{}](#{})", field.type, replace_all(lower(field.record->name), " ", "-"));
    if (field.low == field.high) return field.type;
    if (field.type == "bytes")
        return fmt::format("bytes, {} to {}", format_bytes_gib(Bytes(field.low)), format_bytes_gib(Bytes(field.high)));
    if (field.type == "duration")
        return fmt::format("duration, {} to {}", format_seconds(Seconds(field.low)),
                           format_seconds(Seconds(field.high)));
    return fmt::format("{}, {} to {}", field.type, show_bound(field.low), show_bound(field.high));
}

void append_reference(std::string& out, const RecordInfo& info, std::vector<std::string>& written) {
    if (std::find(written.begin(), written.end(), info.name) != written.end()) return;
    written.push_back(info.name);
    out += fmt::format("{}## {}\n\n{}\n", out.empty() ? "" : "\n", info.name, info.description);
    if (!info.shorthand.empty())
        out += fmt::format("\nInstead of the keys below: {}.\n", join(info.shorthand, "; or "));
    out += "\n| Key | Type | Required | Description | Example |\n|---|---|---|---|---|\n";
    for (const FieldInfo& field : info.fields) {
        const std::string example = field.example.empty() ? "" : "`" + cell(field.example) + "`";
        out += fmt::format("| `{}` | {} | {} | {} | {} |\n", field.key, cell(type_in_words(field)),
                           field.required ? "yes" : "", cell(field.description), example);
    }
    for (const FieldInfo& field : info.fields)
        if (field.record != nullptr) append_reference(out, *field.record, written);
}

}  // namespace

std::vector<std::string> RecordInfo::keys() const {
    std::vector<std::string> out;
    for (const FieldInfo& field : fields) out.push_back(field.key);
    return out;
}

Json RecordInfo::json_schema() const {
    Json schema = Json::object().set("$schema", "https://json-schema.org/draft/2020-12/schema");
    const Json record = record_schema(*this);
    for (const auto& [key, value] : std::get<Json::Object>(record.value())) schema.set(key, value);
    return schema;
}

std::string RecordInfo::reference_markdown() const {
    std::string out;
    std::vector<std::string> written;
    append_reference(out, *this, written);
    return out;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
    // Distances grow with the product of the lengths, and nobody mistypes a word of more than 80 letters.
    if (word.empty() || word.size() > 80) return std::nullopt;
    const std::string letters = letters_of(word);
    // A word that was cut short is meant whole: requests_per_s, prompt. Of several, the shortest.
    constexpr std::size_t kLeastLetters = 4;
    const std::string* whole = nullptr;
    for (const std::string& candidate : known)
        if (letters.size() >= kLeastLetters && candidate.size() > letters.size() &&
            letters_of(candidate).starts_with(letters) && (whole == nullptr || candidate.size() < whole->size()))
            whole = &candidate;
    if (whole != nullptr) return *whole;
    const std::size_t most = std::max<std::size_t>(1, letters.size() / 3);
    std::size_t best = most + 1;
    const std::string* found_word = nullptr;
    for (const std::string& candidate : known) {
        const std::string other = letters_of(candidate);
        if (other.size() > letters.size() + most || letters.size() > other.size() + most) continue;
        const std::size_t distance = edit_distance(letters, other);
        // One letter is as far from one other letter as can be: at least half of the word has to agree.
        if (distance >= best || distance * 2 > std::max(letters.size(), other.size())) continue;
        best = distance;
        found_word = &candidate;
    }
    return found_word == nullptr ? std::nullopt : std::optional(*found_word);
}

namespace {

// The key that goes by this name here, or in a mapping further in: "sequence" at the top of a workload is
// data.sequence.
std::optional<std::string> path_of(const std::string& letters, const RecordInfo& info, int depth) {
    constexpr int kDeepest = 3;
    if (letters.empty() || depth > kDeepest) return std::nullopt;
    for (const FieldInfo& field : info.fields) {
        const auto is_it = [&](const std::string& name) {
            const std::string other = letters_of(name);
            return other == letters || other == letters + "s";
        };
        if (is_it(field.key) || std::any_of(field.other_names.begin(), field.other_names.end(), is_it))
            return field.key;
    }
    for (const FieldInfo& field : info.fields) {
        if (field.record == nullptr) continue;
        if (const auto inner = path_of(letters, *field.record, depth + 1)) return field.key + "." + *inner;
    }
    return std::nullopt;
}

// "objective.latency.p95" -> "write objective: {latency: {p95: ...}}"; nothing for a key that stands where it belongs.
std::string as_written(std::string_view path) {
    std::string out, close;
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
        out += fmt::format("{}: {{", path.substr(0, dot));
        close += '}';
        path.remove_prefix(dot + 1);
    }
    return close.empty() ? "" : fmt::format("write {}{}: ...{}", out, path, close);
}

}  // namespace

namespace table_detail {

bool read_number(const Node& node, const FieldInfo& info, double& out, Problems& problems) {
    double value = 0;
    if (node.kind == NodeKind::number) {
        value = node.number;
        const bool any_sign = info.type == "number" || info.low < 0;
        if (value < 0 && !any_sign) {
            add_problem(problems, node.pos,
                        fmt::format("{}: {} must not be negative", info.key, printable(node.text, 40)));
            return false;
        }
    } else if (node.kind == NodeKind::string && info.type != "number" && !node.text.empty()) {
        auto parsed = parse_count(node.text);
        if (!parsed) {
            add_problem(problems, node.pos, info.key + ": " + parsed.error().message());
            return false;
        }
        value = *parsed;
    } else {
        wrong_type(node, info, problems);
        return false;
    }
    if (std::fabs(value) > 1e24) {
        add_problem(problems, node.pos,
                    fmt::format("{}: {} is out of range (at most 1e24)", info.key, printable(node.text, 40)));
        return false;
    }
    if (info.type == "whole number" && value != std::floor(value)) {
        add_problem(problems, node.pos,
                    fmt::format("{}: expected a whole number, found {}", info.key, printable(node.text, 40)));
        return false;
    }
    if (!check_bounds(node, info, value, problems, show_bound)) return false;
    out = value;
    return true;
}

bool read_bytes(const Node& node, const FieldInfo& info, double& out, Problems& problems) {
    if ((node.kind != NodeKind::string && node.kind != NodeKind::number) || node.text.empty()) {
        wrong_type(node, info, problems);
        return false;
    }
    auto parsed = parse_bytes(node.text);
    if (!parsed) {
        add_problem(problems, node.pos, info.key + ": " + parsed.error().message());
        return false;
    }
    if (!check_bounds(node, info, parsed->v, problems, [](double v) { return format_bytes_gib(Bytes(v)); }))
        return false;
    out = parsed->v;
    return true;
}

bool read_seconds(const Node& node, const FieldInfo& info, double& out, Problems& problems) {
    if ((node.kind != NodeKind::string && node.kind != NodeKind::number) || node.text.empty()) {
        wrong_type(node, info, problems);
        return false;
    }
    auto parsed = parse_seconds(node.text);
    if (!parsed) {
        add_problem(problems, node.pos, info.key + ": " + parsed.error().message());
        return false;
    }
    if (!check_bounds(node, info, parsed->v, problems, [](double v) { return format_seconds(Seconds(v)); }))
        return false;
    out = parsed->v;
    return true;
}

bool read_usd(const Node& node, const FieldInfo& info, Usd& out, Problems& problems) {
    if ((node.kind != NodeKind::string && node.kind != NodeKind::number) || node.text.empty()) {
        wrong_type(node, info, problems);
        return false;
    }
    auto parsed = parse_usd(node.text);
    if (!parsed) {
        add_problem(problems, node.pos, info.key + ": " + parsed.error().message());
        return false;
    }
    if (!check_bounds(node, info, parsed->dollars(), problems,
                      [](double v) { return format_usd(Usd::from_double(v)); }))
        return false;
    out = *parsed;
    return true;
}

bool read_text(const Node& node, const FieldInfo& info, std::string& out, Problems& problems) {
    // version: 12 is text to the person who wrote it.
    if (node.kind == NodeKind::string || node.kind == NodeKind::number) {
        out = node.text;
        return true;
    }
    wrong_type(node, info, problems,
               node.kind == NodeKind::boolean ? "put it in quotes if the word itself is meant" : "");
    return false;
}

bool read_flag(const Node& node, const FieldInfo& info, bool& out, Problems& problems) {
    if (node.kind == NodeKind::boolean) {
        out = node.boolean;
        return true;
    }
    // YAML 1.2 has only true and false; people, and YAML 1.1, write yes and no as well.
    const std::string word = node.kind == NodeKind::string ? lower(node.text) : "";
    for (const std::string_view yes : {"yes", "on", "true"})
        if (word == yes) return out = true, true;
    for (const std::string_view no : {"no", "off", "false"})
        if (word == no) return out = false, true;
    wrong_type(node, info, problems, {});
    return false;
}

bool read_choice(const Node& node, const FieldInfo& info, std::size_t& out, Problems& problems) {
    if (!node.is_scalar() || node.text.empty()) {
        wrong_type(node, info, problems);
        return false;
    }
    const std::string letters = letters_of(node.text);
    for (std::size_t i = 0; i < info.choices.size(); ++i) {
        if (letters_of(info.choices[i]) != letters) continue;
        out = i;
        return true;
    }
    const auto near = nearest(node.text, info.choices);
    const std::string hint = near ? fmt::format(" (did you mean {}?)", *near) : "";
    add_problem(
        problems, node.pos,
        fmt::format("{}: expected {}, found '{}'{}", info.key, join_or(info.choices), printable(node.text, 40), hint));
    return false;
}

bool expect_mapping(const Node& node, const RecordInfo& info, std::string_view key, Problems& problems) {
    if (node.is_mapping()) return true;
    const std::string or_else = info.shorthand.empty() ? "" : ", or " + join(info.shorthand, ", or ");
    add_problem(problems, node.pos, fmt::format("{}: expected a mapping{}, found {}", key, or_else, found(node)),
                "its keys are " + join(info.keys(), ", "));
    return false;
}

std::vector<const Node*> items_of(const Node& node, const FieldInfo& info, bool scalar_is_item, Problems& problems) {
    std::vector<const Node*> items;
    if (node.is_sequence()) {
        for (const auto& item : node.items) items.push_back(item.get());
    } else if (scalar_is_item && node.is_scalar()) {
        items.push_back(&node);
    } else {
        wrong_type(node, info, problems);
    }
    return items;
}

namespace {
thread_local const RecordInfo* outermost_record = nullptr;
}

OutermostRecord::OutermostRecord(const RecordInfo& info) : own_(outermost_record == nullptr) {
    if (own_) outermost_record = &info;
}
OutermostRecord::~OutermostRecord() {
    if (own_) outermost_record = nullptr;
}

void report_unknown_keys(const Node& node, const RecordInfo& info, Problems& problems) {
    const std::vector<std::string> known = info.keys();
    for (const Member& member : node.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        auto meant = path_of(letters_of(member.key), info, 0);
        std::string hint;
        if (const auto elsewhere = meant || outermost_record == nullptr
                                       ? std::nullopt
                                       : path_of(letters_of(member.key), *outermost_record, 0)) {
            meant = elsewhere;
            if (elsewhere->find('.') == std::string::npos)
                hint = fmt::format(" ({} belongs at the top, outside of {})", *elsewhere, info.name);
        }
        if (!meant) meant = nearest(member.key, known);
        if (meant && hint.empty()) hint = fmt::format(" (did you mean {}?)", *meant);
        add_problem(problems, member.key_pos,
                    fmt::format("unknown key '{}' in {}{}", printable(member.key, 60), info.name, hint),
                    meant ? as_written(*meant) : "known keys: " + join(known, ", "));
        if (problems.size() > kMostProblems) return;
    }
}

void report_missing(const Node& node, const RecordInfo& info, const FieldInfo& field, Problems& problems) {
    const std::string remedy =
        field.example.empty() ? "" : fmt::format("add for example {}: {}", field.key, field.example);
    const std::string what = field.description.empty() ? "" : fmt::format(" ({})", field.description);
    add_problem(problems, node.pos, fmt::format("{} needs the key {}{}", info.name, field.key, what), remedy);
}

}  // namespace table_detail
}  // namespace stoker
