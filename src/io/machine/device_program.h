// Which devices a control group of version 2 may open. Version 2 has no file for that: a small BPF program decides
// (linux/bpf.h: struct bpf_cgroup_dev_ctx). Needs what root may do.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

// Rules as version 1 writes them, "c 1:3 rwm", "c 136:* rwm"; what no rule allows is refused. Holds as long as the
// group exists and for all groups below; a second program of the same group can only take more away.
Status attach_device_program(const std::string& group, const std::vector<std::string>& rules);
// Whether the kernel takes such a program at all.
bool device_programs_work();

}  // namespace stoker
