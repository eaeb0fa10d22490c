// The journal as an audit trail for other programs: a line a record.
#pragma once

#include <string>

#include "base/result.h"
#include "io/journal.h"
#include "server/audit_trail.h"

namespace stoker {

// One JSON object, or one event of the Common Event Format, version 0 (ArcSight, CEF Implementation Standard 25, 2021):
// who, what, on what, why, when, and the place in the chain.
std::string audit_json(const JournalRecord& record);
std::string audit_cef(const JournalRecord& record);
// The same of a request: who, from where, what, and the answer.
std::string request_cef(const AuditLine& line);

}  // namespace stoker
