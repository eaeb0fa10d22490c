// A pid namespace: when its first process ends, by whatever means, the kernel ends all others in it. Works without root
// where user namespaces are allowed.
#pragma once

#include "base/result.h"

namespace stoker {

// New pid and mount namespaces, and a user namespace in which we keep our uid and gid unless we are root. The next
// child that is forked is their first process. For a process with one thread.
Status enter_new_pid_namespace();
// A user namespace in which we keep our uid and gid and may mount; for a process with one thread.
Status enter_new_user_namespace();
// In that child: a /proc which shows the new namespace.
Status mount_own_proc();
// Whether both work here: tried in a child that ends at once.
bool pid_namespaces_work();

}  // namespace stoker
