"""examples/spiral.rs in diffrax: the same data, model, times, tolerances and updates.

usage: spiral.py [batched|vmap]: a batch as one state with one error norm, as in the example, or one solve per row."""
import sys, time
T0 = time.perf_counter()
import jax, jax.numpy as jnp, diffrax, optax
import numpy as np

BATCHED = (sys.argv[1:] or ["batched"])[0] == "batched"
TIMES, DT, SEEN, NOISE, UPDATES = 100, 0.05, 25, 0.03, 1500
rng = np.random.default_rng(0)


def truth(t, y, args):
    a, b = y[0] ** 3, y[1] ** 3
    return jnp.stack([-0.1 * a + 2.0 * b, -2.0 * a - 0.1 * b])


def spirals(n):
    angle, radius = 2 * np.pi * rng.random(n), 1 + rng.random(n)
    y0 = jnp.asarray(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1), jnp.float32)
    ts = jnp.arange(TIMES + 1) * DT
    ctl = diffrax.PIDController(rtol=1e-5, atol=1e-7)
    one = lambda y: diffrax.diffeqsolve(diffrax.ODETerm(truth), diffrax.Tsit5(), 0.0, TIMES * DT, 0.01, y, saveat=diffrax.SaveAt(ts=ts), stepsize_controller=ctl, max_steps=100_000).ys
    return jax.jit(jax.vmap(one))(y0)


def mlp(p, y):
    for i, (w, b) in enumerate(p):
        y = y @ w + b
        if i < len(p) - 1:
            y = jnp.tanh(y)
    return y


def solve(p, y0, ts):
    ctl = diffrax.PIDController(rtol=1e-3, atol=1e-4)
    return diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, p: mlp(p, y)), diffrax.Tsit5(), 0.0, ts[-1], None, y0, args=p, saveat=diffrax.SaveAt(ts=ts), stepsize_controller=ctl).ys


def follow(p, y0, ts):
    if BATCHED:
        return jnp.swapaxes(solve(p, y0, ts), 0, 1)
    return jax.vmap(lambda y: solve(p, y, ts))(y0)


def loss(p, ys, which):
    return jnp.mean((follow(p, ys[:, 0], which * DT) - ys[:, which]) ** 2)


init = lambda i, o: (jnp.asarray(rng.uniform(-1, 1, (i, o)) / i**0.5, jnp.float32), jnp.asarray(rng.uniform(-1, 1, o) / i**0.5, jnp.float32))
p = [init(2, 64), init(64, 64), init(64, 2)]
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-2, UPDATES)))


@jax.jit
def step(p, opt, ys, which):
    value, g = jax.value_and_grad(loss)(p, ys, which)
    u, opt = tx.update(g, opt)
    return optax.apply_updates(p, u), opt, value


clean = spirals(256)
seen = clean + NOISE * jnp.asarray(rng.normal(size=clean.shape), jnp.float32)
opt, start, first = tx.init(p), time.perf_counter(), None
for i in range(UPDATES):
    every = [1, 2, 4, 4][4 * i // UPDATES]
    rows = rng.integers(0, 256, 32)
    p, opt, value = jax.block_until_ready(step(p, opt, seen[rows], jnp.arange(1, SEEN + 1) * every))
    first = first or time.perf_counter() - start
trained = time.perf_counter() - start
held_out = float(loss(p, spirals(64), jnp.arange(1, TIMES + 1)))
print(f"held out {held_out:.2e}, first update {first:.2f} s, training {trained:.1f} s, {1e3 * (trained - first) / (UPDATES - 1):.2f} ms an update, in all {time.perf_counter() - T0:.1f} s")
