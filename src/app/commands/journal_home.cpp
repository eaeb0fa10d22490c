#include "app/commands/journal_home.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/journal.h"
#include "io/postgres/connection.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr double kWaitForLeaderS = 2 * kLeaseS;  // one that was killed a moment ago

Result<std::unique_ptr<PostgresJournal>> open_home(const JournalUrl& where,
                                                   std::function<void(const Error&)> on_lost = {}) {
    TRY(std::string name, postgres_name(where.url, where.openly));
    return PostgresJournal::open(
        {.url = where.url, .name = std::move(name), .holder = this_process(), .on_lost = std::move(on_lost)});
}

// For as long as a command takes; a server that leads is not waited for.
Status lead_for_now(PostgresJournal& home) {
    std::string leads;
    double waited = 0;
    const Status led = home.lead(
        [&](double seconds) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
            return (waited += seconds) > kWaitForLeaderS;
        },
        [&](const std::string& holder) { leads = holder; });
    if (led || led.error().kind() != ErrorKind::denied) return led;
    return Error(ErrorKind::conflict, fmt::format("{} writes to {}", leads, home.name()), {}, "stop that server first");
}

}  // namespace

std::string this_process() {
    char host[256] = "";
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return fmt::format("{}, process {}", *host ? host : "a host without a name", ::getpid());
}

void tell_standing_by(const std::string& holder) {
    fmt::print(stderr, "standing by: {} leads; this one takes over {} s after it is gone\n", holder, kLeaseS);
}

void end_without_place(const Error& why) {
    fmt::print(stderr, "{}", why.text());
    std::_Exit(3);
}

std::optional<JournalUrl> journal_url(const Args& args) {
    if (const auto given = args.get("journal")) return JournalUrl{*given, true};
    const char* const set = std::getenv("STOKER_JOURNAL");
    return set && *set ? std::optional(JournalUrl{set, false}) : std::nullopt;
}

Result<std::shared_ptr<JournalHome>> lead_journal(const JournalUrl& where, StopSignal& stop, bool quiet) {
    TRY(auto home, open_home(where, end_without_place));
    TRY_VOID(home->lead([&](double seconds) { return stop.wait_for(seconds).has_value(); },
                        [&](const std::string& holder) {
                            if (!quiet) tell_standing_by(holder);
                        }));
    return std::shared_ptr<JournalHome>(std::move(home));
}

Result<std::string> push_folder(const JournalUrl& where, const std::string& folder) {
    TRY(const auto journal, Journal::open(folder, {.create = false}));
    TRY(const auto home, open_home(where));
    TRY_VOID(lead_for_now(*home));
    TRY(const JournalHead before, home->head());
    TRY(const JournalHead head, push_journal(*journal, *home));
    return fmt::format(
        "{} has {} records, {} of them new; the last is\n{}\n"
        "  stoker up --journal with the same address goes on from there\n",
        home->name(), head.seq, head.seq - before.seq, hex(head.hash));
}

Result<std::string> pull_folder(const JournalUrl& where, const std::string& folder) {
    TRY(const auto home, open_home(where));
    std::uint64_t before = 0;
    if (const auto known = Journal::open_read_only(folder)) before = (*known)->head().seq;
    TRY(const auto journal, Journal::open(folder, {.home = home.get()}));
    return fmt::format(
        "{} has {} records, {} of them new; the last is\n{}\n"
        "  stoker up without --journal goes on from there, and then the two part\n",
        folder, journal->head().seq, journal->head().seq - before, hex(journal->head().hash));
}

Result<std::string> verify_database(const JournalUrl& where) {
    TRY(const auto home, open_home(where));
    TRY(const JournalHead head, verify_home(*home));
    return fmt::format("{} records in {}, each follows from the one before; the last is\n{}\n", head.seq, home->name(),
                       hex(head.hash));
}

}  // namespace stoker
