// Values in other tools' ways of writing: a day of the calendar where a duration stands, 24:00:00, Gbit/s, "stage 3".
// Each refusal says what to write; what could be read in two ways and was read in one is told.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "base/table.h"

namespace stoker {

// Adds what to write to refusals of values that have no such word yet.
void answer_foreign_values(const Node& root, Problems& problems);

// Of a file that was taken: amounts that others read otherwise, and how they were read here.
std::vector<std::string> amounts_read_one_way(const Node& root);

// 10Gb/s, 100Gbps, 25 Gbit/s: what it is in bytes ("1.25GB/s"); empty: no such amount.
std::string bits_per_second_in_bytes(std::string_view text);

}  // namespace stoker
