// on-prem: for machines of one's own: what puts driver and container toolkit on a node, the lines of Slurm's
// configuration that describe them, or k3s where the work is a service, and a check of each node before it takes work.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "deploy/render/first_boot.h"
#include "deploy/render/kube_cluster.h"
#include "deploy/render/recipes.h"
#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string gres_type(const Deployment& d) {
    if (d.nodes.mig) return d.nodes.mig->profile;
    std::string out;
    for (const char c : lower(d.nodes.gpu)) {
        if (c == '-') break;
        out += c;
    }
    return out;
}

// A service has no end, so that no queue holds it; and who says Kubernetes is given it.
bool wants_k3s(const Deployment& d) {
    return d.orchestrator == Orchestrator::kubernetes || !slurm_refusal(d).empty();
}

std::string k3s_script(const Deployment& d) {
    const bool nvidia = d.nodes.gpus > 0 && d.nodes.gpu_vendor == "NVIDIA";
    const char* runtime = nvidia ? " --default-runtime nvidia" : "";
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out +=
        "# On each node behind node-setup.sh, as root, once; the first is the server:\n#   ./k3s-setup.sh\n"
        "#   SERVER=FIRST-NODE TOKEN=\"$(cat /var/lib/rancher/k3s/server/node-token)\" ./k3s-setup.sh   # the others\n"
        "set -eu\n\n# The same release on all nodes.\n"
        "export INSTALL_K3S_VERSION=\"${K3S_VERSION:-" +
        release_in_use("k3s").release +
        "}\"\n"
        "curl -fsSLo /tmp/k3s-install.sh https://get.k3s.io\n";
    if (nvidia)
        out += why(
            "containers see devices through the toolkit's runtime only, which k3s finds by itself and does not take "
            "by itself",
            "docs.k3s.io, NVIDIA Container Runtime");
    out += fmt::format(
        "if [ -n \"${{SERVER:-}}\" ]; then\n"
        "    K3S_URL=\"https://$SERVER:6443\" K3S_TOKEN=\"${{TOKEN:?of /var/lib/rancher/k3s/server/node-token}}\" sh "
        "/tmp/k3s-install.sh agent{0}\nelse\n"
        "    # Secrets are encrypted where they lie, and the configuration is root's to read.\n"
        "    sh /tmp/k3s-install.sh server --secrets-encryption --write-kubeconfig-mode 0600{0}\n",
        runtime);
    if (nvidia) out += "    k3s kubectl apply -f \"$(dirname \"$0\")/device-plugin.yaml\"\n";
    if (needs_infiniband_plugin(d))
        out +=
            "    # Pods reach InfiniBand through NVIDIA's network operator; helm has to be there.\n"
            "    export KUBECONFIG=/etc/rancher/k3s/k3s.yaml\n" +
            indented(network_operator_words() + "\n", "    ") +
            "    k3s kubectl apply -f \"$(dirname \"$0\")/infiniband.yaml\"\n";
    return out + "fi\n";
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
            "apt-get install -y " +
            driver_package(d.nodes.gpu) +
            " nvidia-container-toolkit\n"
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
    if (!wants_k3s(d)) out += "apt-get install -y slurmd munge\n";
    if (d.nodes.mig && !wants_k3s(d))
        out +=
            "# Parts of GPUs are found by NVML: a package of Debian's contrib, of Ubuntu's multiverse.\n"
            "apt-get install -y slurm-wlm-nvml-plugin\n";
    if (d.nodes.mig)
        out +=
            "install -m 0755 \"$(dirname \"$0\")/mig-layout.sh\" /usr/local/sbin/mig-layout\n"
            "install -m 0644 \"$(dirname \"$0\")/mig-layout.service\" /etc/systemd/system/mig-layout.service\n"
            "systemctl enable mig-layout.service\n"
            "# At once where the driver runs already; else at the next start.\n"
            "if nvidia-smi > /dev/null 2>&1; then\n    systemctl stop nvidia-persistenced\n"
            "    systemctl start mig-layout.service\n    systemctl start nvidia-persistenced\nfi\n";
    out +=
        "install -m 0755 \"$(dirname \"$0\")/node-check.sh\" /usr/local/sbin/node-check\n"
        "install -m 0644 \"$(dirname \"$0\")/node-check.service\" /etc/systemd/system/node-check.service\n"
        "systemctl enable node-check.service\n";
    return out;
}

// Parts are gone with every restart, and since Hopper the mode too (NVIDIA MIG User Guide): they are made at each
// start.
std::string mig_layout_script(const Deployment& d) {
    const MigCut& mig = *d.nodes.mig;
    std::string parts;
    for (int i = 0; i < mig.per_gpu; ++i) parts += (i > 0 ? "," : "") + mig.profile;
    return "#!/bin/bash\n" + head_comment(d) +
           fmt::format(
               "# Cuts each GPU into {0} of {1}, as root, while nobody uses it: mig-layout.service does it at each "
               "start,\n# since no part outlives a restart. A GPU that is cut so already is left alone.\n"
               "#   mig-layout\nset -eu\n\n"
               "gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader)\nfor gpu in $gpus; do\n"
               "    mode() {{ nvidia-smi -i \"$gpu\" --query-gpu=mig.mode.current --format=csv,noheader; }}\n"
               "    if [ \"$(mode)\" != Enabled ]; then\n        nvidia-smi -i \"$gpu\" -mig 1\n"
               "        # Up to Ampere the mode waits for a reset.\n"
               "        [ \"$(mode)\" = Enabled ] || nvidia-smi -i \"$gpu\" --gpu-reset\n"
               "        if [ \"$(mode)\" != Enabled ]; then\n"
               "            echo \"mig-layout: GPU $gpu is in use, and stays whole: stop what uses it, or restart\" "
               ">&2\n"
               "            exit 1\n        fi\n    fi\n"
               "    there=$(nvidia-smi mig -i \"$gpu\" -lgi 2>/dev/null | grep -c ' MIG {1} ' || true)\n"
               "    [ \"$there\" != {0} ] || continue\n"
               "    # Of another layout: what is in use is not taken away, and the cut below then fails.\n"
               "    nvidia-smi mig -i \"$gpu\" -dci > /dev/null 2>&1 || true\n"
               "    nvidia-smi mig -i \"$gpu\" -dgi > /dev/null 2>&1 || true\n"
               "    nvidia-smi mig -i \"$gpu\" -cgi {2} -C\ndone\n",
               mig.per_gpu, mig.profile, parts);
}

std::string mig_layout_unit(const Deployment& d, std::string_view daemons) {
    return head_comment(d) +
           fmt::format(
               "[Unit]\nDescription=Parts of GPUs, as the plan counts on\n"
               "# Before anybody holds the GPUs.\n"
               "Before=nvidia-persistenced.service node-check.service {0}\n\n"
               "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/mig-layout\nRemainAfterExit=yes\n\n"
               "[Install]\nWantedBy=multi-user.target\nRequiredBy={0}\n",
               daemons);
}

std::string slurm_lines(const Deployment& d) {
    const std::string name = dns_label(d.nodes.machine, 20);
    const Machines machines = machines_of(d);
    const int gpus = d.nodes.mig ? d.nodes.mig->parts() : machines.gpus;
    std::string out = head_comment(d) + "# For slurm.conf.\n";
    if (gpus > 0) out += "GresTypes=gpu\n";
    out +=
        "# Devices and cores are shared out one by one, not whole "
        "nodes.\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/affinity\n"
        "# Slurm 22.05 and newer: the user's signal of a job comes before it is preempted, "
        "too.\nSlurmctldParameters=preempt_send_user_signal\n";
    if (machines.count > 1)
        out +=
            "# Jobs are put on few switches: topology.conf says which node hangs "
            "where.\nTopologyPlugin=topology/tree\n";
    const auto memory_mib = static_cast<std::int64_t>(machines.memory_bytes * 0.95 / (1LL << 20));
    out += fmt::format(
        "# Memory: five per cent are the system's.\nNodeName={}[1-{}] CPUs={} RealMemory={}{} State=UNKNOWN\n", name,
        machines.count, machines.vcpus, memory_mib, gpus > 0 ? fmt::format(" Gres=gpu:{}:{}", gres_type(d), gpus) : "");
    out +=
        fmt::format("PartitionName=gpu Nodes={}[1-{}] Default=YES MaxTime=UNLIMITED State=UP\n", name, machines.count);
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

std::vector<FileToWrite> own_node_files(const Deployment& d) {
    // The first node runs k3s, the others k3s-agent.
    const char* daemons = wants_k3s(d) ? "k3s.service k3s-agent.service" : "slurmd.service";
    std::vector<FileToWrite> files{
        {"node-setup.sh", setup_script(d), 0755},
        {"node-check.sh", node_check_script(d), 0755},
        {"node-check.service",
         head_comment(d) +
             fmt::format("[Unit]\nDescription=Is this node what the plan counts on\n"
                         "# What starts work here starts only where it is.\nBefore={0}\n\n"
                         "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/node-check\nRemainAfterExit=yes\n\n"
                         "[Install]\nRequiredBy={0}\n",
                         daemons)}};
    if (d.nodes.mig) {
        files.push_back({"mig-layout.sh", mig_layout_script(d), 0755});
        files.push_back({"mig-layout.service", mig_layout_unit(d, daemons)});
    }
    return files;
}

std::vector<FileToWrite> on_prem_files(const Deployment& d) {
    const Machines machines = machines_of(d);
    const int gpus = machines.gpus;
    std::vector<FileToWrite> files = own_node_files(d);
    if (wants_k3s(d)) {
        files.push_back({"k3s-setup.sh", k3s_script(d), 0755});
        for (FileToWrite& file : cluster_plugin_files(d)) files.push_back(std::move(file));
        if (kubernetes_refusal(d).empty())
            for (FileToWrite& file : kubernetes_files(d)) files.push_back(std::move(file));
        return files;
    }
    files.push_back({"slurm-nodes.conf", slurm_lines(d)});
    if (machines.count > 1)
        files.push_back(
            {"topology.conf",
             head_comment(d) +
                 fmt::format("# One line a switch; which node hangs on which only you know (ibnetdiscover tells it of "
                             "InfiniBand).\nSwitchName=leaf1 Nodes={}[1-{}]\n",
                             dns_label(d.nodes.machine, 20), machines.count)});
    if (d.nodes.mig)
        files.push_back(
            {"gres.conf",
             head_comment(d) +
                 fmt::format(
                     "# The device files of a part are known when it is cut: NVML tells them, and slurm.conf how "
                     "many there are.\nNodeName={}[1-{}] AutoDetect=nvml\n",
                     dns_label(d.nodes.machine, 20), machines.count)});
    else if (gpus > 0)
        files.push_back(
            {"gres.conf",
             head_comment(d) + fmt::format("NodeName={}[1-{}] Name=gpu Type={} File=/dev/{}\n",
                                           dns_label(d.nodes.machine, 20), machines.count, gres_type(d),
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
