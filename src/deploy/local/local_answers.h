// The answers of this machine (deploy/questions.h), for the driver and for whoever only looks at a folder.
#pragma once

#include <chrono>
#include <string>

#include "base/health.h"
#include "deploy/local/checkpoint_files.h"
#include "deploy/local/image_tools.h"
#include "deploy/local/prerequisites.h"
#include "deploy/local/rank_start.h"
#include "deploy/local/read_log.h"
#include "deploy/local/work_files.h"
#include "deploy/questions.h"

namespace stoker {

template <class Base>
class LocalAnswers : public Base {
public:
    Status look_for(const PrerequisitesSpec& wanted, const PrerequisitesPlace& place,
                    Deadline deadline) const override {
        return check_prerequisites(wanted, place, deadline);
    }
    Result<std::string> pin(const std::string& image, const ImagePlace& place, Deadline deadline) const override {
        return pin_image(image, place.folder, deadline);
    }
    Result<LogPiece> read_log(const LogPlace& log, const std::string& cursor, std::size_t most,
                              Deadline) const override {
        return stoker::read_log(log_path(log.log_folder, static_cast<std::size_t>(log.rank)), cursor, most);
    }
    Result<LogPiece> tail_log(const LogPlace& log, std::size_t lines, std::size_t most, Deadline) const override {
        return stoker::tail_log(log_path(log.log_folder, static_cast<std::size_t>(log.rank)), lines, most);
    }
    Result<LogMatches> search_log(const LogPlace& log, const std::string& wanted, std::size_t most,
                                  Deadline) const override {
        return stoker::search_log(log_path(log.log_folder, static_cast<std::size_t>(log.rank)), wanted, most);
    }
    Result<WorkFiles> list_files(const std::string& folder, std::size_t most, Deadline) const override {
        return list_work_files(folder, most);
    }
    Result<FilePart> read_file(const std::string& folder, const std::string& path, std::int64_t from, std::size_t most,
                               Deadline) const override {
        return read_work_file(folder, path, from, most);
    }
    Result<Checkpoints> list_checkpoints(const std::string& folder, Deadline) const override {
        return list_checkpoint_files(folder);
    }
};

// Not carried out, and somebody can see to it: told now, and tried again.
inline Outcome in_trouble(std::string detail) {
    return {.certainty = Certainty::unknown, .cause = Cause::platform, .detail = std::move(detail)};
}

// Of a check that no time was given to: an engine that would have answered at once is not asked either (driver.h, line
// 7).
inline HealthReport not_looked_at(const std::string& node) {
    return {{{.name = "check", .node = node, .detail = "there was no time to look at it"}}};
}
inline bool is_over(Deadline deadline) {
    return std::chrono::steady_clock::now() >= deadline;
}

}  // namespace stoker
