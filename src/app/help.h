// Man pages beside the ones of single commands; what else the tables of commands say is declared in args.h.
#pragma once

#include <string>

namespace stoker {

std::string man_overview();  // stoker(1), roff

}  // namespace stoker
