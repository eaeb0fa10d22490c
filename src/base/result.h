// Result<T>: a value, or an Error that a person can act on. No exceptions cross a module's border.
// std::expected is missing from g++ 12's C++20 and unreadable to clang 14; this is the small part of it that Stoker
// uses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stoker {

// A string_view that lives as long as the program: equal names share one copy, so that the million positions of a large
// file cost 16 bytes each and can outlive their Document. The copies are never freed: use it for names, not for
// contents.
class FileName : public std::string_view {
public:
    FileName() = default;
    FileName(std::string_view name);
    FileName(const std::string& name) : FileName(std::string_view(name)) {}
    FileName(const char* name) : FileName(std::string_view(name)) {}
    std::string_view view() const { return *this; }
    // All four, since std::string_view's own are as good a match for some mixes and the call would be ambiguous.
    friend bool operator==(FileName a, FileName b) { return a.view() == b.view(); }
    friend bool operator==(FileName a, std::string_view b) { return a.view() == b; }
    friend bool operator==(FileName a, const std::string& b) { return a.view() == b; }
    friend bool operator==(FileName a, const char* b) { return a.view() == std::string_view(b); }
};

// A place in something the user wrote. line and column start at 1; 0 means unknown. Columns count bytes.
struct SourcePos {
    FileName file{};
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    bool known() const { return line != 0 || !file.empty(); }
    std::string text() const;  // "workload.yaml:7:12"
    friend bool operator==(const SourcePos&, const SourcePos&) = default;
};

// A new kind is added only when some caller would act differently on it.
enum class ErrorKind : std::uint8_t {
    invalid,
    not_found,
    conflict,
    denied,
    exhausted,
    unavailable,
    timed_out,
    unsupported,
    infeasible,  // the question was understood and the answer is no
    internal
};
std::string_view to_string(ErrorKind kind);
// 0 is success and never comes from here: 1 the answer is no; 2 input or usage; 3 something outside; 4 a bug of ours.
int exit_code(ErrorKind kind);

// One thing that is wrong, with its place and what to do about it.
struct Problem {
    std::string message{};
    std::string remedy{};  // what to do; empty when the message says it already
    SourcePos pos{};
};

// One or more problems of one kind, with what was being done when they were found, innermost first.
class Error {
public:
    Error(ErrorKind kind, std::string message, SourcePos pos = {}, std::string remedy = {});
    Error(ErrorKind kind, std::vector<Problem> problems);

    ErrorKind kind() const { return kind_; }
    const std::vector<Problem>& problems() const { return problems_; }
    const std::vector<std::string>& context() const { return context_; }
    const std::string& message() const { return problems_.front().message; }
    Error&& while_doing(std::string what) &&;
    // error: <message> / at file:line:column / the line with a caret / <remedy> for each problem, then one "while ..."
    // line per context. `source` gives the text of a file, empty where it is not at hand.
    std::string text(const std::function<std::string_view(FileName)>& source = {}) const;

private:
    ErrorKind kind_;
    std::vector<Problem> problems_;  // never empty
    std::vector<std::string> context_;
};

template <typename T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& value() & { return std::get<0>(state_); }
    const T& value() const& { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    Error& error() & { return std::get<1>(state_); }
    const Error& error() const& { return std::get<1>(state_); }
    Error&& error() && { return std::get<1>(std::move(state_)); }
    Result&& while_doing(std::string what) && {
        if (!ok()) std::move(error()).while_doing(std::move(what));
        return std::move(*this);
    }

private:
    std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;
inline Status done() {
    return Done{};
}

// A bug, not bad input: prints the expression and the place, and ends the program with exit code 4.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
#define CHECK(expression)                                                           \
    do {                                                                            \
        if (!(expression)) ::stoker::check_failed(#expression, __FILE__, __LINE__); \
    } while (false)

#define STOKER_CONCAT_(a, b) a##b
#define STOKER_CONCAT(a, b) STOKER_CONCAT_(a, b)
// TRY(auto size, catalog.size(name)); declares size, or returns the error to the caller.
#define TRY(declaration, expression) STOKER_TRY_(declaration, expression, STOKER_CONCAT(try_result_, __LINE__))
#define STOKER_TRY_(declaration, expression, name) \
    auto name = (expression);                      \
    if (!name) return std::move(name).error();     \
    declaration = std::move(name).value()
#define TRY_VOID(expression)                                                       \
    do {                                                                           \
        if (auto status = (expression); !status) return std::move(status).error(); \
    } while (false)

}  // namespace stoker
