// The machine Stoker runs on, as one more place where work can go.
#pragma once

#include <string>

#include "catalog/catalog.h"

namespace stoker {

// What somebody has measured here; zeros where nobody has.
struct MachineFacts {
    std::string name = "this-machine";  // of the node type
    std::string cpu_name;
    int vcpus = 0, cores = 0;
    double ghz = 0;
    double measured_fp32_gflops = 0, measured_memory_gb_s = 0;  // of the whole machine
    double measured_bf16_gflops = 0;  // 0: nobody has measured that it computes with them, and it is not planned
    Bytes memory;
    int accelerator = -1;  // of the catalogue; -1: none
    int accelerators = 0;
    int instances = 1;  // so many of them, joined by the loopback device: the ranks of one host, each as a machine
};

// Adds it as a node type of the cloud "this-machine", without a price. Returns its index.
int add_this_machine(const MachineFacts& facts, Catalog& catalog);

}  // namespace stoker
