"""Laws that hold for every accelerator, whoever made it: tools/check_catalog.py applies them.

A wrong cell (a sparse figure, another card's rate, a precision without a rate) breaks one of them.
"""

# What one SM (CU) of a family can do a clock, and of what it is made: the tables of the vendors'
# architecture whitepapers. Tensor FLOP are FP16 and dense; GeForce cards and the L40 run half rate.
#   CUDA cores per SM, tensor cores per SM, FP16 tensor FLOP per SM and clock
SM = {"Kepler": ((192,), 0, ()), "Maxwell": ((128,), 0, ()), "Pascal": ((64, 128), 0, ()),
      "Volta": ((64,), 8, (1024,)), "Turing": ((64,), 8, (512, 1024)),
      "Ampere": ((64, 128), 4, (512, 1024, 2048)), "Ada": ((128,), 4, (512, 1024)),
      "Hopper": ((128,), 4, (4096,)), "Blackwell": ((128,), 4, (512, 1024, 8192))}
# GB/s that stacks or chips of a kind reach on one device: what was sold, with room to both sides
BANDWIDTH = {"GDDR5": (100, 400), "GDDR5X": (300, 600), "GDDR6": (200, 1000), "GDDR6X": (500, 1200), "GDDR7": (400, 2000),
             "DDR4": (20, 200), "LPDDR4x": (50, 150), "LPDDR5": (50, 850), "LPDDR5x": (100, 300), "HBM": (400, 3000), "HBM2": (400, 1700), "HBM2e": (900, 3800),
             "HBM3": (1900, 5500), "HBM3e": (3900, 8300)}
NVLINK = {"NVLink 2": 150, "NVLink 3": 300, "NVLink 4": 450, "NVLink 5": 900}  # GB/s, one direction
PCIE = {"PCIe 3.0 x16": 15.75, "PCIe 4.0 x16": 31.5, "PCIe 5.0 x16": 63, "PCIe 6.0 x16": 126}
BF16_SINCE = {"Ampere", "Ada", "Hopper", "Blackwell", "CDNA2", "CDNA3", "CDNA4", "RDNA3"}
PEAKS = [(p, p + ("_tops" if p.startswith("int") else "_tflops"))
         for p in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")]


def check_peaks(r, number, fault, warn):
    """Laws that hold between the rates of one device; each caught a wrong cell, or would have."""
    peak = {p: number(r, column, 0.01, 30000) for p, column in PEAKS}
    supports = set(r["supports"].split(","))
    gpu, at = r["kind"] == "gpu", r["_at"] + " " + r["name"] + ":"
    for p, column in PEAKS:
        if peak[p] and p not in supports:
            fault(at, "has a", p, "peak but does not support it")
        if not peak[p] and p in supports and gpu and p != "fp64":
            fault(at, "supports", p, "but has no", column)
        elif not peak[p] and p in supports and p != "fp64":
            warn(at, "supports", p, "at a rate that its vendor does not publish")
    if gpu and r["architecture"] in BF16_SINCE and "bf16" not in supports:
        fault(at, r["architecture"], "has BF16")
    if r["architecture"] in ("Kepler", "Maxwell", "Pascal", "Volta", "Turing") and supports & {"bf16", "tf32", "fp8"}:
        fault(at, r["architecture"], "has neither BF16 nor TF32 nor FP8")
    if "tf32" in supports and not r["architecture"] in ("Ampere", "Ada", "Hopper", "Blackwell", "CDNA3", "Neuron", "Gaudi", "Xe-HPC"):
        fault(at, r["architecture"], "has no TF32")

    def ratio(a, b, low, high, why):
        if peak[a] and peak[b] and not low <= peak[a] / peak[b] <= high:
            fault(at, "%s is %.3g x %s; %g to %g is possible (%s)" % (a, peak[a] / peak[b], b, low, high, why))
    if r["architecture"] != "Apple":  # whose GPUs have no matrix units
        ratio("fp16", "fp32", 1.9, 45, "matrix units beat the vector units")
    if gpu:
        ratio("bf16", "fp16", 0.99, 1.01, "one rate for both")
        ratio("fp16", "tf32", 1.9, 2.1, "half the width, twice the rate")
        ratio("fp8", "bf16", 1.9, 2.1, "half the width, twice the rate")
        ratio("fp4", "fp8", 1.9, 4.1, "half the width, twice the rate; Ultra three times, GeForce four")
        if r["name"] not in ("B300-SXM", "GB300"):  # Blackwell Ultra gave INT8 up
            ratio("int8", "fp16", 0.99, 4.1, "twice; GeForce four times, CDNA2 once")
    sm, cores, tensor = (number(r, c) for c in ("sm_count", "cuda_cores", "tensor_cores"))
    family = SM.get(r["architecture"])
    if family and sm and cores and cores / sm not in family[0]:
        fault(at, "%g CUDA cores per SM; %s has %s" % (cores / sm, r["architecture"], family[0]))
    if family and sm and tensor and tensor != family[1] * sm:
        fault(at, "%g tensor cores per SM; %s has %d" % (tensor / sm, r["architecture"], family[1]))
    if family and family[1] and sm and cores and not tensor:
        fault(at, "has no count of tensor cores")
    if cores and peak["fp32"]:
        clock = peak["fp32"] / cores / 2e-3  # GHz: two FLOP a core and clock
        if not 0.7 <= clock <= 2.7:
            fault(at, "FP32 peak means a clock of %.2f GHz" % clock)
        if sm and family and family[2] and peak["fp16"] and r["name"] != "H20":  # cut for its market
            each = peak["fp16"] / sm / clock * 1e3
            # Hopper's tensor clock is below its boost clock: down to 0.86
            if not any(0.85 <= each / one <= 1.05 for one in family[2]):
                fault(at, "FP16 peak means %.0f FLOP per SM and clock; %s does %s: sparse figure, or another card's?"
                      % (each, r["architecture"], family[2]))
