"""Compares the results of programs with expected ones, and counts what was drawn, for `check.py`."""
import numpy as np

TOLERANCE = {"f32": 1e-5, "f64": 1e-12}


def has_no_solution(found, order):
    """Whether each of the solutions, the columns of matrices of this order, has an element that is not finite."""
    columns = found.reshape(len(found), order, -1)
    return bool(np.all(np.any(~np.isfinite(columns), axis=1)))


def difference(program, results, line):
    """A description of the first difference, or None."""
    for name, (want, largest, singular) in results.items():
        got = line[name]
        if len(got) != len(want):
            return f"{name} has {len(got)} values, not {len(want)}"
        for k, (g, w) in enumerate(zip(got, want)):
            shape = w.shape
            g, w = np.array(g, dtype=float), w.reshape(-1)
            if g.shape != w.shape:
                return f"{name}, value {k} has {g.size} elements, not {w.size}"
            exact = name in ("eager", "jit", "vmap") and program.types[program.outputs[k]][0] not in ("f32", "f64")
            room = 0.0 if exact else TOLERANCE[program.float] * max(largest, 1e-30)
            if singular[k].any():
                g, w = (x.reshape(singular[k].size, -1) for x in (g, w))
                if program.ops[program.outputs[k]] == "lu_solve" and not has_no_solution(g[singular[k]], shape[-2]):
                    return f"{name}, value {k}: {g} has a finite solution of a singular system"
                g, w = g[~singular[k]], w[~singular[k]]
            with np.errstate(invalid="ignore"):
                fits = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= room)
            if not np.all(fits):
                return f"{name}, value {k}: {g[~fits]} is not {w[~fits]} within {room:.1e}"
    return None


class Counts:
    """What a group of programs has drawn."""

    def __init__(self):
        self.checked = self.jumped = 0
        # Programs with an axis of this length.
        self.lengths = {0: 0, 1: 0}
        self.drawn = {}

    def add(self, program):
        self.checked += 1
        for length in self.lengths:
            self.lengths[length] += any(length in shape for _, shape in program.types.values())
        for name, number in program.drawn.items():
            join = max if name in ("rows", "condition") else int.__add__
            self.drawn[name] = join(self.drawn.get(name, 0), number)

    def __str__(self):
        lines = [
            f"{self.checked} checked, {self.jumped} skipped because of a discontinuity nearby",
            f"{self.lengths[0]} with an axis of no elements, {self.lengths[1]} with an axis of one element",
        ]
        if self.drawn:
            lines.append(
                "{lu} matrices factored, {lu_solve} systems solved, {singular} of both singular; up to {rows} rows, "
                "{triangular_solve} triangular systems, {factors} other factorizations, "
                "condition numbers up to {condition:.1e}".format(**self.drawn)
            )
        return "\n    ".join(lines)
