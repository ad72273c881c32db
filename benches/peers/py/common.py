"""Shared code: the generator of all weights and numbers, timing, and one JSON object per measurement.

A program is called as `program.py VARIANT [--reps N] [--values] [--first] [--image FILE]`. With --values it computes the
value alone; with --first it takes the first training step and ends.
"""
import argparse
import json
import os
import time

import numpy as np


class SplitMix:
    """splitmix64: a counter and a hash of it (as in ../../workloads/splitmix.rs)."""

    def __init__(self, seed):
        self.state = np.uint64(seed)

    def uniform(self, n):
        step = np.uint64(0x9E3779B97F4A7C15)
        with np.errstate(over="ignore"):
            z = self.state + step * np.arange(1, n + 1, dtype=np.uint64)
            self.state = self.state + step * np.uint64(n)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, *shape):
        n = int(np.prod(shape))
        u = self.uniform(2 * ((n + 1) // 2)).reshape(-1, 2)
        radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        return pairs.reshape(-1)[:n].reshape(shape)

    def signs(self, *shape):
        return np.where(self.uniform(int(np.prod(shape))) >= 0.5, 1.0, -1.0).reshape(shape)

    def _bounded(self, inputs, n):
        return (2 * self.uniform(n) - 1) / np.sqrt(inputs)

    def linear(self, inputs, outputs, bias=True):
        """weight [out, in], then bias [out]"""
        weight = self._bounded(inputs, inputs * outputs).reshape(outputs, inputs)
        return (weight, self._bounded(inputs, outputs)) if bias else (weight,)

    def mlp(self, sizes):
        return [self.linear(i, o) for i, o in zip(sizes, sizes[1:])]

    def concat_squash(self, sizes):
        """the affine part, the gate and the shift of each layer: five arrays"""
        return [
            (*self.linear(i, o), *self.linear(1, o), *self.linear(1, o, bias=False)) for i, o in zip(sizes, sizes[1:])
        ]


def stated_points():
    """W4: 2 x 500 points with a probe each"""
    return [np.concatenate([SplitMix(s).normal(500, 2) for s in seeds]) for seeds in ((40, 41), (42, 43))]


def threads():
    return len(os.sched_getaffinity(0))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("variant")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--image", default=os.path.join(os.path.dirname(__file__), "../../../assets/flowlines.png"))
    return parser.parse_args()


def timed(call, reps):
    """The first call separately; then samples of at least 20 ms, about 60 s in total: at least three, or one if a call takes a minute."""
    def seconds(n):
        begun = time.perf_counter()
        for _ in range(n):
            call()
        return (time.perf_counter() - begun) / n
    first, once = seconds(1), seconds(1)
    calls = max(1, int(0.02 / once))
    if once > 60:
        return dict(first_ms=first * 1e3, ms=once * 1e3, min_ms=once * 1e3, reps=1)
    samples = sorted(seconds(calls) * 1e3 for _ in range(min(reps, max(3, int(60 / (once * calls))))))
    return dict(first_ms=first * 1e3, ms=samples[len(samples) // 2], min_ms=samples[0], reps=len(samples))


def tell(workload, variant, peer, value, times=None):
    times = times or dict(first_ms=None, ms=None, min_ms=None, reps=0)
    # VmHWM, because ru_maxrss survives an exec and would be the parent's
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
    value = [float(v) for v in value] if isinstance(value, (list, tuple)) else float(value)
    line = dict(workload=workload, variant=variant, peer=peer, threads=threads(), **times, value=value)
    print(json.dumps(dict(line, peak_rss_mb=round(peak, 1))), flush=True)
