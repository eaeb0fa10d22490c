#!/usr/bin/env python3
"""How wide the 80 % intervals have to be, from sources that are left out.

usage: ./dev fit --spread spread.tsv; tools/fit_intervals.py spread.tsv
       tools/fit_intervals.py data/calibration/first_contact.tsv

`spread.tsv` has of every published row what it is off by, its interval before that grows, and its distance from what
other sources measured (a source never counts for its own rows: src/sizing/nearness.h). For each kind of work the scale
of all widths and their growth with distance are chosen by the other sources and judged by the one left out: the mean
over the groups of the share of rows inside. A group counts once. Nothing is written: the figures go into
data/catalog/defaults.tsv by hand: of first contacts interval_stranger_* and interval_stranger_distance_*, of sources
that were looked at interval_known_* and interval_known_distance_* (`stoker validate --widths` says the scale, too).

`data/calibration/first_contact.tsv` is of the same form and has what strangers were told before their sources were
known: what the widths are chosen by. Distances beyond --most count as --most.
"""
import argparse
import csv
import statistics
import sys

WANTED = 0.80
SCALES = [0.3 + 0.05 * i for i in range(75)]  # of the logarithms of both ends
SLOPES = [0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0]


def read(path, most):
    """By kind of work and group: errors, ends and distances."""
    out = {}
    with open(path, encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines, delimiter="\t"):
            case = {name: float(row[name]) for name in ("error", "low", "high", "distance")}
            case["distance"] = min(case["distance"], most)
            case["source"] = row["source"]
            out.setdefault(row["work"], {}).setdefault(row["group"], []).append(case)
    return out


def need(case, slope):
    """By what the interval has to be scaled to hold the row."""
    side = case["high"] if case["error"] > 0 else case["low"]
    return abs(case["error"]) / max(abs(side), 1e-9) / (1 + slope * case["distance"])


def best(groups):
    """The scale that holds 80 % in the mean over the groups, and the slope by which that takes the least width."""
    found = None
    for slope in SLOPES:
        needs = {name: sorted(need(case, slope) for case in members) for name, members in groups.items()}
        for scale in SCALES:
            inside = statistics.mean(sum(n <= scale for n in ns) / len(ns) for ns in needs.values())
            if inside >= WANTED:
                width = statistics.mean(
                    statistics.mean(scale * (1 + slope * c["distance"]) * (c["high"] - c["low"]) for c in members)
                    for members in groups.values())
                if found is None or width < found[2]:
                    found = (scale, slope, width)
                break
    return found or (SCALES[-1], 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spread")
    parser.add_argument("--most", type=float, default=1.0, help="interval_distance_most")
    parser.add_argument("--inside", nargs=2, type=float, metavar=("UNSEEN", "DISTANCE"),
                        help="only tell what these two constants hold, by kind of work")
    args = parser.parse_args()
    for work, groups in read(args.spread, args.most).items():
        if args.inside:
            unseen, slope = args.inside
            shares = [sum(need(case, slope) <= unseen for case in members) / len(members) for members in groups.values()]
            rows = sum(share * len(members) for share, members in zip(shares, groups.values()))
            count = sum(len(members) for members in groups.values())
            print(f"{work}: {100 * statistics.mean(shares):.0f} % inside over {len(groups)} groups, "
                  f"{100 * rows / count:.0f} % of {count} rows")
            continue
        print(f"\n{work}: {len(groups)} groups")
        print(f"  {'left out':36} {'rows':>5} {'distance':>8} {'scale':>6} {'slope':>6} {'inside %':>9}")
        shares = []
        for name, members in sorted(groups.items()):
            source = members[0]["source"]
            scale, slope, _ = best({n: m for n, m in groups.items() if m[0]["source"] != source})
            share = sum(need(case, slope) <= scale for case in members) / len(members)
            shares.append(share)
            far = statistics.median(case["distance"] for case in members)
            print(f"  {name[:36]:36} {len(members):5} {far:8.2f} {scale:6.2f} {slope:6.2f} {100 * share:9.1f}")
        scale, slope, _ = best(groups)
        print(f"  mean over the groups, each judged by widths of the others: {100 * statistics.mean(shares):.1f} %")
        print(f"  all together: scale {scale:.2f}, slope {slope:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
