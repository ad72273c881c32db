"""W9 in plain JAX: 100 updates of flow matching in one compiled scan; times are per update."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

import flow
from common import SplitMix, arguments, tell, timed

args = arguments()
FEATURES, WIDTH, BATCH, MANY = 16, 82, 1024, 100
f32 = lambda a: jnp.asarray(a, jnp.float32)
draws = SplitMix(9)
FREQUENCIES = f32(draws.normal(2, FEATURES) * np.exp(np.linspace(0, 2.6, FEATURES)))
weights = [tuple(f32(a) for a in layer) for layer in draws.mlp([2 + 2 * FEATURES + 8, WIDTH, WIDTH, WIDTH, 2])]


def velocity(weights, x, t):
    turns, angles = np.pi * t * jnp.array([1.0, 2.0, 4.0, 8.0]), x @ FREQUENCIES
    z = jnp.concatenate([x, jnp.sin(angles), jnp.cos(angles), jnp.sin(turns), jnp.cos(turns)], -1)
    for w, b in weights[:-1]:
        z = jax.nn.silu(z @ w.T + b)
    return z @ weights[-1][0].T + weights[-1][1]


def matching(weights, x0, x1, u):
    t = ((u + jnp.arange(BATCH) / BATCH) % 1.0)[:, None]
    return jnp.mean(jnp.sum((velocity(weights, (1 - t) * x0 + t * x1, t) - (x1 - x0)) ** 2, -1))


def many_of(path):
    grey, dark = flow.darkness(path)
    xy, mass = flow.centres(grey.shape), dark.reshape(-1) / dark.sum()
    mean = mass @ xy
    sd = np.sqrt(mass @ (xy - mean) ** 2)
    upto, positions, jitter = jnp.asarray(np.cumsum(mass)), f32((xy - mean) / sd), f32(0.5 / sd)
    rate = optax.cosine_decay_schedule(3e-3, 60_000)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=1e-5))

    def loss(weights, key):
        pixel, noise, base, time = jax.random.split(key, 4)
        rows = jnp.searchsorted(upto, jax.random.uniform(pixel, (BATCH,))).clip(0, len(mass) - 1)
        x1 = positions[rows] + jitter * jax.random.normal(noise, (BATCH, 2))
        return matching(weights, jax.random.normal(base, (BATCH, 2)), x1, jax.random.uniform(time, ()))

    def update(carry, key):
        weights, average, memory = carry
        grads = jax.grad(loss)(weights, key)
        steps, memory = optimiser.update(grads, memory, weights)
        weights = optax.apply_updates(weights, steps)
        average = jax.tree.map(lambda a, w: 0.999 * a + 0.001 * w, average, weights)
        return (weights, average, memory), None

    many = jax.jit(lambda carry, key: jax.lax.scan(update, carry, jax.random.split(key, MANY))[0])
    return many, (weights, weights, optimiser.init(weights))


times = None
if not args.values:
    many, carry = many_of(args.image)
    number = [0]

    def call():
        global carry
        number[0] += 1
        carry = jax.block_until_ready(many(carry, jax.random.PRNGKey(number[0])))
    times = timed(call, args.reps)
    times.update(ms=times["ms"] / MANY, min_ms=times["min_ms"] / MANY)
x1, x0 = (f32(SplitMix(seed).normal(BATCH, 2)) for seed in (90, 91))
tell("W9", args.variant, "jax", jax.jit(matching)(weights, x0, x1, SplitMix(92).uniform(1)[0]), times)
