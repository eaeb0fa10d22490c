#!/usr/bin/python3
"""Where the time of a step goes is found in the part it was spent in; and measuring costs less than 1 % of a step.

  test_stoker_torch.py              the tests
  test_stoker_torch.py overhead     paired, interleaved measurement
"""
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
import unittest

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stoker_torch


def small_training(width=64):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def one_step(model, optimizer, batch):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def rank_main(rank, world, folder, port):
    os.environ.update(RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo",
                      STOKER_METRICS_FILE=folder + "/metrics.jsonl")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model, optimizer = small_training(256)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    stoker_torch.attach(ddp, optimizer)
    for _ in range(6):
        if rank == 1:
            time.sleep(0.15)  # the other waits for this one
        one_step(ddp, optimizer, torch.ones(8, 256) * (rank + 1))
    if rank == 0:
        torch.save(model.state_dict(), folder + "/model.pt")
    dist.barrier()
    stoker_torch.detach()
    dist.destroy_process_group()


class Tests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "metrics.jsonl")
        os.environ["STOKER_METRICS_FILE"] = self.path
        os.environ.pop("RANK", None)

    def tearDown(self):
        stoker_torch.detach()
        os.environ.pop("STOKER_METRICS_FILE", None)
        self.folder.cleanup()

    def test_the_first_pass_between_the_steps_of_a_generator_is_timed(self):
        def generator():
            time.sleep(0.05)
            yield
            time.sleep(0.05)

        owner = types.SimpleNamespace(around=functools.wraps(generator)(lambda: generator()))
        stoker_torch.attach(small_training()[1])
        try:
            stoker_torch._time_first_pass(owner, "around")
            running = owner.around()
            next(running)
            time.sleep(0.02)
            self.assertEqual(list(running), [])
            self.assertTrue(0.02 <= stoker_torch._recorder.first_pass_s < 0.05, stoker_torch._recorder.first_pass_s)
        finally:
            stoker_torch.detach()

    def test_without_stoker_nothing_is_touched(self):
        del os.environ["STOKER_METRICS_FILE"]
        model, optimizer = small_training()
        save, step = torch.save, optimizer.step
        self.assertIsNone(stoker_torch.attach(model, optimizer))
        self.assertIs(torch.save, save)
        self.assertEqual(optimizer.step, step)
        self.assertEqual(list(stoker_torch.input([1, 2])), [1, 2])
        with stoker_torch.step(samples=1):
            pass

    def test_the_parts_of_a_step(self):
        class Slow(torch.utils.data.Dataset):
            def __len__(self):
                return 20

            def __getitem__(self, index):
                time.sleep(0.01)
                return torch.ones(64)

        model, optimizer = small_training()
        stoker_torch.attach(model, optimizer, samples=2)
        for number, batch in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=2)):
            one_step(model, optimizer, batch)
            if number == 4:
                torch.save(model.state_dict(), self.path + ".pt")
        stoker_torch.detach()
        lines = lines_of(self.path)
        self.assertEqual([line["step"] for line in lines], list(range(1, 11)))
        for line in lines:
            self.assertGreaterEqual(line["wait_s"], 0.02)
            self.assertAlmostEqual(line["step_s"], line["wait_s"] + line["allreduce_s"] + line["compute_s"], places=4)
            self.assertAlmostEqual(line["samples_per_s"] * line["step_s"], 2, places=2)
        self.assertEqual([line["step"] for line in lines if line["checkpoint_s"] > 0], [6])

    def test_the_garbage_collector_is_told(self):
        import gc

        model, optimizer = small_training()
        gc.disable()
        try:
            stoker_torch.attach(model, optimizer)
            junk = [[index] for index in range(200_000)]  # what a collection has to look at
            for number in range(4):
                if number == 2:
                    gc.collect()
                one_step(model, optimizer, torch.ones(4, 64))
            stoker_torch.detach()
            self.assertFalse(any("note_collection" in repr(call) for call in gc.callbacks))
        finally:
            gc.enable()
        lines = lines_of(self.path)
        self.assertEqual(len(junk), 200_000)
        self.assertEqual(lines[1].get("gc_s", 0), 0)
        self.assertGreater(lines[2]["gc_s"], 1e-3)
        self.assertLess(lines[2]["gc_s"], lines[2]["step_s"])
        self.assertEqual(lines[3]["gc_s"], 0)

    def test_it_says_how_it_computes(self):
        from torch.utils.checkpoint import checkpoint

        model, optimizer = small_training()
        inner, _ = small_training()
        backward = torch.utils.checkpoint.CheckpointFunction.__dict__["backward"]
        stoker_torch.attach(model, optimizer)
        stoker_torch._FACTS_S, before = 0, stoker_torch._FACTS_S
        try:
            one_step(model, optimizer, torch.ones(4, 64))
            for reentrant in (True, False):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    item = torch.ones(4, 64, requires_grad=True)
                    checkpoint(inner, item, use_reentrant=reentrant).float().square().mean().backward()
                optimizer.step()
            for _ in zip(range(1), torch.utils.data.DataLoader([torch.ones(64)] * 4, num_workers=0)):
                optimizer.step()
        finally:
            stoker_torch._FACTS_S = before
            stoker_torch.detach()
        first, *others = lines_of(self.path)
        self.assertEqual((first["param_bits"], first["autocast_bits"], first["recomputed"], first["compiled"]), (32, 0, 0, 0))
        self.assertEqual(first["torch_threads"], torch.get_num_threads())
        self.assertEqual([line["recomputed"] for line in others], [1, 1, 0])
        self.assertTrue(all(0 < line["recompute_s"] < line["step_s"] for line in others[:2]), others)
        self.assertNotIn("recompute_s", others[2])
        self.assertEqual([line["autocast_bits"] for line in others], [16, 16, 16])
        self.assertEqual(others[-1]["workers"], 0)
        self.assertIs(torch.utils.checkpoint.CheckpointFunction.__dict__["backward"], backward)

    def test_bits_of_types(self):
        self.assertEqual([stoker_torch._bits(each) for each in (torch.float32, torch.bfloat16, torch.float64, torch.int8, None)],
                         [32, 16, 64, None, None])

    def test_other_loaders_and_loops(self):
        stoker_torch.attach(first_step=100)

        def slow():
            for _ in range(3):
                time.sleep(0.02)
                yield 1

        for _ in stoker_torch.input(slow()):
            with stoker_torch.step(tokens=1000):
                pass
        stoker_torch.detach()
        lines = lines_of(self.path)
        self.assertEqual([line["step"] for line in lines], [101, 102, 103])
        self.assertTrue(all(line["wait_s"] >= 0.02 and line["tokens_per_s"] > 0 for line in lines))

    def test_a_disk_that_says_no_costs_the_lines_only(self):
        os.environ["STOKER_METRICS_FILE"] = self.folder.name + "/none/metrics.jsonl"
        model, optimizer = small_training()
        stoker_torch.attach(optimizer)
        one_step(model, optimizer, torch.ones(4, 64))
        stoker_torch.detach()

    def test_a_rank_that_waits_for_another_waits_in_the_collective(self):
        port = 20000 + os.getpid() % 20000
        mp.spawn(rank_main, args=(2, self.folder.name, port), nprocs=2)
        fast, slow = lines_of(self.path), lines_of(self.folder.name + "/metrics.rank-1.jsonl")
        self.assertEqual((len(fast), len(slow)), (6, 6))
        self.assertGreater(statistics.median(line["allreduce_s"] for line in fast[1:]), 0.1)
        self.assertLess(statistics.median(line["allreduce_s"] for line in slow[1:]), 0.1)


    def test_a_checkpoint_of_ones_own_is_one_and_a_synced_log_is_none(self):
        os.environ["STOKER_METRICS_FILE"] = self.path
        model, optimizer = small_training()
        stoker_torch.attach(optimizer)
        target = os.path.join(self.folder.name, "state")
        for number in range(4):
            one_step(model, optimizer, torch.ones(8, 64))
        with stoker_torch.checkpoint():
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
        one_step(model, optimizer, torch.ones(8, 64))  # 5
        with open(target, "w") as file:
            file.write("x")
            file.flush()
            os.fsync(file.fileno())
        one_step(model, optimizer, torch.ones(8, 64))  # 6: no checkpoint was written
        torch.save(model.state_dict(), target + ".part")
        with open(target + ".part", "rb") as file:
            os.fsync(file.fileno())
        os.replace(target + ".part", target)
        one_step(model, optimizer, torch.ones(8, 64))  # 7
        stoker_torch.detach()
        lines = lines_of(self.path)
        self.assertGreaterEqual(lines[4]["checkpoint_s"], 0.29)
        self.assertLess(lines[4]["step_s"], 0.29)  # no part of the step
        self.assertLess(lines[4]["cpu_s"], 0.29)  # nor is what it computed
        if os.path.exists("/proc/thread-self/schedstat"):
            self.assertTrue(all(0 <= line["queued_s"] for line in lines))
        self.assertEqual(lines[5]["checkpoint_s"], 0)
        self.assertGreater(lines[5]["sync_s"], 0)
        self.assertGreater(lines[6]["checkpoint_s"], 0)
        self.assertEqual(lines[6]["sync_s"], 0)  # its fsync made a checkpoint lasting

    def test_a_log_that_is_synced_is_told_without_pytorch_too(self):
        loop = """
import os, sys
sys.path.insert(0, sys.argv[1])
import stoker_torch
for _ in range(3):
    with stoker_torch.step(samples=1), open(sys.argv[2], "a") as log:
        log.write("x")
        log.flush()
        os.fsync(log.fileno())
stoker_torch.detach()
assert "torch" not in sys.modules
"""
        here = os.path.dirname(os.path.abspath(stoker_torch.__file__))
        subprocess.run([sys.executable, "-c", loop, here, os.path.join(self.folder.name, "log")], check=True,
                       env={**os.environ, "STOKER_METRICS_FILE": self.path})
        self.assertTrue(all(line["sync_s"] > 0 for line in lines_of(self.path)[1:]), lines_of(self.path))

    def test_a_scheduler_may_be_made_afterwards(self):
        os.environ["STOKER_METRICS_FILE"] = self.path
        model, optimizer = small_training()
        stoker_torch.attach(optimizer)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            one_step(model, optimizer, torch.ones(8, 64))
            scheduler.step()
        stoker_torch.detach()
        self.assertEqual(len(lines_of(self.path)), 3)
        self.assertAlmostEqual(optimizer.param_groups[0]["lr"], 0.01 / 8)

    def test_every_pool_of_threads_is_told(self):
        os.environ["STOKER_METRICS_FILE"] = self.path
        model, optimizer = small_training()
        stoker_torch.attach(optimizer)
        one_step(model, optimizer, torch.ones(8, 64))
        stoker_torch.detach()
        facts = lines_of(self.path)[0]
        self.assertEqual(facts["torch_threads"], torch.get_num_threads())
        self.assertGreaterEqual(facts["interop_threads"], 1)
        with open("/proc/self/maps") as file:
            if "libopenblas" in file.read():
                self.assertGreaterEqual(facts["openblas_threads"], 1)

    def test_a_profile_counts_what_a_step_does(self):
        net = torch.nn.Sequential(torch.nn.Linear(100, 200), torch.nn.ReLU(), torch.nn.BatchNorm1d(200), torch.nn.Linear(200, 10))
        means = net[2].running_mean.clone()
        path = self.folder.name + "/net.json"
        found = stoker_torch.profile(net, torch.randn(4, 100), path)
        self.assertEqual(found["forward_flops"], 2 * (100 * 200 + 200 * 10))
        self.assertEqual((found["network"], found["samples"]), ("mlp", 4))
        self.assertEqual(found["parameters"], sum(each.numel() for each in net.parameters()))
        self.assertTrue(torch.equal(means, net[2].running_mean))
        with open(path) as file:
            self.assertEqual(json.load(file)["stoker_profile"], 1)
        lstm = stoker_torch.profile(torch.nn.LSTM(64, 64, 2, batch_first=True), torch.randn(3, 20, 64), path=None)
        self.assertEqual((lstm["forward_flops"], lstm["network"]), (20 * 2 * 2 * 4 * 64 * 128, "rnn"))
        image = stoker_torch.profile(torch.nn.Conv2d(3, 8, 3, padding=1), torch.randn(2, 3, 16, 16), path=None)
        self.assertEqual((image["forward_flops"], image["network"]), (2 * 8 * 256 * 27, "cnn"))
        with self.assertRaises(ValueError):
            stoker_torch.profile(torch.nn.BatchNorm1d(4), torch.randn(2, 4), path=None)


def overhead(pairs=300):
    """Single steps with and without in turns, in one process; processor time, since the machine is shared."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for width, batch in ((192, 128), (256, 256), (512, 512)):
            os.environ["STOKER_METRICS_FILE"] = folder + "/metrics.jsonl"
            model, plain = small_training(width)
            watched = torch.optim.SGD(model.parameters(), lr=0.01)
            item = torch.ones(batch, width)
            ratios = {}
            # "neither" compares plain with plain: what the measurement itself makes of nothing.
            other = torch.optim.SGD(model.parameters(), lr=0.01)
            for what, second in (("neither", other), ("hook", watched)):
                if what == "hook":
                    stoker_torch.attach(watched)
                feed = stoker_torch.input(itertools.repeat(item))
                seconds = {True: [], False: []}
                for turn in range(pairs):
                    for with_hook in ((True, False) if turn % 2 else (False, True)):
                        began = time.process_time()
                        one_step(model, second if with_hook else plain, next(feed) if with_hook else item)
                        seconds[with_hook].append(time.process_time() - began)
                middle = {key: statistics.mean(sorted(all)[pairs // 10:-pairs // 10]) for key, all in seconds.items()}
                ratios[what] = middle[True] / middle[False] - 1
            print(f"step {middle[False] * 1e3:6.2f} ms: with the hook {ratios['hook'] * 100:+.2f} %, "
                  f"without in both turns {ratios['neither'] * 100:+.2f} %  ({pairs} pairs, middle 80 %)")
            stoker_torch.detach()


if __name__ == "__main__":
    overhead() if sys.argv[1:] == ["overhead"] else unittest.main()
