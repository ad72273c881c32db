"""The flow of W4 and W7 in diffrax: sizes and settings of its CNF example, one trajectory at a time under vmap."""
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from common import SplitMix

END, STEP, DIM = 0.5, 0.05, 2
LOG_2PI = float(np.log(2 * np.pi))


def weights():
    draws = SplitMix(4)
    layers = lambda: draws.concat_squash([DIM, 64, 64, 64, DIM])
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), [layers(), layers()])


def velocity(block, t, z):
    """for one point [2] or many [n, 2]"""
    t = jnp.reshape(t, (1,))
    for i, (w, b, gate, c, shift) in enumerate(block):
        z = (z @ w.T + b) * jax.nn.sigmoid(gate @ t + c) + shift @ t
        z = jnp.tanh(z) if i + 1 < len(block) else z
    return z


def augmented(exact):
    def field(t, state, args):
        block, probe = args
        v, pull = jax.vjp(lambda z: velocity(block, t, z), state[0])
        if exact:
            return v, jnp.trace(jax.vmap(lambda axis: pull(axis)[0])(jnp.eye(DIM)))
        return v, pull(probe)[0] @ probe
    return diffrax.ODETerm(field)


def log_prob(blocks, x, probe, exact):
    z, change = x, jnp.zeros(())
    for block in blocks[::-1]:
        end = diffrax.diffeqsolve(augmented(exact), diffrax.Tsit5(), END, 0.0, -STEP, (z, change), (block, probe))
        z, change = end.ys[0][0], end.ys[1][0]
    return change - 0.5 * (DIM * LOG_2PI + z @ z)


def push_forward(blocks, z):
    term = diffrax.ODETerm(lambda t, y, block: velocity(block, t, y))
    for block in blocks:
        z = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, END, STEP, z, block).ys[0]
    return z


def darkness(path):
    """1 - gray / max [rows, columns], alpha blended on white"""
    image = Image.open(path).convert("RGBA")
    image = Image.alpha_composite(Image.new("RGBA", image.size, (255,) * 4), image).convert("RGB")
    grey = np.asarray(image).astype(np.float64) @ [0.2989, 0.5870, 0.1140]
    return grey, 1 - grey / grey.max()


def centres(shape):
    rows, columns = np.indices(shape)
    return np.stack([columns, rows], -1).reshape(-1, 2).astype(np.float64)


def documented_points(path):
    """pixels of gray < 254: standardized positions, weights, and half a pixel in these units"""
    grey, dark = darkness(path)
    keep = grey.reshape(-1) < 254
    xy, dark = centres(grey.shape)[keep], dark.reshape(-1)[keep]
    scale = xy.std(0) + 1e-6
    return [jnp.asarray(a, jnp.float32) for a in ((xy - xy.mean(0)) / scale, dark, 0.5 / scale)]
