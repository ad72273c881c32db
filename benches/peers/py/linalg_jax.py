"""The cases of `benches/linalg.rs` in JAX, with its arguments: median and least time of compiled calls in microseconds.

    python linalg_jax.py [--f32] [NAME COUNT ROWS [COLUMNS]]
"""
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

CASES = [
    ("solve", 1000, 4, 4),
    ("triangular_solve", 200, 8, 8),
    ("triangular_solve", 1, 512, 512),
    ("cholesky", 200, 8, 8),
    ("cholesky", 1, 128, 128),
    ("cholesky", 1, 512, 512),
    ("qr", 1000, 4, 4),
    ("qr", 200, 8, 8),
    ("qr", 200, 20, 5),
    ("qr", 1, 200, 200),
    ("eigh", 1000, 4, 4),
    ("eigh", 200, 8, 8),
    ("eigh", 1, 100, 100),
    ("eigh", 1, 200, 200),
    ("lstsq", 200, 20, 5),
]

FUNCTIONS = {
    "solve": jnp.linalg.solve,
    "triangular_solve": lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    "cholesky": lambda a, b: jnp.linalg.cholesky(a),
    "qr": lambda a, b: jnp.linalg.qr(a),
    "eigh": lambda a, b: jnp.linalg.eigh(a),
    # `jnp.linalg.lstsq` computes singular values.
    "lstsq": lambda a, b: (lambda q, r: jax.scipy.linalg.solve_triangular(r, jnp.swapaxes(q, -1, -2) @ b))(*jnp.linalg.qr(a)),
}


def measure(name, dtype, count, m, n):
    draw = np.random.default_rng(7)
    lead = () if count == 1 else (count,)
    a, b = draw.uniform(-1, 1, (*lead, m, n)), draw.uniform(-1, 1, (*lead, m, 1))
    if name == "solve":
        a = a + 4 * np.eye(m, n)
    elif name in ("triangular_solve", "cholesky", "eigh"):
        a = a @ np.swapaxes(a, -1, -2) + n * np.eye(m, n)
    a, b = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
    f = jax.jit(FUNCTIONS[name])

    def call():
        start = time.perf_counter()
        jax.block_until_ready(f(a, b))
        return (time.perf_counter() - start) * 1e6

    call()
    first = max(call(), call())
    times = sorted(call() for _ in range(int(min(max(3e5 / first, 15), 2000))))
    size = f"{count:5} x {m} x {n} {dtype.__name__}"
    print(f"{name:18} {size}: median {times[len(times) // 2]:9.1f} us, least {times[0]:9.1f} us")


def main():
    words = [word for word in sys.argv[1:] if word != "--f32"]
    jax.config.update("jax_enable_x64", True)
    dtype = np.float32 if "--f32" in sys.argv else np.float64
    if not words:
        for case in CASES:
            measure(case[0], dtype, *case[1:])
        return
    sides = [int(word) for word in words[1:]]
    measure(words[0], dtype, *(sides if len(sides) == 3 else [*sides, sides[1]]))


main()
