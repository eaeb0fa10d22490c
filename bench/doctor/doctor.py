#!/usr/bin/env python3
"""How well stoker doctor measures: links of known speed between network namespaces, and what it costs itself.

    python3 bench/doctor/doctor.py --stoker build/release/stoker [--repeats 5] [--full]

Needs root, ip and tc. Prints a table: what tc was told, the payload that it lets through (1448 of 1514 bytes on the link,
as tc counts them), what was measured, the error, wall and processor time of the client. One JSON line at the end."""
import argparse
import json
import os
import pathlib
import resource
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e"))
import doctor_test  # noqa: E402
import harness  # noqa: E402

PAYLOAD = 1448 / 1514


def measured(stoker, space, peer, token, *words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = doctor_test.look(stoker, space, "network", "--peer", peer, "--link-token", token, *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return doctor_test.named(report, "link-bandwidth")["measured"] * 8e-6, report["seconds"], cpu, report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    words = ("--full",) if options.full else ()
    stoker, lines = harness.Stoker(os.path.abspath(options.stoker)), []
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} processors, {'full' if options.full else 'quick'}, {options.repeats} repeats")
    print(f"{'tc Mbit/s':>10} {'payload':>9} {'median':>9} {'lowest':>9} {'highest':>9} {'error':>7} {'p50 us':>7} {'wall s':>7} {'cpu s':>6}")
    try:
        token = doctor_test.token_file(stoker)
        for mbit in (None, 10, 50, 200, 500, 1000, 2000):
            with doctor_test.linked(mbit=mbit) as spaces:
                if not spaces:
                    return
                peer, server = doctor_test.serve(stoker, spaces[1], "--link-token", token)
                runs = [measured(stoker, spaces[0], peer, token, *words) for _ in range(options.repeats)]
                server.kill()
                server.wait()
            rates = [run[0] for run in runs]
            middle = statistics.median(rates)
            latency = statistics.median(doctor_test.named(run[3], "link-latency")["measured"] * 1e6 for run in runs)
            right = mbit * PAYLOAD if mbit else None
            error = f"{100 * (middle / right - 1):+.1f} %" if right else "-"
            wall, cpu = statistics.median(run[1] for run in runs), statistics.median(run[2] for run in runs)
            print(f"{mbit or 'none':>10} {f'{right:.1f}' if right else '-':>9} {middle:9.1f} {min(rates):9.1f} {max(rates):9.1f} {error:>7} "
                  f"{latency:7.1f} {wall:7.2f} {cpu:6.2f}", flush=True)
            lines.append({"tc_mbit": mbit, "payload_mbit": right, "measured_mbit": rates, "wall_s": wall, "cpu_s": cpu})
        peer, _ = doctor_test.serve(stoker, None, "--link-token", token, address="127.0.0.1")
        runs = [measured(stoker, None, peer, token, *words) for _ in range(options.repeats)]
        print(f"{'loopback':>10} {'-':>9} {statistics.median(run[0] for run in runs):9.1f} {min(run[0] for run in runs):9.1f} "
              f"{max(run[0] for run in runs):9.1f} {'-':>7}")
        lines.append({"loopback_mbit": [run[0] for run in runs]})
        for level in ((), ("--full",)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = [doctor_test.look(stoker, None, "--disk", stoker.work, *level)["seconds"] for _ in range(3)]
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
            print(f"machine and disk, {'full' if level else 'quick'}: {statistics.median(seconds):.2f} s, {cpu:.2f} s of processor time")
            lines.append({"level": "full" if level else "quick", "seconds": seconds, "cpu_s": cpu})
    finally:
        stoker.close()
    print(json.dumps({"bench": "doctor", "load": load, "lines": lines}))


if __name__ == "__main__":
    main()
