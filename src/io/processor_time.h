// Seconds of processors that were used so far: by whatever calls it, however busy the machine is beside.
#pragma once

#include <sys/types.h>

namespace stoker {

double processor_s_of_thread();  // of the one that asks
// Of all threads of a process, those of its children left out. A child that nobody has waited for yet has its own; 0:
// there is no such process.
double processor_s_of(pid_t process);

}  // namespace stoker
