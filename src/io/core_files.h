// What a crash leaves on the disk.
#pragma once

namespace stoker {

// From here on this process leaves no core file: there would be secrets in it. What it starts sets limits of its own. A
// collector that gets cores through a pipe (core_pattern) does not ask.
void write_no_core_files();

}  // namespace stoker
