"""One rank of what `observe.py --only hook` weighs: the same training in short pieces, with the PyTorch hook and without it in turn, so
that whatever else goes on meets both alike. Prints, as rank 0, seconds by the clock and of processors for a step of each piece."""
import json
import os
import sys
import time

RANK = int(os.environ["RANK"])
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "stoker_torch"))
import stoker_torch

PIECES, STEPS, WIDTH = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(RANK)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
loader = iter(torch.utils.data.DataLoader([(torch.randn(WIDTH), 1)] * (64 * PIECES * STEPS), 64))
pieces = []
for number in range(PIECES):
    with_hook = number % 4 in (1, 2)  # off, on, on, off: a trend weighs on both alike
    if with_hook:
        stoker_torch.attach(model, optimizer, samples=64)
    dist.barrier()
    clock, cpu = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        x, y = next(loader)
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    pieces.append((with_hook, (time.perf_counter() - clock) / STEPS, (time.process_time() - cpu) / STEPS))
    if with_hook:
        stoker_torch.detach()
if RANK == 0:
    print(json.dumps(pieces[4:]))  # the first ones warm up
