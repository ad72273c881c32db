"""W5 in diffrax: the whole batch as one state, with the default adjoint."""
import math

import diffrax
import jax
import jax.numpy as jnp
import optax

from common import SplitMix, arguments, tell, timed

args = arguments()
gain = float(args.variant.split()[1])
D, ROWS = 784, 100
f32 = lambda a: jnp.asarray(a, jnp.float32)
layers = SplitMix(5).concat_squash([D, 512, 512, D])
weights = [(f32(w * gain), *(f32(a) for a in rest)) for w, *rest in layers]
x = f32(SplitMix(6).uniform(ROWS * D).reshape(ROWS, D))


def velocity(weights, t, y):
    t = jnp.reshape(t, (1,))
    for i, (w, b, gate, c, shift) in enumerate(weights):
        y = (y @ w.T + b) * jax.nn.sigmoid(gate @ t + c) + shift @ t
        y = jax.nn.softplus(y) if i + 1 < len(weights) else y
    return y


def rates(t, state, inner):
    weights, probe = inner
    v, pull = jax.vjp(lambda y: velocity(weights, t, y), state[0])
    return v, jnp.sum(pull(probe)[0] * probe, -1)


def loss(weights, probe):
    control = diffrax.PIDController(rtol=1e-5, atol=1e-5)
    end = diffrax.diffeqsolve(diffrax.ODETerm(rates), diffrax.Dopri5(), 0.0, 1.0, None, (x, jnp.zeros(ROWS)),
                              (weights, probe), stepsize_controller=control)
    z, change = end.ys[0][0], end.ys[1][0]
    return -jnp.mean(change - 0.5 * (D * math.log(2 * math.pi) + jnp.sum(z**2, -1)))


optimiser = optax.adam(1e-3)


@jax.jit
def step(weights, memory, key):
    probe = jax.random.rademacher(key, (ROWS, D), jnp.float32)
    value, grads = jax.value_and_grad(loss)(weights, probe)
    updates, memory = optimiser.update(grads, memory)
    return value, optax.apply_updates(weights, updates), memory


memory, key = optimiser.init(weights), jax.random.PRNGKey(0)
times = None if args.values else timed(lambda: jax.block_until_ready(step(weights, memory, key)), args.reps)
tell("W5", args.variant, "diffrax", jax.jit(loss)(weights, f32(SplitMix(7).signs(ROWS, D))), times)
