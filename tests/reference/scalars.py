"""The functions that flowline computes one number after another, with their first and second derivatives."""
import math

import numpy as np
from derivatives import Jump, Number, curved, jumps, moving


def curved_by_two(x, y, f, fx, fy, fxx, fxy, fyy):
    """A function of two numbers with its first and second partial derivatives."""
    k, (x, y) = moving([x, y])
    if k is None:
        return Number(f)
    second = fxx * x.e * x.w + fxy * (x.e * y.w + y.e * x.w) + fyy * y.e * y.w
    return Number(f, fx * x.e + fy * y.e, fx * x.w + fy * y.w, second + fx * x.ew + fy * y.ew)


def polygamma(n, x):
    """The derivative of order n + 1 of ln Gamma, by its series and the formula of Euler and Maclaurin."""
    z, sum = x, 0.0
    while z < 40:
        sum += 1 / z if n == 0 else z ** -(n + 1)
        z += 1
    if n == 0:
        tail = math.log(z) - 1 / (2 * z) - 1 / (12 * z**2) + 1 / (120 * z**4) - 1 / (252 * z**6) + 1 / (240 * z**8)
        return tail - sum
    tail = z**-n / n + z ** -(n + 1) / 2
    for k, b in enumerate([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66]):
        k = 2 * k + 2
        tail += b / math.factorial(k) * math.prod(range(n + 1, n + k)) * z ** -(n + k)
    return (-1) ** (n + 1) * math.factorial(n) * (sum + tail)


def erf_inv(x):
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    y = 0.0
    for _ in range(200):
        step = (math.erfc(y) - (1 - x)) / (2 / math.sqrt(math.pi) * math.exp(-y * y)) if x > 0.5 else (
            (x - math.erf(y)) / (2 / math.sqrt(math.pi) * math.exp(-y * y)))
        y += max(-0.5, min(0.5, step))
    return y


SCALAR = """tan asin acos sinh cosh asinh acosh atanh log2 log10 round erf_inv ln_gamma
    polygamma pow rem atan2 hypot""".split()


def scalar(name, x, near):
    """The functions that flowline computes one number after another."""
    v, each = x[0].v, lambda f, *a: np.vectorize(f, otypes=[float])(*a) if a[0].size else np.zeros(a[0].shape)
    if len(x) == 1:
        if name == "round":
            jumps(v + 0.5, near)
            return curved(x[0], np.round(v), np.zeros_like(v), np.zeros_like(v))
        s = 1 / np.sqrt((1 - v) * (1 + v))
        poly = lambda n: each(lambda v: polygamma(n, v), v)
        y, first, second = {
            "tan": lambda: (np.tan(v), 1 + np.tan(v) ** 2, 2 * np.tan(v) * (1 + np.tan(v) ** 2)),
            "asin": lambda: (np.arcsin(v), s, v * s**3),
            "acos": lambda: (np.arccos(v), -s, -v * s**3),
            "sinh": lambda: (np.sinh(v), np.cosh(v), np.sinh(v)),
            "cosh": lambda: (np.cosh(v), np.sinh(v), np.cosh(v)),
            "asinh": lambda: (np.arcsinh(v), (1 + v * v) ** -0.5, -v * (1 + v * v) ** -1.5),
            "acosh": lambda: (np.arccosh(v), ((v - 1) * (v + 1)) ** -0.5, -v * ((v - 1) * (v + 1)) ** -1.5),
            "atanh": lambda: (np.arctanh(v), s**2, 2 * v * s**4),
            "log2": lambda: (np.log2(v), 1 / (v * math.log(2)), -1 / (v * v * math.log(2))),
            "log10": lambda: (np.log10(v), 1 / (v * math.log(10)), -1 / (v * v * math.log(10))),
            "erf_inv": lambda: (
                y := each(erf_inv, v), g := np.sqrt(np.pi) / 2 * np.exp(y * y), 2 * y * g * g),
            "ln_gamma": lambda: (each(math.lgamma, v), poly(0), poly(1)),
        }[name]()
        return curved(x[0], y, first, second)
    a, b = x[0].v, x[1].v
    zero = np.zeros_like(a)
    if name == "pow":
        f, log = a**b, np.log(a)
        lower = a ** (b - 1)
        return curved_by_two(*x, f, b * lower, f * log, b * (b - 1) * a ** (b - 2), lower * (1 + b * log), f * log**2)
    if name == "rem":
        jumps(a / b, near)
        return curved_by_two(*x, np.mod(a, b), zero + 1, -np.floor(a / b), zero, zero, zero)
    if name == "hypot":
        r = np.hypot(a, b)
        return curved_by_two(*x, r, a / r, b / r, b * b / r**3, -a * b / r**3, a * a / r**3)
    if name == "atan2":
        if np.any((b < 0) & (np.abs(a) < near)) or np.any(np.hypot(a, b) < near):
            raise Jump
        q = a * a + b * b
        mixed = (a * a - b * b) / q**2
        return curved_by_two(*x, np.arctan2(a, b), b / q, -a / q, -2 * a * b / q**2, mixed, 2 * a * b / q**2)
    poly = lambda more: each(lambda n, v: polygamma(int(n) + more, v), a, b)
    return curved_by_two(*x, poly(0), zero, poly(1), zero, zero, poly(2))
