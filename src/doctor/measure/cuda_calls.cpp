#include "doctor/measure/cuda_calls.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

namespace stoker {

namespace {

// Of one library; the first name that it lacks is kept.
class LibrarySymbols {
public:
    explicit LibrarySymbols(void* handle) : handle_(handle) {}

    template <class F>
    void find(F& call, const char* name) {
        call = reinterpret_cast<F>(::dlsym(handle_, name));
        if (!call && missing_.empty()) missing_ = name;
    }
    const std::string& missing() const { return missing_; }

private:
    void* handle_;
    std::string missing_;
};

// The variable names a file in the place of the usual one.
Result<void*> open_driver_library(const char* variable, const char* usual, const char* remedy) {
    const char* const named = std::getenv(variable);
    if (void* const handle = ::dlopen(named ? named : usual, RTLD_NOW | RTLD_LOCAL)) return handle;
    // "libcuda.so.1: cannot open shared object file: No such file or directory"
    return Error(ErrorKind::not_found, std::string(::dlerror()), {}, remedy);
}

Status all_found(const LibrarySymbols& symbols, const char* library) {
    if (symbols.missing().empty()) return done();
    return Error(ErrorKind::unsupported, fmt::format("{} has no {}", library, symbols.missing()), {},
                 "install a newer driver");
}

}  // namespace

std::string CudaCalls::text_of(int code) const {
    const char* text = nullptr;
    (void)error_text(code, &text);
    return text ? fmt::format("{} ({})", text, code) : fmt::format("error {}", code);
}

Result<CudaCalls> open_cuda() {
    TRY(void* const handle,
        open_driver_library("STOKER_CUDA_LIBRARY", "libcuda.so.1",
                            "install NVIDIA's driver, or give the container its libraries (--gpus all)"));
    LibrarySymbols symbols(handle);
    CudaCalls c;
    symbols.find(c.init, "cuInit");
    symbols.find(c.error_text, "cuGetErrorString");
    symbols.find(c.device_count, "cuDeviceGetCount");
    symbols.find(c.device, "cuDeviceGet");
    symbols.find(c.device_name, "cuDeviceGetName");
    symbols.find(c.device_pci, "cuDeviceGetPCIBusId");
    symbols.find(c.device_attribute, "cuDeviceGetAttribute");
    symbols.find(c.retain, "cuDevicePrimaryCtxRetain");
    symbols.find(c.set_current, "cuCtxSetCurrent");
    symbols.find(c.memory_info, "cuMemGetInfo_v2");
    symbols.find(c.allocate, "cuMemAlloc_v2");
    symbols.find(c.release, "cuMemFree_v2");
    symbols.find(c.allocate_host, "cuMemAllocHost_v2");
    symbols.find(c.release_host, "cuMemFreeHost");
    symbols.find(c.copy_to, "cuMemcpyHtoDAsync_v2");
    symbols.find(c.copy_from, "cuMemcpyDtoHAsync_v2");
    symbols.find(c.copy_within, "cuMemcpyDtoDAsync_v2");
    symbols.find(c.can_access, "cuDeviceCanAccessPeer");
    symbols.find(c.enable_peer, "cuCtxEnablePeerAccess");
    symbols.find(c.copy_peer, "cuMemcpyPeerAsync");
    symbols.find(c.load_module, "cuModuleLoadData");
    symbols.find(c.function, "cuModuleGetFunction");
    symbols.find(c.launch, "cuLaunchKernel");
    symbols.find(c.make_event, "cuEventCreate");
    symbols.find(c.record, "cuEventRecord");
    symbols.find(c.wait_event, "cuEventSynchronize");
    symbols.find(c.elapsed, "cuEventElapsedTime");
    symbols.find(c.synchronize, "cuCtxSynchronize");
    TRY_VOID(all_found(symbols, "libcuda.so.1"));
    return c;
}

Result<NcclCalls> open_nccl() {
    TRY(void* const handle, open_driver_library("STOKER_NCCL_LIBRARY", "libnccl.so.2",
                                                "apt-get install libnccl2, or LD_LIBRARY_PATH to its folder"));
    LibrarySymbols symbols(handle);
    NcclCalls c;
    symbols.find(c.init_all, "ncclCommInitAll");
    symbols.find(c.destroy, "ncclCommDestroy");
    symbols.find(c.begin_group, "ncclGroupStart");
    symbols.find(c.end_group, "ncclGroupEnd");
    symbols.find(c.all_reduce, "ncclAllReduce");
    symbols.find(c.error_text, "ncclGetErrorString");
    TRY_VOID(all_found(symbols, "libnccl.so.2"));
    return c;
}

}  // namespace stoker
