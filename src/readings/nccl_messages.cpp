#include "readings/nccl_messages.h"

namespace stoker {
namespace {

constexpr HealthLayer kNet = HealthLayer::network, kDevice = HealthLayer::device, kModel = HealthLayer::model;
constexpr HealthVerdict kFail = HealthVerdict::fail, kWarn = HealthVerdict::warn;

constexpr NcclMessage kNcclMessages[] = {
    {"Got completion from peer", "12", kNet, kFail, "nccl-errors",
     "an InfiniBand transfer got no answer (retries exceeded): a link, a switch or the other node is at fault",
     "ib_write_bw between the two nodes on this device; ibstat and perfquery -x for link errors; NCCL_IB_TIMEOUT=22 "
     "only "
     "hides it"},
    {"Got completion from peer", "", kNet, kFail, "nccl-errors", "an InfiniBand transfer ended with an error",
     "ib_write_bw between the two nodes on this device; dmesg | grep mlx5 at both ends"},
    {"Got completion with error", "", kNet, kFail, "nccl-errors", "an InfiniBand transfer ended with an error",
     "ib_write_bw between the two nodes on this device; dmesg | grep mlx5 at both ends"},
    {"ibv_reg_mr", "failed", kNet, kFail, "nccl-errors",
     "memory could not be registered with the adapter: the limit on locked memory is too low",
     "ulimit -l unlimited; in Kubernetes: capability IPC_LOCK, and LimitMEMLOCK=infinity of the container runtime; in "
     "Docker: --ulimit memlock=-1"},
    {"Call to ibv_modify_qp failed", "", kNet, kFail, "nccl-errors",
     "the queue pairs of two nodes cannot reach each other: another partition key, subnet or GID",
     "NCCL_IB_PKEY and NCCL_IB_GID_INDEX as at the other nodes; ibv_devinfo -v; on Azure one VM scale set per job"},
    {"Call to ibv_", "failed", kNet, kFail, "nccl-errors", "a call to the InfiniBand library failed",
     "ibv_devinfo on the node; dmesg | grep mlx5"},
    {"posix_fallocate failed", "", kDevice, kFail, "nccl-errors", "/dev/shm is full: NCCL's shared memory does not fit",
     "Kubernetes: an emptyDir with medium: Memory at /dev/shm; Docker: --shm-size=16g or --ipc=host"},
    {"creating shared memory segment", "", kDevice, kFail, "nccl-errors",
     "/dev/shm is full: NCCL's shared memory does not fit",
     "Kubernetes: an emptyDir with medium: Memory at /dev/shm; Docker: --shm-size=16g or --ipc=host"},
    {"Mismatched NCCL version detected", "", kDevice, kFail, "nccl-versions", "ranks run different versions of NCCL",
     "one image for all ranks: python -c 'import torch; print(torch.cuda.nccl.version())' on each node"},
    {"Duplicate GPU detected", "", kModel, kFail, "nccl-ranks", "two ranks use the same GPU",
     "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group; one process for each GPU"},
    {"no socket interface found", "", kNet, kFail, "nccl-interface",
     "no network interface is left: NCCL_SOCKET_IFNAME names one that is not there",
     "ip -br addr; NCCL_SOCKET_IFNAME=eth0, or unset it"},
    {"Connection refused", "", kNet, kFail, "nccl-errors",
     "another rank's port does not answer: it ended, or is filtered",
     "read the log of that node first; all ports open between the nodes of a job (NetworkPolicy, NSG)"},
    {"Connection closed by remote peer", "", kNet, kFail, "nccl-errors", "the rank at the other end ended first",
     "its own log has the cause; this line is a consequence"},
    {"connection closed by remote peer", "", kNet, kFail, "nccl-errors", "the rank at the other end ended first",
     "its own log has the cause; this line is a consequence"},
    {"Connection timed out", "", kNet, kFail, "nccl-errors", "packets between the nodes are dropped",
     "all ports open between the nodes of a job; the right interface: NCCL_SOCKET_IFNAME"},
    {"No route to host", "", kNet, kFail, "nccl-errors", "the nodes have no route to each other",
     "the right interface: NCCL_SOCKET_IFNAME; ip route get ADDRESS"},
    {"Message truncated", "", kModel, kFail, "nccl-ranks", "two ranks sent and expected different sizes",
     "all ranks must call the same collectives with the same shapes: uneven last batches, conditional branches"},
    {"Watchdog caught collective operation timeout", "", kModel, kFail, "nccl-timeout",
     "a collective did not end in time", ""},
    {"Cuda failure", "out of memory", kDevice, kFail, "nccl-errors", "no GPU memory is left for NCCL's buffers",
     "leave 1 to 2 GiB free: a smaller batch, or NCCL_BUFFSIZE=2097152"},
    {"Cuda failure", "", kDevice, kFail, "nccl-errors", "a CUDA call failed within NCCL",
     "dmesg | grep -i xid on that node; CUDA_LAUNCH_BLOCKING=1 finds a kernel of the program that failed before"},
    {"Signal", "reached", kModel, kWarn, "nccl-errors", "a rank was ended by a signal", "its own log has the cause"},
};

constexpr NcclMessage kResultCodes[] = {
    {"ncclUnhandledCudaError", "", kDevice, kFail, "nccl-errors", "a CUDA call failed within NCCL",
     "dmesg | grep -i xid on that node; NCCL_DEBUG=INFO names the call"},
    {"ncclSystemError", "", kNet, kFail, "nccl-errors", "a system call or the network library failed within NCCL",
     "NCCL_DEBUG=INFO: the line before names the call"},
    {"ncclRemoteError", "", kNet, kFail, "nccl-errors", "another rank ended, or its network did",
     "the log of the rank that ended first has the cause"},
    {"ncclInternalError", "", kDevice, kFail, "nccl-errors", "NCCL found itself in a state it should not be in",
     "NCCL_DEBUG=INFO: the line before says which; often a topology or a version that differs between nodes"},
    {"ncclInvalidUsage", "", kModel, kFail, "nccl-errors", "the program called NCCL wrongly",
     "NCCL_DEBUG=WARN prints what; often two ranks on one GPU"},
};

bool holds_message(const NcclMessage& message, std::string_view line) {
    const std::size_t at = line.find(message.text);
    return at != std::string_view::npos &&
           (message.also.empty() || line.find(message.also, at + message.text.size()) != std::string_view::npos);
}

// status=12, or IBV_WC_RETRY_EXC_ERR(12) since 2.20.
bool is_retry_exceeded(std::string_view line) {
    return line.find("status=12") != std::string_view::npos || line.find("(12)") != std::string_view::npos ||
           line.find("RETRY_EXC") != std::string_view::npos;
}

}  // namespace

const NcclMessage* nccl_message(std::string_view line) {
    for (const NcclMessage& each : kNcclMessages) {
        if (!holds_message(each, line)) continue;
        if (each.also == "12" && !is_retry_exceeded(line)) continue;
        return &each;
    }
    for (const NcclMessage& each : kResultCodes)
        if (holds_message(each, line)) return &each;
    return nullptr;
}

}  // namespace stoker
