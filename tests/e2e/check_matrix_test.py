"""A rule holds wherever its mistake can be written: each mistake of tests/lint/matrix in each place that teams write it. A rule that reads
scripts but not those of a pipeline, or pods but not those of one operator, is silent where most of its readers are.

    python3 tests/e2e/check_matrix_test.py --stoker BINARY --table [PLACE...]"""

import argparse
import json
import os
import re
import sys

from harness import Stoker, check, main

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lint", "matrix")
RETIRED, CURRENT = "Standard_NC6s_v3", "Standard_NC24ads_A100_v4"


def sections(name):
    """Of `## NAME [never=RULE,...]`: the name, the rules that make no sense there, and the text or the files below."""
    for block in re.split(r"^## ", open(os.path.join(HERE, name)).read(), flags=re.M)[1:]:
        head, _, text = block.partition("\n")
        words = head.split()
        never = {rule for word in words[1:] for rule in word.removeprefix("never=").split(",")}
        yield words[0], never, text.strip("\n")


def files_of(text):
    parts = re.split(r"^=== (.+)\n", text, flags=re.M)[1:]
    return [(path, body.strip("\n") + "\n") for path, body in zip(parts[::2], parts[1::2])]


def with_script(text, script):
    lines = script.split("\n")
    whole = [line for line in script.replace("\\\n", "").split("\n")]
    joined = " && ".join(lines)
    text = re.sub(r"^( *)<<ITEMS>>", lambda m: "\n".join(f"{m[1]}- {json.dumps(line)}" for line in whole), text, flags=re.M)
    text = re.sub(r"^( *)(.*)<<BLOCK>>", lambda m: m[1] + m[2] + ("\n" + m[1]).join(lines), text, flags=re.M)
    for mark, said in (("QUOTED", script.replace("'", '"')), ("JOINED_JSON", json.dumps(joined)), ("JOINED", " && \\\n    ".join(lines)),
                       ("LINES", ", ".join(json.dumps(line) for line in whole)),
                       ("CELL", ", ".join(json.dumps(line + "\n") for line in ["%%bash", *lines]))):
        text = text.replace(f"<<{mark}>>", said)
    return text


def with_pod(text, pod):
    container = pod["containers"][0]
    name, _, tag = container["image"].rpartition(":")
    apart = {"name", "resources"} | ({"image"} if "REPOSITORY" in text else set())
    rest = "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in pod.items() if key != "containers")
    fields = json.dumps({key: value for key, value in container.items() if key not in apart})[1:-1]
    plain = not text.startswith('{"')  # YAML, whose keys need no quotes
    for mark, said in (("RESOURCES", json.dumps(container["resources"])), ("REPOSITORY", name), ("TAG", tag), ("FIELDS", fields),
                       ("CONTAINER", json.dumps(container)), ("REST ", rest), ("POD", json.dumps(pod))):
        text = text.replace(mark, re.sub(r'"([\w./-]+)": ', r"\1: ", said) if plain else said)
    return text


def found(t, folder, cases):
    """The rules that speak of each case, all checked at once."""
    for case, files in cases.items():
        for path, text in files:
            place = os.path.join(t.work, folder, case, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w") as file:
                file.write(text)
    done = t.call("check", folder, "--format", "json", "--as-of", "2026-11-20", exit=None)
    check(done.returncode in (0, 1), done)
    said = {case: {} for case in cases}
    for finding in json.loads(done.stdout)["findings"]:
        case = finding["path"].split("/")[1]
        said[case][finding["rule"]] = finding["severity"]
    return said


def table(t, places, mistakes, fill, names=()):
    """A line for each place: what is missed, and what is said of the one that is right."""
    lines, cells, holes = [], 0, 0
    for place, never, text in sections(places):
        if names and place not in names:
            continue
        cases = {rule: [(path, fill(body, mistake)) for path, body in files_of(text)] for rule, mistake in mistakes.items() if rule not in never}
        said = found(t, f"{places[:-4]}-{place}", cases)
        missed = [rule for rule in cases if rule != "healthy" and rule not in said[rule]]
        loud = [rule for rule, severity in said.get("healthy", {}).items() if severity == "error"]
        cells += len(cases) - ("healthy" in cases)
        holes += len(missed)
        if missed or loud:
            lines.append(f"{place}: missed {' '.join(missed) or 'nothing'}" + (f"; said of what is right: {' '.join(loud)}" if loud else ""))
    return lines, cells, holes


def scripts(t, names=()):
    return table(t, "places.txt", {name: text for name, _, text in sections("scripts.txt")}, with_script, names)


def pods(t, names=()):
    return table(t, "kinds.txt", {name: json.loads(text) for name, _, text in sections("pods.txt")}, with_pod, names)


def sizes(t):
    lines, count = [], 0
    for size, wanted in ((RETIRED, True), (CURRENT, False)):
        cases = {name: [(path, body.replace("Standard_SIZE", size)) for path, body in files_of(text)] for name, _, text in sections("sizes.txt")}
        count = len(cases)
        said = found(t, f"sizes-{wanted}", cases)
        lines += [f"{name}: SKU001 is {'missed' if wanted else 'too much'}" for name in cases if ("SKU001" in said[name]) != wanted]
    return lines, count, len(lines)


def test_each_mistake_of_a_script_is_found_in_each_place_of_scripts(t):
    lines, _, _ = scripts(t)
    check(not lines, "\n".join(lines))


def test_each_mistake_of_a_pod_is_found_in_each_kind_that_makes_pods(t):
    lines, _, _ = pods(t)
    check(not lines, "\n".join(lines))


def test_a_retired_size_is_found_wherever_a_size_is_written(t):
    lines, _, _ = sizes(t)
    check(not lines, "\n".join(lines))


if __name__ == "__main__":
    if "--table" not in sys.argv:
        main(globals())
    parser = argparse.ArgumentParser()
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    stoker = Stoker(os.path.abspath(options.stoker))
    try:
        for what, (lines, cells, holes) in {"scripts": scripts(stoker, options.names), "pods": pods(stoker, options.names), "sizes": sizes(stoker)}.items():
            print(f"{what}: {cells - holes} of {cells}")
            print("\n".join(lines))
    finally:
        stoker.close()
