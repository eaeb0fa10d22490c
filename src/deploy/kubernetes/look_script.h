// How ranks are looked at where they run, in words that every /bin/sh knows. In each container of a rank a loop beside
// its program writes down what its processes use; a container of its own, one for each pod, says that and the new lines
// of step files, and its log is followed like any other. What it says, a line each:
//     M P LOCAL key=value ...     what the processes of a rank use, once a second
//     M B LOCAL TEXT              its heartbeat file has changed
//     S LOCAL TEXT                a line of its step file
// LOCAL: the number of the rank in its pod. pod_measures.h reads it.
#pragma once

#include <string>

#include "deploy/driver.h"

namespace stoker::kubernetes {

inline constexpr const char* kMeasureFolder = "/run/stoker";  // where all containers of a pod see the volume kMeasures

// Is there anything that such a container could tell?
bool is_looked_at(const MeasureSpec& measure);

// For the script of a rank: `read_beat`, before its program starts; `look_here`, once, and `look`, again and again, in
// the shell that looks, whose number is $me.
std::string look_functions(const MeasureSpec& measure);
// Of the container beside the ranks: says what they write until it gets TERM, and then what is left.
std::string measures_script(const MeasureSpec& measure, int per_pod);

}  // namespace stoker::kubernetes
