// What stands in the journal and is to be told elsewhere: read in its order, with a place of its own beside the
// journal, so that a restart forgets nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "run/engine/engine.h"

namespace stoker {

struct JournalNotice {
    std::uint64_t seq = 0;
    std::string id, body;                  // body: JSON
    std::string to{};                      // whom, where it is not everybody the same
    std::string subject{}, text{}, see{};  // see: a command that shows more
};

class JournalNotices {
public:
    // What a record of that kind is worth telling.
    using Pick =
        std::function<void(const State&, const JournalRecord&, const RecordBody&, std::vector<JournalNotice>&)>;
    struct Batch {
        std::vector<JournalNotice> notices;
        std::uint64_t last = 0, head = 0;  // records that were looked at, and that there are
    };

    // The engine outlives it. `file` is a name in its folder.
    JournalNotices(Engine& engine, const std::string& file, std::uint32_t kind, Pick pick)
        : engine_(engine), cursor_file_(engine.folder() + "/" + file), kind_(kind), pick_(std::move(pick)) {}

    // Up to where everything was told. Where none is written down yet it begins with what comes from here on.
    std::uint64_t read_cursor();
    void save_cursor(std::uint64_t cursor);
    // Nothing: the engine ends, or does not answer.
    std::optional<Batch> read_after(std::uint64_t after);

private:
    Engine& engine_;
    const std::string cursor_file_;
    const std::uint32_t kind_;
    const Pick pick_;
    std::uint64_t saved_ = 0;
};

// A thread that looks when a record of its kind was written, every so often besides, and ends when it is told to.
class NoticeThread {
public:
    NoticeThread(Engine& engine, std::uint32_t kind, const char* name, std::function<void()> run);
    ~NoticeThread();  // waits for a call that is under way
    void wake();      // as if a record of its kind had been written
    // False: it ends.
    bool pause(double seconds, bool until_fresh);

private:
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool stopping_ = false, fresh_ = false;

    std::shared_ptr<void> watch_;
    std::thread thread_;
};

}  // namespace stoker
