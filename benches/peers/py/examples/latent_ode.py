"""examples/latent_ode.rs in diffrax: the same data, model, steps, bound and updates; one solve per row with vmap, as there."""
import time
T0 = time.perf_counter()
import jax, jax.numpy as jnp, diffrax, equinox as eqx, optax
import numpy as np

TIMES, T1, NOISE, HIDDEN, LATENT, UPDATES, BATCH = 20, 3.0, 0.1, 16, 4, 1000, 128
rng = np.random.default_rng(0)
A = jnp.array([[-0.1, 1.3], [-1.0, -0.1]])


def observed(n):
    y0 = jnp.asarray(rng.normal(size=(n, 2)), jnp.float32)
    ts = jnp.asarray(np.sort(T1 * rng.random((n, TIMES)), 1), jnp.float32)
    ctl = diffrax.PIDController(rtol=1e-5, atol=1e-7)
    one = lambda y, ts: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, y, a: A @ y), diffrax.Tsit5(), 0.0, T1, 0.1, y, saveat=diffrax.SaveAt(ts=ts), stepsize_controller=ctl).ys
    clean = jax.jit(jax.vmap(one))(y0, ts)
    return ts, clean + NOISE * jnp.asarray(rng.normal(size=clean.shape), jnp.float32), clean


class Model(eqx.Module):
    reader: eqx.nn.GRUCell
    posterior: eqx.nn.Linear
    start: eqx.nn.MLP
    field: eqx.nn.MLP
    scale: jax.Array
    seen: eqx.nn.Linear

    def __init__(self, key):
        k = jax.random.split(key, 5)
        self.reader = eqx.nn.GRUCell(3, HIDDEN, key=k[0])
        self.posterior = eqx.nn.Linear(HIDDEN, 2 * LATENT, key=k[1])
        self.start = eqx.nn.MLP(LATENT, HIDDEN, HIDDEN, 1, activation=jax.nn.softplus, key=k[2])
        self.field = eqx.nn.MLP(HIDDEN, HIDDEN, HIDDEN, 2, activation=jax.nn.softplus, key=k[3])
        self.scale = jnp.ones(HIDDEN)
        self.seen = eqx.nn.Linear(HIDDEN, 2, key=k[4])

    def encode(self, ts, ys):
        read = jnp.concatenate([ts[:, None], ys], 1)
        h, _ = jax.lax.scan(lambda h, x: (self.reader(x, h), None), jnp.zeros(HIDDEN), read, reverse=True)
        both = self.posterior(h)
        return both[:LATENT], both[LATENT:]

    def decode(self, z, ts):
        term = diffrax.ODETerm(lambda t, h, args: jnp.tanh(self.field(h)) * self.scale)
        hs = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, T1, 0.4, self.start(z), saveat=diffrax.SaveAt(ts=ts)).ys
        return jax.vmap(self.seen)(hs)

    def evidence(self, ts, ys, key):
        mean, ln_sd = self.encode(ts, ys)
        z = mean + jnp.exp(ln_sd) * jax.random.normal(key, (LATENT,))
        off = (self.decode(z, ts) - ys) / NOISE
        ln_p = jnp.sum(-0.5 * off**2 - 0.5 * np.log(2 * np.pi) - np.log(NOISE))
        return ln_p - 0.5 * jnp.sum(mean**2 + jnp.exp(2 * ln_sd) - 2 * ln_sd - 1)


def loss(model, ts, ys, key):
    return -jnp.mean(jax.vmap(model.evidence)(ts, ys, jax.random.split(key, ts.shape[0])))


tx = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(optax.cosine_decay_schedule(1e-2, UPDATES)))


@eqx.filter_jit
def step(model, opt, ts, ys, key):
    value, g = eqx.filter_value_and_grad(loss)(model, ts, ys, key)
    u, opt = tx.update(g, opt)
    return eqx.apply_updates(model, u), opt, value


key = jax.random.PRNGKey(0)
model = Model(key)
opt = tx.init(eqx.filter(model, eqx.is_array))
ts, ys, _ = observed(4096)
start, first = time.perf_counter(), None
for i in range(UPDATES):
    rows = rng.integers(0, 4096, BATCH)
    model, opt, value = step(model, opt, ts[rows], ys[rows], jax.random.fold_in(key, i))
    jax.block_until_ready(value)
    first = first or time.perf_counter() - start
trained = time.perf_counter() - start
ts, ys, clean = observed(500)
evidence = -float(loss(model, ts, ys, key))
off = jax.vmap(lambda t, y: model.decode(model.encode(t, y)[0], t))(ts, ys) - clean
print(f"evidence {evidence:.1f}, off {float(jnp.sqrt(jnp.mean(off**2))):.3f}, first update {first:.2f} s, training {trained:.1f} s, {1e3 * (trained - first) / (UPDATES - 1):.2f} ms an update, in all {time.perf_counter() - T0:.1f} s")
