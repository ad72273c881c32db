"""Arrays in f64 with forward derivatives, for `check.py`."""
import numpy as np


class Jump(Exception):
    """The program is discontinuous near its argument."""


class Number:
    """An array with derivatives, which are None for integers and booleans."""

    def __init__(self, v, e=None, w=None, ew=None):
        self.v, self.e, self.w, self.ew = v, e, w, ew

    def largest(self):
        parts = [self.v, self.e, self.w, self.ew]
        return [0.0 if p is None or p.size == 0 else float(np.nanmax(np.abs(np.where(np.isfinite(p), p, 0)))) for p in parts]


def still(v, k=1):
    """A float array with zero derivatives along k directions."""
    return Number(v, np.zeros((k, *v.shape)), np.zeros_like(v), np.zeros((k, *v.shape)))


def moving(x):
    """The number of directions of the derivatives in x, if any; and x, with zeros for missing derivatives."""
    k = next((a.e.shape[0] for a in x if a.e is not None), None)
    return k, x if k is None else [a if a.e is not None else still(a.v, k) for a in x]


def linear(f, *x):
    """A function that is linear in all of x."""
    v = f(*(a.v for a in x))
    k, x = moving(x)
    if k is None:
        return Number(v)
    each = lambda name: np.stack([f(*(getattr(a, name)[i] for a in x)) for i in range(k)])
    return Number(v, each("e"), f(*(a.w for a in x)), each("ew"))


def bilinear(f, a, b):
    v = f(a.v, b.v)
    k, (a, b) = moving([a, b])
    if k is None:
        return Number(v)
    e = np.stack([f(a.e[i], b.v) + f(a.v, b.e[i]) for i in range(k)])
    ew = np.stack([f(a.ew[i], b.v) + f(a.e[i], b.w) + f(a.w, b.e[i]) + f(a.v, b.ew[i]) for i in range(k)])
    return Number(v, e, f(a.w, b.v) + f(a.v, b.w), ew)


def curved(x, f, f1, f2):
    """A function of one number with its first and second derivative."""
    if x.e is None:
        return Number(f)
    return Number(f, f1 * x.e, f1 * x.w, f2 * x.e * x.w + f1 * x.ew)


def close(a, b, near):
    """Raises `Jump` for numbers that are almost equal; equal numbers are equal in every precision."""
    gap = np.abs(a - b)
    if np.any((gap > 0) & (gap < near * np.maximum(1, np.abs(a)))):
        raise Jump


def jumps(v, near):
    """Raises `Jump` for numbers close to an integer but not equal to it."""
    finite = np.where(np.isfinite(v), v, 0.5)
    close(finite, np.round(finite), near)
