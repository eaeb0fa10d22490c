#include <gtest/gtest.h>

#include "workload/workload.h"

namespace stoker {
namespace {

// One table makes the reader, the schema and the reference page; a key is in all of them.
TEST(Workload, TheTableIsTheSchema) {
    const RecordInfo& record = workload_record();
    const Json schema = record.json_schema();
    const std::string page = record.reference_markdown();
    for (const FieldInfo& field : record.fields) {
        EXPECT_NE(schema.find("properties")->find(field.key), nullptr) << field.key;
        EXPECT_NE(page.find("`" + field.key + "`"), std::string::npos) << field.key;
        EXPECT_FALSE(field.description.empty()) << field.key;
    }
}

}  // namespace
}  // namespace stoker
