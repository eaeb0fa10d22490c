#include "run/engine/engine_site.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

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

namespace {

constexpr auto kListFor = std::chrono::seconds(10);

std::uint64_t highest_run_folder(const std::string& folder) {
    std::uint64_t highest = 0;
    std::error_code code;
    for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
        if (const auto run = RunId::parse(it->path().filename().string())) highest = std::max(highest, run->number);
    return highest;
}

// Launches that no record can have made.
struct Strangers {
    std::size_t count = 0, running = 0;
    std::uint64_t highest = 0;
    std::string first;
    std::set<std::string> sites;
};

Strangers strangers(Driver& driver, const State& state, const std::string& site) {
    Strangers found;
    const auto listing = driver.list_ours("", std::chrono::steady_clock::now() + kListFor);
    if (!listing) return found;  // the first listing of a server tells, later
    // On a machine that others use, too, a name that we do not know is theirs.
    std::map<std::string, bool> alone{{"", driver.capabilities().ranks_here}};
    for (const EngineState& each : driver.engines()) alone[each.name] = each.can.ranks_here;
    for (const Ours& item : listing->items) {
        const std::string& of = item.operation.site;
        // Of an earlier name: from before a copy was restored, or a loss accepted.
        if (of != state.site && std::find(state.sites.begin(), state.sites.end(), of) != state.sites.end()) continue;
        if (of == site || of == state.site ? item.operation.seq <= state.seq : !alone[item.engine]) continue;
        if (found.count++ == 0) found.first = item.operation.text();
        found.running += item.ended ? 0 : 1;
        found.highest = std::max(found.highest, item.operation.seq);
        found.sites.insert(of);
    }
    return found;
}

}  // namespace

Result<std::optional<JournalLost>> look_for_loss(const Journal& journal, Driver& driver, const State& state,
                                                 const EngineOptions& options, std::string& site) {
    std::vector<std::string> what;
    if (journal.loss()) what.push_back(journal.loss()->what);
    const std::uint64_t folders = highest_run_folder(options.folder + "/runs");
    if (folders > state.runs_made)
        what.push_back(fmt::format("{}/runs has folders up to r-{}, and the journal knows {}",
                                   printable(options.folder), folders,
                                   state.runs_made == 0 ? "no run" : fmt::format("runs up to r-{}", state.runs_made)));
    const Strangers others = strangers(driver, state, site);
    if (others.count > 0)
        what.push_back(fmt::format("{} launch{} {} known to no record ({}; {} still run{})", others.count,
                                   others.count == 1 ? "" : "es", others.count == 1 ? "is" : "are", others.first,
                                   others.running, others.running == 1 ? "s" : ""));
    if (what.empty()) return std::optional<JournalLost>();
    if (!journal.loss() && !options.accept_loss)
        return Error(ErrorKind::invalid, "the journal has lost records: " + join(what, "; "), {},
                     "put back the newest stoker.db with stoker.db-wal, or start from a copy with stoker journal "
                     "restore; stoker up --accept-loss goes on with what is there, gives none of these numbers again, "
                     "and ends what no run owns");
    const KeptHead kept = journal.loss() ? journal.loss()->kept : KeptHead{};
    JournalLost lost{.runs_made = std::max({folders, state.runs_made, kept.runs}),
                     .records = std::max(kept.seq, others.highest),
                     .sites = {others.sites.begin(), others.sites.end()},
                     .detail = printable(join(what, "; "), kMaxDetailBytes)};
    for (const std::string& old : {site, kept.site})
        if (!old.empty() && std::find(lost.sites.begin(), lost.sites.end(), old) == lost.sites.end())
            lost.sites.push_back(old);
    site = draw_site();
    TRY_VOID(write_file_atomic(options.folder + "/site", site + "\n"));
    if (options.on_loss) options.on_loss(fmt::format("{}; the next run is r-{}", lost.detail, lost.runs_made + 1));
    return std::optional(std::move(lost));
}

}  // namespace stoker
