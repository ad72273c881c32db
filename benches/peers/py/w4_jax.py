"""W4 exact in plain JAX written for speed: 1,000 points as one matrix, the steps as a scan with a checkpoint each, one
linearization and two tangents for the divergence."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from diffrax import Tsit5

import flow
from common import arguments, stated_points, tell, timed

args = arguments()
table = Tsit5().tableau
A, B = [np.asarray(row) for row in table.a_lower], np.asarray(table.b_sol)[:6]
C = np.concatenate([[0.0], np.asarray(table.c)])[:6]
blocks = flow.weights()
optimiser = optax.adamw(1e-3, weight_decay=1e-5)


def rates(block, t, z):
    v, push = jax.linearize(lambda z: flow.velocity(block, t, z), z)
    axes = [jnp.broadcast_to(jnp.eye(2)[i], z.shape) for i in (0, 1)]
    return v, sum(push(axis)[:, i] for i, axis in enumerate(axes))


def combine(coefficients, stages, i):
    return sum(float(c) * k[i] for c, k in zip(coefficients, stages))


def follow(block, z):
    @jax.checkpoint
    def step(carry, k):
        z, change = carry
        stages = []
        for s in range(6):
            at = z - flow.STEP * combine(A[s - 1], stages, 0) if s else z
            stages.append(rates(block, flow.END - flow.STEP * (k + C[s]), at))
        return (z - flow.STEP * combine(B, stages, 0), change - flow.STEP * combine(B, stages, 1)), None
    return jax.lax.scan(step, (z, jnp.zeros(len(z))), jnp.arange(10.0))[0]


def mean_log_prob(blocks, z, weight):
    change = 0.0
    for block in blocks[::-1]:
        z, part = follow(block, z)
        change = change + part
    return jnp.mean(weight * (change - 0.5 * (2 * flow.LOG_2PI + jnp.sum(z * z, -1))))


def update_of(positions, dark, jitter):
    def loss(blocks, key):
        draw, noise = jax.random.split(key)
        rows = jax.random.choice(draw, len(dark), (1000,))
        points = positions[rows] + jitter * jax.random.normal(noise, (1000, 2))
        return -mean_log_prob(blocks, points, dark[rows])

    @jax.jit
    def update(blocks, memory, key):
        value, grads = jax.value_and_grad(loss)(blocks, key)
        steps, memory = optimiser.update(grads, memory, blocks)
        return value, optax.apply_updates(blocks, steps), memory
    return update


times = None
if not args.values:
    update, carry, keys = update_of(*flow.documented_points(args.image)), (blocks, optimiser.init(blocks)), [0]

    def call():
        global carry
        keys[0] += 1
        _, *carry = jax.block_until_ready(update(*carry, jax.random.PRNGKey(keys[0])))
    times = timed(call, args.reps)
points = jnp.asarray(stated_points()[0], jnp.float32)
tell("W4", args.variant, "jax", -jax.jit(mean_log_prob)(blocks, points, jnp.ones(1000)), times)
