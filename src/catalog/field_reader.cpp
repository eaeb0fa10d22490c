#include "catalog/field_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

std::string in_quotes(FieldReader::Names names) {
    return fmt::format("\"{}\"", *names.begin());
}

// A number, or text that is one: az writes "8" as often as 8.
std::optional<double> as_number(const Node& node) {
    if (node.kind == NodeKind::number) return node.number;
    if (node.kind != NodeKind::string) return std::nullopt;
    const std::string_view text = trim(node.text);
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

const Node* FieldReader::find(Names names) const {
    for (std::string_view name : names) {
        const Node* value = node_.find(name);
        if (value != nullptr && value->kind != NodeKind::null) return value;
    }
    return nullptr;
}

std::optional<double> FieldReader::number(Names names, double low, double high) {
    const Node* value = find(names);
    if (value == nullptr) return std::nullopt;
    const std::optional<double> read = as_number(*value);
    if (!read || !std::isfinite(*read)) {
        problem(fmt::format("{} is {}, not a number", in_quotes(names),
                            value->is_scalar() ? fmt::format("\"{}\"", printable(value->text, 40))
                                               : std::string(to_string(value->kind))),
                value);
        return std::nullopt;
    }
    if (*read < low || *read > high) {
        problem(fmt::format("{} is {}; {} to {} is possible", in_quotes(names), printable(value->text, 40), low, high),
                value);
        return std::nullopt;
    }
    return read;
}

std::optional<int> FieldReader::integer(Names names, int low, int high) {
    const std::optional<double> value = number(names, low, high);
    if (!value) return std::nullopt;
    if (*value != std::floor(*value)) {
        problem(fmt::format("{} is {}, not a whole number", in_quotes(names), *value), find(names));
        return std::nullopt;
    }
    return static_cast<int>(*value);
}

std::optional<bool> FieldReader::boolean(Names names) {
    const Node* value = find(names);
    if (value == nullptr) return std::nullopt;
    if (value->kind == NodeKind::boolean) return value->boolean;
    if (value->is_scalar()) {
        for (std::string_view yes : {"yes", "true", "on"}) {
            if (equals_ignore_case(value->text, yes)) return true;
        }
        for (std::string_view no : {"no", "false", "off"}) {
            if (equals_ignore_case(value->text, no)) return false;
        }
    }
    problem(fmt::format("{} is neither yes nor no", in_quotes(names)), value);
    return std::nullopt;
}

std::optional<std::string> FieldReader::text(Names names) {
    const Node* value = find(names);
    if (value == nullptr) return std::nullopt;
    if (!value->is_scalar()) {
        problem(fmt::format("{} is {}, not text", in_quotes(names), to_string(value->kind)), value);
        return std::nullopt;
    }
    return value->text;
}

int FieldReader::required_integer(Names names, int low, int high) {
    if (!has(names)) problem(fmt::format("{} is missing", in_quotes(names)));
    return integer(names, low, high).value_or(0);
}

double FieldReader::required_number(Names names, double low, double high) {
    if (!has(names)) problem(fmt::format("{} is missing", in_quotes(names)));
    return number(names, low, high).value_or(0);
}

std::string FieldReader::required_text(Names names) {
    if (!has(names)) problem(fmt::format("{} is missing", in_quotes(names)));
    return text(names).value_or(std::string());
}

void FieldReader::problem(std::string message, const Node* at, std::string remedy) {
    problems_.push_back(Problem{std::move(message), std::move(remedy), at != nullptr ? at->pos : node_.pos});
}

Error error_of(Problems problems) {
    constexpr std::size_t most = 20;
    if (problems.size() > most) {
        const std::size_t rest = problems.size() - most;
        problems.resize(most);
        problems.push_back(Problem{fmt::format("and {} more like these", rest), {}, {}});
    }
    return Error(ErrorKind::invalid, std::move(problems));
}

Result<const Node*> list_of(const Node& root, std::string_view member, std::string_view what) {
    if (root.is_sequence()) return &root;
    if (root.is_mapping()) {
        const Node* list = root.find(member);
        if (list != nullptr && list->is_sequence()) return list;
        return Error(ErrorKind::invalid, fmt::format("this is not {}: no list \"{}\" in it", what, member),
                     list != nullptr ? list->pos : root.pos);
    }
    return Error(ErrorKind::invalid,
                 fmt::format("this is not {}: {} where a list was expected", what, to_string(root.kind)), root.pos);
}

}  // namespace stoker
