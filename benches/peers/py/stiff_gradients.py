"""Gradients through stiff solves by diffrax: Kvaerno5 with its default adjoint, in f64, on the problems of
`benches/stiff_gradients.rs`.

    cargo bench --bench stiff_gradients --features autodiff -- --exact > exact.json
    taskset -c 0 python stiff_gradients.py exact.json [PROBLEM]

Prints the median time of a compiled gradient, the errors of p dL/dp and of dL/dy0, and the accepted steps, for a range of
tolerances. Errors are relative to the largest of these numbers; the exact ones are those of flowline at rtol 1e-11.
"""
import json
import os
import statistics
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

import diffrax


def rober(t, y, k):
    slow, fast, back = k[0] * y[0], k[1] * y[1] * y[1], k[2] * y[1] * y[2]
    return jnp.stack([back - slow, slow - fast - back, fast])


def hires(t, y, k):
    fast = k[9] * y[5] * y[7]
    return jnp.stack(
        [
            k[1] * y[1] - k[0] * y[0] + k[2] * y[2] + k[3],
            k[0] * y[0] - k[4] * y[1],
            k[1] * y[3] + k[6] * y[4] - k[5] * y[2],
            k[2] * y[1] + k[0] * y[2] - k[7] * y[3],
            k[1] * (y[5] + y[6]) - k[8] * y[4],
            k[10] * (y[3] + y[6]) + k[0] * y[4] - k[1] * y[5] - fast,
            fast - k[11] * y[6],
            k[11] * y[6] - fast,
        ]
    )


def brusselator(t, y, p):
    u, v = y
    a, b, diffusion = p
    n = u.shape[0]

    def between(x, end):
        x = jnp.concatenate([end[None], x, end[None]])
        return (x[:-2] + x[2:] - 2 * x[1:-1]) * diffusion * (n + 1) ** 2

    react = u * u * v
    return jnp.stack([a + react - (b + 1) * u + between(u, a), b * u - react + between(v, b / a)])


def line(n):
    x = jnp.arange(1, n + 1) / (n + 1)
    return jnp.stack([1 + jnp.sin(2 * jnp.pi * x), jnp.full(n, 3.0)])


HIRES = [1.71, 0.43, 8.32, 0.0007, 8.75, 10.03, 0.035, 1.12, 1.745, 280.0, 0.69, 1.81]
PROBLEMS = {
    "rober": (rober, [0.04, 3e7, 1e4], jnp.array([1.0, 0.0, 0.0]), 40.0, 1e-6),
    "hires": (hires, HIRES, jnp.array([1.0, 0, 0, 0, 0, 0, 0, 0.0057]), 321.8122, 1e-2),
    "brusselator-10": (brusselator, [1.0, 3.0, 0.02], line(5), 10.0, 1.0),
    "brusselator-50": (brusselator, [1.0, 3.0, 0.02], line(25), 10.0, 1.0),
}


def gradient(problem, rtol):
    field, _, _, t1, scale = problem

    def loss(at):
        p, y0 = at
        control = diffrax.PIDController(rtol=rtol, atol=rtol * scale)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Kvaerno5(), 0.0, t1, None, y0, p,
            stepsize_controller=control, max_steps=65536,
        )
        return jnp.sum(solution.ys[-1] ** 2), solution.stats["num_accepted_steps"]

    return jax.jit(jax.grad(loss, has_aux=True))


def median(call):
    start = time.perf_counter()
    jax.block_until_ready(call())
    once = time.perf_counter() - start
    calls = max(1, int(0.05 / once))
    samples = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(calls):
            jax.block_until_ready(call())
        samples.append((time.perf_counter() - start) / calls)
    return statistics.median(samples)


def main():
    exact = json.load(open(sys.argv[1]))
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    print("| problem | rtol | steps | gradient, us | error of p dL/dp | of dL/dy0 | first call, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, problem in PROBLEMS.items():
        if wanted not in name:
            continue
        at = (jnp.array(problem[1]), problem[2])
        want = [jnp.array(x) for x in exact[name]]
        for rtol in [1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9]:
            start = time.perf_counter()
            program = gradient(problem, rtol)
            found, steps = jax.block_until_ready(program(at))
            first = time.perf_counter() - start
            us = 1e6 * median(lambda: program(at))
            found, scaled = (found[0] * at[0], found[1]), [want[0] * at[0], want[1]]
            off = [float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b))) for a, b in zip(map(jnp.ravel, found), scaled)]
            print(f"| {name} | {rtol:.0e} | {steps} | {us:.1f} | {off[0]:.1e} | {off[1]:.1e} | {1e3 * first:.0f} |", flush=True)


main()
