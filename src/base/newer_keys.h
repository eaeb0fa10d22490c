// What a newer version wrote is read by this one as far as it goes.
#pragma once

#include "base/result.h"

namespace stoker::codec {

// Takes away what read() (codec.h) says of keys that are not known here.
void pass_over_unknown_keys(Problems& problems);

}  // namespace stoker::codec
