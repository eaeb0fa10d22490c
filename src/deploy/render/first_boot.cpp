#include "deploy/render/first_boot.h"

#include <fmt/format.h>

#include <cmath>

#include "deploy/render/azure_shape.h"
#include "deploy/render/scale_set_scaling.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

// A file of #cloud-config's list.
std::string written(std::string_view path, std::string_view permissions, std::string_view content) {
    return fmt::format("- path: {}\n  permissions: \"{}\"\n  content: |\n{}", path, permissions,
                       indented(content, "    "));
}

// Asked for by who knows the container: neither its name nor a key of it is in what is rendered.
std::string mount_blobs_script() {
    return "#!/bin/bash\n# A container of Blob as a folder, through BlobFuse2: as the machine itself, cached on its "
           "own disk.\n"
           "#   mount-blobs ACCOUNT CONTAINER [FOLDER]   # FOLDER: /data/CONTAINER where none is said\n"
           "# The machine's identity needs the role Storage Blob Data Contributor, or Reader, on the container.\n"
           "set -eu\naccount=${1:?storage account} container=${2:?container}\nfolder=${3:-/data/$container}\n"
           "if ! command -v blobfuse2 > /dev/null; then\n"
           "    # shellcheck source=/dev/null\n    . /etc/os-release\n"
           "    curl -fsSLo /tmp/packages-microsoft-prod.deb \\\n"
           "        \"https://packages.microsoft.com/config/ubuntu/$VERSION_ID/packages-microsoft-prod.deb\"\n"
           "    dpkg -i /tmp/packages-microsoft-prod.deb\n    apt-get update\n    apt-get install -y blobfuse2 fuse3\n"
           "fi\n"
           "# /mnt is the machine's own disk, empty after each start: four fifths of what is free there.\n"
           "mkdir -p \"$folder\" && install -d -m 0700 \"/mnt/blobfuse-$container\"\n"
           "free_mb=$(df --output=avail -m /mnt | tail -n 1)\n"
           "cat > \"/etc/blobfuse2-$container.yaml\" << CONFIG\n"
           "allow-other: true\nlogging: {type: syslog, level: log_warning}\n"
           "components: [libfuse, file_cache, attr_cache, azstorage]\n"
           "file_cache: {path: /mnt/blobfuse-$container, timeout-sec: 86400, max-size-mb: $((free_mb * 8 / 10))}\n"
           "azstorage: {type: block, account-name: $account, container: $container, mode: msi}\nCONFIG\n"
           "cat > \"/etc/systemd/system/blobs-$container.service\" << UNIT\n"
           "[Unit]\nDescription=Blob container $container at $folder\nAfter=network-online.target\n"
           "Wants=network-online.target\n\n[Service]\n"
           "ExecStartPre=/usr/bin/install -d -m 0700 /mnt/blobfuse-$container\n"
           "ExecStart=/usr/bin/blobfuse2 mount $folder --config-file=/etc/blobfuse2-$container.yaml --foreground=true\n"
           "ExecStop=/usr/bin/blobfuse2 unmount "
           "$folder\nRestart=on-failure\n\n[Install]\nWantedBy=multi-user.target\nUNIT\n"
           "systemctl daemon-reload\nsystemctl enable --now \"blobs-$container.service\"\n";
}

// Driver, toolkit, Slurm or k3s, and the check as a unit: what on-prem has as files, in one.
std::string own_cloud_config(const Deployment& d) {
    std::string out = "#cloud-config\n" + head_comment(d) + "write_files:\n";
    if (const std::string exports = environment_exports(d); !exports.empty())
        out += written("/etc/profile.d/stoker.sh", "0644", exports);
    for (const FileToWrite& file : own_node_files(d))
        out += written("/opt/stoker/" + file.path, file.mode == 0755 ? "0755" : "0644", file.content);
    return out +
           "runcmd:\n- [/opt/stoker/node-setup.sh]\n"
           "# A driver that was put in is loaded by now, or after the next start.\n- [/usr/local/sbin/node-check]\n";
}

}  // namespace

Machines machines_of(const Deployment& d) {
    Machines out{.count = d.nodes.count,
                 .gpus = static_cast<int>(std::ceil(d.nodes.gpus)),
                 .vcpus = d.nodes.vcpus,
                 .memory_bytes = d.nodes.memory_bytes};
    if (!d.nodes.mig) return out;
    const MigCut& mig = *d.nodes.mig;
    out.count = mig.machines > 0 ? mig.machines : (d.nodes.count + mig.parts() - 1) / mig.parts();
    out.gpus = mig.gpus, out.vcpus = mig.vcpus, out.memory_bytes = mig.memory.v;
    return out;
}

std::string node_check_script(const Deployment& d) {
    const Machines machines = machines_of(d);
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out +=
        "# Ends with 1 and says what is missing: no work starts on such a node.\nset -u\n\nbad=0\nfail() { echo "
        "\"node-check: $*\"; bad=1; }\n\n";
    const int gpus = machines.gpus;
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
    if (d.nodes.mig)
        out += fmt::format(
            "parts=$(nvidia-smi -L 2>/dev/null | grep -c '  MIG {0} ')\n[ \"$parts\" = {1} ] || fail \"$parts of {1} "
            "parts of {0}: mig-layout makes them\"\n",
            d.nodes.mig->profile, d.nodes.mig->parts());
    if (gpus > 0 && d.nodes.gpu_vendor == "AMD")
        out += fmt::format(
            "count=$(rocm-smi --showid 2>/dev/null | grep -c 'Device Name')\n[ \"$count\" = {0} ] || fail \"$count of "
            "{0} GPUs\"\n",
            gpus);
    // A rented machine alone has ports that are joined to nobody's.
    if (d.nodes.fabric.kind == "infiniband" && (d.nodes.count > 1 || d.nodes.cloud == "on-prem"))
        out +=
            "for state in /sys/class/infiniband/*/ports/*/state; do\n    grep -q ACTIVE \"$state\" || fail "
            "\"${state%/state} is not active\"\ndone\n";
    const auto least_gib = static_cast<std::int64_t>(machines.memory_bytes * 0.95 / (1LL << 30));
    if (least_gib > 0)
        out += fmt::format(
            "memory=$(awk '/MemTotal/ {{print int($2 / 1048576)}}' /proc/meminfo)\n"
            "[ \"$memory\" -ge {0} ] || fail \"$memory GiB of memory, and the plan counts on {0}\"\n",
            least_gib);
    return out + fmt::format("[ \"$bad\" = 1 ] || echo '{}'\nexit \"$bad\"\n", kAsPlanned);
}

std::string cloud_config(const Deployment& d) {
    if (d.nodes.cloud == "on-prem") return own_cloud_config(d);
    const bool azure = d.nodes.cloud == "azure";
    const bool disk = d.nodes.disk && d.nodes.disk->gib > 0 && azure;
    std::string out = "#cloud-config\n" + head_comment(d);
    if (disk)
        out +=
            "# The data disk is lun 0, whatever name the kernel gives it.\n"
            "disk_setup:\n  /dev/disk/azure/scsi1/lun0: {table_type: gpt, layout: true, overwrite: false}\n"
            "fs_setup:\n- {device: /dev/disk/azure/scsi1/lun0, partition: auto, filesystem: ext4, overwrite: false}\n"
            "mounts:\n- [/dev/disk/azure/scsi1/lun0-part1, /data, ext4, \"defaults,nofail\", \"0\", \"2\"]\n";
    const std::string exports = environment_exports(d);
    out += "write_files:\n" + written("/etc/profile.d/stoker.sh", "0644",
                                      exports.empty() ? "# The plan asks for no environment.\n" : exports);
    out += written("/usr/local/sbin/node-check", "0755", node_check_script(d));
    if (azure) out += written("/usr/local/sbin/mount-blobs", "0755", mount_blobs_script());
    const bool sends = azure && azure_shape(d).least > 0;
    if (sends)
        out += written("/usr/local/sbin/gpu-load", "0755", gpu_load_script()) +
               written("/etc/systemd/system/gpu-load.service", "0644", gpu_load_unit());
    std::string commands = disk ? "- [mkdir, -p, /data/work]\n" : "";
    // A driver that an extension puts in comes behind the first boot, and the check with it.
    if (!azure || !azure_shape(d).driver_extension) commands += "- [/usr/local/sbin/node-check]\n";
    if (sends) commands += "- [systemctl, enable, --now, gpu-load.service]\n";
    return commands.empty() ? out : out + "runcmd:\n" + commands;
}

std::string custom_image_script(const Deployment& d) {
    const AzureShape s = azure_shape(d);
    return "#!/bin/bash\n" + head_comment(d) +
           fmt::format(
               "# A custom image: a machine after its first boot, for many that then start without it. A small one "
               "makes it,\n"
               "# whose check will miss the GPUs.\n"
               "#   SSH_KEY=~/.ssh/id_ed25519.pub ./{0}-image.sh   # it ends with the id for az vm create --image\nset "
               "-eu\n\n"
               "here=$(cd \"$(dirname \"$0\")\" && pwd)\ngroup=${{GROUP:-{1}-image-rg}}\nlocation=${{LOCATION:-{2}}}\n"
               "key=${{SSH_KEY:?file of your public SSH key}}\n\n"
               "az group create -n \"$group\" -l \"$location\" \\\n    --tags {8}\n"
               "# It fetches packages and answers nobody.\n"
               "az vm create -g \"$group\" -n {1}-base --size {3} --image {4}:{5}:{6}:{7} --nsg-rule NONE \\\n"
               "    --public-ip-sku Standard --security-type Standard --authentication-type ssh --admin-username "
               "azureuser "
               "\\\n    --ssh-key-values \"$key\" --custom-data \"$here/cloud-init.yaml\"\n"
               "# Nothing of this machine stays in the image: no key, no name, no log.\n"
               "az vm run-command invoke -g \"$group\" -n {1}-base --command-id RunShellScript \\\n"
               "    --scripts 'cloud-init status --wait; cloud-init clean --logs; waagent -deprovision+user -force'\n"
               "az vm deallocate -g \"$group\" -n {1}-base\naz vm generalize -g \"$group\" -n {1}-base\n"
               "az image create -g \"$group\" -n {1} --source {1}-base --hyper-v-generation V2\n"
               "az vm delete -g \"$group\" -n {1}-base --yes\n"
               "az image show -g \"$group\" -n {1} --query id -o tsv\n",
               d.name, s.name, s.location, kSystemSize, s.publisher, s.offer, s.sku, s.version, az_tags(s.name));
}

}  // namespace stoker
