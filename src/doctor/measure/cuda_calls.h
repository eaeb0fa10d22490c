// The part of CUDA's driver library and of NCCL that measuring takes, declared by ourselves and found by dlopen: a
// machine that has the driver has no headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace stoker {

namespace cuda {

using Device = int;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Memory = std::uint64_t;
inline constexpr int kOk = 0, kPeerAlreadyEnabled = 704,
                     kProcessors = 16 /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */;

}  // namespace cuda

struct CudaCalls {
    int (*init)(unsigned flags) = nullptr;
    int (*error_text)(int code, const char** text) = nullptr;
    int (*device_count)(int* count) = nullptr;
    int (*device)(cuda::Device* device, int ordinal) = nullptr;
    int (*device_name)(char* name, int size, cuda::Device device) = nullptr;
    int (*device_pci)(char* pci, int size, cuda::Device device) = nullptr;
    int (*device_attribute)(int* value, int attribute, cuda::Device device) = nullptr;
    int (*retain)(cuda::Context* context, cuda::Device device) = nullptr;
    int (*set_current)(cuda::Context context) = nullptr;
    int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
    int (*allocate)(cuda::Memory* memory, std::size_t size) = nullptr;
    int (*release)(cuda::Memory memory) = nullptr;
    int (*allocate_host)(void** memory, std::size_t size) = nullptr;
    int (*release_host)(void* memory) = nullptr;
    int (*copy_to)(cuda::Memory to, const void* from, std::size_t size, cuda::Stream stream) = nullptr;
    int (*copy_from)(void* to, cuda::Memory from, std::size_t size, cuda::Stream stream) = nullptr;
    int (*copy_within)(cuda::Memory to, cuda::Memory from, std::size_t size, cuda::Stream stream) = nullptr;
    int (*can_access)(int* can, cuda::Device device, cuda::Device peer) = nullptr;
    int (*enable_peer)(cuda::Context peer, unsigned flags) = nullptr;
    int (*copy_peer)(cuda::Memory to, cuda::Context to_context, cuda::Memory from, cuda::Context from_context,
                     std::size_t size, cuda::Stream stream) = nullptr;
    int (*load_module)(cuda::Module* module, const void* image) = nullptr;
    int (*function)(cuda::Function* function, cuda::Module module, const char* name) = nullptr;
    int (*launch)(cuda::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, cuda::Stream stream, void** parameters,
                  void** extra) = nullptr;
    int (*make_event)(cuda::Event* event, unsigned flags) = nullptr;
    int (*record)(cuda::Event event, cuda::Stream stream) = nullptr;
    int (*wait_event)(cuda::Event event) = nullptr;
    int (*elapsed)(float* ms, cuda::Event begin, cuda::Event end) = nullptr;
    int (*synchronize)() = nullptr;

    std::string text_of(int code) const;
};
// not_found: there is none here.
Result<CudaCalls> open_cuda();

struct NcclCalls {
    using Communicator = struct CommunicatorTag*;
    int (*init_all)(Communicator* communicators, int count, const int* devices) = nullptr;
    int (*destroy)(Communicator communicator) = nullptr;
    int (*begin_group)() = nullptr;
    int (*end_group)() = nullptr;
    int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation, Communicator communicator,
                      cuda::Stream stream) = nullptr;
    const char* (*error_text)(int code) = nullptr;
};
inline constexpr int kNcclFloat = 7, kNcclSum = 0;
Result<NcclCalls> open_nccl();

}  // namespace stoker
