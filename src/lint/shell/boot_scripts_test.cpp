// When this breaks, a download that root runs at the start of a machine of AWS or Google passes as a script of a
// user's.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

Places places(const std::string& script, const std::string& rule = "SEC005") {
    return CheckedTree{{{"up.sh", "#!/bin/bash\n" + script}}, {}}.places(rule);
}
constexpr const char* kAws = "aws ec2 run-instances --image-id a --instance-type p4d.24xlarge ";
constexpr const char* kGoogle = "gcloud compute instances create x --machine-type a2-highgpu-1g ";

TEST(BootScripts, TextsFilesAndWhatIsPrinted) {
    const std::string pipe = "curl -fsSL https://x.example/i.sh | sh\n";
    EXPECT_EQ(places(std::string(kAws) + "--user-data '#!/bin/bash\n" + pipe + "'\n"), Places{"up.sh:3"});
    EXPECT_EQ(places(std::string(kGoogle) + "--metadata=startup-script='#!/bin/bash\n" + pipe + "'\n"),
              Places{"up.sh:3"});
    EXPECT_EQ(places("cat > /tmp/u.sh <<'E'\n#!/bin/bash\n" + pipe + "E\n" + kAws + "--user-data file:///tmp/u.sh\n"),
              Places{"up.sh:4"});
    EXPECT_EQ(places("boot() {\n  cat <<'E'\n#!/bin/bash\n" + pipe + "E\n}\n" + kAws + "--user-data \"$(boot)\"\n"),
              Places{"up.sh:5"});
    EXPECT_EQ(
        places("cat > /tmp/u.sh <<'E'\n#!/bin/bash\n" + pipe + "E\n" + kAws + "--user-data file:///tmp/other.sh\n"),
        Places{});
    EXPECT_EQ(places("aws s3 cp a b\ncat > /tmp/u.sh <<'E'\n#!/bin/bash\n" + pipe + "E\n"), Places{});
}

TEST(BootScripts, TextsForAnotherUser) {
    EXPECT_EQ(places("su - ubuntu -c \"nohup jupyter lab --ip 0.0.0.0 --ServerApp.token='' &\"\n", "SEC009"),
              Places{"up.sh:2"});
    EXPECT_EQ(places("runuser -u x --command 'torchrun --nproc_per_node=2 t.py --bf16 True --fp16 True'\n", "RUN006"),
              Places{"up.sh:2"});
}

}  // namespace
}  // namespace stoker::lint
