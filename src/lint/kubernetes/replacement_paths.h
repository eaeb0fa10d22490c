// How a replacement of a kustomization names a place, and a part of the text that stands there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lint/node.h"

namespace stoker::lint {

// "a.b.[name=x].c\\.d": its keys.
std::vector<std::string> path_keys(std::string_view path);
// A part of a text between delimiters, or all of it.
std::string_view part_at(std::string_view text, std::string_view delimiter, std::size_t index);
// What stands at that part now put in its place; a part behind the last one is added.
std::string with_part(std::string_view text, std::string_view delimiter, std::size_t index, std::string_view part);
// `index` of the options of a source or a target.
std::size_t part_index(const Node* options);
// A name, or a pattern of the whole of it.
bool name_fits(std::string_view wanted, std::string_view name);

}  // namespace stoker::lint
