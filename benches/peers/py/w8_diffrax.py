"""W8 in diffrax: METHOD ROWS CHECKPOINTS, where `forward` takes no gradient; with --scan plain lax.scan, which stores
every state (Euler, `default` or `forward`)."""
import sys

import diffrax
import jax
import jax.numpy as jnp

from common import SplitMix, arguments, tell, timed

scan = "--scan" in sys.argv
sys.argv = [arg for arg in sys.argv if arg != "--scan"]
args = arguments()
method, rows, checkpoints = args.variant.split()
rows, N = int(rows), 10_000
weights = [tuple(jnp.asarray(a, jnp.float32) for a in layer) for layer in SplitMix(8).mlp([64] * 4)]
y0 = jnp.asarray(SplitMix(9).normal(rows, 64), jnp.float32)
y0 = y0[0] if rows == 1 else y0


def field(t, y, weights):
    for i, (w, b) in enumerate(weights):
        y = y @ w.T + b
        y = jnp.tanh(y) if i < 2 else y
    return y


def by_scan(weights):
    return jax.lax.scan(lambda y, _: (y + field(0, y, weights) / N, None), y0, None, length=N)[0]


def by_diffrax(weights):
    kept = None if checkpoints in ("default", "forward") else int(checkpoints)
    solver = {"euler": diffrax.Euler, "tsit5": diffrax.Tsit5}[method]()
    grid = diffrax.StepTo(ts=jnp.linspace(0, 1, N + 1))
    end = diffrax.diffeqsolve(diffrax.ODETerm(field), solver, 0.0, 1.0, None, y0, weights, stepsize_controller=grid,
                              max_steps=N, adjoint=diffrax.RecursiveCheckpointAdjoint(checkpoints=kept))
    return end.ys[-1]


loss = lambda weights: jnp.sum((by_scan if scan else by_diffrax)(weights) ** 2)
run = jax.jit(loss if checkpoints == "forward" else jax.grad(loss))
times = None if args.values else timed(lambda: jax.block_until_ready(run(weights)), args.reps)
out = run(weights)
value = out if checkpoints == "forward" else sum(jnp.sum(g**2) for g in jax.tree.leaves(out)) ** 0.5
tell("W8", args.variant, "lax.scan" if scan else "diffrax", value, times)
