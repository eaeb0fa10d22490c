// What rules ask about, whichever language it was written in: a Terraform scale set, a Bicep one and `az vmss create`
// are all a Resource of type scale_set with the same attributes. Made by the front ends, read by the rules.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/script.h"

namespace stoker::lint {

class File;

// ---- Clouds: Terraform, Bicep, ARM, az, Azure ML YAML -------------------------------------------------------------
enum class ResourceType : std::uint8_t {
    vm,
    scale_set,
    node_pool,  // of a managed Kubernetes; the default pool inside a cluster is one too
    cluster,    // managed Kubernetes
    batch_pool,
    aml_compute,   // a cluster of Azure ML
    aml_instance,  // a workstation of Azure ML
    aml_endpoint,  // an online deployment of Azure ML
    nic,
    vnet,
    subnet,
    security_rule,    // one rule of a network security group
    extension,        // of a VM or a scale set
    placement_group,  // proximity placement group
    availability_set,
    shutdown_schedule,
    autoscale_setting,
    budget,
    workspace,  // of Azure ML
    registry,
    storage,
    chart,      // helm_release, helm install
    feature,    // az feature register
    size_list,  // allowedValues, a validation list, a lookup table: sizes that are offered
    other
};

// The common name of a property; the comment says what it is in ARM where that is not plain.
enum class Attr : std::uint8_t {
    name,
    size,
    count,  // sku.capacity, instance-count, node_count
    min_count,
    max_count,
    autoscaling,  // on or off
    taint,        // one Value per taint, "key=value:Effect"
    node_label,   // "key=value"
    zone,         // one Value per zone
    single_placement_group,
    orchestration,  // Uniform, Flexible
    ppg,            // proximity placement group: present or what it names
    availability_set,
    scale_set,               // virtualMachineScaleSet of a VM
    accelerated_networking,  // of a NIC or of a scale set's NIC configuration
    image_publisher,
    image_offer,
    image_sku,
    image_version,
    image_urn,      // publisher:offer:sku:version, or an alias such as Ubuntu2204
    image_id,       // an own image
    security_type,  // Standard, TrustedLaunch, ConfidentialVM
    secure_boot,
    priority,  // Spot, Low, Regular, Dedicated
    eviction_policy,
    gpu_driver,    // gpuProfile.driver: Install, None
    gpu_instance,  // gpuInstanceProfile: MIG1g
    os_sku,
    os_type,
    pool_mode,  // System, User
    node_public_ip,
    public_ip,
    tag,  // "name=value"
    capacity_reservation,
    subnet,  // what it names
    vnet,
    address_prefix,  // one Value per range
    overprovision,
    extension_publisher,
    extension_type,
    extension_version,
    auto_upgrade_minor,
    target,  // the resource that an extension, schedule, budget or pool belongs to
    admin_password,
    password_login,  // true: allowed
    port,            // one Value per destination port or range
    source_prefix,   // one Value per source
    access,          // Allow, Deny
    direction,       // Inbound, Outbound
    protocol,
    idle_seconds,   // before scale-down; in seconds, whatever it was written in
    idle_shutdown,  // of an instance
    dedicated_nodes,
    low_priority_nodes,
    autoscale_formula,
    allowed_size,  // of a size_list, one Value per entry
    public_network_access,
    private_endpoint,
    kubernetes_version,
    scale_down_unneeded,
    metric,       // one Value per metric of an autoscale setting
    custom_data,  // decoded
    chart_name,
    chart_version,
    managed_gpu,       // AKS managed GPU pool (preview)
    nsg,               // --nsg, --nsg-rule of az
    image_os_version,  // 22.04 where the image says so
    feature_name,
    environment,    // of Azure ML: the curated environment or image
    process_count,  // per instance
    shm_size,
    network_interface,  // one Value per NIC that a VM names
    schedule            // of an Azure ML instance: it stops at fixed hours
};

struct Resource {
    ResourceType type = ResourceType::other;
    std::string address;       // tf:azurerm_x.y, bicep:symbol, arm:Type/name, az:vmss create/NAME: stable
    std::string_view written;  // "azurerm_linux_virtual_machine_scale_set", "az vmss create"
    Span header;               // the line(s) that name it: where something that is absent is told
    Span whole;
    const File* file = nullptr;
    const Source* source = nullptr;  // that header and whole are of
    const Node* node = nullptr;
    std::vector<std::pair<Attr, Value>> attributes;

    const Value& get(Attr attr) const;  // the first; an absent Value when there is none
    std::vector<const Value*> all(Attr attr) const;
    void set(Attr attr, Value value);  // appends; an absent value is dropped
};

// ---- Processes: everywhere ----------------------------------------------------------------------------------------
// One environment variable, of a container, a script, a Dockerfile, a job.
struct EnvVar {
    std::string_view name;
    Value value;
    Span span;  // name through value, of `value.source`
};

enum class Launcher : std::uint8_t {
    torchrun,
    torch_launch,  // python -m torch.distributed.launch
    deepspeed,
    accelerate,
    mpirun,
    srun,    // srun python ...: a rank per task
    python,  // a training program, one process
    vllm,
    sglang,
    tgi,
    trtllm,
    triton,
    other_server
};
constexpr bool is_server(Launcher launcher) {
    return launcher >= Launcher::vllm;
}

struct LaunchOption {
    std::string_view name;  // without dashes, '_' as '-': "tensor-parallel-size"
    Value value;            // absent for switches
    Span span;              // name through value
};

// One program that puts ranks or a model server on devices.
struct Launch {
    Launcher launcher = Launcher::python;
    const File* file = nullptr;  // the script or manifest it stands in
    const Source* source = nullptr;
    Span span;              // the whole command
    Span word;              // the launcher's name
    Value nodes, per_node;  // --nnodes, --nproc-per-node and what is called so elsewhere; devices per server
    Value master;           // --master-addr, --rdzv-endpoint
    Value program;          // train.py, the model of a server
    std::vector<LaunchOption> options;           // of launcher and program together, in order
    std::vector<LaunchOption> launcher_options;  // those of the launcher alone
    std::vector<EnvVar> environment;             // set for this command only (X=1 torchrun ..., mpirun -x)
    int command = -1;                            // index into script.commands
    int host_command = -1;  // of a launch inside bash -c, eval: index into the commands of the script outside
    bool under_srun = false;
    // Some of its words cannot be followed ("$@", an array that is filled elsewhere): what is not seen may be there.
    bool open = false;
    Value srun_tasks_per_node, srun_nodes;  // of that srun's own line

    const LaunchOption* option(std::string_view name) const;  // the last of that name
    bool trains() const { return !is_server(launcher); }
};

// ---- Containers: Kubernetes, compose, Azure ML --------------------------------------------------------------------
struct Quantity {
    std::string_view resource;  // "nvidia.com/gpu"
    Value amount;
    Span key_span;
    bool limit = false;  // else a request
};

struct Container {
    const Node* node = nullptr;
    std::string address;  // k8s:<namespace>/<Kind>/<name>#container/<name>, compose:<service>
    Value name, image;
    Span anchor;  // its name line: where something that is absent is told
    std::vector<Quantity> resources;
    std::vector<EnvVar> environment;
    std::vector<Value> command;        // command and args as written, in order
    std::vector<const File*> scripts;  // guests: what a shell is given in command or args
    std::vector<int> launches;         // into File::launches, those of its scripts and of its own words
    bool init = false, built_here = false;

    const Quantity* limit(std::string_view resource) const;
    const Quantity* request(std::string_view resource) const;
    const EnvVar* env(std::string_view wanted) const;
};

// A Kubernetes object that makes pods, or an object without pods (Service, HPA, PersistentVolumeClaim): pod is null.
struct Workload {
    std::string address;  // k8s:<namespace>/<Kind>/<name>
    std::string_view kind, name, name_space, api_version;
    const Node* object = nullptr;  // the document
    const Node* pod = nullptr;     // the pod's spec
    const Node* pod_metadata = nullptr;
    Value replicas;  // pods of this template; size of an LWS group is group_size
    Value group_size;
    std::vector<Container> containers;
};

// accelerator keys of Kubernetes: nvidia.com/gpu, nvidia.com/mig-*, amd.com/gpu, gpu.intel.com/i915, google.com/tpu ...
bool is_accelerator_resource(std::string_view key);

}  // namespace stoker::lint
