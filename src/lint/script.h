// What a shell script says, without running it: words with their quotes, assignments, heredocs, and the directives of
// batch schedulers. Control flow is ignored: a variable that is given two different values is unknown where one is
// needed.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lint/value.h"

namespace stoker::lint {

struct Redirect {
    std::string_view op;   // ">", ">>", "<", "<<", "<<-", "<<<", "&>"
    Value target;          // the file; of a heredoc its delimiter
    Span body;             // of a heredoc: its lines, without the one of the delimiter
    bool literal = false;  // of a heredoc: the delimiter is quoted, nothing is expanded
};

struct Assignment {
    std::string_view name;
    Value value;               // of an array: the first element
    std::vector<Value> items;  // of an array
    bool exported = false, appends = false;
    bool array = false;
    bool in_condition = false;  // inside if/case/while, or behind && or ||
    Span span;                  // name through value
};

// One simple command with what stands before and behind its words.
struct Command {
    std::vector<Value> words;             // words[0] names the program; "${array[@]}" is spread where it is known
    std::vector<Assignment> assignments;  // X=1 before the words: only for this command
    std::vector<Redirect> redirects;
    Span span;                                       // first word (or assignment) through last
    int pipeline = 0;                                // commands joined by | have the same number
    int list = 0;                                    // commands joined by && or || have the same number
    bool in_function = false, in_condition = false;  // between the braces of f(), inside if/case/while
    bool in_substitution = false;                    // inside $( ) or ` `
    bool in_background = false;                      // ends with &
    std::string_view name() const { return words.empty() || !words[0].known() ? std::string_view() : words[0].text; }
};

// #SBATCH --gres=gpu:8, #PBS -l select=2, #$ -pe mpi 8
struct Directive {
    std::string_view prefix;  // "#SBATCH"
    std::string_view option;  // canonical, without dashes: "cpus-per-task" for -c too; as written when not known
    Value value;              // absent for switches
    Span span;                // of the option through its value
    Span line;
    bool after_command = false;  // the scheduler no longer reads it here
    bool malformed = false;      // "# SBATCH", an option that sbatch does not have
    bool separator = false;      // hetjob: what follows is another part of the job
    std::string_view expected;   // what sbatch wants as its value, where it refuses the one that is written
};

class File;
class ShellValues;

struct Script {
    Span shebang;                         // the whole line; empty: there is none
    std::string_view interpreter;         // "bash", "sh", "python3"; empty without shebang
    std::vector<Command> commands;        // in the order written, those of heredocs and strings not among them
    std::vector<Assignment> assignments;  // all that stand for themselves (also export, declare), in the order written
    std::vector<Directive> directives;
    std::vector<Span> broken_continuations;  // a backslash followed by blanks or a comment
    Span error;                              // where the text cannot be a script; `error_message` says why
    std::string_view error_message;
    std::vector<File*> sourced;                   // neighbours that it sources
    std::optional<std::vector<Value>> arguments;  // $1 and on, of a script that is read as another one runs it
    std::shared_ptr<ShellValues> values;          // while the file is read: what its variables come to

    bool empty() const { return commands.empty() && assignments.empty() && directives.empty(); }
    // The value of the variable when all assignments agree (or there is one); absent, or unknown when they differ.
    Value variable(std::string_view name) const;
};

}  // namespace stoker::lint
