#include "app/client/password_asked.h"

#include "base/text.h"
#include "io/files.h"
#include "io/terminal.h"

namespace stoker {

Result<std::string> password_asked(const Args& args, const std::string& question, bool twice) {
    if (const auto file = args.get("password-file")) {
        TRY(std::string text, read_file(*file, 1 << 16));
        while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
        if (text.empty() || text.find('\n') != std::string::npos)
            return Error(ErrorKind::invalid, "expected one line, the password",
                         {*file == "-" ? std::string("stdin") : *file, 1, 1});
        return text;
    }
    auto typed = ask_secret(question + ": ");
    if (!typed)
        return Error(ErrorKind::invalid, typed.error().message(), {}, "--password-file FILE reads it, - for stdin");
    if (typed->empty()) return Error(ErrorKind::invalid, "the password is empty");
    if (!twice) return std::move(*typed);
    TRY(const std::string again, ask_secret("again: "));
    if (again != *typed) return Error(ErrorKind::invalid, "these were two passwords", {}, "try again");
    return again;
}

}  // namespace stoker
