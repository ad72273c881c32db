"""W4 in diffrax: an update of its CNF example, two batches of 500 points in a loop."""
import jax
import jax.numpy as jnp
import optax

import flow
from common import arguments, stated_points, tell, timed

args = arguments()
exact, half = args.variant == "exact", 500
blocks = flow.weights()
optimiser = optax.adamw(1e-3, weight_decay=1e-5)


def mean_log_prob(blocks, points, probes, weight):
    each = jax.vmap(lambda x, e: flow.log_prob(blocks, x, e, exact))
    return jnp.mean(weight * each(points, probes))


def update_of(positions, dark, jitter):
    n = len(dark)

    def loss(blocks, i, key):
        order = jax.random.permutation(jax.random.fold_in(jax.random.PRNGKey(1), i // (n // half)), n)
        rows = jax.lax.dynamic_slice(order, ((i % (n // half)) * half,), (half,))
        noise, probes = jax.random.split(key)
        points = positions[rows] + jitter * jax.random.normal(noise, (half, 2))
        return -mean_log_prob(blocks, points, jax.random.normal(probes, (half, 2)), dark[rows])

    @jax.jit
    def update(blocks, memory, i, key):
        def one(_, carry):
            total, grads, i, key = carry
            value, g = jax.value_and_grad(loss)(blocks, i, key)
            return total + value, jax.tree.map(jnp.add, grads, g), i + 1, jax.random.split(key, 1)[0]
        zero = jax.tree.map(jnp.zeros_like, blocks)
        total, grads, i, key = jax.lax.fori_loop(0, 2, one, (jnp.zeros(()), zero, i, key))
        steps, memory = optimiser.update(jax.tree.map(lambda g: g / 2, grads), memory, blocks)
        return total / 2, optax.apply_updates(blocks, steps), memory, i, key
    return update


times = None
if args.first or not args.values:
    update = update_of(*flow.documented_points(args.image))
    # the batch index is an array: a Python number would be recompiled in every update
    carry = (blocks, optimiser.init(blocks), jnp.asarray(0), jax.random.PRNGKey(2))

    def call():
        global carry
        value, *carry = jax.block_until_ready(update(*carry))
        return value
if args.first:
    tell("W6", "W4", "diffrax", call())
else:
    times = None if args.values else timed(call, args.reps)
    points, probes = (jnp.asarray(a, jnp.float32) for a in stated_points())
    tell("W4", args.variant, "diffrax", -jax.jit(mean_log_prob)(blocks, points, probes, jnp.ones(1000)), times)
