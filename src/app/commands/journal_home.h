// The second home of the journal, as commands name it: --journal URL, or STOKER_JOURNAL.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/session.h"
#include "base/result.h"
#include "io/postgres/postgres_journal.h"
#include "io/stop_signal.h"

namespace stoker {

struct JournalUrl {
    std::string url;
    bool openly = false;  // among the arguments, which everybody on this machine reads
};
// None: the folder alone.
std::optional<JournalUrl> journal_url(const Args& args);

// Leads when it comes back; meanwhile whoever leads is told on standard error. From then on the process ends with exit
// 3 when its place is taken. denied: it was told to stop first.
Result<std::shared_ptr<JournalHome>> lead_journal(const JournalUrl& where, StopSignal& stop, bool quiet);

// Of a process that holds a place in a database, or waits for it.
std::string this_process();
void tell_standing_by(const std::string& holder);
// Another process may act already: nothing may happen here any more. Exit 3.
[[noreturn]] void end_without_place(const Error& why);

// What the verbs of stoker journal say. They need a folder that no server has open, and nobody who leads.
Result<std::string> push_folder(const JournalUrl& where, const std::string& folder);
Result<std::string> pull_folder(const JournalUrl& where, const std::string& folder);
Result<std::string> verify_database(const JournalUrl& where);

}  // namespace stoker
