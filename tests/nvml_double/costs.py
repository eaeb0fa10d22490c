#!/usr/bin/env python3
"""What each call of a recorded board costs, for the double: `stoker gpu record --file R.json` in, lines of STOKER_NVML_COSTS out.

    python3 tests/nvml_double/costs.py recording.json > tests/nvml_double/profiles/recorded-NAME.costs

Recordings since 27 November 2026 ask for each field and each metric of GPM alone, too; of one of before, only the sum of a call is
known, and is shared evenly among what it asked for."""

import json
import re
import sys

# What the agent asked for in one call until then.
FIELDS = {17: (74, 75, 76, 82, 83, 138, 139, 185, 186, 197, 198, 202, 204, 230, 269, 270, 271), 8: (142, 143, 144, 145, 161, 162, 163, 173)}
METRICS = (1, 2, 3, 4, 5, 10, 11, 12, 13, 20, 21, 60, 61)


def costs_of(recording):
    calls, fields, metrics, even = {}, {}, {}, set()
    for row in recording["calls"]:
        name, _, words = row["call"].partition("(")
        us, words = row["ns_p50"] / 1000, words.rstrip(")")
        alone = re.fullmatch(r"alone: (\d+)", words)
        if alone:
            (fields if name == "nvmlDeviceGetFieldValues" else metrics)[int(alone.group(1))] = us
        elif name == "nvmlEventSetWait_v2":
            continue  # a wait
        elif name == "nvmlDeviceGetFieldValues":
            for field in FIELDS.get(int(words), ()):
                even.add((field, us / int(words)))
        else:
            calls.setdefault(name, []).append(us)
    for field, us in even:
        fields.setdefault(field, us)
    if not metrics and "nvmlGpmMetricsGet" in calls:
        metrics = {metric: calls["nvmlGpmMetricsGet"][0] / len(METRICS) for metric in METRICS}
    calls.pop("nvmlGpmMetricsGet", None)
    return calls, fields, metrics


def main():
    recording = json.load(open(sys.argv[1]))
    calls, fields, metrics = costs_of(recording)
    board = recording["boards"][0]
    print(f"# Microseconds of each call, p50, of {board['name']}, driver {recording['driver']}: made by tests/nvml_double/costs.py of a recording.")
    for name, us in sorted(calls.items()):
        print(f"{name} {sum(us) / len(us):.1f}")
    for word, known in (("field", fields), ("gpm", metrics)):
        for number, us in sorted(known.items()):
            print(f"{word} {number} {us:.1f}")


if __name__ == "__main__":
    main()
