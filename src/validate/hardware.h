// The machines of published rows: from a printed device name and what is said of the links to the Device of the cost
// model. Nothing is known here of a row but what its columns mean.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "sizing/device.h"
#include "validate/networks.h"
#include "validate/processors.h"

namespace stoker::validate {

struct NamedDevice {
    int accelerator = -1;  // -1: `refused` says why
    double part = 1;       // of one device: a MIG slice
    double part_memory = 0;
    double instances = 1;     // such slices on one device, all of them at work
    double memory_share = 1;  // of the catalogue's variant that was taken for it: what the printed name has
    double most_memory = 0;   // bytes of the largest device that goes by this name, where the memory is not stated
    std::string refused;      // unknown_device:NAME
    std::vector<std::string> assumed;  // the catalogue has no such variant, and which was taken
};

struct ClusterText {
    std::string_view gpu_model{}, intra_link{}, inter_link{};
    std::string_view source{};  // its network, where it published one and the row names none
    double gpu_mem_gb = 0;      // 0: not stated
    double gpus_per_node = 0;   // 0: not stated
    double gpus = 1;            // whole job
    bool processors = false;    // a name of a processor is one socket of it
};

struct Cluster {
    std::shared_ptr<const Device> device;
    double most_memory = 0;  // as of NamedDevice
    std::string key;         // of the device: equal keys, equal devices
    int nodes = 1;
    int accelerator = -1;                       // of the catalogue; -1: a processor
    double instances = 1;                       // MIG slices of each device, all of them at work
    const PublishedNetwork* network = nullptr;  // of the source, where it is taken; owned by the Hardware
    std::string refused;
    std::vector<std::string> assumed;
};

// Owns a copy of the catalogue, to which the nodes it makes up are added.
class Hardware {
public:
    explicit Hardware(const Catalog& catalog);

    const Catalog& catalog() const { return catalog_; }
    const NamedDevice& find(std::string_view name, double memory_gb);
    Cluster cluster(const ClusterText& text);
    double most_memory() const;  // bytes of the largest device there is

private:
    std::shared_ptr<const Device> device_of(const NamedDevice& named, double per_node, std::string_view gpu_link,
                                            double gbps_per_node, std::string_view rdma,
                                            const PublishedNetwork* network, const std::string& key);
    double usual_gbps_per_gpu(int accelerator) const;

    Cluster sockets(const ClusterText& text);

    Catalog catalog_;
    Processors processors_;
    PublishedNetworks networks_;
    std::map<std::string, NamedDevice, std::less<>> names_;
    std::map<std::string, std::shared_ptr<const Device>, std::less<>> devices_;
};

// What one node sends and receives, in Gb/s, as printed: "8x ConnectX-7 IB NDR 400Gb/s" -> 3200, "1600 Gb/s per node"
// -> 1600. Storage and management adapters do not count where the text tells them apart. 0: the text has no figure.
double gbps_of_node(std::string_view text);

}  // namespace stoker::validate
