"""Factorizations and linear systems in f64, for `check.py`; those by LU and triangular systems with forward derivatives.

Solutions are computed by `numpy.linalg.solve` from the matrices, not from the factors. NumPy has no LU factorization, so
`factor` is one.
"""
import math

import numpy as np

from derivatives import Jump, Number, linear, moving

# Programs with a matrix of a larger condition number are skipped: almost no digit of an f32 solution is right, and the
# second derivatives of an f64 solution, whose errors contain its square, have few.
LARGEST_CONDITION = {"f32": 1e3, "f64": 1e8}


class Systems(Number):
    """Factors or solutions, the condition number of each matrix, and which matrices have no inverse."""

    def __init__(self, number, conditions):
        super().__init__(number.v, number.e, number.w, number.ew)
        self.conditions = conditions
        self.singular = np.isnan(conditions)


def factor(a, near):
    """L below the diagonal of U, and the rows of a in the order of the pivots; None for a singular matrix."""
    a, n, is_near = a.copy(), len(a), False
    rows = np.arange(n)
    for k in range(n):
        column = np.abs(a[k:, k])
        pivot = int(np.argmax(column))
        largest = column[pivot]
        if not 0 < largest < math.inf:
            return None
        # Only in the first column, equal entries are equal in every precision.
        gap = np.delete(largest - column, pivot)
        is_near |= bool(np.any((gap < near * max(1, largest)) & ((gap > 0) | (k > 0))))
        a[[k, k + pivot]], rows[[k, k + pivot]] = a[[k + pivot, k]], rows[[k + pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    if is_near:
        raise Jump
    return a, rows


def each_matrix(f, shape, near, a, *x):
    """f for each matrix of a and its entries of x, or NaN for a singular matrix; `shape` is that of one result.

    f gets the factors and arrays with their derivatives, and returns a result with its derivatives.
    """
    lead = a.v.shape[:-2]
    count = math.prod(lead)
    k, numbers = moving([a, *x])
    names = ["v"] if k is None else ["v", "e", "w", "ew"]
    before = lambda name: (k,) if "e" in name else ()
    flat = lambda v, name: v.reshape(*before(name), count, *v.shape[-2:])
    parts = [{name: flat(getattr(y, name), name) for name in names} for y in numbers]
    results = {name: np.full((*before(name), count, *shape), math.nan) for name in names}
    conditions = np.full(count, math.nan)
    for i in range(count):
        ones = [Number(*(part[name][..., i, :, :] for name in names)) for part in parts]
        factors = factor(ones[0].v, near)
        if factors is None:
            continue
        conditions[i] = np.linalg.cond(ones[0].v) if len(ones[0].v) else 1.0
        for name, y in zip(names, f(factors, *ones)):
            results[name][..., i, :, :] = y
    shaped = (results[name].reshape(*before(name), *lead, *shape) for name in names)
    return Systems(Number(*shaped), conditions)


def lu(a, near):
    """The factors with the permutation as the last row. The derivatives are those for a fixed permutation."""
    n = a.v.shape[-1]

    def one(factors, a):
        top, rows = factors
        lower, upper = np.tril(top, -1) + np.eye(n), np.triu(top)
        yield np.vstack([top, rows.reshape(1, n)])
        if a.e is None:
            return
        turn = lambda x: np.swapaxes(x, -1, -2)
        below = lambda x: np.tril(x, -1)

        def moved(x):
            """The derivatives of L and of U for x = (dL) U + L dU."""
            x = turn(np.linalg.solve(upper.T, turn(np.linalg.solve(lower, x))))
            return lower @ below(x), np.triu(x) @ upper

        e, w = moved(a.e[:, rows]), moved(a.w[rows])
        ew = moved(a.ew[:, rows] - e[0] @ w[1] - w[0] @ e[1])
        for part in (e, w, ew):
            total = part[0] + part[1]
            yield np.pad(total, [(0, 0)] * (total.ndim - 2) + [(0, 1), (0, 0)])

    return each_matrix(one, (n + 1, n), near, a)


def lu_solve(a, b, transposed):
    """The solution of a x = b or of the transposed system. The derivatives are by a and b."""

    def one(_, a, b):
        turn = lambda x: np.swapaxes(x, -1, -2) if transposed else x
        solve = lambda right: np.linalg.solve(turn(a.v), right)
        x = solve(b.v)
        yield x
        if a.e is None:
            return
        e, w = solve(b.e - turn(a.e) @ x), solve(b.w - turn(a.w) @ x)
        yield e
        yield w
        yield solve(b.ew - turn(a.ew) @ x - turn(a.e) @ w - turn(a.w) @ e)

    return each_matrix(one, b.v.shape[-2:], 0.0, a, b)


def triangular_solve(a, b, flags):
    """The solution of a system with a triangle of a. The derivatives are by the triangle and b."""
    part, offset = (np.triu, 1) if "upper" in flags else (np.tril, -1)
    unit = "unit_diagonal" in flags
    triangle = linear(lambda v: part(v, offset if unit else 0), a)
    if unit:
        triangle.v = triangle.v + np.eye(a.v.shape[-1])
    return lu_solve(triangle, b, "transposed" in flags)


def factors(op, a, shape):
    """Cholesky or QR factors, or eigenvectors and eigenvalues, packed in one array. They have no derivatives."""
    if 0 in shape:
        return Number(np.zeros(shape))
    turn = lambda x: np.swapaxes(x, -1, -2)
    even = a.v if op == "qr" else (a.v + turn(a.v)) / 2
    try:
        if op == "cholesky":
            return Number(np.linalg.cholesky(even))
        if op == "qr":
            q, r = np.linalg.qr(even)
            rest = shape[-1] - q.shape[-1]
            q = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, rest)])
            return Number(np.concatenate([q, r], axis=-2))
        w, v = np.linalg.eigh(even)
    except np.linalg.LinAlgError:
        raise Jump from None
    first = np.argmax(np.abs(v) >= 0.9 * np.abs(v).max(axis=-2, keepdims=True), axis=-2)
    most = np.take_along_axis(v, first[..., None, :], axis=-2)
    return Number(np.concatenate([v * np.sign(most), w[..., None, :]], axis=-2))
