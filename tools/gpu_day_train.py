"""Trainings with the hook, as runs of stoker on a board, for gpu_day.py: one that is well, and some with a fault that somebody could have made.

    gpu_day_train.py healthy|single|starved|host-bound|neighbour|copies [SECONDS] [cuda|cpu]
    gpu_day_train.py planned SECONDS cuda|cpu MODEL SEQUENCE BATCH      a known model, for a run of its plan
"""
import os
import subprocess
import sys
import time

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "examples", "train-tiny"), os.path.join(ROOT, "python", "stoker_torch")]
import model as tiny  # noqa: E402
import stoker_torch  # noqa: E402

CONTEXT, BATCH = 1024, 16
NEIGHBOUR = ("import sys,time,torch\nx=torch.randn(4096,4096,device='cuda',dtype=torch.bfloat16)\nend=time.time()+float(sys.argv[1])\n"
             "while time.time()<end:\n  for _ in range(20): x@x\n  torch.cuda.synchronize()\n")


class Documents(torch.utils.data.Dataset):
    """Windows of a text; each takes `slow_s` to make, as a tokenizer in the way would."""

    def __init__(self, context, slow_s=0.0):
        self.context = context
        with open(os.path.join(ROOT, "examples", "train-tiny", "corpus.txt"), "rb") as file:
            self.data = torch.tensor([min(b + 3, tiny.VOCABULARY - 1) for b in file.read()])
        self.slow_s = slow_s

    def __len__(self):
        return 1 << 30

    def __getitem__(self, at):
        if self.slow_s:
            time.sleep(self.slow_s)
        at = at * 7919 % (len(self.data) - self.context - 1)
        return self.data[at:at + self.context + 1]


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "healthy"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    device = sys.argv[3] if len(sys.argv) > 3 else "cuda"
    torch.manual_seed(1)
    small = kind == "host-bound" or device == "cpu"
    shape = (64, 48 if device == "cuda" else 2, 4) if small else (1024, 16, 16)
    batch = 1 if small else BATCH
    context = CONTEXT
    if kind == "planned":
        import gpu_day_models
        context, batch = int(sys.argv[5]), int(sys.argv[6])
        model = gpu_day_models.build(torch, sys.argv[4], device, device == "cpu", torch.float32)
    else:
        model = tiny.Model(*shape, CONTEXT).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    stoker_torch.attach(optimizer, tokens=batch * context)
    loader = torch.utils.data.DataLoader(Documents(context, 0.02 if kind == "starved" else 0), batch_size=batch, num_workers=0)
    neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(seconds + 30)], start_new_session=True) if kind == "neighbour" else None
    ballast = torch.empty(1 << 30, dtype=torch.uint8) if kind == "copies" else None  # pageable: what a cache of features on the host costs
    parameters = sum(p.numel() for p in model.parameters())
    steps, began, end = 0, 0.0, 0.0
    try:
        for windows in loader:
            if ballast is not None:
                ballast.to(device).sum()
            windows = windows.to(device)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=kind != "single"):
                loss = model(input_ids=windows[:, :-1], labels=windows[:, :-1]).loss if kind == "planned" else model(windows[:, :-1], windows[:, 1:])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            steps += 1
            if steps == 5:
                loss.item()
                began, end = time.perf_counter(), time.perf_counter() + seconds
            if steps > 5 and time.perf_counter() > end:
                loss.item()
                break
            if steps % 8 == 0:
                loss.item()  # as trainings do that print it; the host is never further ahead
    finally:
        if neighbour is not None:
            neighbour.kill()
            neighbour.wait()
    a_step = (time.perf_counter() - began) / (steps - 5)
    print(f"{kind}: {parameters} parameters, {steps} steps, {a_step * 1e3:.1f} ms a step, {batch * context / a_step:.0f} tokens/s, "
          f"{6 * parameters * batch * context / a_step / 1e12:.1f} TFLOP/s by 6ND", flush=True)


if __name__ == "__main__":
    main()
