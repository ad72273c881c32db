"""W3 in torchdiffeq: a training step through the solver's own operations (odeint), all trajectories with shared steps."""
import json
import pathlib

import torch
import torchdiffeq

from common import SplitMix, arguments, tell, threads, timed

args = arguments()
torch.set_num_threads(threads())
tensor = lambda a: torch.tensor(a, dtype=torch.float32)
ts = torch.linspace(0, 10, 100)
y0 = tensor(1.6 * SplitMix(3).uniform(64).reshape(32, 2) - 0.6)


def truth(t, y):
    x = y / (1 + y)
    return torch.stack([x[:, 1], -x[:, 0]], 1)


with torch.no_grad():
    paths = torchdiffeq.odeint(truth, y0, ts, rtol=1e-6, atol=1e-8).transpose(0, 1).contiguous()


class Field(torch.nn.Module):
    def __init__(self, numbers):
        super().__init__()
        self.p = torch.nn.ParameterList([tensor(a) for a in numbers])

    def forward(self, t, y):
        w1, b1, w2, b2, w3, b3, scale = self.p
        linear, softplus = torch.nn.functional.linear, torch.nn.functional.softplus
        return scale * torch.tanh(linear(softplus(linear(softplus(linear(y, w1, b1)), w2, b2)), w3, b3))


def loss(field, rtol):
    ys = torchdiffeq.odeint(field, paths[:, 0], ts, rtol=rtol, atol=1e-6, method="dopri5").transpose(0, 1)
    return ((ys - paths) ** 2).mean()


def step(numbers):
    field = Field(numbers)
    optimiser = torch.optim.Adam(field.parameters(), lr=3e-3)
    value = loss(field, 1e-3)
    value.backward()
    optimiser.step()
    return value.item()


if args.first:
    tell("W6", "W3", "torchdiffeq", step([a for layer in SplitMix(1).mlp([2, 64, 64, 2]) for a in layer] + [1.0]))
else:
    stored = pathlib.Path(__file__).parents[2] / "workloads" / "w3_weights.json"
    numbers = json.loads(stored.read_text())
    times = None if args.values else timed(lambda: step(numbers), args.reps)
    tell("W3", args.variant, "torchdiffeq", loss(Field(numbers), 1e-6).item(), times)
