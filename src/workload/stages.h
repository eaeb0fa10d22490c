// Several workloads in one file that follow each other (tune, then serve): `stages`. What the file says outside of them
// holds for each. They go by the names of run.steps, so that a file is planned as it is run.
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "base/json.h"

namespace stoker {

struct Stage {
    std::string name;
    std::vector<int> after;  // indices of the stages that end before it starts; none: it starts at once
    SourcePos pos;
    Document document;  // the workload of this stage alone, for read_workload; values keep their places in the file
};

bool has_stages(const Node& root);
// In the order of the file. All that is wrong with names and order is reported together; what is wrong inside of a
// stage is for read_workload.
Result<std::vector<Stage>> split_stages(const Document& document);
// What stoker run reads of such a file: version, name and run.
Document run_part(const Document& document);

// The JSON Schema of a workload file: one workload, or several as stages.
Json workload_file_schema();
// For the reference page.
std::string stages_reference();

}  // namespace stoker
