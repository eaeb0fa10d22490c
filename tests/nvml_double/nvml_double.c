// A libnvidia-ml.so.1 without a GPU: the ABI of NVIDIA's library, boards from a profile, values and faults from a script that may
// change while somebody is reading. gcc -shared -fPIC -o libnvidia-ml.so.1 nvml_double.c -lpthread
//
//   STOKER_NVML_PROFILE=FILE   what the boards are: "key value" lines (profiles/), numbers or the texts of kTexts
//   STOKER_NVML_GPUS=N         in place of the profile's `gpus`
//   STOKER_NVML_SCRIPT=FILE    what they do, read again whenever it was replaced; GPU: the number of a board, or *
//     set GPU KEY VALUE        a value from now on          none GPU KEY         not supported (return 3)
//     rate GPU KEY PER_S       a counter that grows         fail GPU CALL RET    a call answers so; CALL may be *
//     hang GPU CALL            a call does not return       slow GPU CALL MS     a call takes that long
//     unplug N                 a board is gone              order N N ...        the indices of boards
//     process GPU PID BYTES SM [GI]                         xid GPU CODE [TIMES] an event, once for each line
//     text GPU KEY TEXT        a text
//   STOKER_NVML_COSTS=FILE     how long calls take, as a board was measured: lines "CALL US", "field ID US" of nvmlDeviceGetFieldValues
//                              and "gpm ID US" of nvmlGpmMetricsGet. The processor is kept busy for so long.
//   STOKER_NVML_SPENT=FILE     16 doubles, one for each board: microseconds that its calls cost so far by that file, whatever the clock says
// Compiled with -DOLD_DRIVER, it has none of the symbols that came after driver 450: callers must fall back.
// Structures are written down here once more, on their own, so that a mistake of the reader's is not repeated in silence.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BOARDS 16
#define KEYS 160
#define RULES 512
#define API __attribute__((visibility("default")))
typedef int ret_t;
enum { OK = 0, UNINIT = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, SIZE = 7, TIMEOUT = 10, LOST = 15, VERSION = 25 };

typedef struct { char key[40]; double value, per_s, since; int gone; } entry_t;
typedef struct { entry_t entries[KEYS]; int count; char texts[8][96]; int plugged; } board_t;
typedef struct { int board, kind; char call[64]; double value; } rule_t;  // kind: 'f' fail, 'h' hang, 's' slow
typedef struct { int board, pid, sm, gi; unsigned long long bytes; } process_t;
static const char* const kTexts[8] = {"name", "uuid", "pci", "vbios", "serial", "mig_profile", "driver", "nvml"};

static board_t boards[BOARDS], fresh[BOARDS];
static rule_t rules[RULES];
static process_t processes[8192];
static int board_count, rule_count, process_count, order[BOARDS], order_count, initialised;
static struct { int board; unsigned long long code, times; } events[256];
static int event_count, events_taken;
static unsigned long long event_left;
static struct timespec script_time;
static ino_t script_inode;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static entry_t* entry(board_t* b, const char* key, int make) {
    for (int i = 0; i < b->count; ++i)
        if (strcmp(b->entries[i].key, key) == 0) return &b->entries[i];
    if (!make || b->count == KEYS) return NULL;
    entry_t* e = &b->entries[b->count++];
    memset(e, 0, sizeof *e);
    snprintf(e->key, sizeof e->key, "%s", key);
    return e;
}
static void set_value(board_t* b, const char* key, double value) {
    entry_t* e = entry(b, key, 1);
    if (!e) return;
    e->value = value, e->gone = 0, e->since = now_s(), e->per_s = 0;
}
static int text_index(const char* key) {
    for (int i = 0; i < 8; ++i)
        if (strcmp(kTexts[i], key) == 0) return i;
    return -1;
}
static void broken(const char* file, int line, const char* text) {
    fprintf(stderr, "nvml_double: %s:%d: not understood: %s", file, line, text);
    exit(97);
}
static void load_profile(void) {
    const char* path = getenv("STOKER_NVML_PROFILE");
    FILE* f = path ? fopen(path, "r") : NULL;
    char line[512], key[64];
    if (!f) {
        fprintf(stderr, "nvml_double: STOKER_NVML_PROFILE names no profile: %s\n", path ? path : "");
        exit(97);
    }
    memset(boards, 0, sizeof boards);
    int gpus = 1;
    board_t b;
    memset(&b, 0, sizeof b);
    for (int n = 1; fgets(line, sizeof line, f); ++n) {
        int at = 0;
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%63s %n", key, &at) != 1 || at == 0) broken(path, n, line);
        line[strcspn(line, "\n")] = 0;
        const int text = text_index(key);
        if (text >= 0) snprintf(b.texts[text], sizeof b.texts[text], "%s", line + at);
        else if (strcmp(key, "gpus") == 0) gpus = atoi(line + at);
        else set_value(&b, key, strtod(line + at, NULL));
    }
    fclose(f);
    if (getenv("STOKER_NVML_GPUS")) gpus = atoi(getenv("STOKER_NVML_GPUS"));
    board_count = gpus < 1 ? 0 : gpus > BOARDS ? BOARDS : gpus;
    for (int i = 0; i < board_count; ++i) {
        boards[i] = b;
        boards[i].plugged = 1;
        // A profile of one recorded board names it whole; else each gets a name of its own.
        if (!b.texts[1][0] || board_count > 1) snprintf(boards[i].texts[1], 96, "GPU-%08x-0000-4000-8000-00000000%04x", 0x5704e2 + i, i);
        if (!b.texts[2][0] || board_count > 1) snprintf(boards[i].texts[2], 96, "00000000:%02X:00.0", 0x1b + 0x11 * i);
        if (!b.texts[4][0] || board_count > 1) snprintf(boards[i].texts[4], 96, "16503220%05d", i);
    }
}
static struct { char call[64]; unsigned id; double us; } costs[256];
static int cost_count = -1;
static double* spent;
static void load_costs(void) {  // under the mutex
    const char *path = getenv("STOKER_NVML_COSTS"), *told = getenv("STOKER_NVML_SPENT");
    cost_count = 0;
    FILE* f = path ? fopen(path, "r") : NULL;
    char line[256];
    for (int n = 1; f && fgets(line, sizeof line, f); ++n) {
        if (line[0] == '#' || line[0] == '\n') continue;
        unsigned id = 0;
        double us = 0;
        char call[64];
        if (sscanf(line, "field %u %lf", &id, &us) == 2) strcpy(call, "field");
        else if (sscanf(line, "gpm %u %lf", &id, &us) == 2) strcpy(call, "gpm");
        else if (sscanf(line, "%63s %lf", call, &us) != 2) broken(path, n, line);
        if (cost_count == 256) broken(path, n, line);
        snprintf(costs[cost_count].call, 64, "%s", call);
        costs[cost_count].id = id, costs[cost_count++].us = us;
    }
    if (path && !f) broken(path, 0, "no such file\n");
    if (f) fclose(f);
    const int fd = told ? open(told, O_RDWR | O_CREAT, 0644) : -1;
    if (fd >= 0 && ftruncate(fd, BOARDS * sizeof(double)) == 0) {
        void* const at = mmap(NULL, BOARDS * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) spent = at;
    }
    if (fd >= 0) close(fd);
}
static void take_time(int b, const char* call, unsigned id) {
    double us = 0;
    pthread_mutex_lock(&mutex);
    if (cost_count < 0) load_costs();
    for (int i = 0; i < cost_count; ++i)
        if (costs[i].id == id && strcmp(costs[i].call, call) == 0) us = costs[i].us;
    if (spent && b >= 0 && b < BOARDS) spent[b] += us;
    pthread_mutex_unlock(&mutex);
    for (const double end = now_s() + us * 1e-6; us > 0 && now_s() < end;) {}
}
static void load_script(void) {  // under the mutex
    const char* path = getenv("STOKER_NVML_SCRIPT");
    struct stat st;
    if (!path || stat(path, &st) != 0) return;
    if (st.st_mtim.tv_sec == script_time.tv_sec && st.st_mtim.tv_nsec == script_time.tv_nsec && st.st_ino == script_inode) return;
    script_time = st.st_mtim, script_inode = st.st_ino;
    FILE* f = fopen(path, "r");
    if (!f) return;
    // Values of before go, so that what a script no longer says is as the profile has it; counters that grow keep what they reached.
    memcpy(boards, fresh, sizeof boards);
    rule_count = process_count = order_count = 0;
    int seen_events = 0;
    char line[512], word[64], who[16], key[64];
    for (int n = 1; fgets(line, sizeof line, f); ++n) {
        int at = 0;
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%63s %15s %n", word, who, &at) != 2) broken(path, n, line);
        const int one = strcmp(who, "*") == 0 ? -1 : atoi(who);
        if (one >= BOARDS || one < -1) broken(path, n, line);
        if (strcmp(word, "unplug") == 0) {
            boards[one < 0 ? 0 : one].plugged = 0;
            continue;
        }
        if (strcmp(word, "order") == 0) {
            for (char* p = strtok(line + 6, " \n"); p && order_count < BOARDS; p = strtok(NULL, " \n")) order[order_count++] = atoi(p);
            continue;
        }
        if (strcmp(word, "process") == 0) {
            process_t p = {one, 0, 0, -1, 0};
            if (sscanf(line + at, "%d %llu %d %d", &p.pid, &p.bytes, &p.sm, &p.gi) < 3 || process_count == 8192) broken(path, n, line);
            processes[process_count++] = p;
            continue;
        }
        if (strcmp(word, "xid") == 0) {
            unsigned long long code = 0, times = 1;
            if (sscanf(line + at, "%llu %llu", &code, &times) < 1) broken(path, n, line);
            // Those that an earlier reading of the script had stay as they were.
            if (++seen_events > event_count && event_count < 256)
                events[event_count].board = one < 0 ? 0 : one, events[event_count].code = code, events[event_count++].times = times;
            continue;
        }
        double value = 0;
        int more = 0;
        if (sscanf(line + at, "%63s %n", key, &more) != 1) broken(path, n, line);
        const char* rest = line + at + more;
        value = strtod(rest, NULL);
        for (int i = 0; i < board_count; ++i) {
            if (one >= 0 && i != one) continue;
            if (strcmp(word, "set") == 0) set_value(&boards[i], key, value);
            else if (strcmp(word, "none") == 0) { entry_t* e = entry(&boards[i], key, 1); if (e) e->gone = 1; }
            else if (strcmp(word, "rate") == 0) { entry_t* e = entry(&boards[i], key, 1); if (e) e->per_s = value, e->since = now_s(), e->gone = 0; }
            else if (strcmp(word, "text") == 0) {
                const int t = text_index(key);
                if (t < 0) broken(path, n, line);
                snprintf(boards[i].texts[t], 96, "%.*s", (int)strcspn(rest, "\n"), rest);
            } else break;
        }
        if (strcmp(word, "fail") == 0 || strcmp(word, "hang") == 0 || strcmp(word, "slow") == 0) {
            if (rule_count == RULES) broken(path, n, line);
            rule_t* r = &rules[rule_count++];
            r->board = one, r->kind = word[0], r->value = value;
            snprintf(r->call, sizeof r->call, "%s", key);
        } else if (!strstr("set none rate text", word)) broken(path, n, line);
    }
    fclose(f);
}

// Handles: 1 + board, and for MIG instances 1000 * (1 + instance) + 1 + board.
typedef struct handle* dev_t_;
static int board_of(dev_t_ d) { return (int)((uintptr_t)d % 1000) - 1; }
static int instance_of(dev_t_ d) { return (int)((uintptr_t)d / 1000) - 1; }

// What every call does first: is it to fail, to hang, to be slow? -1: go on.
static ret_t enter(int b, const char* call) {
    pthread_mutex_lock(&mutex);
    load_script();
    int hang = 0, fail = -1, slow_ms = 0;
    for (int i = 0; i < rule_count; ++i) {
        const rule_t* r = &rules[i];
        if (r->board >= 0 && r->board != b) continue;
        if (strcmp(r->call, "*") != 0 && strcmp(r->call, call) != 0) continue;
        // `*` of one board: not the calls that concern the library as a whole.
        if (r->kind == 'h') hang = 1;
        else if (r->kind == 's') slow_ms = (int)r->value;
        else fail = (int)r->value;
    }
    const int plugged = b < 0 || (b < board_count && boards[b].plugged);
    pthread_mutex_unlock(&mutex);
    if (hang)
        for (;;) pause();
    if (slow_ms > 0) usleep((useconds_t)slow_ms * 1000);
    take_time(b, call, 0);
    if (fail >= 0) return fail;
    if (!initialised && strcmp(call, "nvmlInit_v2") != 0) return UNINIT;
    if (!plugged) return LOST;
    return -1;
}
#define ENTER(d)                                       \
    do {                                               \
        const ret_t r_ = enter(board_of(d), __func__); \
        if (r_ >= 0) return r_;                        \
    } while (0)
#define ENTER_LIBRARY()                      \
    do {                                     \
        const ret_t r_ = enter(-1, __func__); \
        if (r_ >= 0) return r_;              \
    } while (0)

static int get(int b, const char* key, double* out) {
    pthread_mutex_lock(&mutex);
    const entry_t* e = b >= 0 && b < board_count ? entry(&boards[b], key, 0) : NULL;
    const int there = e && !e->gone;
    if (there) *out = e->value + (e->per_s != 0 ? e->per_s * (now_s() - e->since) : 0);
    pthread_mutex_unlock(&mutex);
    return there;
}
static ret_t get_uint(int b, const char* key, unsigned* out) {
    double v;
    if (!out) return INVALID;
    if (!get(b, key, &v)) return UNSUPPORTED;
    *out = (unsigned)(unsigned long long)v;
    return OK;
}
static ret_t get_u64(int b, const char* key, unsigned long long* out) {
    double v;
    if (!out) return INVALID;
    if (!get(b, key, &v)) return UNSUPPORTED;
    *out = (unsigned long long)v;
    return OK;
}
static ret_t get_text(int b, const char* key, char* out, unsigned length) {
    pthread_mutex_lock(&mutex);
    const char* text = boards[b].texts[text_index(key)];
    const int fits = strlen(text) < length;
    if (fits) strcpy(out, text);
    pthread_mutex_unlock(&mutex);
    return fits ? OK : SIZE;
}

// --- library -----------------------------------------------------------------------------------------------------------
API ret_t nvmlInit_v2(void) {
    pthread_mutex_lock(&mutex);
    if (!board_count) load_profile(), memcpy(fresh, boards, sizeof boards);
    pthread_mutex_unlock(&mutex);
    ENTER_LIBRARY();
    initialised = 1;
    return OK;
}
API ret_t nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
API ret_t nvmlShutdown(void) { ENTER_LIBRARY(); initialised = 0; return OK; }
API const char* nvmlErrorString(ret_t r) {
    switch (r) {
        case OK: return "Success";
        case UNINIT: return "Uninitialized";
        case UNSUPPORTED: return "Not Supported";
        case LOST: return "GPU is lost";
        case 4: return "Insufficient Permissions";
        case 9: return "Driver Not Loaded";
        case 18: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}
API ret_t nvmlSystemGetDriverVersion(char* out, unsigned n) { ENTER_LIBRARY(); return get_text(0, "driver", out, n); }
API ret_t nvmlSystemGetNVMLVersion(char* out, unsigned n) { ENTER_LIBRARY(); return get_text(0, "nvml", out, n); }
API ret_t nvmlSystemGetCudaDriverVersion_v2(int* out) { double v; ENTER_LIBRARY(); if (!get(0, "cuda", &v)) return UNSUPPORTED; *out = (int)v; return OK; }

// --- which boards there are ---------------------------------------------------------------------------------------------
static int visible(int list[BOARDS]) {
    int n = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < (order_count ? order_count : board_count); ++i) {
        const int b = order_count ? order[i] : i;
        if (b >= 0 && b < board_count && boards[b].plugged) list[n++] = b;
    }
    pthread_mutex_unlock(&mutex);
    return n;
}
API ret_t nvmlDeviceGetCount_v2(unsigned* out) { int l[BOARDS]; ENTER_LIBRARY(); *out = (unsigned)visible(l); return OK; }
API ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, dev_t_* out) {
    int list[BOARDS];
    ENTER_LIBRARY();
    if ((int)index >= visible(list)) return INVALID;
    const ret_t r = enter(list[index], __func__);
    if (r >= 0) return r;
    *out = (dev_t_)(uintptr_t)(list[index] + 1);
    return OK;
}
API ret_t nvmlDeviceGetHandleByUUID(const char* uuid, dev_t_* out) {
    ENTER_LIBRARY();
    for (int i = 0; i < board_count; ++i)
        if (boards[i].plugged && strcmp(boards[i].texts[1], uuid) == 0) return *out = (dev_t_)(uintptr_t)(i + 1), OK;
    return NOT_FOUND;
}
API ret_t nvmlDeviceGetIndex(dev_t_ d, unsigned* out) {
    int list[BOARDS];
    ENTER(d);
    const int n = visible(list);
    for (int i = 0; i < n; ++i)
        if (list[i] == board_of(d)) return *out = (unsigned)i, OK;
    return LOST;
}
API ret_t nvmlDeviceGetUUID(dev_t_ d, char* out, unsigned n) {
    ENTER(d);
    if (instance_of(d) >= 0) {
        if (n < 48) return SIZE;
        snprintf(out, n, "MIG-%08x-0000-4000-9000-%08x%04x", 0x5704e2 + board_of(d), instance_of(d), board_of(d));
        return OK;
    }
    return get_text(board_of(d), "uuid", out, n);
}
API ret_t nvmlDeviceGetName(dev_t_ d, char* out, unsigned n) {
    ENTER(d);
    char name[96], profile[96] = "";
    get_text(board_of(d), "name", name, 96);
    get_text(board_of(d), "mig_profile", profile, 96);
    if (instance_of(d) < 0) return get_text(board_of(d), "name", out, n);
    if ((unsigned)snprintf(out, n, "%.60s MIG %.20s", name, profile) >= n) return SIZE;
    return OK;
}
API ret_t nvmlDeviceGetVbiosVersion(dev_t_ d, char* out, unsigned n) { ENTER(d); return get_text(board_of(d), "vbios", out, n); }
API ret_t nvmlDeviceGetSerial(dev_t_ d, char* out, unsigned n) { ENTER(d); return get_text(board_of(d), "serial", out, n); }
API ret_t nvmlDeviceGetMinorNumber(dev_t_ d, unsigned* out) { ENTER(d); *out = (unsigned)board_of(d); return OK; }
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_t;
API ret_t nvmlDeviceGetPciInfo_v3(dev_t_ d, pci_t* out) {
    ENTER(d);
    memset(out, 0, sizeof *out);
    get_text(board_of(d), "pci", out->bus_id, sizeof out->bus_id);
    sscanf(out->bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04x:%02x:%02x.0", out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
    return get_uint(board_of(d), "pci_id", &out->id) == OK ? OK : OK;
}

// --- MIG ----------------------------------------------------------------------------------------------------------------
API ret_t nvmlDeviceGetMigMode(dev_t_ d, unsigned* now, unsigned* pending) {
    ENTER(d);
    const ret_t r = get_uint(board_of(d), "mig", now);
    *pending = *now;
    return r;
}
API ret_t nvmlDeviceGetMaxMigDeviceCount(dev_t_ d, unsigned* out) { ENTER(d); *out = 0; get_uint(board_of(d), "mig_most", out); return OK; }
API ret_t nvmlDeviceGetMigDeviceHandleByIndex(dev_t_ d, unsigned i, dev_t_* out) {
    unsigned on = 0, there = 0;
    ENTER(d);
    get_uint(board_of(d), "mig", &on), get_uint(board_of(d), "mig_instances", &there);
    if (!on || i >= there) return NOT_FOUND;
    *out = (dev_t_)((uintptr_t)d + 1000 * (i + 1));
    return OK;
}
API ret_t nvmlDeviceGetGpuInstanceId(dev_t_ d, unsigned* out) { ENTER(d); *out = (unsigned)instance_of(d) + 7; return instance_of(d) < 0 ? UNSUPPORTED : OK; }
API ret_t nvmlDeviceGetComputeInstanceId(dev_t_ d, unsigned* out) { ENTER(d); *out = 0; return instance_of(d) < 0 ? UNSUPPORTED : OK; }

// --- values -------------------------------------------------------------------------------------------------------------
typedef struct { unsigned gpu, memory; } util_t;
API ret_t nvmlDeviceGetUtilizationRates(dev_t_ d, util_t* out) {
    ENTER(d);
    if (instance_of(d) >= 0) return UNSUPPORTED;
    const ret_t r = get_uint(board_of(d), "util", &out->gpu);
    return r != OK ? r : get_uint(board_of(d), "mem_util", &out->memory);
}
API ret_t nvmlDeviceGetEncoderUtilization(dev_t_ d, unsigned* out, unsigned* us) { ENTER(d); *us = 167000; return get_uint(board_of(d), "enc", out); }
API ret_t nvmlDeviceGetDecoderUtilization(dev_t_ d, unsigned* out, unsigned* us) { ENTER(d); *us = 167000; return get_uint(board_of(d), "dec", out); }
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2_t;
static ret_t memory(dev_t_ d, memory2_t* out) {
    double total, used = 0, reserved = 0, part = 1;
    if (!get(board_of(d), "mem_total", &total)) return UNSUPPORTED;
    get(board_of(d), "mem_used", &used), get(board_of(d), "mem_reserved", &reserved);
    if (instance_of(d) >= 0) get(board_of(d), "mig_part", &part);
    out->total = (unsigned long long)(total * part), out->reserved = (unsigned long long)(reserved * part);
    out->used = (unsigned long long)(used * part), out->free = out->total - out->used - out->reserved;
    return OK;
}
API ret_t nvmlDeviceGetMemoryInfo(dev_t_ d, memory_t* out) {
    memory2_t m = {0, 0, 0, 0, 0};
    ENTER(d);
    const ret_t r = memory(d, &m);
    out->total = m.total, out->free = m.free, out->used = m.used + m.reserved;
    return r;
}
typedef struct { unsigned long long total, free, used; } bar1_t;
API ret_t nvmlDeviceGetBAR1MemoryInfo(dev_t_ d, bar1_t* out) {
    ENTER(d);
    const ret_t r = get_u64(board_of(d), "bar1_total", &out->total);
    if (r != OK || get_u64(board_of(d), "bar1_used", &out->used) != OK) return UNSUPPORTED;
    out->free = out->total - out->used;
    return OK;
}
API ret_t nvmlDeviceGetTemperature(dev_t_ d, unsigned sensor, unsigned* out) { ENTER(d); return sensor != 0 ? INVALID : get_uint(board_of(d), "temperature", out); }
API ret_t nvmlDeviceGetTemperatureThreshold(dev_t_ d, unsigned which, unsigned* out) {
    static const char* const keys[] = {"t_shutdown", "t_slowdown", "t_mem_max", "t_gpu_max"};
    ENTER(d);
    return which > 3 ? INVALID : get_uint(board_of(d), keys[which], out);
}
API ret_t nvmlDeviceGetPowerUsage(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "power_mw", out); }
API ret_t nvmlDeviceGetEnforcedPowerLimit(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "limit_mw", out); }
API ret_t nvmlDeviceGetPowerManagementLimit(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "limit_mw", out); }
API ret_t nvmlDeviceGetPowerManagementDefaultLimit(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "limit_default_mw", out); }
API ret_t nvmlDeviceGetPowerManagementLimitConstraints(dev_t_ d, unsigned* low, unsigned* high) {
    ENTER(d);
    const ret_t r = get_uint(board_of(d), "limit_min_mw", low);
    return r != OK ? r : get_uint(board_of(d), "limit_max_mw", high);
}
API ret_t nvmlDeviceGetTotalEnergyConsumption(dev_t_ d, unsigned long long* out) { ENTER(d); return get_u64(board_of(d), "energy_mj", out); }
static const char* const kClocks[] = {"graphics", "sm", "mem", "video"};
static ret_t clock_of(dev_t_ d, const char* what, unsigned type, unsigned* out) {
    char key[40];
    if (type > 3) return INVALID;
    snprintf(key, sizeof key, "%s_%s", what, kClocks[type]);
    return get_uint(board_of(d), key, out);
}
API ret_t nvmlDeviceGetClockInfo(dev_t_ d, unsigned type, unsigned* out) { ENTER(d); return clock_of(d, "clock", type, out); }
API ret_t nvmlDeviceGetMaxClockInfo(dev_t_ d, unsigned type, unsigned* out) { ENTER(d); return clock_of(d, "max", type, out); }
API ret_t nvmlDeviceGetCurrentClocksThrottleReasons(dev_t_ d, unsigned long long* out) { ENTER(d); return get_u64(board_of(d), "reasons", out); }
API ret_t nvmlDeviceGetPerformanceState(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "pstate", out); }
API ret_t nvmlDeviceGetPersistenceMode(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "persistence", out); }
API ret_t nvmlDeviceGetCurrPcieLinkGeneration(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "gen", out); }
API ret_t nvmlDeviceGetCurrPcieLinkWidth(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "width", out); }
API ret_t nvmlDeviceGetMaxPcieLinkGeneration(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "gen_max", out); }
API ret_t nvmlDeviceGetMaxPcieLinkWidth(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "width_max", out); }
API ret_t nvmlDeviceGetPcieReplayCounter(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "pcie_replay", out); }
API ret_t nvmlDeviceGetEccMode(dev_t_ d, unsigned* now, unsigned* next) { ENTER(d); const ret_t r = get_uint(board_of(d), "ecc_mode", now); *next = *now; return r; }
API ret_t nvmlDeviceGetTotalEccErrors(dev_t_ d, unsigned type, unsigned counter, unsigned long long* out) {
    static const char* const keys[2][2] = {{"ecc_cv", "ecc_ca"}, {"ecc_uv", "ecc_ua"}};
    ENTER(d);
    return type > 1 || counter > 1 ? INVALID : get_u64(board_of(d), keys[type][counter], out);
}
API ret_t nvmlDeviceGetRetiredPages(dev_t_ d, unsigned cause, unsigned* count, unsigned long long* addresses) {
    unsigned there = 0;
    ENTER(d);
    const ret_t r = get_uint(board_of(d), cause == 0 ? "retired_sbe" : "retired_dbe", &there);
    if (r != OK) return r;
    const unsigned room = *count;
    *count = there;
    if (room < there) return SIZE;
    for (unsigned i = 0; i < there; ++i) addresses[i] = 0x1000ull * i;
    return OK;
}
API ret_t nvmlDeviceGetRetiredPagesPendingStatus(dev_t_ d, unsigned* out) { ENTER(d); return get_uint(board_of(d), "retired_pending", out); }
API ret_t nvmlDeviceGetNvLinkState(dev_t_ d, unsigned link, unsigned* out) {
    unsigned links = 0, down = 0;
    ENTER(d);
    get_uint(board_of(d), "nvlink_links", &links), get_uint(board_of(d), "nvlink_down", &down);
    if (links == 0) return UNSUPPORTED;
    if (link >= links) return INVALID;
    *out = link >= down;
    return OK;
}
API ret_t nvmlDeviceGetNvLinkErrorCounter(dev_t_ d, unsigned link, unsigned which, unsigned long long* out) {
    static const char* const keys[] = {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit", "nvlink_crc"};
    unsigned links = 0;
    ENTER(d);
    get_uint(board_of(d), "nvlink_links", &links);
    if (link >= links || which > 3) return links ? INVALID : UNSUPPORTED;
    *out = 0;
    return link == 0 ? get_u64(board_of(d), keys[which], out) : OK;  // all of a board on its first link
}

// --- fields --------------------------------------------------------------------------------------------------------------
typedef struct { unsigned id, scope; long long timestamp, latency; int type, result; union { double d; unsigned u; unsigned long long ull; int i; } value; } field_t;
static const struct { unsigned id; const char* key; int type; } kFields[] = {  // type: 1 uint, 3 u64, 5 int (nvmlValueType_t)
    {31, "retired_pending", 1}, {52, "nvlink_replay", 3}, {59, "nvlink_recovery", 3}, {74, "ev_power_ns", 3}, {75, "ev_thermal_ns", 3},
    {76, "ev_sync_ns", 3}, {82, "mem_temperature", 1}, {83, "energy_mj", 3}, {91, "nvlink_links", 1}, {94, "pcie_replay", 1},
    {138, "nvlink_tx_kib", 3}, {139, "nvlink_rx_kib", 3}, {142, "remap_c", 1}, {143, "remap_u", 1}, {144, "remap_pending", 1},
    {145, "remap_failed", 1}, {161, "nvlink_replay", 3}, {162, "nvlink_recovery", 3}, {163, "nvlink_crc", 3}, {173, "pcie_correctable", 1},
    {185, "power_avg_mw", 1}, {186, "power_mw", 1}, {193, "tlimit_shutdown", 5}, {194, "tlimit_slowdown", 5}, {195, "tlimit_mem", 5},
    {196, "tlimit_gpu", 5}, {197, "pcie_tx_bytes", 3}, {198, "pcie_rx_bytes", 3}, {202, "nvlink5_tx_bytes", 3}, {204, "nvlink5_rx_bytes", 3},
    {230, "recovery", 1}, {269, "ev_sw_thermal_ns", 3}, {270, "ev_hw_thermal_ns", 3}, {271, "ev_brake_ns", 3}};
API ret_t nvmlDeviceGetFieldValues(dev_t_ d, int n, field_t* out) {
    ENTER(d);
    int any = 0;
    for (int i = 0; i < n; ++i) {
        double v;
        out[i].result = UNSUPPORTED;
        take_time(board_of(d), "field", out[i].id);
        for (unsigned k = 0; k < sizeof kFields / sizeof *kFields; ++k) {
            if (kFields[k].id != out[i].id || !get(board_of(d), kFields[k].key, &v)) continue;
            out[i].type = kFields[k].type, out[i].result = OK, any = 1;
            if (kFields[k].type == 3) out[i].value.ull = (unsigned long long)v;
            else if (kFields[k].type == 5) out[i].value.i = (int)v;
            else out[i].value.u = (unsigned)(unsigned long long)v;
        }
        out[i].timestamp = (long long)(now_s() * 1e6), out[i].latency = 1;
    }
    return any ? OK : UNSUPPORTED;
}

API ret_t nvmlDeviceGetGridLicensableFeatures_v4(dev_t_ d, void* out) { ENTER(d); memset(out, 0, 8); return OK; }  // no vGPU

// --- processes ------------------------------------------------------------------------------------------------------------
typedef struct { unsigned pid; unsigned long long bytes; } process1_t;
typedef struct { unsigned pid; unsigned long long bytes; unsigned gi, ci; } process2_t;
static unsigned processes_of(dev_t_ d, process2_t* out, unsigned room) {
    unsigned n = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < process_count; ++i) {
        const process_t* p = &processes[i];
        if (p->board >= 0 && p->board != board_of(d)) continue;
        if (instance_of(d) >= 0 && p->gi != instance_of(d) + 7) continue;
        if (out && n < room) out[n].pid = (unsigned)p->pid, out[n].bytes = p->bytes, out[n].gi = p->gi < 0 ? ~0u : (unsigned)p->gi, out[n].ci = p->gi < 0 ? ~0u : 0;
        ++n;
    }
    pthread_mutex_unlock(&mutex);
    return n;
}
static ret_t list_processes(dev_t_ d, unsigned* count, process2_t* out) {
    const unsigned room = *count;
    *count = processes_of(d, out, room);
    return *count > room ? SIZE : OK;
}
API ret_t nvmlDeviceGetComputeRunningProcesses(dev_t_ d, unsigned* count, process1_t* out) {
    process2_t* all = calloc(*count + 1, sizeof *all);
    const ret_t fault = enter(board_of(d), __func__);
    const unsigned room = *count;
    const ret_t r = fault >= 0 ? fault : list_processes(d, count, all);
    for (unsigned i = 0; r == OK && i < *count && i < room; ++i) out[i].pid = all[i].pid, out[i].bytes = all[i].bytes;
    free(all);
    return r;
}
typedef struct { unsigned pid; unsigned long long at; unsigned sm, mem, enc, dec; } usage_t;
API ret_t nvmlDeviceGetProcessUtilization(dev_t_ d, usage_t* out, unsigned* count, unsigned long long since) {
    ENTER(d);
    (void)since;
    unsigned n = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < process_count; ++i) {
        if (processes[i].board >= 0 && processes[i].board != board_of(d)) continue;
        if (processes[i].sm == 0) continue;  // an H200 told of those alone that had worked, and returned 6 when none had
        if (out && n < *count) out[n].pid = (unsigned)processes[i].pid, out[n].at = (unsigned long long)(now_s() * 1e6), out[n].sm = (unsigned)processes[i].sm, out[n].mem = 0, out[n].enc = out[n].dec = 0;
        ++n;
    }
    pthread_mutex_unlock(&mutex);
    const unsigned room = *count;
    *count = n;
    return n == 0 ? NOT_FOUND : !out || n > room ? SIZE : OK;
}

// --- events ---------------------------------------------------------------------------------------------------------------
typedef struct { dev_t_ device; unsigned long long type, data; unsigned gi, ci; } event_t;
API ret_t nvmlEventSetCreate(void** out) { ENTER_LIBRARY(); *out = malloc(1); return OK; }
API ret_t nvmlEventSetFree(void* set) { free(set); return OK; }
API ret_t nvmlDeviceGetSupportedEventTypes(dev_t_ d, unsigned long long* out) { ENTER(d); *out = 1 | 2 | 8 | 0x10; return OK; }
API ret_t nvmlDeviceRegisterEvents(dev_t_ d, unsigned long long types, void* set) { ENTER(d); (void)set; return types & ~0x1full ? UNSUPPORTED : OK; }
API ret_t nvmlEventSetWait_v2(void* set, event_t* out, unsigned ms) {
    (void)set;
    const double end = now_s() + ms * 1e-3;
    for (;;) {
        ENTER_LIBRARY();
        pthread_mutex_lock(&mutex);
        if (events_taken < event_count) {
            if (!event_left) event_left = events[events_taken].times;
            memset(out, 0, sizeof *out);
            out->device = (dev_t_)(uintptr_t)(events[events_taken].board + 1), out->type = 8, out->data = events[events_taken].code;
            out->gi = out->ci = ~0u;
            if (--event_left == 0) ++events_taken;
            pthread_mutex_unlock(&mutex);
            return OK;
        }
        pthread_mutex_unlock(&mutex);
        if (now_s() >= end) return TIMEOUT;
        usleep(20000);
    }
}

// --- what came after driver 450 ------------------------------------------------------------------------------------------
#ifndef OLD_DRIVER
API ret_t nvmlDeviceGetMemoryInfo_v2(dev_t_ d, memory2_t* out) {
    ENTER(d);
    return out->version != (sizeof(memory2_t) | 2u << 24) ? VERSION : memory(d, out);
}
API ret_t nvmlDeviceGetCurrentClocksEventReasons(dev_t_ d, unsigned long long* out) { ENTER(d); return get_u64(board_of(d), "reasons", out); }
typedef struct { unsigned version; int margin; } margin_t;
API ret_t nvmlDeviceGetMarginTemperature(dev_t_ d, margin_t* out) {
    double v;
    ENTER(d);
    if (out->version != (sizeof(margin_t) | 1u << 24)) return VERSION;
    if (!get(board_of(d), "margin", &v)) return UNSUPPORTED;
    out->margin = (int)v;
    return OK;
}
API ret_t nvmlDeviceGetRemappedRows(dev_t_ d, unsigned* c, unsigned* u, unsigned* pending, unsigned* failed) {
    ENTER(d);
    const ret_t r = get_uint(board_of(d), "remap_c", c);
    if (r != OK) return r;
    get_uint(board_of(d), "remap_u", u), get_uint(board_of(d), "remap_pending", pending);
    return get_uint(board_of(d), "remap_failed", failed);
}
typedef struct { unsigned max, high, partial, low, none; } banks_t;
API ret_t nvmlDeviceGetRowRemapperHistogram(dev_t_ d, banks_t* out) {
    ENTER(d);
    const ret_t r = get_uint(board_of(d), "banks_max", &out->max);
    if (r != OK) return r;
    out->high = out->partial = out->low = out->none = 0;
    get_uint(board_of(d), "banks_high", &out->high), get_uint(board_of(d), "banks_partial", &out->partial);
    get_uint(board_of(d), "banks_low", &out->low), get_uint(board_of(d), "banks_none", &out->none);
    return OK;
}
typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state; unsigned mask; unsigned char summary; } fabric_t;
API ret_t nvmlDeviceGetGpuFabricInfoV(dev_t_ d, fabric_t* out) {
    unsigned state;
    ENTER(d);
    if (out->version != (sizeof(fabric_t) | 3u << 24)) return VERSION;
    const ret_t r = get_uint(board_of(d), "fabric_state", &state);
    if (r != OK) return r;
    memset(out->cluster, 0x11, 16);
    unsigned status = 0, summary = 1;
    get_uint(board_of(d), "fabric_status", &status), get_uint(board_of(d), "fabric_summary", &summary);
    out->state = (unsigned char)state, out->status = (int)status, out->clique = 0, out->mask = 0, out->summary = (unsigned char)summary;
    return OK;
}
API ret_t nvmlDeviceGetComputeRunningProcesses_v3(dev_t_ d, unsigned* count, process2_t* out) { ENTER(d); return list_processes(d, count, out); }
typedef struct { unsigned version, supported; } gpm_support_t;
API ret_t nvmlGpmQueryDeviceSupport(dev_t_ d, gpm_support_t* out) {
    ENTER(d);
    if (out->version != 1) return VERSION;  // driver 580.159.04 refused the form with the size
    out->supported = 0;
    get_uint(board_of(d), "gpm", &out->supported);
    return OK;
}
typedef struct { int board; double at; } gpm_sample_t;
typedef struct { unsigned id; int result; double value; struct { const char *short_name, *long_name, *unit; } info; } gpm_metric_t;
typedef struct { unsigned version, count; gpm_sample_t *first, *second; gpm_metric_t metrics[98]; } gpm_get_t;
API ret_t nvmlGpmSampleAlloc(gpm_sample_t** out) { *out = calloc(1, sizeof **out); return OK; }
API ret_t nvmlGpmSampleFree(gpm_sample_t* s) { free(s); return OK; }
API ret_t nvmlGpmSampleGet(dev_t_ d, gpm_sample_t* s) {
    unsigned on = 0;
    ENTER(d);
    get_uint(board_of(d), "gpm", &on);
    s->board = board_of(d), s->at = now_s();
    return on ? OK : UNSUPPORTED;
}
API ret_t nvmlGpmMetricsGet(gpm_get_t* out) {
    static const struct { unsigned id; const char* key; } keys[] = {{1, "graphics"}, {2, "sm_active"}, {3, "occupancy"}, {4, "int"}, {5, "tensor"}, {10, "dram"}, {11, "fp64"}, {12, "fp32"}, {13, "fp16"}, {20, "pcie_tx_mib"}, {21, "pcie_rx_mib"}, {60, "nvlink_rx_mib"}, {61, "nvlink_tx_mib"}};
    if (out->version != 1) return VERSION;
    ENTER((dev_t_)(uintptr_t)(out->first->board + 1));
    if (out->second->at - out->first->at < 0.1) return INVALID;  // the header: more than 100 ms apart
    for (unsigned i = 0; i < out->count; ++i) {
        out->metrics[i].result = UNSUPPORTED;
        take_time(out->first->board, "gpm", out->metrics[i].id);
        for (unsigned k = 0; k < sizeof keys / sizeof *keys; ++k)
            if (keys[k].id == out->metrics[i].id && get(out->first->board, keys[k].key, &out->metrics[i].value)) out->metrics[i].result = OK;
    }
    return OK;
}
#endif
