// One #SBATCH line as sbatch reads it: its own tokenizer (get_argument of sbatch's opt.c), then getopt_long.
#pragma once

#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>

#include "formats/sbatch_options.h"

namespace stoker::sbatch {

// The options begin behind it; sbatch wants no blank there. Empty: the line is no directive.
std::string_view directive_prefix(std::string_view line);

enum class Fault : std::uint8_t {
    none,
    no_option,      // a word that is none, or one behind "--"
    unknown,        // or the beginning of several
    no_value,       // none on this line; sbatch would take the first word of the next directive
    surplus_value,  // --hold=x
    open_quote      // a quote that does not end
};

// Places are offsets of the text that was given. Views live as long as the text and the reader.
struct Argument {
    Fault fault = Fault::none;
    Found found;             // none for unknown ones and those of plug-ins
    bool separator = false;  // hetjob: what follows is another part of the job
    bool letter = false;     // -N
    std::string_view name;   // as written, without dashes; of no_option the word
    bool has_value = false;
    bool spaced = false;                           // the value is a word of its own
    std::string_view value;                        // without quotes and backslashes
    std::uint32_t begin = 0, end = 0;              // of the option through its value
    std::uint32_t value_begin = 0, value_end = 0;  // within its quotes
};

class LineReader {
public:
    // [at, end) of `text` is what follows #SBATCH.
    LineReader(std::string_view text, std::uint32_t at, std::uint32_t end) : text_(text), at_(at), end_(end) {}
    bool next(Argument& argument);

private:
    struct Word {
        std::uint32_t begin = 0, end = 0;
        std::string_view text;
        bool open_quote = false;
    };
    void skip_blanks();
    bool word(Word& word);  // false: the line is at its end
    void take_value(Argument& argument, const Word& from, std::size_t skipped);
    void long_option(Argument& argument, const Word& word);
    void letter_option(Argument& argument);

    std::string_view text_;
    std::uint32_t at_, end_;
    bool only_words_ = false;  // behind "--"
    Word letters_;             // of -HQ what is still to be read
    std::size_t letter_ = 0;
    std::forward_list<std::string> kept_;  // words that are not as written
};

}  // namespace stoker::sbatch
