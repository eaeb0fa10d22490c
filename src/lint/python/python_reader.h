// Follows a file of Python as far as it says what is started: constants, parameters with defaults, lists of words,
// texts that are put together, environments, functions of its own. Nothing is run; what rests on anything else is
// unknown. Expressions are in python_expressions.cpp, what calls give in python_calls.cpp, statements in
// python_statements.cpp, and what becomes of it all in read_python.cpp.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/python/python_tokens.h"
#include "lint/python/python_value.h"
#include "lint/read.h"

namespace stoker::lint {

class PythonReader {
public:
    PythonReader(File& file, const ReadOptions& options);
    void run();

private:
    // A module that `importer` takes in: its values and functions, nothing told of it.
    PythonReader(const PythonReader& importer, std::string text, std::string folder);
    struct Cursor {
        const std::vector<PyToken>* tokens;
        std::uint32_t at, last;
        bool end() const { return at >= last; }
    };
    struct Parameter {
        std::string name;
        Cursor fallback;  // empty: none
    };
    struct Function {
        std::vector<Parameter> parameters;
        std::uint32_t first = 0, last = 0;  // lines of its body
        bool method = false;
    };
    struct Scope {
        std::map<std::string, PyValue, std::less<>> values;
        std::vector<std::pair<std::string, PyValue>> environment;  // os.environ["X"] = ...
        std::uint32_t indent = 0;                                  // of its own statements
        bool is_class = false;
        std::string name;  // of a class
    };
    struct Call {
        std::string path;  // "subprocess.run", "' '.join" is ".join"
        PyValue* receiver = nullptr;
        std::vector<PyValue> arguments;
        std::vector<std::pair<std::string, PyValue>> named;
        bool open = false;  // *args
        Span span;

        const PyValue* argument(std::size_t at, std::string_view name) const;
    };

    // ---- python_expressions.cpp
    std::string_view text_of(const Cursor& in) const;
    bool is(const Cursor& in, std::string_view word) const;
    bool take(Cursor& in, std::string_view word) const;
    bool spent(Cursor& in);
    PyValue expression(Cursor& in, int least = 1, int depth = 0);
    PyValue unary(Cursor& in, int depth);
    PyValue primary(Cursor& in, int depth);
    PyValue postfix(Cursor& in, PyValue value, std::string path, int depth);
    PyValue combined(std::string_view sign, PyValue left, PyValue right);
    PyValue texts(Cursor& in, int depth);
    void decode(const PyToken& token, PyValue& to, int depth);
    void formatted(Span field, PyValue& to, int depth);
    PyValue bracket(Cursor& in, std::string_view close, int depth);
    PyValue braces(Cursor& in, int depth);
    PyValue indexed(const PyValue& value, const PyValue& index, Span span) const;
    void arguments(Cursor& in, Call& call, int depth);
    void skip_to(Cursor& in, std::string_view close) const;

    // ---- python_calls.cpp
    PyValue value_of_call(Call& call, int depth);
    PyValue text_method(const Call& call, std::string_view name) const;
    bool changes_variable(const Call& call, std::string_view name);
    PyValue filled_in(const Call& call) const;
    PyValue own_function(const Function& function, const Call& call, int depth);
    PyValue own_class(const Scope& fields, const Call& call) const;
    PyValue default_of(const Call& call, std::size_t at, std::string_view name) const;

    // ---- python_statements.cpp
    void learn_functions();
    void parameters(Cursor in, Function& function);
    // Statements of one block from line `first` on; the lines behind it. `returned`: where to put what it returns.
    void block(std::uint32_t first, std::uint32_t last, std::vector<PyValue>* returned, int depth);
    void statement(const PyLine& line, std::vector<PyValue>* returned, int depth);
    void assignment(Cursor target, std::string_view sign, PyValue value, int depth);
    bool environment_entry(const std::string& path, std::string_view key, const PyValue& value);
    void set(const std::string& name, PyValue value);
    PyValue* find(std::string_view name);
    std::uint32_t end_of_block(std::uint32_t line, std::uint32_t indent) const;
    void close_scope();

    // ---- python_imports.cpp
    PythonReader* module(std::string_view name);
    void import_statement(Cursor in);
    void take_from(PythonReader& from, const std::string& name, const std::string& as, Span span);
    PyValue imported_function(PythonReader& from, const std::string& name, const Call& call, int depth);

    // ---- read_python.cpp
    void called(const Call& call);
    void seen(std::string_view name, const PyValue& value);  // of a variable, or returned
    bool command(const PyValue& value, const PyValue* environment);
    bool batch_script(const PyValue& text);
    void settings(const PyValue& dict);  // of DeepSpeed, where it is such a dict
    void guest_of_settings(const PyValue& dict);

    File& file_;
    const ReadOptions& options_;
    std::string own_text_;  // of a module
    std::string_view all_;
    std::string folder_;  // of a module, from the folder of the file
    int import_depth_ = 0;
    PyTokens tokens_;
    std::map<std::string, Function, std::less<>> functions_;
    std::map<std::string, Scope, std::less<>> classes_;
    std::map<std::string, std::unique_ptr<PythonReader>, std::less<>> modules_;
    // Functions of modules by the name that they have here.
    std::map<std::string, std::pair<PythonReader*, std::string>, std::less<>> imported_;
    std::map<std::string, PyValue, std::less<>> arguments_;  // of argparse: what has a default
    std::vector<Scope> scopes_;                              // the file's own first
    std::set<std::string, std::less<>> changed_elsewhere_;   // global names that functions set
    int branches_ = 0;                                       // if, for, while, try around the statement
    int inlined_ = 0;                                        // within a function that is followed for its value
    bool telling_ = false;
    std::size_t steps_ = 0;

    struct Guest {
        std::string text;
        std::vector<Piece> pieces;

        void add(std::string_view bytes, Span host, bool verbatim = false);
    };
    void environment_lines(const PyValue* environment, Guest& to) const;
    static void shell_word(const PyValue& word, Guest& to);
    static void shell_text(const PyValue& text, Guest& to, bool template_text);
    static bool json_text(const PyValue& value, Guest& to, int depth);
    bool put_guest(std::uint32_t origin, Guest guest, Kinds kinds);
    std::set<std::pair<std::uint32_t, std::string>> put_;
    std::set<std::uint32_t> told_;               // origins of what a call was given
    std::map<std::uint32_t, PyValue> settings_;  // dicts for DeepSpeed, as they are in the end
};

}  // namespace stoker::lint
