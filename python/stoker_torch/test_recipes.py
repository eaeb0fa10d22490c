#!/usr/bin/python3
"""The three-line recipes of docs/guides/reality-against-plan.md, each in the library that it is for; one that is not installed is skipped
and says so. Each must tell as many steps as the library made, and the checkpoints that it wrote."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
STEPS = 12

PREAMBLE = """
import sys, warnings
sys.path.insert(0, %r)
warnings.simplefilter("ignore")
import stoker_torch
""" % HERE

TORCH = """
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 4 * 12
    def __getitem__(self, i): return {"x": torch.ones(8), "labels": torch.tensor(float(i % 2))}
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 1)
    def forward(self, x, labels):
        out = self.body(x).squeeze(-1)
        return {"loss": (out - labels).square().mean(), "logits": out}
"""

RECIPES = {
    "transformers": TORCH + """
from transformers import Trainer, TrainingArguments
trainer = Trainer(Net(), TrainingArguments(sys.argv[1], per_device_train_batch_size=4, max_steps=12, save_steps=6, report_to=[], no_cuda=True,
                                           disable_tqdm=True), train_dataset=Rows())
trainer.create_optimizer()
stoker_torch.attach(trainer.optimizer, samples=4)
trainer.train()
""",
    "pytorch_lightning": TORCH + """
import pytorch_lightning as pl
class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, index): return self.net(**batch)["loss"]
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.01)
class Tell(pl.Callback):
    def on_train_start(self, trainer, module): stoker_torch.attach(*trainer.optimizers, samples=4)
trainer = pl.Trainer(max_epochs=1, accelerator="cpu", default_root_dir=sys.argv[1], logger=False, enable_progress_bar=False, callbacks=[Tell()])
trainer.fit(Module(), torch.utils.data.DataLoader(Rows(), 4))
""",
    "accelerate": TORCH + """
from accelerate import Accelerator
accelerator, net = Accelerator(cpu=True), Net()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
stoker_torch.attach(optimizer, samples=4)  # before prepare()
net, optimizer, loader = accelerator.prepare(net, optimizer, torch.utils.data.DataLoader(Rows(), 4))
for batch in loader:
    optimizer.zero_grad()
    accelerator.backward(net(**batch)["loss"])
    optimizer.step()
torch.save(net.state_dict(), sys.argv[1] + "/state.pt")
optimizer.step()
""",
    "safetensors": TORCH + """
import safetensors.torch
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
stoker_torch.attach(optimizer)
for number in range(12):
    net(torch.ones(4, 8), torch.ones(4))["loss"].backward()
    if number == 6: safetensors.torch.save_file(net.state_dict(), sys.argv[1] + "/state.safetensors")
    optimizer.step()
""",
    "jax": """
import jax, jax.numpy as jnp
update = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
w = jnp.ones((8, 1))
for batch in stoker_torch.input(jnp.ones((4, 8)) for _ in range(12)):
    with stoker_torch.step(samples=4):
        w = update(w, batch).block_until_ready()
""",
    "tensorflow": """
import numpy, tensorflow as tf
class Tell(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None): stoker_torch.stepped(samples=4)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((48, 8)), numpy.ones(48), batch_size=4, verbose=0, callbacks=[Tell()])
""",
    "json": """
import time
for _ in range(12):  # any loop, without PyTorch
    time.sleep(0.001)
    stoker_torch.stepped(samples=4)
assert "torch" not in sys.modules
""",
}
WRITES = {"transformers", "accelerate", "safetensors", "pytorch_lightning"}  # a checkpoint each


class Recipes(unittest.TestCase):
    def recipe(self, library):
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"no {library} here")
        there = subprocess.run([sys.executable, "-c", f"import {library}"], capture_output=True, text=True)
        if there.returncode != 0:
            self.skipTest(f"{library} cannot be imported here: {there.stderr.strip().splitlines()[-1]}")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "metrics.jsonl")
            end = "\nstoker_torch.detach()\n"
            done = subprocess.run([sys.executable, "-c", PREAMBLE + RECIPES[library] + end, folder], capture_output=True, text=True,
                                  env={**os.environ, "STOKER_METRICS_FILE": path, "CUDA_VISIBLE_DEVICES": ""}, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            with open(path) as file:
                lines = [json.loads(line) for line in file]
            extra = 1 if library == "accelerate" else 0  # the step after its checkpoint
            self.assertEqual(len(lines), STEPS + extra)
            self.assertTrue(all(line["step_s"] > 0 for line in lines))
            if library != "safetensors":
                self.assertEqual(lines[0]["samples"], 4)
            if library in WRITES and library != "pytorch_lightning":  # Lightning writes its own after the last step
                self.assertGreater(sum(line["checkpoint_s"] for line in lines), 0)


for name in RECIPES:
    setattr(Recipes, "test_" + name, lambda self, name=name: self.recipe(name))

if __name__ == "__main__":
    unittest.main()
