// multipart/form-data (RFC 7578) of a body that is whole: its parts as they lie there. Nothing is copied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::wire {

struct FormPart {
    std::string name, filename;
    std::string_view content;
};
// Nothing: the type names no boundary, or the body is not closed by it, or a part has no name.
std::optional<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body);

}  // namespace stoker::wire
