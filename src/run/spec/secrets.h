// Values of variables that nobody but the work may read. A spec holds a reference in place of each, so that the
// journal, the API, events, logs and `describe` never have the value:
//   secret://env/NAME     a variable of the server, looked up at each launch
//   secret://file/PATH    a file that the server can read, from the root; its last end of line is left out
//   secret://stored/ID    a value that came with a submission; it lies in FOLDER/secrets, for the server's user only
// With #file behind it (secret://env/NAME#file) the variable names a file that holds the value, which nobody but the
// work reads and which goes with it: for programs that take a file, and values that no process list should have. What
// stands behind the host of an address that is told (`notify`) is one, too: whoever has it can write there. The spec
// has https://HOST/secret://stored/ID. `secret://value/...` is how a client hands over a value; it is stored before
// anything else sees the spec. So is the value of a variable whose name says that it is one (HF_TOKEN,
// AWS_SECRET_ACCESS_KEY).
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "run/spec/run_spec.h"

// Stored values are sealed where there is a key to seal them with: STOKER_SECRETS_KEY_FILE names a file of keys, 64 hex
// digits a line, of which the first seals and all open; STOKER_SECRETS_KEY has one itself; or whoever fetched them from
// elsewhere says them (use_seal_keys). They do not lie in FOLDER, so a copy of that gives nothing away. Without one,
// the rights of the files are what keeps them.

namespace stoker {

inline constexpr std::string_view kSecretValue = "secret://value/";

bool is_secret_reference(std::string_view value);
bool is_secret_file(std::string_view value);  // one that ends in #file
bool names_a_secret(std::string_view variable);

// Puts references in the place of values, in the steps of a graph as well. invalid: a reference that means nothing.
Status store_secrets(const std::string& folder, RunSpec& spec);
// What the reference stands for, now.
Result<std::string> read_secret(const std::string& folder, std::string_view reference);
// The address that a `notify` of a stored spec means.
Result<std::string> read_notify(const std::string& folder, std::string_view to);
// Seals what lies there open, or by an older key, with the first of the keys. How many it was. invalid: a key that is
// none; not_found: the file of keys is not there; denied: a value that none of the keys opens.
Result<int> seal_secrets(const std::string& folder);
// In place of what the environment names, for this process: a text as the file of keys has it. Empty: as before.
// invalid: a line that is no key.
Status use_seal_keys(std::string text);
// Removes stored values that none of these references needs.
void forget_secrets(const std::string& folder, const std::set<std::string>& needed);
// References to stored values in a spec.
void collect_secrets(const RunSpec& spec, std::set<std::string>& out);

}  // namespace stoker
