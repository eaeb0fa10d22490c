#include "deploy/questions.h"

namespace stoker {
namespace {

Error cannot_tell(std::string_view what) {
    return Error(ErrorKind::unsupported, "this engine cannot tell " + std::string(what));
}

}  // namespace

Status Questions::look_for(const PrerequisitesSpec&, const PrerequisitesPlace&, Deadline) const {
    return cannot_tell("what is there before the work runs");
}

Result<std::string> Questions::pin(const std::string&, const ImagePlace&, Deadline) const {
    return cannot_tell("which image a name means now");
}

Result<LogPiece> Questions::read_log(const LogPlace&, const std::string&, std::size_t, Deadline) const {
    return cannot_tell("what the work has written");
}

Result<LogPiece> Questions::tail_log(const LogPlace&, std::size_t, std::size_t, Deadline) const {
    return cannot_tell("what the work has written");
}

Result<LogMatches> Questions::search_log(const LogPlace&, const std::string&, std::size_t, Deadline) const {
    return cannot_tell("what the work has written");
}

Result<WorkFiles> Questions::list_files(const std::string&, std::size_t, Deadline) const {
    return cannot_tell("which files the work has left");
}

Result<FilePart> Questions::read_file(const std::string&, const std::string&, std::int64_t, std::size_t,
                                      Deadline) const {
    return cannot_tell("what is in the files of the work");
}

Result<Measures> Questions::read_measures(const MeasuredGang&, const MeasureQuery&, Deadline) const {
    return cannot_tell("what its ranks use and how far they are");
}

Result<Checkpoints> Questions::list_checkpoints(const std::string&, Deadline) const {
    return cannot_tell("which checkpoints there are");
}

}  // namespace stoker
