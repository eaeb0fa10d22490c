// How the saved answers of Azure are taken apart, by whichever file reads one of them.
#pragma once

#include "catalog/azure_answers.h"

namespace stoker {

std::string region_name(std::string_view written);  // "East US" and "EastUS" are eastus
void sort_unique(std::vector<std::string>& strings);
bool contains_word(std::string_view text, std::string_view word);
const Node* text_member(const Node& node, std::string_view key);
// The rows of an answer, or what the file is instead: another answer, an error of Azure's, the columns that a --query
// left over.
Result<const Node*> rows_of(const Node& root, std::string_view member, AzureAnswer wanted);

}  // namespace stoker
