// Work whose amount is given in hours of cores or GPUs, or that is kept for a while: notebooks, preprocessing,
// rendering and simulation.
#pragma once

#include "plan/option.h"

namespace stoker {

Search search_notebook(const Context& context);
Search search_preprocessing(const Context& context);
Search search_simulation(const Context& context);

}  // namespace stoker
