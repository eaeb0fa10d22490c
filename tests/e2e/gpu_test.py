"""GPUs without a GPU: the shipped binary on a double of NVIDIA's library (tests/nvml_double), through every fault that a
driver was ever seen to have. The double has the ABI of the bindings that NVIDIA publishes; that is tested here, too."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import Failure, Skipped, Stoker, check, main, wait_for
from pythons import pinned_python

HERE = os.path.dirname(os.path.abspath(__file__))
DOUBLE = os.path.join(HERE, "..", "nvml_double")
PERIOD_S = 0.2  # the agent's; waits for what hangs are as much shorter
ANSWER_S = 0.25  # /metrics is answered within this, whatever the driver does; on a busy machine once more is tried


class Board:
    """An agent on the double, with a script of what the boards do."""

    def __init__(self, t, profile="h100", gpus=8, old=False, library=True, script="", options=(), root=None, period_s=PERIOD_S):
        self.t, self.folder = t, os.path.join(t.base, f"gpu-{time.monotonic_ns()}")
        os.mkdir(self.folder)
        self.library = os.path.join(self.folder, "libnvidia-ml.so.1")
        if library:
            self.install(old)
        self.script = os.path.join(self.folder, "script")
        self.say(script)
        t.environment.update(STOKER_NVML_PROFILE=os.path.join(DOUBLE, "profiles", profile + ".profile"), STOKER_NVML_GPUS=str(gpus),
                             STOKER_NVML_LIBRARY=self.library, STOKER_NVML_SCRIPT=self.script)
        self.root = root or os.path.join(self.folder, "root")
        os.makedirs(os.path.join(self.root, "dev"), exist_ok=True)
        t.environment["STOKER_GPU_ROOT"] = self.root
        port_file = os.path.join(self.folder, "port")
        self.agent = t.start("agent", "--listen", "127.0.0.1:0", "--port-file", port_file, "--period", str(period_s), "-q", *options)

        def ready():
            if self.agent.poll() is not None:
                raise Failure(open(self.agent.err_path).read())
            return os.path.exists(port_file)
        wait_for("the agent listens", ready)
        self.port = int(open(port_file).read())

    def install(self, old=False):
        built = build_double(old)
        shutil.copy(built, self.library + ".new")
        os.replace(self.library + ".new", self.library)

    def say(self, script):
        with open(self.script + ".new", "w") as file:
            file.write(script + "\n")
        os.replace(self.script + ".new", self.script)

    def page(self, path="/metrics", accept=None, limit_s=ANSWER_S):
        """Two tries: this machine's own pauses are not the agent's."""
        took = []
        for _ in range(2):
            began = time.monotonic()
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept} if accept else {})
            with urllib.request.urlopen(request, timeout=10) as answer:
                text, status = answer.read().decode(), answer.status
            took.append(time.monotonic() - began)
            check(status == 200, f"{path} answered {status}")
            if took[-1] <= limit_s:
                return text
        raise Failure(f"{path} took {took} s")

    def values(self, path="/metrics"):
        found = {}
        for line in self.page(path).splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    def up(self):
        """gpu index -> stoker_gpu_up"""
        return {match.group(1): value for name, value in self.values().items() if (match := re.match(r'stoker_gpu_up\{gpu="(\d*)"', name))}

    def value(self, family, *labels, values=None):
        """The only sample of the family with all of these labels; None: there is none."""
        found = [v for name, v in (values or self.values()).items() if name.split("{")[0] == family and all(label in name for label in labels)]
        check(len(found) <= 1, f"{family} {labels} stands {len(found)} times")
        return found[0] if found else None

    def wait_up(self, count=8):
        wait_for(f"{count} GPUs are up", lambda: sum(self.up().values()) == count and all(self.up().values()))

    def sampler(self):
        """Pids of the samplers, by their parent."""
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
                parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.agent.pid and b"gpu-sampler" in words:
                pids.append(int(pid))
        return pids

    def end(self):
        if self.agent.poll() is None:
            self.agent.terminate()
            check(self.agent.wait(15) == 0, f"the agent ended with {self.agent.returncode}")


built_doubles = {}


def build_double(old=False):
    if old not in built_doubles:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise Skipped("no C compiler for the double of NVML")
        path = os.path.join(build_folder(), "old.so" if old else "new.so")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-o", path,
                        *(["-DOLD_DRIVER"] if old else []), os.path.join(DOUBLE, "nvml_double.c"), "-lpthread"], check=True)
        built_doubles[old] = path
    return built_doubles[old]


def build_folder():
    if "folder" not in built_doubles:
        import atexit
        import tempfile
        built_doubles["folder"] = tempfile.mkdtemp(prefix="stoker-nvml-")
        atexit.register(shutil.rmtree, built_doubles["folder"], ignore_errors=True)
    return built_doubles["folder"]


def healthy(board, gpus, what):
    """These go on, freshly read, while others do not."""
    up = board.up()
    for gpu in gpus:
        check(up.get(str(gpu)) == 1, f"{what}: GPU {gpu} is healthy and not up: {up}")
    values = board.values()
    for gpu in gpus:
        check(board.value("stoker_gpu_power_watts", f'gpu="{gpu}"', 'window="instant"', values=values) is not None,
              f"{what}: no power of the healthy GPU {gpu}")


# --- what the double is worth -------------------------------------------------------------------------------------------

def bindings_python():
    """A Python with NVIDIA's own bindings, pinned in requirements-gpu.txt."""
    return pinned_python(pathlib.Path(HERE) / "requirements-gpu.txt", "gpu-venv")


def ask_bindings(program, environment=None):
    return json.loads(subprocess.run([bindings_python(), "-c", "import ctypes, json\nimport pynvml as p\n" + program], env=environment, check=True,
                                     capture_output=True, text=True).stdout)


def test_structures_are_those_of_the_published_bindings(t):
    """A structure of another size would be filled beyond its end: our declarations against nvidia-ml-py's."""
    theirs = {"PciInfo": "nvmlPciInfo_t", "Memory": "c_nvmlMemory_t", "Memory2": "c_nvmlMemory_v2_t", "Bar1": "c_nvmlBAR1Memory_t",
              "Utilization": "c_nvmlUtilization_t", "ProcessInfo": "c_nvmlProcessInfo_v2_t", "ProcessUsage": "c_nvmlProcessUtilizationSample_t",
              "FieldValue": "c_nvmlFieldValue_t", "EventData": "c_nvmlEventData_t", "RowBanks": "c_nvmlRowRemapperHistogramValues",
              "Margin": "c_nvmlMarginTemperature_v1_t", "Fabric": "c_nvmlGpuFabricInfo_v3_t", "GpmMetric": "c_nvmlGpmMetric_t",
              "GpmSupport": "c_nvmlGpmSupport_t", "GpmGet": "c_nvmlGpmMetricsGet_t"}
    names = {"time_sw_power_cap": "PERF_POLICY_POWER", "energy": "TOTAL_ENERGY_CONSUMPTION", "power_instant": "POWER_INSTANT", "power_average": "POWER_AVERAGE",
             "temperature_memory": "MEMORY_TEMP", "recovery_action": "GET_GPU_RECOVERY_ACTION", "time_hw_thermal": "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
             "remapped_uncorrected": "REMAPPED_UNC", "pcie_sent": "PCIE_COUNT_TX_BYTES", "nvlink_crc": "NVLINK_ERROR_DL_CRC"}
    told = ask_bindings(f"print(json.dumps(dict(sizes={{k: ctypes.sizeof(getattr(p, v)) for k, v in {theirs!r}.items()}},"
                        f"fields={{k: getattr(p, 'NVML_FI_DEV_' + v) for k, v in {names!r}.items()}},"
                        "offsets=[p.c_nvmlFieldValue_t.nvmlReturn.offset, p.c_nvmlFieldValue_t.value.offset, p.nvmlPciInfo_t.busId.offset])))")
    folder = os.path.join(HERE, "..", "..", "src", "observe", "gpu")
    ours = {name: int(size) for name, size in re.findall(r"sizeof\((\w+)\) == (\d+)", open(os.path.join(folder, "nvml_abi.h")).read())}
    ours.pop("ProcessInfo1")  # of drivers before 510; the bindings no longer have it
    check(ours == told["sizes"], f"sizes here {ours}, there {told['sizes']}")
    check(told["offsets"] == [28, 32, 36], f"offsets there {told['offsets']}")
    fields = {int(number): metric for number, metric in re.findall(r"\{(\d+), M::(\w+), [\d.e-]+\}", open(os.path.join(folder, "read_gpu.cpp")).read())}
    for metric, number in told["fields"].items():
        check(fields.get(number) == metric, f"field {number} is {names[metric]}, and read as {fields.get(number)}")


def test_versions_of_structures_are_those_of_the_published_bindings(t):
    """Some carry their size in the version and some do not; a real driver refuses the other form, and what it would have told is lost.
    The double refuses what is not the published one."""
    told = ask_bindings("print(json.dumps([p.nvmlMemory_v2, p.nvmlMarginTemperature_v1, p.nvmlGpuFabricInfo_v3, p.NVML_GPM_SUPPORT_VERSION, "
                        "p.NVML_GPM_METRICS_GET_VERSION]))")
    check(told == [40 | 2 << 24, 8 | 1 << 24, 40 | 3 << 24, 1, 1], f"as published: {told}")
    Board(t, profile="h200", gpus=1).end()
    text = t.call("gpu", "abi-check").stdout
    check("no structure was refused" in text, text)
    calls = {line.split("  ")[0]: line for line in text.splitlines()}
    check(re.search(r" 0 x1 ", calls["nvmlGpmQueryDeviceSupport"]), calls["nvmlGpmQueryDeviceSupport"])


def test_a_recorded_board_answers_as_it_did(t):
    """The double with the profile of a real board returns what that board returned, call by call: a test on it is as good as that board."""
    profiles = os.path.join(DOUBLE, "profiles")
    recorded = json.load(open(os.path.join(profiles, "recorded-nvidia-h200.json")))
    Board(t, profile="recorded-nvidia-h200", gpus=1).end()
    path = os.path.join(t.work, "again.json")
    t.call("gpu", "record", "--repeat", "4", "--file", path)
    again = json.load(open(path))
    check((again["driver"], again["nvml"], again["cuda"]) == (recorded["driver"], recorded["nvml"], recorded["cuda"]), "another driver")
    values, theirs = again["boards"][0]["values"], recorded["boards"][0]["values"]
    check(set(values) == set(theirs), f"told here and not there, or the reverse: {sorted(set(values) ^ set(theirs))}")
    wrong = {k: (v, values[k]) for k, v in theirs.items() if abs(values[k] - v) > 1e-6 * max(1e-9, abs(v))}
    check(not wrong, f"recorded, and told otherwise: {wrong}")
    # Of a structure for which two forms were tried, the one that was taken counts.
    returns = lambda r: {c["call"]: set(c["returns"]) - ({"25"} if len(c["returns"]) > 1 else set()) for c in r["calls"]}
    mine, board = returns(again), returns(recorded)
    both = mine.keys() & board.keys()
    check(len(both) > 45, f"only {len(both)} calls in both")
    check(not (other := {c: (board[c], mine[c]) for c in both if board[c] != mine[c]}), f"returned there and here: {other}")


def test_calls_keep_their_budget_on_a_board_where_they_are_dear(t):
    """On an H200 one reading of everything is 20 ms of calls, and at one a second it took 3 % of a processor. What calls cost there is
    spent here, too: they stay within 2 ms a second, and no figure is left out for that."""
    spent = os.path.join(t.work, "spent")
    t.environment.update(STOKER_NVML_COSTS=os.path.join(DOUBLE, "profiles", "recorded-nvidia-h200.costs"), STOKER_NVML_SPENT=spent)
    me = os.getpid()
    board = Board(t, profile="recorded-nvidia-h200", gpus=1, period_s=1, script=f"process 0 {me} 1000000000 30\nset 0 util 90\nrate 0 energy_mj 600000")
    us = lambda: struct.unpack("16d", open(spent, "rb").read())[0]
    board.wait_up(1)
    settled = time.monotonic() + 12  # a few readings, in which it learns what calls cost
    names = set()
    while time.monotonic() < settled:
        names |= {n for n in board.values() if n.startswith("stoker_gpu") and "_owner_" not in n}  # an owner becomes known
        time.sleep(0.5)
    before, began, missing = us(), time.monotonic(), set()
    while time.monotonic() < began + 20:
        missing |= names - set(board.values())
        time.sleep(0.5)
    a_second = (us() - before) / (time.monotonic() - began)
    check(a_second <= 2000 * 1.15, f"{a_second:.0f} us of calls a second")
    check(not missing, f"not always told: {sorted(missing)}")
    for name in ("sm_active_ratio", "power_watts", "temperature_margin_celsius", "clock_event_seconds_total", "pcie_sent_bytes_total", "ecc_errors_total", "processes"):
        check(any(n.startswith("stoker_gpu_" + name) for n in names), f"{name} was never told")


def test_the_published_bindings_read_the_same_from_the_double(t):
    """Somebody else's reader of the same library sees what ours tells."""
    bindings_python()
    board = Board(t, gpus=2, script="set 1 util 73\nset 1 temperature 61\nset 1 power_mw 512345\nset 1 mem_used 40000000000")
    board.end()
    theirs = ask_bindings("p.nvmlInit()\nh=p.nvmlDeviceGetHandleByIndex(1)\nm=p.nvmlDeviceGetMemoryInfo(h,version=p.nvmlMemory_v2)\n"
                          "f=p.nvmlDeviceGetFieldValues(h,[p.NVML_FI_DEV_POWER_INSTANT])[0]\n"
                          "print(json.dumps(dict(uuid=p.nvmlDeviceGetUUID(h),name=p.nvmlDeviceGetName(h),util=p.nvmlDeviceGetUtilizationRates(h).gpu,"
                          "temperature=p.nvmlDeviceGetTemperature(h,0),used=m.used,total=m.total,power=f.value.uiVal,margin=p.nvmlDeviceGetMarginTemperature(h))))",
                          dict(t.environment, LD_LIBRARY_PATH=os.path.dirname(board.library)))
    ours = t.json("gpu")["gpus"][1]
    values = ours["values"]
    check((ours["uuid"], ours["name"]) == (theirs["uuid"], theirs["name"]), "another board")
    for key, mine in (("util", values["utilization"] * 100), ("temperature", values["temperature_gpu"]), ("used", values["memory_used"]),
                      ("total", values["memory_size"]), ("power", values["power_instant"] * 1000), ("margin", values["temperature_margin"])):
        check(abs(mine - theirs[key]) < 1e-6 * max(1, theirs[key]), f"{key}: {mine} here, {theirs[key]} by pynvml")


def test_a_recording_becomes_a_board_that_says_the_same(t):
    """What one real board told replaces what was guessed from documents."""
    board = Board(t, profile="h200", gpus=1, script="set 0 temperature 57\nset 0 util 88\nset 0 clock_sm 1755\nset 0 ecc_ca 12")
    board.end()
    before = t.json("gpu")["gpus"][0]
    recording, profile = os.path.join(t.work, "r.json"), os.path.join(t.work, "r.profile")
    t.call("gpu", "record", "--repeat", "3", "--file", recording, "--profile", profile)
    check("nvmlDeviceGetFieldValues" in t.call("gpu", "replay", recording).stdout, "a recording that tells of no call")
    os.remove(board.script)
    t.environment["STOKER_NVML_PROFILE"] = profile
    after = t.json("gpu")["gpus"][0]
    moved = {k: (v, after["values"].get(k)) for k, v in before["values"].items()
             if k not in ("fabric_healthy", "vgpu_licence", "nvlink_active", "pcie_sent_rate", "pcie_received_rate") and abs(after["values"].get(k, -1) - v) > 1e-6 * abs(v)}
    check(not moved, f"recorded, and told otherwise: {moved}")


# --- the page -----------------------------------------------------------------------------------------------------------

def test_pages_are_strict_and_promtool_reads_them(t):
    """Each format is clean to our checker; promtool's complaints about DCGM's names are exactly those that cannot be helped."""
    busy = "set * util 40\nrate * energy_mj 350000\nprocess 0 1 4000000 30"
    board = Board(t, options=("--dcgm-fields", "all"), script=busy)
    board.wait_up()
    board.say("xid 3 79\n" + busy)  # once it looks: what came before is the kernel log's to tell
    wait_for("the Xid", lambda: board.value("stoker_gpu_xid_total", 'gpu="3"', 'xid="79"') == 1)
    openmetrics = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    for path, accept, dcgm in (("/metrics/native", None, False), ("/metrics/native", openmetrics, False), ("/metrics/dcgm", None, True), ("/metrics/dcgm", openmetrics, True)):
        page = t.write("page", board.page(path, accept))
        report = t.call("metrics", "check", page, *(["--dcgm"] if dcgm else []), exit=None)
        check(report.returncode == 0, f"{path} {accept}: {report.stdout}")
        if accept:
            check(open(page).read().endswith("# EOF\n"), "OpenMetrics without its end")
    for path in ("/nowhere", "/metrics/x"):
        try:
            board.page(path)
            raise Failure(f"{path} was answered")
        except urllib.error.HTTPError as error:
            check(error.code == 404, f"{path}: {error.code}")
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{board.port}/metrics", data=b"x"))
        raise Failure("POST was answered")
    except urllib.error.HTTPError as error:
        check(error.code == 405, f"POST: {error.code}")
    if not shutil.which("promtool"):
        raise Skipped("promtool is not installed (package prometheus)")
    native = subprocess.run(["promtool", "check", "metrics"], input=board.page("/metrics/native"), text=True, capture_output=True)
    check(native.returncode == 0, f"promtool on our names: {native.stdout}{native.stderr}")
    theirs = subprocess.run(["promtool", "check", "metrics"], input=board.page("/metrics/dcgm"), text=True, capture_output=True)
    rest = [line for line in (theirs.stdout + theirs.stderr).splitlines() if line and not re.search(r"^DCGM_\w+ (counter metrics should have|non-counter metrics should not have|use base unit|label names should be written in|metric names? should not (contain abbreviated units|include type))", line)]
    check(theirs.returncode in (0, 3) and not rest, f"promtool on DCGM's names: {rest}")


def test_dcgm_names_are_all_there(t):
    """Whoever has dashboards for dcgm-exporter keeps them: its default list, the order of its labels, both spellings of Hostname."""
    board = Board(t, options=("--compat", "dcgm"), script="rate * nvlink_tx_kib 1000000\nrate * nvlink_rx_kib 1000000")
    board.wait_up_dcgm = wait_for("NVLink's rate", lambda: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{" in board.page())
    page = board.page()
    table = [line.split("\t") for line in open(os.path.join(HERE, "..", "..", "data", "gpu", "dcgm_fields.tsv")) if not line.startswith("#")]
    wanted = [row[0] for row in table[1:] if row[6] == "y"]
    check(len(wanted) == 26, f"{len(wanted)} names in the default list")
    for name in wanted:
        found = f"# TYPE {name} " in page if name != "DCGM_FI_DRIVER_VERSION" else 'DCGM_FI_DRIVER_VERSION="' in page
        check(found, f"{name} is not told")
    line = next(line for line in page.splitlines() if line.startswith("DCGM_FI_DEV_GPU_TEMP{"))
    labels = re.findall(r"(\w+)=", line)
    check(labels[:6] == ["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"], f"labels in another order: {labels}")
    check('pci_bus_id="00000000:1B:00.0"' in line, f"bus id as DCGM writes it: {line}")
    board.end()
    newer = Board(t, gpus=1, options=("--compat", "dcgm", "--dcgm-hostname", "hostname", "--dcgm-names", "4.6"))
    wait_for("the newer name", lambda: "DCGM_FI_DEV_BOARD_POWER_WATTS{" in newer.page())
    check('hostname="' in newer.page() and "Hostname" not in newer.page(), "the newer spelling of hostname")


AMD = {"device/uevent": "DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:43:00.0", "device/product_name": "AMD Instinct MI300X OAM",
       "device/unique_id": "a1b2c3d4e5f60718", "device/gpu_busy_percent": "97", "device/mem_info_vram_total": "206141652992",
       "device/mem_info_vram_used": "103070826496", "device/hwmon/hwmon4/name": "amdgpu", "device/hwmon/hwmon4/temp1_label": "junction",
       "device/hwmon/hwmon4/temp1_input": "71000", "device/hwmon/hwmon4/power1_input": "702000000", "device/hwmon/hwmon4/power1_cap": "750000000"}
INTEL = {"device/uevent": "DRIVER=xe\nPCI_ID=8086:0BD5\nPCI_SLOT_NAME=0000:4d:00.0", "device/tile0/gt0/freq0/act_freq": "1550",
         "device/tile0/gt0/gtidle/idle_residency_ms": "1000", "device/hwmon/hwmon5/name": "xe", "device/hwmon/hwmon5/energy1_input": "5000000"}


def test_amd_and_intel_by_the_files_of_their_drivers(t):
    """Trees as the kernel's documentation has them, for no such board was seen: the same names, strict pages, and one that is gone is
    missed."""
    root = os.path.join(t.base, "sysfs")
    for card, files in (("card1", AMD), ("card2", INTEL)):
        for name, text in files.items():
            path = os.path.join(root, "sys/class/drm", card, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text + "\n")
    board = Board(t, library=False, root=root)
    wait_for("both", lambda: sum(board.up().values()) == 2)
    check(board.value("stoker_gpu_utilization_ratio", "amd-a1b2c3d4e5f60718") == 0.97, "its use")
    check(board.value("stoker_gpu_power_watts", "amd-a1b2c3d4e5f60718") == 702, "its power")
    check(board.value("stoker_gpu_info", 'driver="amdgpu"', 'model="AMD Instinct MI300X OAM"') == 1, "what it is")
    check(board.value("stoker_gpu_utilization_ratio", "pci-0000:4d:00.0") == 1, "asleep for no moment")
    check(board.value("stoker_nvml_up") == 0 and "stoker_gpu_xid" not in "".join(board.values()), "nothing of NVIDIA is told of them")
    check("pci-0000" not in board.page("/metrics/dcgm"), "DCGM knows neither")
    report = t.call("metrics", "check", t.write("page", board.page()), exit=None)
    check(report.returncode == 0, report.stdout)
    for words in (("gpu",), ("top", "--gpus", "--once")):
        text = t.call(*words).stdout
        check("AMD Instinct MI300X OAM" in text and "96.0 of 192" in text and "702 of 750" in text and "Intel GPU 8086:0bd5" in text, text)
        check("files of amdgpu and xe" in text and "not tried on a real board" in text and "NVIDIA" not in text, text)
    shutil.rmtree(os.path.join(root, "sys/class/drm/card1"))
    wait_for("it is missed", lambda: board.value("stoker_gpu_state", 'uuid="amd-a1b2c3d4e5f60718"', 'state="missing"') == 1)
    check(board.value("stoker_gpus", "expected") == 2 and board.value("stoker_gpus", "present") == 1, "one of two")
    check(t.call("gpu", exit=0).stdout.count("Intel GPU") == 1, "whoever looks afresh knows of one")
    board.end()
    # A board of NVIDIA beside them, whose driver is not there: it is on the bus, and has to be missed.
    device = os.path.join(root, "sys/bus/pci/devices/0000:1b:00.0")
    os.makedirs(device)
    for name, data in (("vendor", b"0x10de\n"), ("class", b"0x030200\n"), ("config", b"\xde\x10\x30\x23")):
        with open(os.path.join(device, name), "wb") as file:
            file.write(data)
    mixed = Board(t, library=False, root=root)
    wait_for("both kinds", lambda: mixed.value("stoker_gpus", "expected") == 2 and mixed.value("stoker_gpus", "present") == 1)
    check(mixed.value("stoker_gpu_up", 'gpu="1"') == 0 and mixed.value("stoker_gpu_up", "pci-0000:4d:00.0") == 1, json.dumps(mixed.up()))
    told = t.call("gpu", exit=3).stdout  # no driver of NVIDIA's, for a board of theirs
    check("Intel GPU" in told and "0000:1b:00.0" in told and "no NVIDIA driver" in told, told)
    mixed.end()


# --- 32 faults: each ends with a page that is answered in time -----------------------------------------------------------

def test_f01_no_library_and_then_there_is_one(t):
    board = Board(t, gpus=2, library=False)
    wait_for("the reason", lambda: board.value("stoker_nvml_down_reason", "library_absent") == 1)
    check(board.value("stoker_nvml_up") == 0, "up without a library")
    before = board.sampler()
    board.install()
    board.wait_up(2)
    check(board.sampler() == before, "the sampler was started again for that")


def test_f02_to_f04_the_driver_does_not_begin(t):
    for code, reason in ((9, "driver_not_loaded"), (18, "version_mismatch"), (4, "no_permission")):
        board = Board(t, gpus=2, script=f"fail * nvmlInit_v2 {code}")
        wait_for(reason, lambda: board.value("stoker_nvml_down_reason", reason) == 1)
        check(board.value("stoker_nvml_up") == 0, f"up while init returns {code}")
        board.say("")
        board.wait_up(2)
        board.end()


def test_f05_to_f07_an_older_driver(t):
    """Symbols that are missing, older names in their place, structures that are refused for their version."""
    board = Board(t, gpus=2, old=True)
    board.wait_up(2)
    healthy(board, (0, 1), "an old driver")
    values = board.values()
    check(board.value("stoker_gpu_memory_used_bytes", 'gpu="0"', values=values) is not None, "no memory by the older call")
    check(board.value("stoker_gpu_sm_active_ratio", 'gpu="0"', values=values) is None, "GPM where there is none")
    check(board.value("stoker_gpu_temperature_margin_celsius", 'gpu="0"', values=values) == 89 - 34, "the margin by the board's own threshold")
    board.end()
    refused = Board(t, gpus=2, script="fail * nvmlDeviceGetMemoryInfo_v2 25\nfail * nvmlDeviceGetBAR1MemoryInfo 13")
    refused.wait_up(2)
    check(refused.value("stoker_gpu_memory_size_bytes", 'gpu="1"') == 81559 * 2**20, "the older structure")
    check(refused.value("stoker_gpu_bar1_size_bytes", 'gpu="1"') is None, "a value without its function")


def test_f08_f09_boards_that_are_lost(t):
    board = Board(t)
    board.wait_up()
    board.say("fail 2 * 15")
    wait_for("GPU 2 is lost", lambda: board.value("stoker_gpu_down_reason", 'gpu="2"', 'reason="lost"') == 1)
    healthy(board, (0, 1, 3, 4, 5, 6, 7), "one is lost")
    values = board.values()
    check(board.value("stoker_gpus", 'state="present"', values=values) == 7 and board.value("stoker_gpus", 'state="expected"', values=values) == 8, "present and expected")
    check(board.value("stoker_gpu_power_watts", 'gpu="2"', 'window="instant"', values=values) is None, "a value of a lost board")
    board.say("fail * nvmlDeviceGetUtilizationRates 15\n" + "\n".join(f"fail {i} * 15" for i in range(8)))
    wait_for("all are lost", lambda: sum(board.up().values()) == 0)
    began = time.monotonic()
    board.say("")
    board.wait_up()
    check(time.monotonic() - began < 10, "they were slow to come back")


def test_f10_one_board_hangs(t):
    board = Board(t)
    board.wait_up()
    board.say("hang 5 nvmlDeviceGetPerformanceState")
    wait_for("GPU 5 hangs", lambda: board.value("stoker_gpu_down_reason", 'gpu="5"', 'reason="hung"') == 1)
    healthy(board, (0, 1, 2, 3, 4, 6, 7), "one hangs")
    age = board.value("stoker_gpu_sample_age_seconds", 'gpu="5"')
    wait_for("its age grows", lambda: board.value("stoker_gpu_sample_age_seconds", 'gpu="5"') > age)
    check(board.value("stoker_gpu_power_watts", 'gpu="5"', 'window="instant"') is None, "an old value of the board that hangs")


def test_f11_everything_hangs(t):
    board = Board(t)
    board.wait_up()
    board.say("hang * *")
    wait_for("the driver is locked", lambda: board.value("stoker_nvml_down_reason", "driver_locked") == 1)
    check(len(board.sampler()) <= 2, f"{len(board.sampler())} samplers for a driver that is locked")
    board.say("")  # those that hang stay so; the agent ends them once and begins anew
    wait_for("they are back", lambda: sum(board.up().values()) == 8)


def test_f12_init_hangs(t):
    board = Board(t, script="hang * nvmlInit_v2")
    wait_for("the driver is locked", lambda: board.value("stoker_nvml_down_reason", "driver_locked") == 1)
    check(len(board.sampler()) == 1, "more than one sampler hangs in init")


def test_f13_the_wait_for_events_hangs(t):
    board = Board(t, gpus=2, script="hang * nvmlEventSetWait_v2")
    board.wait_up(2)
    kernel(board, "NVRM: Xid (PCI:0000:1b:00): 31, pid=7, name=python, Ch 00000010")
    wait_for("the Xid of the kernel log", lambda: board.value("stoker_gpu_xid_total", 'gpu="0"', 'xid="31"') == 1)
    healthy(board, (0, 1), "the wait for events hangs")


def kernel(board, *lines):
    with open(os.path.join(board.root, "dev", "kmsg"), "a") as file:
        for line in lines:
            file.write(f"4,{time.monotonic_ns()},1,-;{line}\n")


def test_f14_slow_calls(t):
    board = Board(t, gpus=2)
    board.wait_up(2)
    before = board.sampler()
    board.say("slow 1 nvmlDeviceGetUtilizationRates 700")
    wait_for("GPU 1 is slow", lambda: board.value("stoker_gpu_state", 'gpu="1"', 'state="slow"') == 1)
    wait_for("its values are told still", lambda: board.value("stoker_gpu_temperature_celsius", 'gpu="1"', 'sensor="gpu"') is not None)
    healthy(board, (0,), "the other is slow")
    check(board.sampler() == before, "a slow driver cost a sampler")


def test_f15_to_f17_boards_come_go_and_change(t):
    """Identity is the UUID: indices move, MIG is switched, and no series jumps to another card."""
    board = Board(t, gpus=3, script="\n".join(f"set {i} ecc_ca {100 * (i + 1)}" for i in range(3)))
    board.wait_up(3)
    fixed = "\n".join(f"set {i} ecc_ca {100 * (i + 1)}" for i in range(3))
    by_uuid = lambda: {re.search(r'uuid="([^"]+)"', n).group(1)[:12]: v for n, v in board.values().items() if n.startswith("stoker_gpu_ecc_errors_total") and 'kind="corrected",scope="aggregate"' in n}
    before = wait_for("counters of three", lambda: (lambda v: v if len(v) == 3 else None)(by_uuid()))
    board.say(fixed + "\nunplug 1")
    wait_for("one is missing", lambda: board.value("stoker_gpus", 'state="present"') == 2 and board.value("stoker_gpu_down_reason", 'reason="missing"') == 1)
    board.say(fixed)
    board.wait_up(3)
    board.say(fixed + "\norder 2 0 1")
    wait_for("the new order", lambda: any(n.startswith('stoker_gpu_info{gpu="0"') and "0002" in n for n in board.values()))
    wait_for("the same counters under the same names", lambda: by_uuid() == before)
    board.end()
    divided = Board(t, profile="a100", gpus=2)
    divided.wait_up(2)
    divided.say("set 0 mig 1\nset 0 mig_instances 3")
    parts = lambda: sum(1 for n in divided.values() if n.startswith("stoker_gpu_info") and 'gpu_instance="' in n and 'mig="1g.10gb"' in n)
    wait_for("three instances", lambda: parts() == 3)
    names = list(divided.values())
    check(len(names) == len(set(names)), "a series twice")
    page = divided.page("/metrics/dcgm")
    check('GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"' in page, "instances as dcgm-exporter names them")
    divided.say("")
    wait_for("whole again", lambda: parts() == 0 and sum(divided.up().values()) == 2)


def test_f18_f19_counters_go_on(t):
    board = Board(t, gpus=1, script="set 0 energy_mj 5000000\nset 0 pcie_replay 4294967290")
    board.wait_up(1)
    wait_for("the replays", lambda: board.value("stoker_gpu_pcie_replays_total") == 4294967290)
    board.say("set 0 energy_mj 1000\nset 0 pcie_replay 4")
    wait_for("32 bits wrap", lambda: board.value("stoker_gpu_pcie_replays_total") == 4294967300)
    check(board.value("stoker_gpu_energy_joules_total") == 5001, "energy fell when the driver began anew")


def test_f20_what_cannot_be_true_is_absent(t):
    """Blanks of DCGM, not supported, a temperature of a star: no sample, never 0."""
    for value in ("4294967295", "2147483632", "100000"):
        board = Board(t, gpus=1, script=f"set 0 temperature {value}\nset 0 power_mw 4294967295\nset 0 util 200\nnone 0 mem_temperature\nset 0 sm_active nan\nset 0 energy_mj 9223372036854775794\nset 0 clock_sm 2147483632")
        wait_for("the board", lambda: board.value("stoker_gpu_up") == 1)
        values = board.values()
        for family, label in (("stoker_gpu_temperature_celsius", 'sensor="gpu"'), ("stoker_gpu_temperature_celsius", 'sensor="memory"'), ("stoker_gpu_power_watts", 'window="instant"'),
                              ("stoker_gpu_utilization_ratio", ""), ("stoker_gpu_sm_active_ratio", ""), ("stoker_gpu_energy_joules_total", ""), ("stoker_gpu_clock_hertz", 'clock="sm"')):
            check(board.value(family, label, values=values) is None, f"{family} {label} is told with {value}")
        check("e+18" not in board.page() and "NaN" not in board.page(), "a blank reached the page")
        board.end()


def test_f21_a_storm_of_errors(t):
    board = Board(t, gpus=2)
    board.wait_up(2)
    rss = lambda: sum(int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{p}/status").read()).group(1)) for p in [board.agent.pid, *board.sampler()])
    before = rss()
    board.say("xid 1 31 100000")
    counted = lambda v: (board.value("stoker_gpu_xid_total", 'gpu="1"', 'xid="31"', values=v) or 0) + board.value("stoker_gpu_events_lost_total", values=v)
    wait_for("each is counted, or counted as lost", lambda: counted(board.values()) == 100000)
    check(rss() - before < 4096, f"{rss() - before} KiB more after a storm")
    healthy(board, (0, 1), "a storm")


def test_f22_the_kernel_log(t):
    """Not readable: told, and the driver's events count. Readable: an Xid told by both counts once."""
    board = Board(t, gpus=2)
    board.wait_up(2)
    board.say("xid 0 48")
    wait_for("the event", lambda: board.value("stoker_gpu_xid_class_total", 'gpu="0"', 'class="workflow"') == 1)
    check(board.value("stoker_agent_witness_up", "kernel_log") == 0, "a log that is not there is up")
    kernel(board, "NVRM: Xid (PCI:0000:2c:00): 119, pid=1")
    wait_for("the log is found", lambda: board.value("stoker_agent_witness_up", "kernel_log") == 1)
    wait_for("its Xid", lambda: board.value("stoker_gpu_xid_total", 'gpu="1"', 'xid="119"') == 1)
    board.say("xid 0 48\nxid 1 94")
    wait_for("the driver's", lambda: board.value("stoker_gpu_xid_total", 'gpu="1"', 'xid="94"') == 1)
    kernel(board, "NVRM: Xid (0000:2c:00): 94, Contained")
    time.sleep(3 * PERIOD_S)
    check(board.value("stoker_gpu_xid_total", 'gpu="1"', 'xid="94"') == 1, "told by both, and counted twice")


def test_f24_fallen_off_the_bus_by_the_kernel(t):
    board = Board(t, gpus=2)
    board.wait_up(2)
    board.say("fail 1 * 15")
    kernel(board, "NVRM: Xid (PCI:0000:2c:00): 79, pid=0, GPU has fallen off the bus.")
    wait_for("Xid 79", lambda: board.value("stoker_gpu_xid_class_total", 'gpu="1"', 'class="restart_machine"') == 1)
    healthy(board, (0,), "the other fell off the bus")


def test_f27_f28_owners(t):
    """A process is joined to its run; one that is not of this PID namespace has no owner, rather than a wrong one."""
    mine = subprocess.Popen(["sleep", "600"], env={"STOKER_RUN": 'r-7"\\x', "STOKER_ATTEMPT": "2", "RANK": "3", "PATH": os.environ["PATH"]})
    try:
        many = "\n".join(f"process 1 {3000000 + i} 1000 0" for i in range(300))
        board = Board(t, gpus=2, script=f"process 0 {mine.pid} 5000000000 97\n{many}")
        wait_for("the owner", lambda: any(n.startswith("stoker_gpu_owner_memory_bytes") and 'rank="3"' in n and 'known="1"' in n for n in board.values()))
        values = board.values()
        check(board.value("stoker_gpu_processes", 'gpu="1"', values=values) == 300, "more processes than the first buffer holds")
        check(board.value("stoker_gpu_owner_info", 'gpu="1"', 'known="0"', values=values) == 1, "an owner of processes that are not there")
        page = t.write("page", board.page())
        check('run="r-7\\"\\\\x"' in open(page).read(), "a quote and a backslash in a label are escaped")
        check(t.call("metrics", "check", page).returncode == 0, "a page with such labels")
        row = t.json("gpu")["gpus"][0]["processes"][0]
        check((row["run"], row["rank"], row["sm_share"]) == ('r-7"\\x', "3", 0.97), f"joined to {row}")
    finally:
        mine.kill()
        mine.wait()


def test_f29_the_sampler_is_killed_or_stopped(t):
    """Stopped stands in for a process that waits in the kernel: no program can put itself there."""
    board = Board(t, gpus=2)
    board.wait_up(2)
    first = board.sampler()[0]
    os.kill(first, 9)
    wait_for("another sampler", lambda: [pid for pid in board.sampler() if pid != first])  # one look: between two it may be gone
    board.wait_up(2)
    check(board.value("stoker_agent_sampler_restarts_total") == 1, "restarts")
    os.kill(board.sampler()[0], 19)
    wait_for("its values are no longer told", lambda: sum(board.up().values()) == 0)
    check(board.value("stoker_gpu_power_watts", 'gpu="0"', 'window="instant"') is None, "old values")
    os.kill(board.sampler()[0], 18)
    board.wait_up(2)


def test_f30_many_scrapers_and_slow_ones(t):
    board = Board(t)
    board.wait_up()
    half = [socket.create_connection(("127.0.0.1", board.port)) for _ in range(20)]
    for s in half:
        s.send(b"GET /metrics HTTP/1.1\r\nHost:")
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        pages = list(pool.map(lambda _: urllib.request.urlopen(f"http://127.0.0.1:{board.port}/metrics", timeout=30).status, range(400)))
    check(set(pages) == {200}, f"answers {set(pages)}")
    check(len(os.listdir(f"/proc/{board.agent.pid}/fd")) < 300, "descriptors without bound")
    for s in half:
        s.close()
    healthy(board, range(8), "many scrapers")


def test_f31_f32_few_rights_and_the_end(t):
    """Without a way to look at the bus or the kernel log it says so. Rates are of the monotonic clock: nothing here reads the wall clock
    but for time stamps. The agent's end leaves no process behind."""
    board = Board(t, gpus=1)
    board.wait_up(1)
    check(board.value("stoker_agent_witness_up", 'witness="pci"') == 0, "a bus that cannot be seen is up")
    left = board.sampler()
    board.end()
    wait_for("the sampler ended", lambda: not any(os.path.exists(f"/proc/{p}") and open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] != "Z" for p in left))


def test_alerts_and_recording_rules_ask_for_what_there_is(t):
    """A rule on a name that nobody serves never fires: each name of alerts, recording rules and dashboards is served, by the agent, the
    server or the gateway; names of engines are those that the gateway reads of them."""
    names = set(re.findall(r"# TYPE (\w+) ", Board(t, script="xid 0 31").page()))
    source = os.path.join(HERE, "..", "..", "src")
    read = lambda *path: open(os.path.join(source, *path)).read()
    served = read("observe", "gpu", "gpu_pages.cpp") + read("observe", "gpu", "gpu_metrics.cpp") + read("server", "metrics.h")
    gateway = {"stoker_gateway_" + name for name in re.findall(r'put\("(\w+)"', read("serve", "gateway", "metrics_text.cpp"))}
    engines = "".join(open(os.path.join(at, name)).read() for top in (os.path.join(source, "serve"), os.path.join(source, "..", "data", "serve"))
                      for at, _, files in os.walk(top) for name in files)
    folder = os.path.join(HERE, "..", "..", "data", "gpu")
    asked, dashboards = set(), []
    for file in [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith((".yaml", ".json"))]:
        if file.endswith(".json"):
            dashboard = json.load(open(file))
            dashboards.append(os.path.basename(file))
            check(len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) >= 6, f"{file}: panels")
            texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]] + [v["query"] for v in dashboard["templating"]["list"]]
        else:
            texts = re.findall(r"expr: (.*)", open(file).read())
        for text in texts:
            asked |= set(re.findall(r"\b(?:stoker_|vllm:)\w+", re.sub(r"\w+:stoker_gpu\w+:\w+", "", text)))
    check(len(asked) > 40 and {"dashboard-fleet.json", "dashboard-node.json", "dashboard-job.json", "dashboard-inference.json", "dashboard-cost.json"} <= set(dashboards), f"{len(asked)} names, {dashboards}")
    for name in sorted(asked):
        check(name in names or name in gateway or f'"{name}"' in served or (name.startswith("vllm:") and name in engines), f"nobody serves {name}")
    if not shutil.which("promtool"):
        raise Skipped("promtool is not installed (package prometheus)")
    rules = subprocess.run(["promtool", "test", "rules", os.path.join(HERE, "..", "gpu", "alerts_test.yaml")], capture_output=True, text=True)
    check(rules.returncode == 0, rules.stdout + rules.stderr)
    # Each expression of the dashboards is one that Prometheus reads, with the variables in.
    groups = [{"name": n, "rules": [{"record": f"x:y{i}", "expr": re.sub(r"\$(price|kwh)\b", "2.5", target["expr"].replace("$instance", ".*"))}
               for i, target in enumerate(t2 for panel in json.load(open(os.path.join(folder, n)))["panels"] for t2 in panel["targets"])]} for n in dashboards]
    panels = subprocess.run(["promtool", "check", "rules", t.write("panels.yaml", json.dumps({"groups": groups}))], capture_output=True, text=True)
    check(panels.returncode == 0, panels.stdout + panels.stderr)


def test_each_alert_fires_and_just_does_not(t):
    """Alerts, each with at least two tests: one in which it fires and one in which it does not."""
    import yaml
    rules = yaml.safe_load(open(os.path.join(HERE, "..", "..", "data", "gpu", "alerts.yaml")))
    tests = yaml.safe_load(open(os.path.join(HERE, "..", "gpu", "alerts_test.yaml")))
    fires, silent = {}, {}
    for group in tests["tests"]:
        for one in group.get("alert_rule_test", []):
            (fires if one.get("exp_alerts") else silent).setdefault(one["alertname"], []).append(one)
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    check(len(alerts) == len(set(alerts)) >= 24, f"{len(alerts)} alerts")
    for alert in alerts:
        check(alert in fires and alert in silent, f"{alert} is tested {len(fires.get(alert, []))} times firing and {len(silent.get(alert, []))} times silent")


def test_manifests_are_what_a_cluster_takes(t):
    """The agent's DaemonSet and the ConfigMap of Azure's Prometheus: nothing that stoker check finds fault with, and a configuration that
    a real Prometheus reads."""
    import yaml
    for name in ("agent.yaml", "azure-managed-prometheus.yaml", "scrape.yaml", "alerts.yaml", "recording.yaml"):
        text = t.call("gpu", "files", name).stdout
        check(text == open(os.path.join(HERE, "..", "..", "data", "gpu", name)).read(), f"{name} is another one")
        t.write(name, text)
    objects = list(yaml.safe_load_all(open(os.path.join(t.work, "agent.yaml"))))
    daemon = next(o for o in objects if o["kind"] == "DaemonSet")
    container = daemon["spec"]["template"]["spec"]["containers"][0]
    check(daemon["spec"]["selector"]["matchLabels"].items() <= daemon["spec"]["template"]["metadata"]["labels"].items(), "it selects no pod of its own")
    mounts = {m["name"] for m in container["volumeMounts"]}
    check(mounts == {v["name"] for v in daemon["spec"]["template"]["spec"]["volumes"]}, "mounts without volumes")
    monitor = next(o for o in objects if o["kind"] == "PodMonitor")
    check(monitor["spec"]["podMetricsEndpoints"][0]["port"] in {p["name"] for p in container["ports"]}, "the monitor reads no port of the pod")
    found = t.json("check", "agent.yaml", "azure-managed-prometheus.yaml", exit=None)
    worse = [f for f in found.get("findings", []) if f.get("severity") in ("error", "warning")]
    check(not worse, f"stoker check: {worse}")
    if not shutil.which("promtool"):
        raise Skipped("promtool is not installed (package prometheus)")
    azure = yaml.safe_load(open(os.path.join(t.work, "azure-managed-prometheus.yaml")))
    # Debian's promtool is built without discovery in Kubernetes: all else of the job is read.
    config = yaml.safe_load(azure["data"]["prometheus-config"])
    for job in config["scrape_configs"]:
        check(job.pop("kubernetes_sd_configs")[0]["role"] == "pod", "pods are what is scraped")
        job["static_configs"] = [{"targets": ["pod:9400"]}]
    t.write("azure.yml", json.dumps(config))
    for config in ("scrape.yaml", "azure.yml"):
        read = subprocess.run(["promtool", "check", "config", config], cwd=t.work, capture_output=True, text=True)
        check(read.returncode == 0, f"{config}: {read.stdout}{read.stderr}")


def test_a_real_prometheus_scrapes_it_and_an_alert_fires(t):
    """Debian's Prometheus with our job, alerts and recording rules, on an agent whose board is lost."""
    if not shutil.which("prometheus"):
        raise Skipped("prometheus is not installed")
    board = Board(t, gpus=2)
    board.wait_up(2)
    for name in ("alerts.yaml", "recording.yaml"):  # the same rules, at once
        text = open(os.path.join(HERE, "..", "..", "data", "gpu", name)).read()
        t.write(name, re.sub(r"for: \d+[mh]", "for: 0s", text).replace("interval: 30s", "interval: 1s"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    t.write("prometheus.yml", json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "rule_files": ["alerts.yaml", "recording.yaml"],
                                          "scrape_configs": [{"job_name": "stoker-agent", "static_configs": [{"targets": [f"127.0.0.1:{board.port}"]}]},
                                                             {"job_name": "dcgm", "metrics_path": "/metrics/dcgm", "static_configs": [{"targets": [f"127.0.0.1:{board.port}"]}]}]}))
    prometheus = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=tsdb", "--log.level=error"],
                                  cwd=t.work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(query):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{query}", timeout=5) as answer:
                return json.load(answer)["data"]
        except (OSError, KeyError):
            return None
    vector = lambda expression: (lambda d: d["result"] if d else [])(ask("query?query=" + urllib.parse.quote(expression)))
    try:
        wait_for("both pages are scraped", lambda: len([v for v in vector("up") if v["value"][1] == "1"]) == 2)
        wait_for("a figure under each name", lambda: len(vector("stoker_gpu_power_watts{window='instant'}")) == 2 and len(vector("DCGM_FI_DEV_POWER_USAGE")) == 2)
        wait_for("a recording rule", lambda: vector("instance:stoker_gpu_power_watts:sum"))
        check(not [a for a in (ask("alerts") or {"alerts": []})["alerts"] if a["labels"]["alertname"] in ("GpuLostOrHung", "GpuMissing")], "an alert on boards that are well")
        board.say("fail 1 * 15")
        wait_for("the alert", lambda: any(a["labels"]["alertname"] == "GpuLostOrHung" and a["labels"]["gpu"] == "1" and a["state"] == "firing" for a in (ask("alerts") or {"alerts": []})["alerts"]))
        check(len(vector("stoker_gpu_power_watts{window='instant'}")) == 1, "the healthy board is still there, and the lost one is not")
    finally:
        prometheus.kill()
        prometheus.wait()


def test_xid_codes_have_actions(t):
    rows = [line.split("\t") for line in open(os.path.join(HERE, "..", "..", "data", "gpu", "xid_actions.tsv")) if not line.startswith("#")][1:]
    check(len(rows) >= 150 and len({row[0] for row in rows}) == len(rows), f"{len(rows)} codes")
    check(all(row[2].strip() for row in rows), "a code without an action")


if __name__ == "__main__":
    main(globals())
