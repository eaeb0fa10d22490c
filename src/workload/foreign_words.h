// Keys and values that people bring from other tools and that the workload file does not have: each is answered with
// what to write in its place.
#pragma once

#include <vector>

#include "base/document.h"
#include "base/table.h"
#include "workload/foreign_values.h"

namespace stoker {

// Puts the answers in place of what the tables say of such words: of a key they do not know, and of amounts they cannot
// read. Where nothing was said against a word, nothing is.
void answer_foreign_words(const Node& root, Problems& problems);

}  // namespace stoker
