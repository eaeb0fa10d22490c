#include "run/engine/upload_journal.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/codec.h"
#include "base/text.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/store/object_store.h"
#include "run/engine/engine_site.h"
#include "run/engine/journal_care.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostJournalManifest = 1u << 16;
constexpr double kBackupAgainS = 60;

std::string utc_stamp(std::int64_t at_us) {
    const auto seconds = static_cast<std::time_t>(at_us / 1'000'000);
    std::tm at{};
    ::gmtime_r(&seconds, &at);
    return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour,
                       at.tm_min, at.tm_sec);
}

// The keys of the manifests, oldest first: their names begin with the time.
Result<std::vector<std::string>> list_journals(ObjectStore& store) {
    std::vector<std::string> keys;
    TRY_VOID(store.list("", [&](const ObjectInfo& item) {
        const std::string name = item.key.substr(item.key.rfind('/') + 1);
        if (name.starts_with("journal-") && name.ends_with(".json")) keys.push_back(item.key);
        return keys.size() < 1'000'000;
    }));
    std::sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
        return a.substr(a.rfind('/') + 1) < b.substr(b.rfind('/') + 1);
    });
    return keys;
}

std::string copy_of(const std::string& manifest) {
    return manifest.substr(0, manifest.size() - 5) + ".db";
}

// Removed in the end, whatever happens.
struct TemporaryFile {
    std::string path;
    ~TemporaryFile() {
        std::error_code ignored;
        for (const char* end : {"", "-journal", "-wal", "-shm", ".part"}) fs::remove(path + end, ignored);
    }
};

}  // namespace

Result<StoredJournal> upload_journal(const std::string& folder, const std::string& url, int keep,
                                     const std::function<bool()>& stop) {
    TRY(const ObjectUrl place, read_object_url(url));
    TRY(const auto store, ObjectStore::open(place));
    StoredJournal stored{.at_us = wall_clock_us()};
    {
        TRY(const auto journal, Journal::open_read_only(folder));
        TRY(stored.site, site_of(*journal, folder));
    }
    const TemporaryFile copy{folder + "/backup-" + random_hex(6) + ".tmp"};
    TRY(const JournalHead head, back_up_journal(folder, copy.path));
    stored.seq = head.seq;
    stored.name = fmt::format("journal-{}-{:012}", utc_stamp(stored.at_us), stored.seq);
    const TransferOptions options{.stop = stop, .moved = {}, .tier = ""};
    const std::string key = stored.site + "/" + stored.name;
    // What the journal has, nobody else on the machine reads in its copies.
    if (place.kind == ObjectUrl::Kind::file) {
        const std::string own = place.prefix + "/" + stored.site;
        std::error_code code;
        fs::create_directories(own, code);
        ::chmod(own.c_str(), 0700);
    }
    TRY(const ObjectInfo put, store->put_file(key + ".db", copy.path, options));
    stored.bytes = put.bytes;
    stored.sha256 = put.sha256;
    TRY_VOID(store->put_text(key + ".json", codec::encode(stored), options));
    if (keep < 1) return stored;
    TRY(auto keys, list_journals(*store));
    std::erase_if(keys, [&](const std::string& each) { return !each.starts_with(stored.site + "/"); });
    for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < keys.size(); ++i) {
        TRY_VOID(store->remove(keys[i]));
        TRY_VOID(store->remove(copy_of(keys[i])));
    }
    return stored;
}

Result<StoredJournal> fetch_journal(const std::string& url, const std::string& file) {
    TRY(const ObjectUrl place, read_object_url(url));
    TRY(const auto store, ObjectStore::open(place));
    TRY(const auto keys, list_journals(*store));
    if (keys.empty())
        return Error(ErrorKind::not_found, "there is no complete copy of a journal at " + place.text(), {},
                     "stoker journal backup --to URL makes one");
    std::set<std::string> sites;
    for (const std::string& key : keys) sites.insert(store->url_of(key.substr(0, std::min(key.find('/'), key.size()))));
    if (keys.front().find('/') != std::string::npos && sites.size() > 1)
        return Error(ErrorKind::conflict, fmt::format("{} servers have copies at {}", sites.size(), place.text()), {},
                     "name the one: " + join_or({sites.begin(), sites.end()}));
    TRY(const std::string json, store->get_text(keys.back(), kMostJournalManifest));
    TRY(StoredJournal stored, codec::decode<StoredJournal>(json, store->url_of(keys.back())));
    if (stored.format != 1)
        return Error(ErrorKind::unsupported,
                     fmt::format("the copy has format {}, this version knows 1", stored.format));
    TRY([[maybe_unused]] const ObjectInfo got, store->get_file(copy_of(keys.back()), file, stored.sha256));
    return stored;
}

struct Backups::Work {
    BackupOptions options;
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::atomic<bool> stopping{false};
    BackupStats stats;

    void run() {
        std::unique_lock lock(mutex);
        while (!stopping) {
            lock.unlock();
            const auto stored =
                upload_journal(options.folder, options.to, options.keep, [this] { return stopping.load(); });
            if (options.told && (stored || !stopping)) options.told(stored);
            lock.lock();
            double wait_s = options.every_s;
            if (stored) {
                ++stats.made;
                stats.last_us = stored->at_us;
                stats.last_bytes = stored->bytes;
            } else if (!stopping) {
                ++stats.failed;
                wait_s = std::min(wait_s, kBackupAgainS);
            }
            changed.wait_for(lock, std::chrono::duration<double>(wait_s), [&] { return stopping.load(); });
        }
    }
};

std::unique_ptr<Backups> Backups::start(BackupOptions options) {
    auto self = std::unique_ptr<Backups>(new Backups());
    self->work_ = std::make_shared<Work>();
    self->work_->options = std::move(options);
    // A store that does not answer may not keep the server from ending.
    self->thread_.post([work = self->work_] { work->run(); });
    return self;
}

Backups::~Backups() {
    if (!work_) return;
    {
        const std::lock_guard guard(work_->mutex);
        work_->stopping = true;
        work_->changed.notify_all();
    }
    thread_.stop(after(3));
}

BackupStats Backups::stats() const {
    const std::lock_guard guard(work_->mutex);
    return work_->stats;
}

}  // namespace stoker
