#include "app/client/typed.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

Result<RunId> run_named(std::string_view text) {
    auto id = RunId::parse(text);
    if (!id) id = RunId::parse("r-" + std::string(text));
    if (!id)
        return Error(ErrorKind::invalid, fmt::format("'{}' is no run", printable(text, 40)), {},
                     "runs are named r-1, r-2, ...; stoker ps lists them");
    return *id;
}

}  // namespace stoker
