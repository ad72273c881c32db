"""examples/lotka_volterra.rs in diffrax, without its figure and standard errors: the same counts, weights, updates."""
import time
T0 = time.perf_counter()
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, diffrax, optax
import numpy as np

P, NOISE, T1, UPDATES = jnp.array([1.5, 1.0, 3.0, 1.0]), 0.1, 10.0, 600
TS = jnp.arange(1, 51) * 0.2
rng = np.random.default_rng(0)


def field(t, u, p):
    x, y = u
    return jnp.stack([p[0] * x - p[1] * x * y, p[3] * x * y - p[2] * y])


def populations(p):
    ctl = diffrax.PIDController(rtol=1e-6, atol=1e-6)
    return diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, T1, None, jnp.array([1.0, 1.0]), args=p, saveat=diffrax.SaveAt(ts=TS), stepsize_controller=ctl).ys


counted = populations(P) + NOISE * rng.normal(size=(50, 2))


def loss(ln_p, weight):
    off = (populations(jnp.exp(ln_p)) - counted) / NOISE
    return jnp.sum(jnp.mean(off**2, 1) * weight) / jnp.sum(weight)


tx = optax.adam(optax.cosine_decay_schedule(0.05, UPDATES), b2=0.95)


@jax.jit
def step(ln_p, opt, weight):
    value, g = jax.value_and_grad(loss)(ln_p, weight)
    u, opt = tx.update(g, opt)
    return optax.apply_updates(ln_p, u), opt, value


ln_p = jnp.zeros(4)
opt, start, first = tx.init(ln_p), time.perf_counter(), None
for i in range(UPDATES):
    weight = (TS <= T1 * (0.2 + 1.6 * i / UPDATES)).astype(float)
    ln_p, opt, value = jax.block_until_ready(step(ln_p, opt, weight))
    first = first or time.perf_counter() - start
trained = time.perf_counter() - start
print(f"p {np.exp(ln_p)}, loss {float(loss(ln_p, jnp.ones(50))):.3f}, first update {first:.2f} s, training {trained:.2f} s, {1e3 * (trained - first) / (UPDATES - 1):.2f} ms an update, in all {time.perf_counter() - T0:.1f} s")
