#!/usr/bin/env python3
"""Compares the class `Flow` of docs/coming-from/flows-in-python.md with `flowline log-prob`.

    tests/reference/flow.py COMMAND..

COMMAND is how `flowline` is called. Trains a short run of each kind of field that the class reads, and one with classes, in a
temporary folder, and compares the log-densities of 40 samples. Exits with an error if one differs by more than 2e-3 nats (equal
steps are compared with adaptive ones in f32), or if twice the steps do not agree better than 2e-3 with the class itself.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs/data"
# The data and the options of each run.
RUNS = {
    "picture": [DATA / "galaxy.png"],
    "picture by ConcatSquash": [DATA / "galaxy.png", "--preset", "diffrax"],
    "toy": ["moons"],
    "table from a mixture": [DATA / "points.csv"],
    "table from normal noise": [DATA / "points.csv", "--start", "normal"],
    "table, maximum likelihood": [DATA / "points.csv", "--objective", "maximum-likelihood"],
    "four columns, two blocks": [DATA / "many.csv", "--blocks", "2"],
}


def flow_class():
    page = (ROOT / "docs/coming-from/flows-in-python.md").read_text()
    programs = [code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "class Flow:" in code]
    assert len(programs) == 1, f"the page has {len(programs)} classes `Flow`"
    names = {}
    exec(programs[0], names)
    return names["Flow"]


def with_classes(path):
    """Writes points.csv with a column of two classes."""
    heading, *rows = (DATA / "points.csv").read_text().splitlines()
    classes = ("short" if float(row.split(",")[0]) < 170.0 else "tall" for row in rows)
    path.write_text("\n".join([f"{heading},class", *map(",".join, zip(rows, classes))]))
    return path


def main(flowline):
    flow_of, failed = flow_class(), []
    with tempfile.TemporaryDirectory() as folder:
        rows, nats = Path(folder, "rows.npy"), Path(folder, "nats.npy")
        runs = {**RUNS, "table with classes": [with_classes(Path(folder, "classes.csv")), "--labels", "class"]}
        for i, (name, options) in enumerate(runs.items()):
            run, label = Path(folder, str(i)), ["--label", "tall"] if "--labels" in options else []
            updates = ["--updates", "20" if "likelihood" in name or "Squash" in name else "300"]
            for command in (
                ["train", *options, *updates, "--plots", "none", "--out", run],
                ["sample", run, *label, "-n", "40", "-o", rows],
                ["log-prob", run, rows, *label, "--rtol", "1e-6", "--atol", "1e-6", "-o", nats],
            ):
                subprocess.run([*flowline, "--quiet", *command], check=True)
            flow, rows_of_run, expected = flow_of(run), np.load(rows), np.load(nats)
            flow = flow.of_class(label[1]) if label else flow
            got = flow.log_prob(rows_of_run)
            off, steps = np.abs(got - expected).max(), np.abs(got - flow.log_prob(rows_of_run, steps=200)).max()
            mean = flow.log_prob(flow.sample(40)).mean()
            apart = abs(mean - got.mean()) / np.hypot(got.std() / 40**0.5, 1e-3)
            print(f"{name}: off by {off:.1e} nats, by twice the steps {steps:.1e}; samples {apart:.1f} standard errors apart")
            if not (off < 2e-3 and steps < 2e-3 and apart < 6.0):
                failed.append(name)
    if failed:
        sys.exit(f"differ: {', '.join(failed)}")


main(sys.argv[1:])
