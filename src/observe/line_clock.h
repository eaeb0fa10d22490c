// When lines were written to logs that somebody else appends to: the kernel tells when a file grew, and how long it was
// then is kept until the lines are read. Where much is written it looks every five milliseconds,
// where nothing is it sleeps.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/worker.h"
#include "observe/step_file.h"

namespace stoker {

class LineClock : public WrittenClock {
public:
    static std::shared_ptr<LineClock> start();  // null: the kernel tells nothing here
    // One for all that are looked at by this process, as long as somebody has it.
    static std::shared_ptr<LineClock> shared();
    ~LineClock() override;
    LineClock(const LineClock&) = delete;
    LineClock& operator=(const LineClock&) = delete;

    // Null: the file is not there yet, or 256 are watched already.
    std::shared_ptr<void> watch(const std::string& path) override;
    // Wall clock at which the file was seen to be as long as that; none: it was as long when watching began. Asked in
    // the order of the lines: what lies before is forgotten.
    std::optional<double> when(const std::string& path, std::int64_t size) override;

private:
    struct Shared;
    explicit LineClock(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    std::shared_ptr<Shared> shared_;
    WorkerPool thread_{{.name = "stoker-lines"}};
};

}  // namespace stoker
