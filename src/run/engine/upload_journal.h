// Copies of the journal in an object store: made beside a running server, found again by an empty one. Below a URL and
// the name of the server:
//   k3x7q/journal-20261121T231045Z-000000001234.db      an online copy
//   k3x7q/journal-20261121T231045Z-000000001234.json    written last: size and SHA-256; without it there is no copy
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/worker.h"

namespace stoker {

struct StoredJournal {
    std::int64_t format = 1;
    std::string name;  // "journal-..." without its end
    std::string site, sha256;
    std::uint64_t seq = 0;  // of the last record that is in it at least
    std::int64_t bytes = 0, at_us = 0;
};
template <class V>
void fields(V& visit, StoredJournal& stored) {
    visit("at_us", stored.at_us);
    visit("bytes", stored.bytes);
    visit("format", stored.format);
    visit("name", stored.name);
    visit("seq", stored.seq);
    visit("sha256", stored.sha256);
    visit("site", stored.site);
}

// keep: the newest so many of this server stay, at least one; 0: all.
Result<StoredJournal> upload_journal(const std::string& folder, const std::string& url, int keep,
                                     const std::function<bool()>& stop = {});
// The newest complete copy below the URL, into a file that does not exist yet. conflict: several servers have copies
// there; the remedy names them.
Result<StoredJournal> fetch_journal(const std::string& url, const std::string& file);

struct BackupOptions {
    std::string folder, to;  // empty: none are made
    double every_s = 3600;
    int keep = 24;
    std::function<void(const Result<StoredJournal>&)> told;  // how each went, on the thread of the backups
};
struct BackupStats {
    std::int64_t last_us = 0, last_bytes = 0;  // of the newest; 0: none since the start
    std::uint64_t made = 0, failed = 0;
};
// Makes one at the start and then every so often, on a thread of its own. A failure is told and counted, and tried
// again after a minute, or sooner when they are more frequent.
class Backups {
public:
    static std::unique_ptr<Backups> start(BackupOptions options);
    ~Backups();
    BackupStats stats() const;

private:
    struct Work;
    std::shared_ptr<Work> work_;
    WorkerPool thread_{{.name = "stoker-backup"}};
};

}  // namespace stoker
