"""The demo's model, larger and on a GPU, with the hook: for gpu_day.py, as a run of stoker."""
import os
import sys
import time

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "examples", "train-tiny"), os.path.join(ROOT, "python", "stoker_torch")]
import model as tiny  # noqa: E402
import stoker_torch  # noqa: E402

CONTEXT, BATCH, STEPS = 1024, 16, 150

device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
torch.manual_seed(1)
model = tiny.Model(1024, 16, 16, CONTEXT).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
stoker_torch.attach(optimizer, tokens=BATCH * CONTEXT)
data = torch.tensor([min(b + 3, tiny.VOCABULARY - 1) for b in open(os.path.join(ROOT, "examples", "train-tiny", "corpus.txt"), "rb").read()])
parameters = sum(p.numel() for p in model.parameters())
began, warm = 0.0, 20
for step in range(STEPS):
    at = torch.randint(0, len(data) - CONTEXT - 1, (BATCH,))
    tokens = torch.stack([data[i:i + CONTEXT] for i in at]).to(device)
    targets = torch.stack([data[i + 1:i + CONTEXT + 1] for i in at]).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = model(tokens, targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step == warm:
        if device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.3f}", flush=True)
if device == "cuda":
    torch.cuda.synchronize()
seconds = (time.perf_counter() - began) / (STEPS - 1 - warm)
print(f"{parameters} parameters, {seconds * 1e3:.1f} ms a step, {BATCH * CONTEXT / seconds:.0f} tokens/s, "
      f"{6 * parameters * BATCH * CONTEXT / seconds / 1e12:.1f} TFLOP/s by 6ND")
