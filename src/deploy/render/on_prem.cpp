// on-prem: for machines of one's own: what puts driver and container toolkit on a node, the lines of Slurm's
// configuration that describe them, and a check of each node before it takes work.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string gres_type(const Deployment& d) {
    std::string out;
    for (const char c : lower(d.nodes.gpu)) {
        if (c == '-') break;
        out += c;
    }
    return out;
}

std::string setup_script(const Deployment& d) {
    const std::string vendor = d.nodes.gpus > 0 ? d.nodes.gpu_vendor : "";
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += "# On each node, as root, once; Debian 12 or Ubuntu 22.04 and newer.\n#   ./node-setup.sh\nset -eu\n\n";
    out += "export DEBIAN_FRONTEND=noninteractive\napt-get update\n";
    if (vendor == "NVIDIA")
        out +=
            "# NVIDIA's repository by its keyring package: apt-key is gone, and the key would rot in a script.\n"
            "# shellcheck source=/dev/null\n. /etc/os-release\n"
            "release=$ID${VERSION_ID//./}\n"
            "curl -fsSLo /tmp/cuda-keyring.deb \\\n"
            "    "
            "\"https://developer.download.nvidia.com/compute/cuda/repos/$release/x86_64/cuda-keyring_1.1-1_all.deb\"\n"
            "dpkg -i /tmp/cuda-keyring.deb\napt-get update\n"
            "# Driver only: CUDA comes with the containers and wheels.\n"
            "apt-get install -y nvidia-open nvidia-container-toolkit\n"
            "# Loads the driver at boot and keeps it loaded, so that a job's first call does not wait for it.\n"
            "systemctl enable --now nvidia-persistenced\n";
    if (vendor == "AMD")
        out +=
            "# amdgpu and ROCm are of AMD's own repository: rocm.docs.amd.com, Installation on Linux.\n"
            "apt-get install -y amdgpu-dkms rocm\nusermod -aG render,video \"${SUDO_USER:-root}\"\n";
    if (d.nodes.fabric.kind == "infiniband" || d.nodes.fabric.kind == "roce")
        out +=
            "apt-get install -y rdma-core infiniband-diags perftest\n"
            "# GPUs read and write over the network without the host (GPUDirect RDMA).\nmodprobe nvidia-peermem || "
            "true\n"
            "# RDMA pins memory: no limit for it.\n"
            "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > /etc/security/limits.d/90-rdma.conf\n";
    out +=
        "apt-get install -y slurmd munge\n"
        "install -m 0755 \"$(dirname \"$0\")/node-check.sh\" /usr/local/sbin/node-check\n"
        "install -m 0644 \"$(dirname \"$0\")/node-check.service\" /etc/systemd/system/node-check.service\n"
        "systemctl enable node-check.service\n";
    return out;
}

std::string check_script(const Deployment& d) {
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out +=
        "# Ends with 1 and says what is missing: slurmd does not start on such a node.\nset -u\n\nbad=0\nfail() { echo "
        "\"node-check: $*\"; bad=1; }\n\n";
    const int gpus = static_cast<int>(std::ceil(d.nodes.gpus));
    if (gpus > 0 && d.nodes.gpu_vendor == "NVIDIA") {
        out += fmt::format(
            "count=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')\n[ \"$count\" = {0} ] || fail \"$count of {0} "
            "GPUs\"\n",
            gpus);
        out +=
            "# Rows that are waiting to be remapped, and errors that no ECC corrects: such a GPU computes wrong, or "
            "stops.\n"
            "while IFS=, read -r index pending errors; do\n"
            "    [ \"${pending// /}\" != Yes ] || fail \"GPU $index: rows wait to be remapped\"\n"
            "    case ${errors// /} in 0 | '[N/A]' | '[NotSupported]') ;; *) fail \"GPU $index: $errors uncorrectable "
            "errors\" ;; esac\n"
            "done < <(nvidia-smi --query-gpu=index,remapped_rows.pending,ecc.errors.uncorrected.volatile.total "
            "--format=csv,noheader 2>/dev/null)\n";
    }
    if (gpus > 0 && d.nodes.gpu_vendor == "AMD")
        out += fmt::format(
            "count=$(rocm-smi --showid 2>/dev/null | grep -c 'Device Name')\n[ \"$count\" = {0} ] || fail \"$count of "
            "{0} GPUs\"\n",
            gpus);
    if (d.nodes.fabric.kind == "infiniband")
        out +=
            "for state in /sys/class/infiniband/*/ports/*/state; do\n    grep -q ACTIVE \"$state\" || fail "
            "\"${state%/state} is not active\"\ndone\n";
    const auto least_gib = static_cast<std::int64_t>(d.nodes.memory_bytes * 0.95 / (1LL << 30));
    if (least_gib > 0)
        out += fmt::format(
            "memory=$(awk '/MemTotal/ {{print int($2 / 1048576)}}' /proc/meminfo)\n"
            "[ \"$memory\" -ge {0} ] || fail \"$memory GiB of memory, and the plan counts on {0}\"\n",
            least_gib);
    return out + "exit \"$bad\"\n";
}

std::string slurm_lines(const Deployment& d) {
    const std::string name = dns_label(d.nodes.machine, 20);
    const int gpus = static_cast<int>(std::ceil(d.nodes.gpus));
    std::string out = head_comment(d) + "# For slurm.conf.\n";
    if (gpus > 0) out += "GresTypes=gpu\n";
    out +=
        "# Devices and cores are shared out one by one, not whole "
        "nodes.\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/affinity\n"
        "# Slurm 22.05 and newer: the user's signal of a job comes before it is preempted, "
        "too.\nSlurmctldParameters=preempt_send_user_signal\n";
    const auto memory_mib = static_cast<std::int64_t>(d.nodes.memory_bytes * 0.95 / (1LL << 20));
    out += fmt::format(
        "# Memory: five per cent are the system's.\nNodeName={}[1-{}] CPUs={} RealMemory={}{} State=UNKNOWN\n", name,
        d.nodes.count, d.nodes.vcpus, memory_mib, gpus > 0 ? fmt::format(" Gres=gpu:{}:{}", gres_type(d), gpus) : "");
    out +=
        fmt::format("PartitionName=gpu Nodes={}[1-{}] Default=YES MaxTime=UNLIMITED State=UP\n", name, d.nodes.count);
    return out;
}

}  // namespace

std::string on_prem_refusal(const Deployment& d) {
    if (d.nodes.cloud != "on-prem")
        return fmt::format("the plan's machines are {} of {}; where: {{cloud: on-prem}} plans on your own",
                           d.nodes.machine, d.nodes.cloud);
    if (d.nodes.gpus > 0 && d.nodes.gpu_vendor != "NVIDIA" && d.nodes.gpu_vendor != "AMD")
        return fmt::format("how {} is set up is not known here", d.nodes.gpu);
    return "";
}

std::vector<FileToWrite> on_prem_files(const Deployment& d) {
    const int gpus = static_cast<int>(std::ceil(d.nodes.gpus));
    std::vector<FileToWrite> files{
        {"node-setup.sh", setup_script(d), 0755},
        {"node-check.sh", check_script(d), 0755},
        {"node-check.service",
         head_comment(d) + "[Unit]\nDescription=Is this node what the plan counts on\n"
                           "# slurmd starts only where it is.\nBefore=slurmd.service\n\n"
                           "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/node-check\nRemainAfterExit=yes\n\n"
                           "[Install]\nRequiredBy=slurmd.service\n"},
        {"slurm-nodes.conf", slurm_lines(d)}};
    if (gpus > 0)
        files.push_back(
            {"gres.conf",
             head_comment(d) + fmt::format("NodeName={}[1-{}] Name=gpu Type={} File=/dev/{}\n",
                                           dns_label(d.nodes.machine, 20), d.nodes.count, gres_type(d),
                                           d.nodes.gpu_vendor == "AMD" ? fmt::format("dri/renderD[128-{}]", 127 + gpus)
                                           : gpus > 1                  ? fmt::format("nvidia[0-{}]", gpus - 1)
                                                                       : "nvidia0")});
    files.push_back({"cgroup.conf", head_comment(d) +
                                        "# A job sees its own devices, cores and memory "
                                        "only.\nConstrainDevices=yes\nConstrainCores=yes\nConstrainRAMSpace=yes\n"});
    if (!slurm_refusal(d).empty()) return files;
    for (FileToWrite& file : slurm_files(d)) files.push_back(std::move(file));
    return files;
}

}  // namespace stoker
