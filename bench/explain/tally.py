"""What a bench of causes has seen so far: a record a run, kept as they come, and the table of them."""
import collections
import json
import os

# What must be reached, or not exceeded.
LEAST = {"right first": 0.95, "costs within 30 %": 0.90}
MOST = {"healthy accused": 0.01, "silent": 0.03, "wrong alone": 0.0}


class Tally:
    """Of a folder in which another call began the same bench, its runs are known, and not run again."""

    def __init__(self, folder, quiet):
        self.path, self.table, self.quiet = os.path.join(folder, "results.jsonl"), os.path.join(folder, "table.md"), quiet
        self.records = {}
        if os.path.exists(self.path):
            with open(self.path) as file:
                for line in file:
                    if line.endswith("\n"):  # the last one may have been cut short
                        record = json.loads(line)
                        self.records[record["number"]] = record

    def add(self, record, head):
        self.records[record["number"]] = record
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        with open(self.table + ".part", "w") as file:
            file.write(head + "\n\n" + self.text())
        os.replace(self.table + ".part", self.table)

    def columns(self):
        every = list(self.records.values())
        return {"all": every, f"others <= {self.quiet:.0%}": [each for each in every if not each["noisy"]],
                "others above": [each for each in every if each["noisy"]]}

    def text(self):
        columns = {name: figures(records) for name, records in self.columns().items()}
        lines = ["| | " + " | ".join(columns) + " | bar |", "| --- |" + " --- |" * (len(columns) + 1)]
        for name in next(iter(columns.values())):
            cells = []
            for each in columns.values():
                part, whole = each[name]
                cells.append(f"{part} of {whole} ({part / whole:.1%})" if whole else "-")
            bar = f"at least {LEAST[name]:.0%}" if name in LEAST else f"at most {MOST[name]:.0%}" if name in MOST else ""
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {bar} |")
        kinds = collections.defaultdict(collections.Counter)
        for each in self.records.values():
            kinds[each["group"] + " " + "+".join(each["names"])][each["verdict"]] += 1
        lines += ["", "| kind | right | silent | wrong | failed |", "| --- | --- | --- | --- | --- |"]
        for kind, seen in sorted(kinds.items()):
            lines.append(f"| {kind} | " + " | ".join(str(seen[verdict]) for verdict in ("ok", "silent", "wrong", "failed")) + " |")
        lines += [""] + ["- " + each["line"] for each in self.records.values() if each["verdict"] != "ok" or each.get("near") is False]
        return "\n".join(lines) + "\n"

    def missed(self):
        """Bars that are not met: all of them where others left the machine alone, else those on what was named and is not so."""
        found = []
        for noisy, bars in ((False, {**LEAST, **MOST}), (True, {name: MOST[name] for name in ("healthy accused", "wrong alone")})):
            seen = figures([each for each in self.records.values() if each["noisy"] == noisy])
            for name, bar in bars.items():
                part, whole = seen[name]
                if whole and (part / whole < bar if name in LEAST else part / whole > bar):
                    found.append(f"{name} {part / whole:.1%} of {whole}{' beside others' if noisy else ''}")
        return found


def figures(records):
    """name -> (so many, of so many)"""
    judged = [each for each in records if each["verdict"] != "failed"]
    small = [each for each in judged if each.get("small")]
    faults = [each for each in judged if each["group"] == "fault" and each["knowable"] and not each.get("small")]
    healthy = [each for each in judged if each["group"] == "twin"]
    hidden = [each for each in judged if each["group"] == "fault" and not each["knowable"]]
    pairs = [each for each in judged if each["group"] == "pair"]
    told = [each for each in judged if each.get("near") is not None]
    ranged = [each for each in judged if each.get("held") is not None]
    count = lambda those, verdict: sum(each["verdict"] == verdict for each in those)
    return {"right first": (count(faults, "ok"), len(faults)), "healthy accused": (count(healthy, "wrong"), len(healthy)),
            "costs within 30 %": (sum(each["near"] for each in told), len(told)),
            "costs within the range that is told": (sum(each["held"] for each in ranged), len(ranged)),
            "silent": (count(faults, "silent"), len(faults)),
            "wrong alone": (count(faults, "wrong"), len(faults)), "wrong where its way cannot tell": (count(hidden, "wrong"), len(hidden)),
            "pairs, both named": (count(pairs, "ok"), len(pairs)), "faults too small to claim": (len(small), len(records)),
            "failed": (len(records) - len(judged), len(records))}
