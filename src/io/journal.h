// The journal: every change of state as one record, in the order in which it was decided, in one SQLite file. Records
// are chained by SHA-256, so an edit, a removal or an insertion shows; the same records are the audit trail. The
// journal knows no kinds of records: bytes in, bytes out.
//
// What append() returned done() for survives kill -9 and power loss. After append() failed, nothing of it is in the
// file, and the caller's idea of the state may be ahead of it: the process has to end (a failed fsync cannot be
// repeated).
//
// One Journal per folder, held by a lock; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/journal_head.h"
#include "io/journal_home.h"
#include "io/journal_record.h"
#include "io/sqlite.h"

namespace stoker {

class Journal {
public:
    struct Options {
        bool create = true;
        // Called inside the transaction that creates or migrates the file, for the tables of the caller.
        std::function<Status(Database&)> prepare_tables;
        // Goes on with a journal that is shorter than it was, or another one; loss() tells.
        bool accept_loss = false;
        // Another place that has every record before it counts as written (journal_home.h). What it has and the folder
        // has not comes into the folder; a folder that has more, or another journal, is refused. Outlives the journal.
        JournalHome* home = nullptr;
    };
    // What was there and is not: records up to `kept`.seq, as the head beside the database has it.
    struct Loss {
        KeptHead kept;
        std::string what;  // in words
    };

    // Opens `folder`/stoker.db, making both when they are missing. Refused: a folder that another process holds (its
    // pid is told), a file of a newer Stoker, a file that is none of ours, a damaged one, one that is not what the head
    // beside it (journal_head.h) says, and the copy of one file of several.
    static Result<std::unique_ptr<Journal>> open(const std::string& folder, const Options& options);
    // For looking only: takes no lock and writes nothing, so that it works beside the process that holds the folder,
    // and on a folder that is read-only. Nothing can be appended. not_found: there is no file.
    static Result<std::unique_ptr<Journal>> open_read_only(const std::string& folder);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    const JournalHead& head() const { return head_; }
    std::uint64_t epoch() const { return epoch_; }
    const std::optional<Loss>& loss() const { return loss_; }
    // Kept with the head from the next record on.
    void set_owner(const std::string& site, std::uint64_t runs) {
        site_ = site;
        runs_ = runs;
    }
    // The head is what the file has now, because somebody cut it and knows.
    Status admit_cut();
    // Every record from here on carries it; it must be higher than any before.
    void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }

    // All entries or none, in one commit, together with what `project` writes into the caller's tables. `at_us` is the
    // clock now; a clock that was set back does not make records go back.
    Status append(std::span<const JournalEntry> entries, std::int64_t at_us,
                  const std::function<Status(Database&, std::uint64_t first_seq)>& project = {});

    // Records after `after`, in order, until `use` returns false. Checks the chain on the way: a record that does not
    // follow from the one before ends the reading with its number.
    Status read(std::uint64_t after, const std::function<Result<bool>(const JournalRecord&)>& use);

    // Reads everything; the head when all is well.
    Result<JournalHead> verify();

    // The numbers of the records about an object, behind `after`, at most so many.
    Result<std::vector<std::uint64_t>> numbers_of(std::string_view object, std::uint64_t after, std::size_t most);

    // Records that stand in a file of their own, FOLDER/archive/`name`, and are read from there as if they had stayed.
    struct Archive {
        std::uint64_t first = 0, last = 0;
        std::string last_hash{}, name{}, path{};
        bool here = false;  // the file is there
    };
    // From record 1 on, without a gap.
    std::vector<Archive> archives() const;
    // The last record that is in an archive; 0: none is.
    std::uint64_t archived() const { return parts_.empty() ? 0 : parts_.back().archive.last; }
    // Moves what is not in an archive yet, up to record `last`, into a new one, and gives the room back. At least the
    // newest record stays. Killed at any point, all is where it was or where it belongs; what was half done is done
    // again. The caller has a snapshot behind `last`, or each start reads the archive.
    Result<Archive> archive_until(std::uint64_t last);
    // The newest record that is not younger than `at_us`; 0: there is none.
    Result<std::uint64_t> last_until(std::int64_t at_us);

    // The newest whose digest is right; two are kept.
    Status save_snapshot(const Snapshot& snapshot);
    // The same in pieces, for a state that one write would take too long for. Both are called inside append()'s
    // `project`. One that was begun and not finished counts for nothing and goes away by and by.
    Status add_snapshot_piece(std::uint64_t seq, std::uint64_t number, std::string_view bytes);
    Status finish_snapshot(std::uint64_t seq, std::uint32_t format, const std::vector<std::string>& piece_digests);
    Result<std::optional<Snapshot>> newest_snapshot();

    // Erases a body (personal data). The chain still holds, because it covers the body's hash.
    Status redact(std::uint64_t seq);

    // An online copy into `file`, which must not exist.
    Status back_up(const std::string& file);

    Database& database() { return *database_; }

private:
    Journal(std::unique_ptr<Database> database, int lock) : database_(std::move(database)), lock_(lock) {}
    Result<std::int64_t> check_file();
    Status migrate(const Options& options);
    Status load_head();
    Status load_archives();
    Result<Database*> open_archive(std::size_t which);
    Result<std::string> hash_at(std::uint64_t seq);
    Status read_from(Database& database, std::uint64_t& after, std::uint64_t until, std::string& previous,
                     const std::function<Result<bool>(const JournalRecord&)>& use, bool& go_on);
    Status copy_records(const std::string& path, std::uint64_t first, std::uint64_t last);
    Status compare(const Result<KeptHead>& kept, bool has_log);
    Status join(JournalHome& home);
    Status pull(JournalHome& home, const JournalHead& until);
    // Before the first record: a file that is looked at and refused stays as it is, byte for byte.
    Status begin_writing();
    void keep_head(bool cut = false);

    std::unique_ptr<Database> database_;
    int lock_;
    JournalHead head_;
    std::uint64_t epoch_ = 0;
    std::int64_t last_at_us_ = 0;
    bool failed_ = false, marked_ = false;
    std::optional<Loss> loss_;
    std::unique_ptr<HeadFile> head_file_;
    std::string site_;
    std::uint64_t runs_ = 0;
    std::optional<Statement> insert_;
    JournalHome* home_ = nullptr;
    struct Part {
        Archive archive;
        std::unique_ptr<Database> database;  // once it was needed
    };
    std::vector<Part> parts_;
};

// The hash of a record, given the one before: SHA-256 over it, the numbers as 8 big-endian bytes each, the texts each
// with its length, and the hash of the body.
std::string record_hash(const JournalRecord& record, std::string_view previous_hash);

}  // namespace stoker
