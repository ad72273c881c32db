"""W4 in eager PyTorch, its steps of Tsit5 written by hand, 2 x 500 points as matrices: a reference without a solver library."""
import math

import torch

from common import SplitMix, arguments, stated_points, tell, threads, timed

args = arguments()
exact = args.variant == "exact"
torch.set_num_threads(threads())
tensor = lambda a: torch.tensor(a, dtype=torch.float32)
linear = torch.nn.functional.linear
# Tsitouras (2011), Runge-Kutta pairs of order 5(4), table 1
C = [0, 0.161, 0.327, 0.9, 0.9800255409045097, 1]
A = [
    [],
    [0.161],
    [-0.008480655492356989, 0.335480655492357],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
    [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
]
B = [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]
draws = SplitMix(4)
blocks = [
    [[tensor(a).requires_grad_() for a in layer] for layer in draws.concat_squash([2, 64, 64, 64, 2])] for _ in range(2)
]


def velocity(block, t, z):
    t = torch.full((1, 1), t)
    for i, (w, b, gate, c, shift) in enumerate(block):
        z = linear(z, w, b) * torch.sigmoid(linear(t, gate, c)) + linear(t, shift)
        z = torch.tanh(z) if i + 1 < len(block) else z
    return z


def rates(block, t, z, probe):
    if not z.requires_grad:
        z = z.detach().requires_grad_()
    v = velocity(block, t, z)
    pull = lambda e: torch.autograd.grad(v, z, e, create_graph=True)[0]
    if not exact:
        return v, (pull(probe) * probe).sum(1)
    axes = [torch.eye(2)[i].expand(z.shape) for i in (0, 1)]
    return v, sum(pull(axis)[:, i] for i, axis in enumerate(axes))


def log_prob(x, probe):
    z, change, h = x, torch.zeros(len(x)), -0.05
    plus = lambda a, weights, stages, i: a + h * sum(w * k[i] for w, k in zip(weights, stages)) if weights else a
    for block in reversed(blocks):
        for n in range(10):
            stages = []
            for c, row in zip(C, A):
                stages.append(rates(block, 0.5 + h * (n + c), plus(z, row, stages, 0), probe))
            z, change = plus(z, B, stages, 0), plus(change, B, stages, 1)
    return change - 0.5 * (2 * math.log(2 * math.pi) + (z * z).sum(1))


points, probes = (tensor(a) for a in stated_points())
optimiser = torch.optim.AdamW([a for block in blocks for layer in block for a in layer], lr=1e-3, weight_decay=1e-5)


def update():
    """On the given points: an image would change the numbers but not the work."""
    optimiser.zero_grad()
    total = 0.0
    for half in points.split(500):
        loss = -log_prob(half, torch.randn_like(half)).mean() / 2
        loss.backward()
        total += loss.item()
    optimiser.step()
    return total


if args.first:
    tell("W6", "W4", "torch", update())
else:
    value = -log_prob(points, probes).mean().item()
    tell("W4", args.variant, "torch", value, None if args.values else timed(update, args.reps))
