#include "lint/read.h"

namespace stoker::lint {

void find_azureml(File&, const ReadOptions&) {}

}  // namespace stoker::lint
