"""W7 in diffrax: 100,000 samples, or the exact density on a grid of 256 x 256, by the fixed steps of W4."""
import jax
import jax.numpy as jnp

import flow
from common import SplitMix, arguments, tell, timed

args = arguments()
blocks = flow.weights()
if args.variant.startswith("samples"):
    n = 100_000
    push = jax.vmap(lambda z: flow.push_forward(blocks, z))
    draw = jax.jit(lambda key: push(jax.random.normal(key, (n, 2))))
    key = jax.random.PRNGKey(0)
    times = None if args.values else timed(lambda: jax.block_until_ready(draw(key)), args.reps)
    x = jax.jit(push)(jnp.asarray(SplitMix(10).normal(n, 2), jnp.float32))
    tell("W7", args.variant, "diffrax", [x.mean(), x.std()], times)
else:
    axis = jnp.linspace(-3, 3, 256)
    points = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    density = jax.jit(jax.vmap(lambda x: flow.log_prob(blocks, x, None, True)))
    times = None if args.values else timed(lambda: jax.block_until_ready(density(points)), args.reps)
    tell("W7", args.variant, "diffrax", jnp.exp(density(points)).sum() * (6 / 255) ** 2, times)
