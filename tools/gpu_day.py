#!/usr/bin/env python3
"""A day with a real GPU, in minutes: checks what was written without one, and measures. Standard library only; PyTorch where it is.

    tools/gpu_day.py run --stoker build/gpu-day/stoker --part 1|2|3|4 --out FOLDER     on the machine with the board
    tools/gpu_day.py report FOLDER...                                                 here: docs/measurements/gpu.md, profile, rows

Part 1: the ABI, a recording of all calls, three readers side by side, what the vendor's tools print, scrapes. Part 2: copies, memory, arithmetic,
a burn-in, phases of work with their verdicts. Part 3: known models beside what was predicted of them, trainings with the hook, well and faulty.
Part 4: what reading costs the work, energy, owners. Each step stays below its own limit; one that fails is told and the next goes on. Never changes clocks, power, MIG or persistence, never resets."""

import argparse
import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class NotHere(Exception):
    """What a step needs is not on this machine."""


# --- the driver's own interface -----------------------------------------------------------------------------------------

PTX = """.version 7.0
.target sm_80
.address_size 64

.visible .entry spin(.param .u64 cycles)
{
    .reg .pred %p<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [cycles];
    mov.u64 %rd2, %clock64;
again:
    mov.u64 %rd3, %clock64;
    sub.s64 %rd4, %rd3, %rd2;
    setp.lt.s64 %p1, %rd4, %rd1;
    @%p1 bra again;
    ret;
}

.visible .entry copy4(.param .u64 to, .param .u64 from, .param .u64 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.param.u64 %rd3, [count];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %nctaid.x;
    mul.wide.u32 %rd4, %r1, %r2;
    cvt.u64.u32 %rd5, %r3;
    add.s64 %rd4, %rd4, %rd5;
    mul.wide.u32 %rd6, %r4, %r2;
again:
    setp.ge.u64 %p1, %rd4, %rd3;
    @%p1 bra done;
    shl.b64 %rd7, %rd4, 4;
    add.s64 %rd8, %rd2, %rd7;
    add.s64 %rd9, %rd1, %rd7;
    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd8];
    st.global.v4.u32 [%rd9], {%r5, %r6, %r7, %r8};
    add.s64 %rd4, %rd4, %rd6;
    bra again;
done:
    ret;
}

.visible .entry fma32(.param .u64 to, .param .u32 rounds)
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .f32 %f<12>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    cvt.rn.f32.u32 %f9, %r2;
    mov.f32 %f10, 0f3F7FFF58;
    mov.f32 %f1, %f9; mov.f32 %f2, %f9; mov.f32 %f3, %f9; mov.f32 %f4, %f9;
    mov.f32 %f5, %f9; mov.f32 %f6, %f9; mov.f32 %f7, %f9; mov.f32 %f8, %f9;
again:
    fma.rn.f32 %f1, %f1, %f10, %f9; fma.rn.f32 %f2, %f2, %f10, %f9;
    fma.rn.f32 %f3, %f3, %f10, %f9; fma.rn.f32 %f4, %f4, %f10, %f9;
    fma.rn.f32 %f5, %f5, %f10, %f9; fma.rn.f32 %f6, %f6, %f10, %f9;
    fma.rn.f32 %f7, %f7, %f10, %f9; fma.rn.f32 %f8, %f8, %f10, %f9;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f4;
    add.f32 %f1, %f1, %f5; add.f32 %f1, %f1, %f6; add.f32 %f1, %f1, %f7; add.f32 %f1, %f1, %f8;
    setp.neu.f32 %p2, %f1, 0f7F800000;
    @%p2 bra done;
    cvta.to.global.u64 %rd1, %rd1;
    st.global.f32 [%rd1], %f1;
done:
    ret;
}

.visible .entry mma16(.param .u64 to, .param .u32 rounds)
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .f32 %f<17>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f00000000;
    mov.f32 %f5, 0f00000000; mov.f32 %f6, 0f00000000; mov.f32 %f7, 0f00000000; mov.f32 %f8, 0f00000000;
    mov.f32 %f9, 0f00000000; mov.f32 %f10, 0f00000000; mov.f32 %f11, 0f00000000; mov.f32 %f12, 0f00000000;
    mov.f32 %f13, 0f00000000; mov.f32 %f14, 0f00000000; mov.f32 %f15, 0f00000000; mov.f32 %f16, 0f00000000;
again:
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f1, %f2, %f3, %f4};
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f5, %f6, %f7, %f8}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f5, %f6, %f7, %f8};
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f9, %f10, %f11, %f12}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f9, %f10, %f11, %f12};
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f13, %f14, %f15, %f16}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f13, %f14, %f15, %f16};
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    add.f32 %f1, %f1, %f5; add.f32 %f1, %f1, %f9; add.f32 %f1, %f1, %f13;
    setp.eq.f32 %p2, %f1, 0f00000000;
    @%p2 bra done;
    cvta.to.global.u64 %rd1, %rd1;
    st.global.f32 [%rd1], %f1;
done:
    ret;
}
"""


class Cuda:
    """libcuda.so.1 through ctypes: device 0, its primary context, the kernels above."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NotHere(f"libcuda.so.1: {error}")
        self.check("cuInit", 0)
        device, self.context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.check("cuDeviceGet", ctypes.byref(device), 0)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.check("cuCtxSetCurrent", self.context)
        self.check("cuModuleLoadData", ctypes.byref(self.module), ctypes.c_char_p(PTX.encode()))
        count = ctypes.c_int()
        self.check("cuDeviceGetAttribute", ctypes.byref(count), 16, device)  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        self.processors = count.value
        self.begin, self.finish = self.event(), self.event()

    def check(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name} returned {code}: {(text.value or b'').decode()}")

    def event(self):
        event = ctypes.c_void_p()
        self.check("cuEventCreate", ctypes.byref(event), 0)
        return event

    def memory(self, size):
        at = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at

    def free(self, at):
        self.check("cuMemFree_v2", at)

    def pinned(self, size):
        at = ctypes.c_void_p()
        self.check("cuMemAllocHost_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at

    def launch(self, name, blocks, threads, *arguments):
        function = ctypes.c_void_p()
        self.check("cuModuleGetFunction", ctypes.byref(function), self.module, ctypes.c_char_p(name.encode()))
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments])
        self.check("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)

    def synchronize(self):
        self.check("cuCtxSynchronize")

    def seconds(self, work):
        self.check("cuEventRecord", self.begin, None)
        work()
        self.check("cuEventRecord", self.finish, None)
        self.check("cuEventSynchronize", self.finish)
        ms = ctypes.c_float()
        self.check("cuEventElapsedTime", ctypes.byref(ms), self.begin, self.finish)
        return ms.value / 1e3

    def rates(self, work, amount, times=7):
        work()
        self.synchronize()
        found = sorted(amount / self.seconds(work) for _ in range(times))
        return {"median": statistics.median(found), "low": found[0], "high": found[-1], "times": times}


# --- what is asked of stoker --------------------------------------------------------------------------------------------

def call(*words, limit_s=120, check=True):
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}: {done.stderr or done.stdout}"[:2000])
    return done.stdout


class Agent:
    def __init__(self, stoker, out, period=1):
        self.port_file = os.path.join(out, ".port")
        if os.path.exists(self.port_file):
            os.remove(self.port_file)
        self.process = subprocess.Popen([stoker, "agent", "--listen", "127.0.0.1:0", "--port-file", self.port_file, "--period", str(period), "-q"])
        end = time.monotonic() + 20
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the agent does not listen")
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{open(self.port_file).read().strip()}"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.read().decode()

    def gpus(self):
        return json.loads(self.get("/gpus"))["gpus"]

    def values(self):
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in self.get("/metrics").splitlines() if not line.startswith("#")}

    def wait(self):
        end = time.monotonic() + 30
        while not any(g["state"] == "ok" and "power_instant" in g["values"] or "power_average" in g["values"] for g in self.gpus()):
            if time.monotonic() > end:
                raise RuntimeError("no GPU is read")
            time.sleep(0.1)

    def pids(self):
        found = [self.process.pid]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def cpu_s(self):
        return sum(map(self.cpu_s_of, self.pids()))

    @staticmethod
    def cpu_s_of(pid):
        return sum(Agent.user_and_kernel_s(pid).values())

    @staticmethod
    def user_and_kernel_s(pid):
        """By the scheduler's count where the kernel has one: ticks of 10 ms miss what runs for a tenth of one. How much of it is the
        kernel's is known by ticks alone."""
        user, kernel = (int(word) / os.sysconf("SC_CLK_TCK") for word in open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13])
        try:
            exact = sum(int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) for task in os.listdir(f"/proc/{pid}/task")) / 1e9
        except (OSError, ValueError, IndexError):
            exact = 0
        if exact <= 0:
            return {"user": user, "kernel": kernel}
        share = kernel / (user + kernel) if user + kernel > 0 else 0
        return {"user": exact * (1 - share), "kernel": exact * share}

    def threads_s(self, pid):
        """Seconds of processors of each thread, by name: which of them uses them."""
        found = {}
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                name = open(f"/proc/{pid}/task/{task}/comm").read().strip()
                found[name] = found.get(name, 0) + int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) / 1e9
            except (OSError, ValueError, IndexError):
                pass
        return found

    def parts(self):
        """The agent and its sampler, by name."""
        return {"agent" if pid == self.process.pid else "sampler": pid for pid in self.pids()}

    @staticmethod
    def memory_kib(pid):
        """Of one process: proportional, what it alone has written, and how much is mapped from NVIDIA's library or belongs to its heap."""
        found = {"pss": 0, "private_dirty": 0, "nvidia_pss": 0, "nvidia_private_dirty": 0, "heap_pss": 0, "anonymous_pss": 0, "stoker_pss": 0, "device_pss": 0}
        path = ""
        for line in open(f"/proc/{pid}/smaps"):
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)", line)
            if head:
                path = head.group(1)
                continue
            name, _, value = line.partition(":")
            if name not in ("Pss", "Private_Dirty"):
                continue
            kib, key = int(value.split()[0]), name.lower()
            found[key] += kib
            if "libnvidia" in path:
                found["nvidia_" + key] += kib
            elif name == "Pss":
                kind = "device" if path.startswith("/dev/nvidia") else "heap" if path == "[heap]" else "anonymous" if not path else "stoker" if path.endswith("/stoker") else ""
                if kind:
                    found[kind + "_pss"] += kib
        return found

    def rss_kib(self):
        """Proportional: what parent and child share counts once."""
        total = 0
        for pid in self.pids():
            try:
                total += int(re.search(r"^Pss:\s+(\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M).group(1))
            except (OSError, AttributeError):
                total += int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))
        return total

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        os.remove(self.port_file)


# --- the steps ----------------------------------------------------------------------------------------------------------

def step_abi(a):
    """1: every symbol there or with an older name, no structure refused."""
    library = next((line.split()[-1] for line in call("ldconfig", "-p").splitlines() if "libnvidia-ml.so.1" in line), None)
    symbols = []
    if library and shutil.which("nm"):
        symbols = sorted(set(re.findall(r" T (nvml\w+)", call("nm", "-D", library, check=False))))
    return {"text": call(a.stoker, "gpu", "abi-check"), "library": library, "symbols": len(symbols)}


def step_record(a):
    """2: each call, what it returned and how long it took; the profile for the double."""
    recording, profile = os.path.join(a.out, "recording.json"), os.path.join(a.out, "recorded.profile")
    text = call(a.stoker, "gpu", "record", "--repeat", "20", "--file", recording, "--profile", profile, limit_s=150)
    return {"text": text}


def step_three_readers(a):
    """3: nvidia-smi, nvidia-ml-py and stoker of the same board in the same second."""
    asked = {"clocks.sm": ("clock_sm", 1e-6, 0.1), "clocks.mem": ("clock_memory", 1e-6, 0), "temperature.gpu": ("temperature_gpu", 1, 2),
             "power.draw": ("power_average", 1, None), "memory.total": ("memory_size", 1 / 1048576, 0), "memory.used": ("memory_used", 1 / 1048576, 64),
             "utilization.gpu": ("utilization", 100, 5), "pcie.link.gen.current": ("pcie_generation", 1, 0), "pcie.link.width.current": ("pcie_width", 1, 0)}
    if not shutil.which("nvidia-smi"):
        raise NotHere("nvidia-smi")
    rows = []
    with Agent(a.stoker, a.out) as agent:
        agent.wait()
        time.sleep(2.5)
        theirs = call("nvidia-smi", "--query-gpu=uuid," + ",".join(asked), "--format=csv,noheader,nounits").splitlines()
        ours = {g["uuid"]: g["values"] for g in agent.gpus()}
    for line in theirs:
        cells = [c.strip() for c in line.split(",")]
        values = ours.get(cells[0])
        if values is None:
            rows.append([cells[0], "uuid", "there", "unknown here", False])
            continue
        for (field, (key, scale, slack)), cell in zip(asked.items(), cells[1:]):
            try:
                told = float(cell)
            except ValueError:
                rows.append([cells[0], field, cell, values.get(key), key not in values])
                continue
            mine = values[key] * scale if key in values else None
            near = mine is not None and abs(mine - told) <= (0.05 * told + 1 if slack is None else slack if slack >= 1 or slack == 0 else slack * told + 1)
            rows.append([cells[0], field, told, mine, near])
    program = ("import json,pynvml as p\np.nvmlInit()\nh=p.nvmlDeviceGetHandleByIndex(0)\nm=p.nvmlDeviceGetMemoryInfo(h,version=p.nvmlMemory_v2)\n"
               "print(json.dumps(dict(uuid=p.nvmlDeviceGetUUID(h),total=m.total,reserved=m.reserved,temperature=p.nvmlDeviceGetTemperature(h,0),limit=p.nvmlDeviceGetEnforcedPowerLimit(h))))")
    python = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return {"rows": rows, "equal": sum(r[4] for r in rows), "of": len(rows), "pynvml": json.loads(python.stdout) if python.returncode == 0 else python.stderr[-300:]}


def step_scrapes(a):
    """4: what a scrape costs, memory and processors at one reading a second: of agent and sampler apart, by thread."""
    # A witness looks at the first bytes of a board's configuration space each second; in a virtual machine each word of it may be a trap.
    config_us = {}
    for device in sorted(os.listdir("/sys/bus/pci/devices")) if os.path.isdir("/sys/bus/pci/devices") else ():
        folder = "/sys/bus/pci/devices/" + device
        try:
            if open(folder + "/vendor").read().strip() != "0x10de":
                continue
            for size in (4, 64, 4096):
                began = time.perf_counter()
                with open(folder + "/config", "rb", buffering=0) as file:
                    got = len(file.read(size))
                config_us[f"{device}: {got} of {size} bytes"] = round((time.perf_counter() - began) * 1e6, 1)
        except OSError:
            pass
    with Agent(a.stoker, a.out) as agent:
        agent.wait()
        time.sleep(3)
        took, before_cpu, began = [], agent.cpu_s(), time.monotonic()
        for _ in range(1000):
            at = time.perf_counter()
            agent.get("/metrics")
            took.append(time.perf_counter() - at)
        scraped_cpu = agent.cpu_s() - before_cpu
        parts = agent.parts()
        used = lambda: {name: dict(Agent.user_and_kernel_s(pid), threads=agent.threads_s(pid)) for name, pid in parts.items()}
        idle_cpu, idle_began, before = agent.cpu_s(), time.monotonic(), used()
        time.sleep(float(os.environ.get("STOKER_GPU_DAY_IDLE_S", "30")))  # a rehearsal needs no figure
        idle_s = time.monotonic() - idle_began
        idle, after = (agent.cpu_s() - idle_cpu) / idle_s, used()
        cpu = {name: {"user": (after[name]["user"] - before[name]["user"]) / idle_s, "kernel": (after[name]["kernel"] - before[name]["kernel"]) / idle_s,
                      "threads": {thread: round((s - before[name]["threads"].get(thread, 0)) / idle_s, 6) for thread, s in after[name]["threads"].items()}} for name in parts}
        took.sort()
        collect = [g for g in agent.values().items() if g[0].startswith("stoker_agent_collect_seconds")]
        with open(os.path.join(a.out, "page.txt"), "w") as file:
            file.write(agent.get("/metrics"))
        checked = subprocess.run([a.stoker, "metrics", "check", os.path.join(a.out, "page.txt")], capture_output=True, text=True)
        return {"scrape_ms_p50": took[500] * 1e3, "scrape_ms_p99": took[990] * 1e3, "cpu_s_per_scrape": scraped_cpu / 1000, "cpu_share_at_1_hz": idle,
                "cpu_share_of_each": cpu, "config_read_us": config_us, "pss_kib": agent.rss_kib(), "memory_kib_of_each": {name: Agent.memory_kib(pid) for name, pid in parts.items()}, "collect_s": dict(collect), "page_check": checked.stdout.strip(), "gpus": len(agent.gpus())}


def step_rates(a):
    """Copies, memory and arithmetic through libcuda alone; PyTorch's matrix product where it is."""
    cuda, size = Cuda(), 1 << 30
    one, two, host = cuda.memory(size), cuda.memory(size), cuda.pinned(size)
    found = {"processors": cuda.processors}
    found["h2d_bytes_per_s"] = cuda.rates(lambda: cuda.check("cuMemcpyHtoD_v2", one, host, ctypes.c_size_t(size)), size)
    found["d2h_bytes_per_s"] = cuda.rates(lambda: cuda.check("cuMemcpyDtoH_v2", host, one, ctypes.c_size_t(size)), size)
    found["d2d_bytes_per_s"] = cuda.rates(lambda: cuda.check("cuMemcpyDtoDAsync_v2", two, one, ctypes.c_size_t(size), None), 2 * size)
    blocks = cuda.processors * 8
    found["copy_kernel_bytes_per_s"] = cuda.rates(lambda: cuda.launch("copy4", blocks, 512, two, one, ctypes.c_uint64(size // 16)), 2 * size)
    rounds = 20000
    found["fma32_flops"] = cuda.rates(lambda: cuda.launch("fma32", blocks, 256, one, ctypes.c_uint32(rounds)), blocks * 256 * rounds * 8 * 2)
    # One mma of a warp: 16 x 8 x 16 products. Hopper's own wgmma is faster; this is what programs of before get.
    found["mma_sync_bf16_flops"] = cuda.rates(lambda: cuda.launch("mma16", blocks, 256, one, ctypes.c_uint32(rounds)), blocks * 8 * rounds * 4 * 2 * 16 * 8 * 16)
    cuda.free(one), cuda.free(two)
    cuda.check("cuMemFreeHost", host)
    try:
        import torch
        for n in (4096, 8192):
            for name, kind in (("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)):
                x, y = (torch.randn(n, n, device="cuda", dtype=kind) for _ in range(2))
                for _ in range(3):
                    x @ y
                torch.cuda.synchronize()
                rates = []
                for _ in range(7):
                    began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    began.record()
                    x @ y
                    ended.record()
                    ended.synchronize()
                    rates.append(2 * n ** 3 / (began.elapsed_time(ended) / 1e3))
                found[f"matmul_{n}_{name}_flops"] = {"median": statistics.median(rates), "low": min(rates), "high": max(rates), "times": 7}
    except ImportError:
        found["torch"] = "not here"
    return found


def step_burn_in(a):
    """What `stoker doctor gpu` measures and says of the same board: its copies beside those above, a burn-in, equal results."""
    done = subprocess.run([a.stoker, "doctor", "gpu", "--full", "-o", "json"], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"exit {done.returncode}: {done.stderr[-1500:]}")
    return {"exit": done.returncode, "checks": json.loads(done.stdout)["checks"]}


PHASES = ("idle", "loaded_idle", "copy_in", "device_copy", "matmul", "spin_one", "spin_all", "bursty")


def step_phases(a):
    """5: twenty seconds of each kind of work, and what the agent told of them. Spin: utilisation 1 with tensor cores below 0.01; a copy:
    memory high and tensor cores 0; a product: tensor cores over 0.5."""
    cuda, size, told = Cuda(), 1 << 30, {}
    try:
        import torch
    except ImportError:
        torch = None
    with Agent(a.stoker, a.out) as agent:
        agent.wait()
        for phase in PHASES:
            if phase == "matmul" and not torch:
                told[phase] = "PyTorch is not here"
                continue
            one, two, host = (cuda.memory(size), cuda.memory(size), cuda.pinned(size)) if phase not in ("idle",) else (None, None, None)
            x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) if phase == "matmul" else None
            samples, end, asked = [], time.monotonic() + a.phase_s, 0
            began = time.monotonic()
            while time.monotonic() < end:
                since = time.monotonic() - began
                if phase == "copy_in":
                    cuda.check("cuMemcpyHtoD_v2", one, host, ctypes.c_size_t(size))
                elif phase == "device_copy":
                    for _ in range(50):
                        cuda.launch("copy4", cuda.processors * 8, 512, two, one, ctypes.c_uint64(size // 16))
                    cuda.synchronize()
                elif phase == "matmul" or (phase == "bursty" and since % 5 < 1 and torch):
                    x = x if x is not None else torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
                    for _ in range(50):
                        x @ x
                    torch.cuda.synchronize()
                elif phase in ("spin_one", "spin_all"):
                    cuda.launch("spin", 1 if phase == "spin_one" else cuda.processors, 32, ctypes.c_uint64(200_000_000))
                    cuda.synchronize()
                else:
                    time.sleep(0.1)
                if since > 4 and time.monotonic() - asked >= 1:  # what was there before has gone out of the driver's window
                    asked = time.monotonic()
                    samples.append(agent.gpus()[0]["values"])
            keys = ("utilization", "sm_active", "tensor_active", "dram_active", "power_instant", "clock_sm", "pcie_received_rate", "memory_copy_busy")
            told[phase] = {k: statistics.fmean([s[k] for s in samples if k in s]) for k in keys if any(k in s for s in samples)} | {"samples": len(samples)}
            for at in (one, two):
                if at is not None:
                    cuda.free(at)
            if host is not None:
                cuda.check("cuMemFreeHost", host)
            del x
    def got(phase, key):
        return told[phase].get(key) if isinstance(told.get(phase), dict) else None
    verdicts = {}
    if got("spin_all", "tensor_active") is not None:
        verdicts["spin: busy without tensor cores"] = got("spin_all", "utilization") > 0.9 and got("spin_all", "tensor_active") < 0.01
        verdicts["device copy: memory, no tensor cores"] = got("device_copy", "dram_active") > 0.5 and got("device_copy", "tensor_active") < 0.01
        verdicts["idle: nothing"] = got("idle", "sm_active") is not None and got("idle", "sm_active") < 0.01
        if got("matmul", "tensor_active") is not None:
            verdicts["product: tensor cores"] = got("matmul", "tensor_active") > 0.5
    return {"phases": told, "verdicts": verdicts}


def step_overhead(a):
    """6: what reading costs the work: products a second without an agent, at one and at ten readings a second, in turn."""
    try:
        import torch
    except ImportError:
        raise NotHere("PyTorch")
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def rate(seconds):
        done, began = 0, time.monotonic()
        while time.monotonic() - began < seconds:
            for _ in range(20):
                x @ x
            torch.cuda.synchronize()
            done += 20
        return done / (time.monotonic() - began)
    rate(5)
    found = {"none": [], "1": [], "10": []}
    for _ in range(4):
        for kind in found:
            if kind == "none":
                found[kind].append(rate(4))
            else:
                with Agent(a.stoker, a.out, period=1 / float(kind)) as agent:
                    agent.wait()
                    found[kind].append(rate(4))
    def slower(kind):
        pairs = [1 - other / alone for alone, other in zip(found["none"], found[kind])]
        half = 3.182 * statistics.stdev(pairs) / len(pairs) ** 0.5  # Student's t, 3 degrees
        return {"mean": statistics.fmean(pairs), "low": statistics.fmean(pairs) - half, "high": statistics.fmean(pairs) + half}
    return {"products_per_s": found, "slower_at_1_hz": slower("1"), "slower_at_10_hz": slower("10")}


def step_energy_and_owners(a):
    """7: the integral of power beside the energy counter, and two processes beside their owners."""
    worker = ("import torch,time\nx=torch.randn(4096,4096,device='cuda',dtype=torch.bfloat16)\nend=time.time()+45\n"
              "while time.time()<end:\n  x@x\n  torch.cuda.synchronize()\n")
    workers = [subprocess.Popen([sys.executable, "-c", worker], env=dict(os.environ, STOKER_RUN=f"r-{i}", STOKER_ATTEMPT="1", RANK=str(i))) for i in (1, 2)]
    try:
        with Agent(a.stoker, a.out) as agent:
            agent.wait()
            time.sleep(12)
            joules, began, first = 0.0, time.monotonic(), agent.gpus()[0]["values"]["energy"]
            last, owners = began, {}
            while time.monotonic() - began < 25:
                time.sleep(0.2)
                gpu = agent.gpus()[0]
                now = time.monotonic()
                joules += gpu["values"].get("power_instant", gpu["values"].get("power_average", 0)) * (now - last)
                last = now
                for process in gpu["processes"]:
                    owners[str(process["pid"])] = process.get("run", "unknown")
            counted = agent.gpus()[0]["values"]["energy"] - first
        mine = {str(w.pid): f"r-{i}" for i, w in zip((1, 2), workers)}
        wrong = {pid: (run, mine.get(pid)) for pid, run in owners.items() if run not in ("", "unknown") and mine.get(pid) != run}
        return {"integral_j": joules, "counter_j": counted, "difference": joules / counted - 1 if counted else None, "owners": owners, "started": mine, "wrong": wrong}
    finally:
        for w in workers:
            w.kill()
            w.wait()


RUNS = ("healthy", "single", "starved", "host-bound", "neighbour", "copies")
# Trainings against their plans; the last one after the three before it taught.
PLANNED_RUNS = (("gpt2-medium", 1024, 16), ("qwen2.5-0.5b", 1024, 8), ("llama-3.2-1b", 2048, 4), ("tinyllama-1.1b", 2048, 4))
PLANNED = """name: {model}
kind: training
model: {model}
data: {{tokens: {tokens}, sequence: {sequence}}}
batch: {{global_examples: {batch}}}
precision: bf16
optimizer: adamw
framework: transformers
run:
  command: [{python}, {program}, planned, "{seconds}", {device}, {model}, "{sequence}", "{batch}"]
  gpus: 1
"""


class Runs:
    """A folder of runs, and what stoker says of them."""

    def __init__(self, a, name):
        self.a, self.state = a, os.path.join(a.out, ".state-" + name)
        self.environment = dict(os.environ, STOKER_FOLDER=self.state, XDG_DATA_HOME=self.state + "-data", NO_COLOR="1", COLUMNS="110")

    def ask(self, *words, limit_s=60):
        return subprocess.run([self.a.stoker, *words], cwd=self.a.out, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s).stdout

    def run(self, words, run, look=False):
        began = time.monotonic()
        process = subprocess.Popen([self.a.stoker, "run", *words], cwd=self.a.out, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        seen = {}
        if look:
            time.sleep(self.a.run_s + 3)  # the program begins in a few seconds, and works for run_s
            seen = {" ".join(w): self.ask(*w) for w in (["gpu"], ["gpu", "processes"], ["top", "--once"], ["ps"])}
        try:
            told, _ = process.communicate(timeout=self.a.run_s * 3 + 60)
        except subprocess.TimeoutExpired:
            self.ask("cancel", run)
            process.terminate()
            told, _ = process.communicate(timeout=30)
        log = self.ask("logs", run)[-1500:]
        try:
            causes = json.loads(self.ask("explain", run, "-o", "json"))["causes"]
        except (ValueError, KeyError):
            causes = []
        found = {"exit": process.returncode, "told": told[-2500:], "log": log, "explained": self.ask("explain", run)[-6000:], "described": self.ask("describe", run)[-3000:],
                 "causes": [each["cause"] for each in causes], "took_s": round(time.monotonic() - began, 1), "seen": seen}
        print(f"  {' '.join(words[-4:])}: exit {found['exit']}, {found['causes']}, {log.strip().splitlines()[-1] if log.strip() else ''}", flush=True)
        return found

    def end(self):
        for folder in (self.state, self.state + "-data"):
            shutil.rmtree(folder, ignore_errors=True)


def step_runs(a):
    """Trainings with the hook as runs of stoker: one that is well, five with a fault; and what is said of each."""
    if not a.rehearsal:
        try:
            import torch  # noqa: F401
        except ImportError:
            raise NotHere("PyTorch")
    program, found = os.path.join(HERE, "gpu_day_train.py"), {}
    for kind in a.runs.split(","):
        runs = Runs(a, kind)
        found[kind] = runs.run([*([] if a.rehearsal else ["--gpus", "1"]), "--", a.python, program, kind, str(a.run_s), *(["cpu"] if a.rehearsal else [])], "r-1", look=kind == "healthy")
        found[kind]["usage"] = runs.ask("usage", "--gpus")
        runs.end()
    return {"runs": found}


def step_planned(a):
    """Trainings of known models as runs of their own plans; what three of them teach the fourth."""
    program, found, runs = os.path.join(HERE, "gpu_day_train.py"), {}, Runs(a, "planned")
    for number, (model, sequence, batch) in enumerate(PLANNED_RUNS, 1):
        if a.rehearsal:
            sequence, batch = 64, 1
        text = PLANNED.format(model=model, tokens=batch * sequence * 150, sequence=sequence, batch=batch, python=a.python, program=program, seconds=a.run_s, device="cpu" if a.rehearsal else "cuda")
        if a.rehearsal:
            text = text.replace("  gpus: 1\n", "")
        with open(os.path.join(a.out, "planned.yaml"), "w") as file:
            file.write(text)
        if number == len(PLANNED_RUNS):
            found["calibrate"] = runs.ask("calibrate", "add", *(f"r-{i}" for i in range(1, number)))
        found[model] = runs.run(["planned.yaml"], f"r-{number}")
    found["calibrated"] = runs.ask("calibrate", "show")
    found["usage"] = runs.ask("usage", "--gpus")
    runs.end()
    return {"runs": found}


def step_models(a):
    """Known models beside what was predicted of them (tools/gpu_day_models.py)."""
    done = subprocess.run([a.python, os.path.join(HERE, "gpu_day_models.py"), "measure", "--out", a.out, "--seconds", str(a.models_s), "--visit", str(a.visit)] + (["--tiny"] if a.rehearsal else []),
                          stdin=subprocess.DEVNULL, stdout=None, stderr=subprocess.PIPE, text=True, timeout=a.models_s + 90)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-1500:])
    with open(os.path.join(a.out, "measured.json")) as file:
        return json.load(file)


def step_raw(a):
    """What the vendor's own tools and the kernel say of the machine, kept for readers of such texts (`stoker doctor --read`)."""
    folder = os.path.join(a.out, "raw")
    os.makedirs(folder, exist_ok=True)
    asked = {"nvidia-smi.txt": ["nvidia-smi"], "nvidia-smi-q.txt": ["nvidia-smi", "-q"], "nvidia-smi-q.xml": ["nvidia-smi", "-q", "-x"], "topo.txt": ["nvidia-smi", "topo", "-m"],
             "nvlink.txt": ["nvidia-smi", "nvlink", "-s"], "dmon.txt": ["nvidia-smi", "dmon", "-c", "3"], "pmon.txt": ["nvidia-smi", "pmon", "-c", "1"],
             "query.csv": ["nvidia-smi", "--query-gpu=index,uuid,name,pci.bus_id,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,clocks.sm,"
                           "clocks_event_reasons.active,ecc.errors.uncorrected.aggregate.total,remapped_rows.pending", "--format=csv"],
             "dmesg.txt": ["dmesg"], "lspci.txt": ["lspci", "-vv"], "devices.txt": ["sh", "-c", "ls -l /dev/nvidia* /dev/dri 2>&1; ls -R /proc/driver/nvidia 2>&1; cat /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information 2>&1"],
             "stoker-gpu.txt": [a.stoker, "gpu"], "stoker-gpu-list.json": [a.stoker, "gpu", "-o", "json"], "stoker-processes.txt": [a.stoker, "gpu", "processes"],
             "stoker-doctor.txt": [a.stoker, "doctor"], "stoker-doctor-gpu.txt": [a.stoker, "doctor", "gpu"]}
    sizes = {}
    for name, words in asked.items():
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, env=dict(os.environ, NO_COLOR="1", STOKER_FOLDER=os.path.join(a.out, ".state")))
            text = done.stdout + (f"\n[exit {done.returncode}] {done.stderr}" if done.returncode else "")
        except (OSError, subprocess.TimeoutExpired) as why:
            text = f"[{why}]"
        with open(os.path.join(folder, name), "w") as file:
            file.write(text[:2_000_000])
        sizes[name] = len(text)
    read = subprocess.run([a.stoker, "doctor", "--read", *[os.path.join(folder, n) for n in ("nvidia-smi.txt", "nvidia-smi-q.xml", "query.csv")]], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    shutil.make_archive(os.path.join(a.out, "raw"), "gztar", folder)
    shutil.rmtree(folder)
    return {"bytes": sizes, "read_back": read.stdout[-3000:] + read.stderr[-500:]}


PARTS = {1: (step_abi, step_record, step_three_readers, step_raw, step_scrapes), 2: (step_rates, step_burn_in, step_phases), 3: (step_models, step_runs, step_planned), 4: (step_overhead, step_energy_and_owners)}


def run(a):
    a.stoker, a.out = os.path.abspath(a.stoker), os.path.abspath(a.out)
    os.makedirs(a.out, exist_ok=True)
    facts = {"uname": " ".join(os.uname()), "python": sys.version.split()[0], "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
             "stoker": call(a.stoker, "--version").strip(), "double": bool(os.environ.get("STOKER_NVML_PROFILE"))}
    result = {"part": a.part, "machine": facts, "steps": {}}
    path = os.path.join(a.out, f"part-{a.part}.json")
    steps = [globals()["step_" + name] for name in a.steps.split(",")] if a.steps else PARTS[a.part]
    for step in steps:
        began, name = time.monotonic(), step.__name__[5:]
        try:
            found = {"found": step(a)}
        except NotHere as why:
            found = {"skipped": str(why)}
        except Exception as error:  # told, and the next step goes on
            found = {"failed": f"{type(error).__name__}: {error}", "where": traceback.format_exc()[-1500:]}
        found["took_s"] = round(time.monotonic() - began, 1)
        result["steps"][name] = found
        with open(path, "w") as file:  # after each: what was measured stays if the next is ended
            json.dump(result, file, indent=1)
        print(f"{name}: {'failed: ' + found['failed'] if 'failed' in found else 'skipped: ' + found['skipped'] if 'skipped' in found else 'done'} ({found['took_s']} s)", flush=True)
    return 1 if any("failed" in s for s in result["steps"].values()) else 0


def report(a):
    """Writes the page and the fixtures; refuses what was measured on the double."""
    import gpu_day_report
    parts = []
    for folder in a.folders:
        for name in sorted(os.listdir(folder)):
            if re.fullmatch(r"part-\d\.json", name):
                parts.append((folder, json.load(open(os.path.join(folder, name)))))
    if not parts:
        sys.exit("error: no part-N.json in these folders")
    if any(part["machine"]["double"] for _, part in parts) and not a.rehearsal:
        sys.exit("error: measured on the double, which is no board; --rehearsal writes the page beside, to look at")
    lines = gpu_day_report.page_of(parts, ROOT, a.rehearsal, gpu_day_report.kept_words(a.page))
    with open(a.page, "w") as file:
        file.write("\n".join(lines))
    print(a.page)
    for folder, part in parts:
        profile = os.path.join(folder, "recorded.profile")
        if part["part"] == 1 and os.path.exists(profile) and not a.rehearsal:
            name = re.search(r"^name (.*)$", open(profile).read(), re.M).group(1)
            to = os.path.join(ROOT, "tests", "nvml_double", "profiles", "recorded-" + re.sub(r"\W+", "-", name.lower()).strip("-") + ".profile")
            shutil.copy(profile, to)
            print(to)
        rates = part["steps"].get("rates", {}).get("found")
        if rates:
            print("for data/calibration, medians of 7:")
            for key, value in rates.items():
                if isinstance(value, dict):
                    print(f"  {key}\t{value['median']:.6g}\t({value['low']:.6g} to {value['high']:.6g})")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run")
    one.add_argument("--stoker", default=os.path.join(ROOT, "build", "gpu-day", "stoker"))
    one.add_argument("--part", type=int, choices=PARTS, required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--phase-s", dest="phase_s", type=float, default=20)
    one.add_argument("--steps", help="these alone, of any part: abi,record")
    one.add_argument("--runs", default=",".join(RUNS), help="of the step runs")
    one.add_argument("--run-s", dest="run_s", type=float, default=20)
    one.add_argument("--visit", type=int, default=1, help="which models, of the step models")
    one.add_argument("--models-s", dest="models_s", type=float, default=240)
    one.add_argument("--python", default=sys.executable, help="the one with PyTorch")
    one.add_argument("--rehearsal", action="store_true", help="small, and on a processor")
    two = verbs.add_parser("report")
    two.add_argument("folders", nargs="+")
    two.add_argument("--page", default=os.path.join(ROOT, "docs", "measurements", "gpu.md"))
    two.add_argument("--rehearsal", action="store_true")
    a = parser.parse_args()
    sys.exit(run(a) if a.verb == "run" else report(a))


if __name__ == "__main__":
    main()
