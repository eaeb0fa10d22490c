"""Two runs side by side: what a reader is told about the faster one must be true of it. A platform lead quotes the tuned figure."""

import os
import re

from harness import check, main

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "story")


# Tuned means that nothing waits for data: the disk that was asked for may be no limit any more.
def test_the_tuned_side_is_not_held_up_by_the_disk_that_the_plain_one_waits_for(t):
    text = t.call("compare", os.path.join(EXAMPLES, "cpu.yaml"), os.path.join(EXAMPLES, "gpu.yaml")).stdout
    ratios = [float(number) for number in re.findall(r"([0-9.]+)x(?: holds|\.$)", " ".join(text.split("leaves on the table")[1].split()))]
    check(len(ratios) == 2 and ratios[1] > 2 * ratios[0], text[-600:])


if __name__ == "__main__":
    main(dict(globals()))
