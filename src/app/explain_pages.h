// The pages of stoker explain: short texts of data/explain, embedded in the binary, found by name or alias.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/style.h"
#include "catalog/catalog.h"

namespace stoker {

// A file NAME.txt: "# Title", "aliases: a, b", "group: G", then text in a small part of Markdown.
struct ExplainPage {
    std::string name, title, group;
    std::vector<std::string> aliases;
    std::string_view body;
};
const std::vector<ExplainPage>& explain_pages();  // sorted by name
// By name or alias; case and separators are ignored. An unknown topic names the nearest one.
Result<const ExplainPage*> find_page(std::string_view topic);
// "## heading", paragraphs, "- lists", "| tables |", **bold** and lines indented by four blanks; nothing else.
std::string render_page(std::string_view body, const Style& style);
// What the catalogue knows about the topic, such as the tensor : CUDA ratio of every GPU. Empty for most pages.
std::string facts_of_page(std::string_view name, const Catalog& catalog, const Style& style);

// A widely repeated figure that is wrong, from data/explain/corrections.tsv.
struct Correction {
    std::string size, said, right, source;
};
const std::vector<Correction>& corrections();
std::vector<Correction> corrections_of(std::string_view size);

}  // namespace stoker
