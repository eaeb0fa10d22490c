#include "deploy/fabric_environment.h"

#include "deploy/deployment.h"

namespace stoker {

std::vector<FabricSetting> fabric_environment(const Deployment& deployment) {
    std::vector<FabricSetting> out;
    const NodeSet& nodes = deployment.nodes;
    if (!deployment.training || deployment.ranks.count < 2 || nodes.gpus <= 0) return out;
    out.push_back({"CUDA_DEVICE_ORDER", "PCI_BUS_ID", "numbers mean what nvidia-smi shows",
                   "CUDA C++ Programming Guide, environment variables"});
    if (nodes.count < 2) return out;
    if (nodes.cloud == "azure")
        out.push_back({"NCCL_SOCKET_IFNAME", "eth0",
                       nodes.fabric.kind == "infiniband"
                           ? "ranks find each other over Ethernet; data goes over InfiniBand"
                           : "the one interface that joins the VMs",
                       "Azure/azurehpc, experimental/ndv4"});
    if (nodes.fabric.kind == "infiniband" && nodes.cloud == "azure") {
        out.push_back({"NCCL_IB_PCI_RELAXED_ORDERING", "1",
                       "in a VM the network cards reach the GPUs at their full rate only with relaxed ordering",
                       "Azure/azhpc-images, customizations/ndv4.sh"});
        const bool a100 = nodes.gpu.starts_with("A100"), hopper = nodes.gpu.starts_with("H");
        if (a100 || hopper)
            out.push_back(
                {"NCCL_TOPO_FILE", a100 ? "/opt/microsoft/ndv4/topo.xml" : "/opt/microsoft/ndv5/topo.xml",
                 "the VM hides which network card sits beside which GPU; the HPC image has the file, a "
                 "container has to mount /opt/microsoft",
                 a100 ? "Azure/azhpc-images, customizations/ndv4.sh" : "Azure/azhpc-images, customizations/ndv5.sh"});
    }
    if (nodes.fabric.kind == "efa")
        out.push_back({"FI_PROVIDER", "efa", "libfabric would also be content with TCP", "aws/aws-ofi-nccl, README"});
    return out;
}

}  // namespace stoker
