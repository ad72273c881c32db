#!/usr/bin/env python3
"""Compares the results of random flowline programs with NumPy:

    tests/reference/check.py FILE...

Each line of a file is a program in flowline's text form with its arguments and results. This script evaluates it in f64 with
forward derivatives: along each element of the arguments (`e`), along one direction (`w`), and along both (`ew`, the second
derivatives). Unlike flowline, this script uses neither reverse mode nor program transforms: the cotangents of the arguments
are sums over `e`, and the cotangents of the cotangents are sums over `ew`.

A result may be off by 1e-12 (f64) or 1e-5 (f32) of the largest intermediate value, times the largest condition number of the
matrices that the program factors or solves systems with; integers and booleans must be equal. A program with a discontinuity
nearby is counted and skipped: a comparison, a floor, a cast to integers that almost rounds the other way, factors whose pivot
is almost as large as another entry, a singular matrix or one with a condition number above 1e8 (f64) or 1e3 (f32).

The programs of the group `systems` have matrices of up to 64 rows. Some of these are singular or have a NaN: each of their
solutions must have an element that is infinite or NaN.

Cholesky and QR factors, eigenvalues and eigenvectors have no derivatives in a program: their rules belong to
`tensor::linalg`, whose tests check them.
"""
import json
import math
import re
import sys

import numpy as np

# Nothing is written beside this file.
sys.dont_write_bytecode = True
import systems
from compare import Counts, difference
from derivatives import Jump, Number, bilinear, close, curved, jumps, linear, still
from scalars import SCALAR, scalar

# Programs with a value closer than this to a discontinuity are skipped.
NEAR = {"f32": 1e-4, "f64": 1e-10}


def unary(name, p, x, near):
    v = x.v
    if name == "neg":
        return linear(lambda a: -a, x)
    if name == "not":
        return Number(1 - v)
    if name == "is_finite":
        return Number(np.isfinite(v).astype(float))
    zero = np.zeros_like(v)
    if name in ("abs", "sign"):
        if x.e is not None:
            close(v, 0.0, near)
        return curved(x, np.abs(v), np.sign(v), zero) if name == "abs" else curved(x, np.sign(v), zero, zero)
    if name == "floor":
        jumps(v, near)
        return curved(x, np.floor(v), zero, zero)
    if name == "powf":
        d = lambda c, q: zero if c == 0 else c * v**q
        return curved(x, v**p, d(p, p - 1), d(p * (p - 1), p - 2))
    if name == "erf":
        bell = 2 / math.sqrt(math.pi) * np.exp(-v * v)
        return curved(x, np.vectorize(math.erf, otypes=[float])(v), bell, -2 * v * bell)
    y = {"exp": np.exp, "expm1": np.expm1, "ln": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin,
         "cos": np.cos, "atan": np.arctan, "tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
         "softplus": lambda v: np.logaddexp(0, v)}[name](v)
    first, second = {
        "exp": lambda: (y, y),
        "expm1": lambda: (np.exp(v), np.exp(v)),
        "ln": lambda: (1 / v, -1 / v**2),
        "log1p": lambda: (1 / (1 + v), -1 / (1 + v) ** 2),
        "sqrt": lambda: (0.5 / y, -0.25 / (y * v)),
        "sin": lambda: (np.cos(v), -y),
        "cos": lambda: (-np.sin(v), -y),
        "atan": lambda: (1 / (1 + v * v), -2 * v / (1 + v * v) ** 2),
        "tanh": lambda: (1 - y * y, -2 * y * (1 - y * y)),
        "sigmoid": lambda: (y * (1 - y), y * (1 - y) * (1 - 2 * y)),
        "softplus": lambda: (1 / (1 + np.exp(-v)), 1 / (1 + np.exp(-v)) / (1 + np.exp(v))),
    }[name]()
    return curved(x, y, first, second)


def binary(name, a, b, near):
    integer = a.e is None and b.e is None
    if name in ("add", "sub"):
        return linear(np.add if name == "add" else np.subtract, a, b)
    if name == "mul":
        return bilinear(np.multiply, a, b)
    if name == "div":
        y = b.v
        return bilinear(np.multiply, a, curved(b, 1 / y, -1 / y**2, 2 / y**3))
    if name in ("and", "or"):
        return Number(a.v * b.v if name == "and" else np.maximum(a.v, b.v))
    # At a tie, each operand gets half of the derivative.
    sign = 1 if name == "max" else -1
    if not integer:
        close(a.v, b.v, near)
    share = np.where(a.v == b.v, 0.5, (sign * (a.v - b.v) > 0).astype(float))
    y = linear(lambda x, z: np.where(share == 1, x, np.where(share == 0, z, 0.5 * (x + z))), a, b)
    y.v = (np.maximum if name == "max" else np.minimum)(a.v, b.v)
    return y


def lines(name, x, near):
    """Operations along the last axis."""
    if name == "argsort":
        return Number(np.argsort(x.v, axis=-1, kind="stable").astype(float))
    if name != "cummax":
        turn = slice(None, None, -1) if name == "cumsum_back" else slice(None)
        return linear(lambda v: np.cumsum(v[..., turn], axis=-1)[..., turn], x)
    # A maximum has no derivative here: the program takes the element at its place.
    return Number(np.maximum.accumulate(x.v, axis=-1)) if x.e is None else still(np.maximum.accumulate(x.v, axis=-1), x.e.shape[0])


def reduce(name, axes, x, near):
    axes = tuple(axes)
    if name == "reduce_sum":
        return linear(lambda a: a.sum(axis=axes), x)
    pick, end = (np.max, -np.inf) if name == "reduce_max" else (np.min, np.inf)
    y = pick(x.v, axis=axes, initial=end) if axes else x.v
    if x.e is None:
        return Number(y)
    wide = np.expand_dims(y, axes) if axes else y
    close(x.v, np.broadcast_to(wide, x.v.shape), near)
    taken = (x.v == wide).astype(float)
    count = taken.sum(axis=axes)
    z = linear(lambda a: np.where(taken == 1, a, 0).sum(axis=axes) / count, x)
    z.v = y
    return z


def padded(x, lo, hi):
    return np.pad(x, [(0, 0)] * (x.ndim - 3) + [(lo[0], hi[0]), (lo[1], hi[1]), (0, 0)])


def conv(x, w, lo, hi, turned):
    """x [.., n, h, w, c], w [.., kh, kw, c, o]."""
    if turned:
        w = np.swapaxes(w[..., ::-1, ::-1, :, :], -1, -2)
    x = padded(x, lo, hi)
    h, wd = x.shape[-3] - w.shape[-4] + 1, x.shape[-2] - w.shape[-3] + 1
    y = np.zeros((*x.shape[:-3], h, wd, w.shape[-1]))
    for i in range(w.shape[-4]):
        for j in range(w.shape[-3]):
            window, tap = x[..., i : i + h, j : j + wd, :], w[..., i, j, :, :]
            y += np.einsum("...npqc,...co->...npqo", window, tap)
    return y


def conv_kernel(x, y, lo, hi, shape):
    x = padded(x, lo, hi)
    w = np.zeros(shape)
    h, wd = y.shape[-3], y.shape[-2]
    for i in range(shape[-4]):
        for j in range(shape[-3]):
            w[..., i, j, :, :] = np.einsum("...npqc,...npqo->...co", x[..., i : i + h, j : j + wd, :], y)
    return w


def philox(key, stream, index):
    """Word `index` of Philox4x32-10 (Salmon et al. 2011)."""
    k0, k1 = key
    c = [index // 4 % 2**32, 0, stream, 0]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k0, q % 2**32, (p >> 32) ^ c[3] ^ k1, p % 2**32]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c[index % 4]


def wrap(v, dtype):
    """Integers in 32 bits."""
    if dtype == "i32":
        return (v + 2.0**31) % 2.0**32 - 2.0**31
    return v % 2.0**32 if dtype == "u32" else v


def cast(x, source, to, near):
    if to in ("f32", "f64"):
        if source not in ("f32", "f64"):
            return Number(x.v.astype(float))
        return Number(x.v, x.e, x.w, x.ew)
    if to == "bool":
        return Number((x.v != 0).astype(float))
    if source in ("f32", "f64"):
        jumps(x.v, near)
        low, high = (-(2.0**31), 2.0**31 - 1) if to == "i32" else (0.0, 2.0**32 - 1)
        return Number(np.clip(np.trunc(np.nan_to_num(x.v, nan=0.0, posinf=high, neginf=low)), low, high))
    return Number(wrap(x.v, to))


LINE = re.compile(r"\s*%(\d+) = (\w+)(?:\{(.*?)\})?((?: %\d+,?)*) : (\w+)\[([\d,]*)\]$")


def typed(dtype, dims):
    return dtype, tuple(int(d) for d in dims.split(",") if d)


def attributes(text):
    """name=value, name=[values], flags."""
    found = {}
    for name, items, value in re.findall(r"(\w+)(?:=(?:\[([^\]]*)\]|([^,\s]+)))?", text or ""):
        if value:
            found[name] = float(value)
        else:
            found[name] = [float(x) for x in items.split(",") if x.strip()]
    return found


class Program:
    def __init__(self, text, keeps_singular):
        self.keeps_singular = keeps_singular
        head, *lines = text.strip().splitlines()
        inputs = re.findall(r"%(\d+): (\w+)\[([\d,]*)\]", head)
        self.inputs = [int(i) for i, _, _ in inputs]
        self.types = {int(i): typed(t, d) for i, t, d in inputs}
        self.nodes = []
        for line in lines:
            if line.strip().startswith("return"):
                self.outputs = [int(i) for i in re.findall(r"%(\d+)", line)]
            elif line.strip() != "}":
                i, op, attrs, args, dtype, dims = LINE.match(line).groups()
                args = [int(a) for a in re.findall(r"%(\d+)", args)]
                self.types[int(i)] = typed(dtype, dims)
                self.nodes.append((int(i), op, attrs, args))
        self.float = self.types[self.inputs[0]][0]
        self.ops = {i: op for i, op, _, _ in self.nodes}
        # The factors that are read by other operations than systems.
        reads = [(op, k, arg) for _, op, _, args in self.nodes for k, arg in enumerate(args)]
        self.read = set(self.outputs) | {arg for op, k, arg in reads if (op, k) != ("lu_solve", 0)}
        self.drawn = {"lu": 0, "lu_solve": 0, "triangular_solve": 0, "factors": 0, "rows": 0, "singular": 0, "condition": 1.0}

    def observe(self, op, y):
        """Counts the matrices; skips the program for a singular or ill-conditioned one."""
        largest = float(np.max(y.conditions, initial=1.0, where=~y.singular))
        if largest > systems.LARGEST_CONDITION[self.float] or y.singular.any() and not self.keeps_singular:
            raise Jump
        self.drawn[op] += y.conditions.size
        self.drawn["rows"] = max(self.drawn["rows"], y.v.shape[-2] - (op == "lu"))
        self.drawn["singular"] += int(y.singular.sum())
        self.drawn["condition"] = max(self.drawn["condition"], largest)
        return largest

    def constant(self, attrs, dtype, shape):
        if attrs.startswith("["):
            words = [w.strip() for w in attrs[1:-1].split(",") if w.strip()]
        else:
            words = [attrs] * math.prod(shape)
        value = lambda w: {"true": 1.0, "false": 0.0}.get(w) if w in ("true", "false") else float(w)
        v = np.array([value(w) for w in words]).reshape(shape)
        return v.astype(np.float32).astype(float) if dtype == "f32" else v

    def run(self, x):
        """The outputs, and the largest intermediate value, first and second derivatives, times the condition number."""
        values = dict(zip(self.inputs, x))
        largest, condition = np.zeros(4), 1.0
        for i, op, attrs, args in self.nodes:
            dtype, shape = self.types[i]
            near = NEAR[self.float] if op != "lu" or i in self.read else 0.0
            y = self.node(op, attrs, [values[a] for a in args], [self.types[a] for a in args], dtype, shape, near)
            if dtype in ("i32", "u32"):
                y = Number(wrap(y.v, dtype))
            elif dtype == "bool":
                y = Number(y.v)
            elif op in ("lu", "lu_solve", "triangular_solve"):
                condition = max(condition, self.observe(op, y))
            assert y.v.shape == shape, (op, y.v.shape, shape)
            values[i] = y
            if dtype in ("f32", "f64"):
                largest = np.maximum(largest, y.largest())
        return [values[o] for o in self.outputs], largest * condition

    def node(self, op, attrs, x, types, dtype, shape, near):
        if op == "const":
            return Number(self.constant(attrs, dtype, shape))
        a = attributes(attrs)
        whole = lambda name: [int(v) for v in a[name]]
        if op == "iota":
            axis = int(a["axis"])
            along = [1] * len(shape)
            along[axis] = shape[axis]
            return Number(np.broadcast_to(np.arange(shape[axis], dtype=float).reshape(along), shape).copy())
        if op in ("add", "sub", "mul", "div", "max", "min", "and", "or"):
            return binary(op, x[0], x[1], near)
        if op in ("cumsum", "cumsum_back", "cummax", "argsort"):
            return lines(op, x[0], near)
        if op in SCALAR:
            return scalar(op, x, near)
        if op in ("eq", "ne", "lt", "le"):
            if types[0][0] in ("f32", "f64"):
                close(x[0].v, x[1].v, near)
            f = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}[op]
            return Number(f(x[0].v, x[1].v).astype(float))
        if op == "select":
            return linear(lambda l, r: np.where(x[0].v != 0, l, r), x[1], x[2])
        if op == "lincomb":
            return linear(lambda *terms: sum(c * t for c, t in zip(a["coeffs"], terms)), *x)
        if op == "cast":
            return cast(x[0], types[0][0], dtype, near)
        if op == "stop_gradient":
            return Number(x[0].v)
        if op == "broadcast":
            dims = whole("dims")

            def stretch(v):
                lengths = [1] * len(shape)
                for d, n in zip(dims, v.shape):
                    lengths[d] = n
                return np.broadcast_to(v.reshape(lengths), shape).copy()

            return linear(stretch, x[0])
        if op == "reshape":
            return linear(lambda v: v.reshape(shape), x[0])
        if op == "transpose":
            return linear(lambda v: v.transpose(whole("perm")), x[0])
        if op == "slice":
            part = tuple(slice(s, l) for s, l in zip(whole("start"), whole("limit")))
            return linear(lambda v: v[part], x[0])
        if op == "pad":
            return linear(lambda v: np.pad(v, list(zip(whole("lo"), whole("hi")))), x[0])
        if op == "concat":
            return linear(lambda *v: np.concatenate(v, axis=int(a["axis"])), *x)
        if op.startswith("reduce"):
            return reduce(op, whole("axes"), x[0], near)
        if op in ("gather", "scatter_add", "scatter_max", "scatter_set"):
            index = np.clip(x[1].v.astype(int), 0, x[0].v.shape[0] - 1)
            if op == "gather":
                return linear(lambda v: v[index], x[0])

            def add(v, updates):
                v = v.copy()
                np.add.at(v, index, updates)
                return v

            if op == "scatter_add":
                return linear(add, x[0], x[2])
            if op == "scatter_set":
                def put(v, updates):
                    v = v.copy()
                    v[index] = updates
                    return v

                return linear(put, x[0], x[2])
            y = x[0].v.copy()
            np.maximum.at(y, index, x[2].v)
            if x[0].e is None and x[2].e is None:
                return Number(y)
            close(x[0].v, y, near)
            close(x[2].v, y[index], near)
            own, new = (x[0].v == y).astype(float), (x[2].v == y[index]).astype(float)
            count = add(own, new)
            z = linear(lambda v, u: add(np.where(own == 1, v, 0), np.where(new == 1, u, 0)) / count, x[0], x[2])
            z.v = y
            return z
        if op == "dot":
            turn = lambda v, flag: np.swapaxes(v, -1, -2) if flag in a else v
            return bilinear(lambda l, r: turn(l, "ta") @ turn(r, "tb"), x[0], x[1])
        if op == "lu":
            return systems.lu(x[0], near)
        if op == "lu_solve":
            return systems.lu_solve(x[1], x[2], "transposed" in a)
        if op == "triangular_solve":
            return systems.triangular_solve(x[0], x[1], a)
        if op in ("cholesky", "qr", "eigh"):
            self.drawn["factors"] += math.prod(shape[:-2])
            return systems.factors(op, x[0], shape)
        if op == "conv":
            return bilinear(lambda l, r: conv(l, r, whole("lo"), whole("hi"), "turned" in a), x[0], x[1])
        if op == "conv_kernel":
            return bilinear(lambda l, r: conv_kernel(l, r, whole("lo"), whole("hi"), shape), x[0], x[1])
        if op == "random_bits":
            key, start = [int(k) for k in x[0].v], int(x[1].v)
            words = [philox(key, int(a["stream"]), start + i) for i in range(math.prod(shape))]
            return Number(np.array(words, dtype=float).reshape(shape))
        return unary(op, a.get("p"), x[0], near)


def arguments(program, x, wrt, dx):
    """The arguments with their derivatives along each element and along dx; and the sizes of those in `wrt`."""
    sizes = {k: x[k].size for k in wrt}
    total, at, numbers = sum(sizes.values()), 0, []
    for k, v in enumerate(x):
        if k not in sizes:
            numbers.append(Number(v))
            continue
        e = np.zeros((total, *v.shape))
        e.reshape(total, -1)[at + np.arange(v.size), np.arange(v.size)] = 1
        at += v.size
        numbers.append(Number(v, e, dx[wrt.index(k)], np.zeros_like(e)))
    return numbers, [sizes[k] for k in wrt]


def expected(line):
    """The program, and its results by name, each with the largest intermediate value, and which matrices of each output are
    singular. With singular matrices, there are no derivatives."""
    program = Program(line["text"], line["group"] == "systems")
    shaped = lambda flat, shape: np.array(flat, dtype=float).reshape(shape)
    types = [program.types[i] for i in program.inputs]
    x = [shaped(v, t[1]) for v, t in zip(line["x"], types)]
    wrt, outs = line["wrt"], line["outs"]
    dx = [shaped(v, types[k][1]) for v, k in zip(line["dx"], wrt)]
    u = [shaped(v, program.types[program.outputs[k]][1]) for v, k in zip(line["u"], outs)]
    numbers, sizes = arguments(program, x, wrt, dx)
    y, (v, e, w, ew) = program.run(numbers)
    total = sum(sizes)
    part = lambda o, name: getattr(o, name) if o.e is not None else np.zeros((total, *o.v.shape) if "e" in name else o.v.shape)
    pull = lambda name: sum((part(y[k], name) * ct).reshape(total, -1).sum(axis=1) for k, ct in zip(outs, u))
    split = lambda flat: np.split(flat, np.cumsum(sizes)[:-1])
    values = [o.v for o in y]
    size_u = max([float(np.abs(ct).max()) for ct in u if ct.size] + [1.0]) * max(1, max(ct.size for ct in u))
    none = np.zeros(0, dtype=bool)
    singular = lambda y: [getattr(o, "singular", none) for o in y]
    results = {"eager": (values, v, singular(y)), "jit": (values, v, singular(y))}
    if not any(s.any() for s in singular(y)):
        along, size = [part(y[k], "w") for k in outs], size_u * max(v, e, w, ew)
        results["jvp"] = (along, max(v, w), [none] * len(outs))
        results["vjp"] = (split(pull("e")), size_u * max(v, e), [none] * len(wrt))
        results["second"] = (split(pull("ew")) + along, size, [none] * (len(wrt) + len(outs)))
    rows, most, of_rows = [], 0.0, []
    for i in range(3):
        one = [shaped(f, (3, *t[1]))[i] if m else shaped(f, t[1]) for f, m, t in zip(line["xs"], line["mapped"], types)]
        row, (v, *_) = program.run([still(a) if t[0] == program.float else Number(a) for a, t in zip(one, types)])
        rows.append([o.v for o in row])
        of_rows.append(singular(row))
        most = max(most, v)
    results["vmap"] = ([np.stack(o) for o in zip(*rows)], most, [np.concatenate(s) for s in zip(*of_rows)])
    return program, results


def main():
    wrong = 0
    for path in sys.argv[1:]:
        groups = {}
        for text in open(path):
            line = json.loads(text)
            counts = groups.setdefault(line["group"], Counts())
            try:
                with np.errstate(all="ignore"):
                    program, results = expected(line)
                    fault = difference(program, results, line)
            except Jump:
                counts.jumped += 1
                continue
            counts.add(program)
            if fault:
                wrong += 1
                if wrong <= 5:
                    print(f"{path}: program {line['seed']} of {line['group']}: {fault}\n{line['text'][:4000]}")
        for name, counts in groups.items():
            print(f"{path}, {name}: {counts}")
        if not groups or not all(counts.checked for counts in groups.values()):
            wrong += 1
    if wrong:
        sys.exit(f"{wrong} programs differ")


if __name__ == "__main__":
    main()
