// Outputs of tools in their true formats, written for the tests: no file of anybody's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker::samples {

// Driver 418: two lines a GPU.
inline constexpr std::string_view kSmiOld = R"(Tue Mar 10 08:11:02 2020
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 418.87.01    Driver Version: 418.87.01    CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla T4            Off  | 00000001:00:00.0 Off |                    0 |
| N/A   34C    P8     9W /  70W |      0MiB / 15109MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
)";

// Driver 535: wide first column, MIG line; the second GPU has uncorrected errors.
inline constexpr std::string_view kSmiNew = R"(Thu Nov 19 10:02:44 2026
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.161.08             Driver Version: 535.161.08   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  | 00000001:00:00.0 Off |                    0 |
| N/A   31C    P0              62W / 400W |      4MiB / 81920MiB |      0%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  | 00000002:00:00.0 Off |                   17 |
| N/A   33C    P0              64W / 400W |  61440MiB / 81920MiB |     99%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|=======================================================================================|
|    1   N/A  N/A      4242      C   python3                                   61420MiB |
+---------------------------------------------------------------------------------------+
)";

// Driver 570: MIG on the first GPU, without a device on the second.
inline constexpr std::string_view kSmiMig =
    R"(+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.133.20             Driver Version: 570.133.20     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100 80GB PCIe          On  |   00000001:00:00.0 Off |                   On |
| N/A   40C    P0             88W /  300W |     249MiB /  81920MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100 80GB PCIe          On  |   00000002:00:00.0 Off |                   On |
| N/A   41C    P0             90W /  300W |       0MiB /  81920MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    1   0   0  |             107MiB / 40192MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 0MiB / 65535MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    5   0   1  |              71MiB / 19968MiB    | 28      0 |  2   0    1    0    0 |
|                  |                 0MiB / 32767MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
)";

inline constexpr std::string_view kSmiXml = R"(<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Thu Nov 19 10:05:00 2026</timestamp>
	<driver_version>535.161.08</driver_version>
	<cuda_version>12.2</cuda_version>
	<attached_gpus>2</attached_gpus>
	<gpu id="00000001:00:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<minor_number>0</minor_number>
		<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
		<pci>
			<pci_bus_id>00000001:00:00.0</pci_bus_id>
			<pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info>
		</pci>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
			<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
		</clocks_event_reasons>
		<fb_memory_usage><total>81559 MiB</total><reserved>551 MiB</reserved><used>0 MiB</used><free>81007 MiB</free></fb_memory_usage>
		<utilization><gpu_util>0 %</gpu_util></utilization>
		<ecc_errors><volatile><sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity><sram_uncorrectable_secded>0</sram_uncorrectable_secded><dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>
		<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
		<temperature><gpu_temp>31 C</gpu_temp></temperature>
	</gpu>
	<gpu id="00000002:00:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<minor_number>1</minor_number>
		<mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
		<pci>
			<pci_bus_id>00000002:00:00.0</pci_bus_id>
			<pci_gpu_link_info><link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths></pci_gpu_link_info>
		</pci>
		<clocks_event_reasons>
			<clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
		</clocks_event_reasons>
		<fb_memory_usage><total>81559 MiB</total><reserved>551 MiB</reserved><used>0 MiB</used><free>81007 MiB</free></fb_memory_usage>
		<utilization><gpu_util>0 %</gpu_util></utilization>
		<ecc_errors><volatile><dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>
		<remapped_rows><remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
	</gpu>
</nvidia_smi_log>
)";

inline constexpr std::string_view kSmiCsv =
    R"(index, name, driver_version, memory.total [MiB], memory.used [MiB], utilization.gpu [%], ecc.errors.uncorrected.volatile.total
0, Tesla T4, 535.161.08, 15360 MiB, 0 MiB, 0 %, 0
1, Tesla T4, 535.161.08, [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]
)";

// Four of the GPUs of an NVSwitch node; GPU3 has lost links. Driver 535 underlines the header.
inline constexpr std::string_view kTopology =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tNV17\tPIX\tSYS\t0-47\t0\n"
    "GPU1\tNV18\t X \tNV18\tNV17\tPIX\tSYS\t0-47\t0\n"
    "GPU2\tNV18\tNV18\t X \tNV17\tSYS\tPIX\t48-95\t1\n"
    "GPU3\tNV17\tNV17\tNV17\t X \tSYS\tPIX\t48-95\t1\n"
    "NIC0\tPIX\tPIX\tSYS\tSYS\t X \tSYS\t\t\n"
    "NIC1\tSYS\tSYS\tPIX\tPIX\tSYS\t X \t\t\n"
    "\n"
    "Legend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
    "NIC Legend:\n\n"
    "  NIC0: mlx5_0\n"
    "  NIC1: mlx5_1\n";

inline constexpr std::string_view kNcclSocket =
    R"(gpu-a:412:412 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
gpu-a:412:412 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>
gpu-a:412:412 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
gpu-a:412:498 [0] NCCL INFO NET/IB : No device found.
gpu-a:412:498 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.4<0>
gpu-a:412:498 [0] NCCL INFO Using network Socket
gpu-b:377:455 [0] NCCL INFO Using network Socket
gpu-a:412:498 [0] NCCL INFO comm 0x55d0c0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 100000 commId 0x9a1b - Init START
gpu-a:412:498 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
gpu-a:412:498 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/0
gpu-a:412:498 [0] NCCL INFO comm 0x55d0c0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 100000 commId 0x9a1b - Init COMPLETE
)";

inline constexpr std::string_view kNcclGood = R"(gpu-a:412:412 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>
gpu-a:412:412 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
gpu-a:412:498 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [4]mlx5_4:1/IB [5]mlx5_5:1/IB [6]mlx5_6:1/IB [7]mlx5_7:1/IB [RO]; OOB eth0:10.0.0.4<0>
gpu-a:412:498 [0] NCCL INFO Using network IB
gpu-b:377:455 [0] NCCL INFO Using network IB
gpu-a:412:498 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA
gpu-a:412:498 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
gpu-a:412:498 [0] NCCL INFO comm 0x55d0c0 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 100000 commId 0x9a1b - Init COMPLETE
)";

inline constexpr std::string_view kIbSlow =
    R"(---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_3
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 PCIe relax order: ON
 ibv_wr* API     : ON
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : IB
 Max inline data : 0[B]
 rdma_cm QPs	 : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0x2c QPN 0x0921 PSN 0x5e30c8 RKey 0x2000201 VAddr 0x007fe663d20000
 remote address: LID 0x31 QPN 0x0918 PSN 0xf40c3c RKey 0x2000201 VAddr 0x007f282a06e000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             94.20              94.11   		   0.179500
 1048576    5000             94.31              94.02   		   0.011208
---------------------------------------------------------------------------------------
)";

inline constexpr std::string_view kNcclTests =
    R"(# nThread 1 nGpus 8 minBytes 8589934592 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  41200 on      gpu-a device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  41200 on      gpu-a device  1 [0x00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  41200 on      gpu-a device  2 [0x00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  41200 on      gpu-a device  3 [0x00] NVIDIA H100 80GB HBM3
#  Rank  4 Group  0 Pid  41200 on      gpu-a device  4 [0x00] NVIDIA H100 80GB HBM3
#  Rank  5 Group  0 Pid  41200 on      gpu-a device  5 [0x00] NVIDIA H100 80GB HBM3
#  Rank  6 Group  0 Pid  41200 on      gpu-a device  6 [0x00] NVIDIA H100 80GB HBM3
#  Rank  7 Group  0 Pid  41200 on      gpu-a device  7 [0x00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  8589934592    2147483648     float     sum      -1    31800  270.12  472.71      0    31810  270.03  472.56      0
 17179869184    4294967296     float     sum      -1    63400  270.97  474.20      0    63380  271.06  474.35      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 473.455
#
)";

inline constexpr std::string_view kPods = R"({
  "apiVersion": "v1",
  "kind": "List",
  "items": [
    {
      "apiVersion": "v1",
      "kind": "Pod",
      "metadata": {"name": "train-0", "namespace": "ml"},
      "spec": {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "4", "nvidia.com/gpu": "8"}}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
      },
      "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."}]
      }
    }
  ]
}
)";

inline constexpr std::string_view kNodes = R"({
  "apiVersion": "v1",
  "kind": "List",
  "items": [
    {
      "apiVersion": "v1", "kind": "Node",
      "metadata": {"name": "gpu-1", "labels": {"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5", "pool": "h100"}},
      "spec": {"taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]},
      "status": {
        "allocatable": {"cpu": "95", "memory": "1900Gi", "nvidia.com/gpu": "8"},
        "capacity": {"cpu": "96", "memory": "1900Gi", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}]
      }
    },
    {
      "apiVersion": "v1", "kind": "Node",
      "metadata": {"name": "system-1", "labels": {"node.kubernetes.io/instance-type": "Standard_D8s_v5"}},
      "spec": {},
      "status": {
        "allocatable": {"cpu": "7", "memory": "28Gi"},
        "capacity": {"cpu": "8", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}]
      }
    }
  ]
}
)";

inline constexpr std::string_view kDcgmJson = R"(WARNING: the host engine is older than this program
{
  "DCGM GPU Diagnostic": {
    "test_categories": [
      {"category": "Deployment", "tests": [
        {"name": "Denylist", "results": [{"gpu_ids": "0,1", "status": "PASS"}]}, null,
        {"name": "Persistence Mode", "results": [{"gpu_ids": "0,1", "status": "WARN", "warnings": ["Persistence mode for GPU 1 is disabled."]}]}
      ]},
      {"category": "Hardware", "tests": [
        {"name": "GPU Memory", "results": [{"gpu_ids": "0", "status": "PASS"}, {"gpu_ids": "1", "status": "FAIL", "warnings": ["GPU 1 had uncorrectable memory errors and row remapping failed."]}]}
      ]}
    ],
    "version": "3.3.8"
  }
}
)";

inline constexpr std::string_view kDcgmText = R"(Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.8                                          |
| Driver Version Detected   | 535.161.08                                     |
| GPU Device IDs Detected   | 2330,2330                                      |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| NVML Library              | Pass                                           |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Fail - GPU: 1                                  |
| Warning                   | GPU 1 Detected 42 PCIe replays per minute,     |
|                           | which is above the limit of 8                  |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Pass - All                                     |
+-----  Stress  ------------+------------------------------------------------+
| Targeted Power            | Skip - All                                     |
+---------------------------+------------------------------------------------+
)";

inline constexpr std::string_view kSkus = R"([
  {
    "name": "Standard_ND96isr_H100_v5", "family": "standardNDSH100v5Family", "resourceType": "virtualMachines",
    "locations": ["eastus2"], "locationInfo": [{"location": "eastus2", "zones": ["1", "2", "3"]}],
    "capabilities": [{"name": "vCPUs", "value": "96"}, {"name": "GPUs", "value": "8"}],
    "restrictions": [
      {"type": "Zone", "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"locations": ["eastus2"], "zones": ["2", "3"]}, "values": ["eastus2"]}
    ]
  },
  {
    "name": "Standard_NC96ads_A100_v4", "family": "StandardNCADSA100v4Family", "resourceType": "virtualMachines",
    "locations": ["eastus2"], "locationInfo": [{"location": "eastus2", "zones": ["1", "2"]}],
    "capabilities": [{"name": "vCPUs", "value": "96"}, {"name": "GPUs", "value": "4"}],
    "restrictions": [
      {"type": "Location", "reasonCode": "QuotaId", "restrictionInfo": {"locations": ["eastus2"]}, "values": ["eastus2"]},
      {"type": "Zone", "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"locations": ["eastus2"], "zones": ["1"]}, "values": ["eastus2"]}
    ]
  },
  {
    "name": "Standard_NC4as_T4_v3", "family": "Standard NCASv3_T4 Family", "resourceType": "virtualMachines",
    "locations": ["eastus2"], "locationInfo": [{"location": "eastus2", "zones": ["1", "2", "3"]}],
    "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "GPUs", "value": "1"}],
    "restrictions": []
  }
]
)";

inline constexpr std::string_view kUsage = R"([
  {"currentValue": 900, "id": "/subscriptions/0/x", "limit": 1000, "localName": "Total Regional vCPUs", "name": {"localizedValue": "Total Regional vCPUs", "value": "cores"}},
  {"currentValue": 16, "limit": 96, "name": {"localizedValue": "Standard NDSH100v5 Family vCPUs", "value": "standardNDSH100v5Family"}},
  {"currentValue": 0, "limit": 0, "name": {"localizedValue": "Standard NVSv3 Family vCPUs", "value": "standardNVSv3Family"}},
  {"currentValue": 0, "limit": 100, "name": {"localizedValue": "Total Regional Low-priority vCPUs", "value": "lowPriorityCores"}}
]
)";

inline constexpr std::string_view kExtension = R"({
  "name": "NvidiaGpuDriverLinux",
  "provisioningState": "Failed",
  "publisher": "Microsoft.HpcCompute",
  "typeHandlerVersion": "1.9",
  "typePropertiesType": "NvidiaGpuDriverLinux",
  "instanceView": {"name": "NvidiaGpuDriverLinux", "statuses": [{"code": "ProvisioningState/failed/51", "displayStatus": "Provisioning failed", "level": "Error", "message": "Linux kernel headers for 6.8.0-1041-azure are not available"}]}
}
)";

// kubectl get pods -o yaml; what a whole cluster prints is in tests/kube/recorded.
inline constexpr std::string_view kPodYaml = R"(apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      note: |
        two lines
        --- of text
    name: train
    namespace: ml
  spec:
    containers:
    - image: nvidia/cuda:12.4.1-base-ubuntu22.04
      name: main
      resources:
        limits:
          nvidia.com/gpu: "8"
    tolerations:
    - effect: NoExecute
      key: node.kubernetes.io/not-ready
      operator: Exists
      tolerationSeconds: 300
  status:
    conditions:
    - message: '0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption:
        0/1 nodes are available: 1 Preemption is not helpful for scheduling.'
      reason: Unschedulable
      status: "False"
      type: PodScheduled
    phase: Pending
kind: List
metadata:
  resourceVersion: ""
)";

// ib_write_bw -d mlx5_3 --report_gbits --out_json
inline constexpr std::string_view kIbJson = R"({
"test_info": {
"test": "RDMA_Write_BW_Test",
"Dual_port": "OFF",
"Device": "mlx5_3",
"Number_of_qps": 1,
"Transport_type": "IB",
"Connection_type": "RC",
"Using_SRQ": "OFF",
 "PCIe_relax_order": "Unsupported",
"ibv_wr_API": "ON",
"TX_depth": 128,
"CQ_Moderation": 1,
"Mtu": 4096,
"Link_type": "IB",
"Max_inline_data": 0,
"rdma_cm_QPs": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 5000,
"BW_peak": 94.20,
"BW_average": 94.11,
"MsgRate": 0.179500
}
}
)";

// all_reduce_perf -b 16G -e 16G -g 8 -J FILE.json
inline constexpr std::string_view kNcclJson =
    R"({"version":3,"start_time":"2026-11-19 10:02:44","args":["./build/all_reduce_perf","-b","16G","-e","16G","-g","8","-J","n.json"],"env":["HOME=/root"],"nccl_version":22807,"config":{"nthreads":1,"ngpus":8,"minimum_bytes":17179869184,"maximum_bytes":17179869184,"step_factor":2,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":"false","per_iter_timing":"false","per_iter_skip":0,"parallel_init":"false","devices":[{"rank":0,"group":0,"pid":4711,"hostname":"gpu-a","device":0,"device_hex":"0001:00:00","device_info":"NVIDIA H100 80GB HBM3"}]},"results":[
{"size":17179869184,"count":4294967296,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":63420.000000,"alg_bw":270.890000,"bus_bw":474.060000,"nwrong":0.000000},"in_place":{"time":63400.000000,"alg_bw":270.970000,"bus_bw":474.200000,"nwrong":0.000000},"actual_iterations":20,"experiment_name":"AllReduce"}],"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":474.130000,"okay":"unchecked"},"errors":[""],"end_time":"2026-11-19 10:02:52"})";

inline const std::vector<std::pair<std::string, std::string_view>>& all() {
    static const std::vector<std::pair<std::string, std::string_view>> list = {{"nvidia-smi", kSmiOld},
                                                                               {"nvidia-smi", kSmiNew},
                                                                               {"nvidia-smi", kSmiMig},
                                                                               {"nvidia-smi -q -x", kSmiXml},
                                                                               {"nvidia-smi --query-gpu", kSmiCsv},
                                                                               {"nvidia-smi topo -m", kTopology},
                                                                               {"NCCL log", kNcclSocket},
                                                                               {"NCCL log", kNcclGood},
                                                                               {"ib_write_bw", kIbSlow},
                                                                               {"ib_write_bw", kIbJson},
                                                                               {"nccl-tests", kNcclTests},
                                                                               {"nccl-tests", kNcclJson},
                                                                               {"kubectl get or describe", kPods},
                                                                               {"kubectl get or describe", kNodes},
                                                                               {"kubectl get or describe", kPodYaml},
                                                                               {"dcgmi diag -j", kDcgmJson},
                                                                               {"dcgmi diag", kDcgmText},
                                                                               {"az vm list-skus", kSkus},
                                                                               {"az vm list-usage", kUsage},
                                                                               {"az vm extension show", kExtension}};
    return list;
}

}  // namespace stoker::samples
