"""W3 in diffrax: a training step through RecursiveCheckpointAdjoint, each trajectory with its own steps under vmap."""
import json
import pathlib

import diffrax
import jax
import jax.numpy as jnp
import optax

from common import SplitMix, arguments, tell, timed

args = arguments()
f32 = lambda tree: jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), tree)
ts = jnp.linspace(0, 10, 100)
y0 = f32(1.6 * SplitMix(3).uniform(64).reshape(32, 2) - 0.6)


def truth(t, y, _):
    x = y / (1 + y)
    return jnp.array([x[1], -x[0]])


def solve(term, y, dt0, **options):
    saved = diffrax.SaveAt(ts=ts)
    return diffrax.diffeqsolve(term, diffrax.Tsit5(), ts[0], ts[-1], dt0, y, saveat=saved, **options).ys


paths = jax.jit(jax.vmap(lambda y: solve(diffrax.ODETerm(truth), y, 0.1)))(y0)


def field(t, y, p):
    w1, b1, w2, b2, w3, b3, scale = p
    h = jax.nn.softplus(w2 @ jax.nn.softplus(w1 @ y + b1) + b2)
    return scale * jnp.tanh(w3 @ h + b3)


def loss(p, rtol=1e-3):
    control = diffrax.PIDController(rtol=rtol, atol=1e-6)
    one = lambda y: solve(diffrax.ODETerm(field), y, ts[1] - ts[0], args=p, stepsize_controller=control)
    return jnp.mean((paths - jax.vmap(one)(paths[:, 0])) ** 2)


optimiser = optax.adabelief(3e-3)


@jax.jit
def step(p, memory):
    value, grads = jax.value_and_grad(loss)(p)
    updates, memory = optimiser.update(grads, memory)
    return value, optax.apply_updates(p, updates), memory


if args.first:
    weights = f32([a for layer in SplitMix(1).mlp([2, 64, 64, 2]) for a in layer] + [1.0])
    value = step(weights, optimiser.init(weights))[0]
    tell("W6", "W3", "diffrax", value)
else:
    stored = pathlib.Path(__file__).parents[2] / "workloads" / "w3_weights.json"
    weights = f32([jnp.array(a) for a in json.loads(stored.read_text())])
    memory = optimiser.init(weights)
    times = None if args.values else timed(lambda: jax.block_until_ready(step(weights, memory)), args.reps)
    tell("W3", args.variant, "diffrax", jax.jit(lambda p: loss(p, rtol=1e-6))(weights), times)
