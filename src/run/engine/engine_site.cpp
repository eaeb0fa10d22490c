#include "run/engine/engine_site.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/text.h"
#include "io/files.h"
#include "run/state/records.h"

namespace stoker {
namespace {

constexpr std::string_view kSiteLetters = "abcdefghijklmnopqrstuvwxyz234567";

bool is_site(std::string_view text) {
    return text.size() == 5 && text.find_first_not_of(kSiteLetters) == std::string_view::npos;
}

}  // namespace

std::string draw_site() {
    std::random_device source;
    std::string site;
    while (site.size() < 5) site += kSiteLetters[source() % kSiteLetters.size()];
    return site;
}

Result<std::string> site_of(Journal& journal, const std::string& folder) {
    const std::string file = folder + "/site";
    std::error_code code;
    if (std::filesystem::exists(file, code)) {
        TRY(const std::string text, read_file(file, 100));
        if (!is_site(trim(text)))
            return Error(ErrorKind::invalid, printable(file) + " names no site: five of a-z and 2-7", {},
                         "remove it to go on with the journal's own");
        return std::string(trim(text));
    }
    TRY(Statement last, journal.database().prepare("SELECT seq, format, body FROM journal WHERE object = 'core' AND "
                                                   "kind = ? ORDER BY seq DESC LIMIT 1"));
    last.bind(1, std::int64_t{CoreStarted::kKind});
    TRY(const bool any, last.step());
    if (!any) return draw_site();
    TRY(const RecordBody body, decode_body(CoreStarted::kKind, static_cast<std::uint32_t>(last.integer(1)),
                                           last.blob(2), static_cast<std::uint64_t>(last.integer(0))));
    return std::get<CoreStarted>(body).site;
}

}  // namespace stoker
