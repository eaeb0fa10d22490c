// What published training scripts fix and rows of their results leave out: tokens of a sequence, and whether batches
// are counted in tokens. data/calibration/scripts.tsv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::validate {

struct Script {
    std::string model;               // of the catalogue
    std::vector<std::string> words;  // all of them stand in the framework, the source or the name of the row
    double tokens = 0;               // of one sequence or sample
    bool batch_in_tokens = false;
};

class Scripts {
public:
    static Result<Scripts> embedded();
    static Result<Scripts> read(std::string_view text, FileName file);

    // The first script of the model whose words are all in the text.
    const Script* find(std::string_view model, std::string_view text) const;

private:
    std::vector<Script> all_;
};

}  // namespace stoker::validate
