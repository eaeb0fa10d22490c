// A libcuda.so.1 and a libnccl.so.2 in one, without a GPU: what `stoker doctor gpu` and tools/gpu_day.py call, with the signatures of CUDA's driver API and
// of NCCL 2. Time is simulated: every call moves the clock of its board by what it would take, and events read that clock, so that a
// busy machine measures the same. gcc -shared -fPIC -o libcuda.so.1 cuda_double.c
//
//   STOKER_CUDA_SCRIPT=FILE   lines; BOARD: its number, or *
//     boards N
//     named NAME              what they call themselves (NVIDIA H100 80GB HBM3)
//     set BOARD KEY VALUE     to, from, peer, all_reduce, memory: bytes/s; flops; held: bytes that somebody has of its memory
//                             fades: its rate after eight simulated seconds of work, as a part of it; wrong: results a launch that differ
//                             from the third launch on; old 1: it has no tensor cores for bf16; alone 1: it reaches no other
//     fail BOARD CALL CODE    the call answers so
//     hang BOARD CALL         it does not return
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOARDS 16
#define API __attribute__((visibility("default")))
enum { TO, FROM, PEER, ALL_REDUCE, FLOPS, MEMORY, HELD, FADES, WRONG, OLD, ALONE, KEYS };
static const char* const kKeys[KEYS] = {"to", "from", "peer", "all_reduce", "flops", "memory", "held", "fades", "wrong", "old", "alone"};
static const double kUsual[KEYS] = {55e9, 55e9, 390e9, 475e9, 620e12, 2.9e12, 0, 1, 0, 0, 0};

typedef struct { double value[KEYS], clock, worked; int launches; char call[64]; int code, hangs; } board_t;
typedef struct { double at; } event_t;
static board_t boards[BOARDS];
static char named[100] = "NVIDIA H100 80GB HBM3";
static int count = 8, now, matrix, reduced;

static void load(void) {
    static int loaded;
    if (loaded++) return;
    for (int i = 0; i < BOARDS; ++i) memcpy(boards[i].value, kUsual, sizeof kUsual);
    const char* path = getenv("STOKER_CUDA_SCRIPT");
    FILE* f = path ? fopen(path, "r") : NULL;
    if (!f) return;
    char line[256], word[64], who[16], key[64];
    double value;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "boards %d", &count) == 1) continue;
        if (sscanf(line, "named %99[^\n]", named) == 1) continue;
        value = 0;
        const int parts = sscanf(line, "%63s %15s %63s %lf", word, who, key, &value);
        if (parts < 1) continue;
        for (int i = 0; i < BOARDS && parts >= 3; ++i) {
            if (*who != '*' && atoi(who) != i) continue;
            for (int k = 0; k < KEYS && !strcmp(word, "set"); ++k)
                if (!strcmp(key, kKeys[k])) boards[i].value[k] = value;
            if (strcmp(word, "set")) snprintf(boards[i].call, sizeof boards[i].call, "%s", key), boards[i].code = (int)value, boards[i].hangs = !strcmp(word, "hang");
        }
    }
    fclose(f);
}
static int asked(int board, const char* call) {
    if (strcmp(boards[board].call, call)) return 0;
    while (boards[board].hangs) pause();
    return boards[board].code;
}
static int spend(const char* call, double amount, int key) {
    const int code = asked(now, call);
    if (code == 0) boards[now].clock += amount / boards[now].value[key];
    return code;
}

API int cuInit(unsigned flags) { load(); return flags ? 1 : asked(0, "cuInit"); }
API int cuGetErrorString(int code, const char** text) { *text = code == 802 ? "system not yet initialized" : code == 719 ? "unspecified launch failure" : "unknown error"; return 0; }
API int cuDeviceGetCount(int* n) { *n = count; return 0; }
API int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
API int cuDeviceGetName(char* name, int size, int device) { (void)device; snprintf(name, (size_t)size, "%s", named); return 0; }
API int cuDeviceGetPCIBusId(char* pci, int size, int device) { snprintf(pci, (size_t)size, "0000:%02X:00.0", 0x1b + device * 16); return 0; }
API int cuDeviceGetAttribute(int* value, int attribute, int device) { (void)device; *value = attribute == 16 ? 4 : 0; return 0; }
API int cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)(intptr_t)(device + 1); return asked(device, "cuDevicePrimaryCtxRetain"); }
API int cuCtxSetCurrent(void* context) { now = (int)(intptr_t)context - 1; return 0; }
API int cuMemGetInfo_v2(size_t* left, size_t* total) { *total = (size_t)80 << 30; *left = *total - ((size_t)400 << 20) - (size_t)boards[now].value[HELD]; return 0; }
API int cuMemAlloc_v2(uint64_t* at, size_t size) { *at = (uint64_t)(uintptr_t)calloc(1, size); return *at ? 0 : 2; }
API int cuMemFree_v2(uint64_t at) { free((void*)(uintptr_t)at); return 0; }
API int cuMemAllocHost_v2(void** at, size_t size) { *at = malloc(size); return *at ? 0 : 2; }
API int cuMemFreeHost(void* at) { free(at); return 0; }
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t size, void* stream) { (void)to, (void)from, (void)stream; return spend("cuMemcpyHtoDAsync", (double)size, TO); }
API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t size) { return cuMemcpyHtoDAsync_v2(to, from, size, NULL); }
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t size, void* stream) {
    (void)stream;
    memcpy(to, (const void*)(uintptr_t)from, size < (4u << 20) ? size : 0);  // large copies are for their rate
    return spend("cuMemcpyDtoHAsync", (double)size, FROM);
}
API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t size) { return cuMemcpyDtoHAsync_v2(to, from, size, NULL); }
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void* stream) { (void)to, (void)from, (void)stream; return spend("cuMemcpyDtoDAsync", 2.0 * (double)size, MEMORY); }
API int cuDeviceCanAccessPeer(int* can, int device, int peer) { *can = !boards[device].value[ALONE] && !boards[peer].value[ALONE]; return 0; }
API int cuCtxEnablePeerAccess(void* peer, unsigned flags) { (void)peer; return flags ? 1 : 0; }
API int cuMemcpyPeerAsync(uint64_t to, void* to_context, uint64_t from, void* from_context, size_t size, void* stream) {
    (void)to, (void)from, (void)stream, (void)from_context;
    const double own = boards[now].value[PEER], other = boards[(int)(intptr_t)to_context - 1].value[PEER];
    boards[now].clock += (double)size / (own < other ? own : other);
    return asked(now, "cuMemcpyPeerAsync");
}
API int cuModuleLoadData(void** module, const void* image) {
    matrix = strstr(image, "mma.sync.aligned") != NULL;
    if (matrix && boards[now].value[OLD]) return 218;
    *module = (void*)(intptr_t)(1 + matrix);
    return 0;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) { *function = (void*)((intptr_t)module + 4 * !!strcmp(name, "work")); return 0; }
API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
    (void)shared, (void)stream, (void)extra;
    board_t* const b = &boards[now];
    const int code = asked(now, "cuLaunchKernel");
    if (code) return code;
    if ((intptr_t)function > 4) {  // a kernel of which nothing is known but that it takes a while
        b->clock += 0.02;
        return 0;
    }
    const size_t threads = (size_t)gx * gy * gz * bx * by * bz;
    const unsigned rounds = *(const unsigned*)parameters[1];
    uint32_t* const out = (uint32_t*)(uintptr_t)*(const uint64_t*)parameters[0];
    for (size_t i = 0; i < threads; ++i) out[i] = (uint32_t)i * 2654435761u ^ rounds;
    if (++b->launches > 3)
        for (int i = 0; i < (int)b->value[WRONG]; ++i) out[(size_t)i * 7 % threads] ^= 1u << (b->launches % 23);
    const double work = (double)threads * rounds * (function == (void*)2 ? 512 : 16);
    const double took = work / (b->value[FLOPS] * (b->worked > 8 ? b->value[FADES] : 1));
    b->clock += took, b->worked += took;
    return 0;
}
API int cuEventCreate(void** event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(event_t)); return 0; }
API int cuEventRecord(void* event, void* stream) { (void)stream; ((event_t*)event)->at = boards[now].clock; return 0; }
API int cuEventSynchronize(void* event) { (void)event; return asked(now, "cuEventSynchronize"); }
API int cuEventElapsedTime(float* ms, void* begin, void* end) { *ms = (float)((((event_t*)end)->at - ((event_t*)begin)->at) * 1e3); return 0; }
API int cuCtxSynchronize(void) { return 0; }

API int ncclCommInitAll(void** communicators, int n, const int* devices) {
    for (int i = 0; i < n; ++i) communicators[i] = (void*)(intptr_t)(devices[i] + 1);
    reduced = n;
    return asked(0, "ncclCommInitAll");
}
API int ncclCommDestroy(void* communicator) { (void)communicator; return 0; }
API int ncclGroupStart(void) { return 0; }
API int ncclGroupEnd(void) { return 0; }
API int ncclAllReduce(const void* from, void* to, size_t n, int type, int operation, void* communicator, void* stream) {
    (void)from, (void)to, (void)stream;
    board_t* const b = &boards[(int)(intptr_t)communicator - 1];
    if (type != 7 || operation != 0) return 4;
    b->clock += 4.0 * (double)n * 2 * (reduced - 1) / reduced / b->value[ALL_REDUCE];
    return 0;
}
API const char* ncclGetErrorString(int code) { return code == 2 ? "unhandled system error" : "unknown"; }
