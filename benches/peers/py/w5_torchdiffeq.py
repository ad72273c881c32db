"""W5 in torchdiffeq: through the solver's own operations (odeint), or by the continuous adjoint (--adjoint)."""
import math
import sys

import torch
import torchdiffeq

from common import SplitMix, arguments, tell, threads, timed

adjoint = "--adjoint" in sys.argv
sys.argv = [arg for arg in sys.argv if arg != "--adjoint"]
args = arguments()
gain = float(args.variant.split()[1])
torch.set_num_threads(threads())
D, ROWS = 784, 100
tensor = lambda a: torch.tensor(a, dtype=torch.float32)
linear = torch.nn.functional.linear
x = tensor(SplitMix(6).uniform(ROWS * D).reshape(ROWS, D))
ends = torch.tensor([0.0, 1.0])


class Flow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = SplitMix(5).concat_squash([D, 512, 512, D])
        arrays = [a * gain if i == 0 else a for layer in layers for i, a in enumerate(layer)]
        self.p = torch.nn.ParameterList([tensor(a) for a in arrays])
        self.probe = tensor(SplitMix(7).signs(ROWS, D))

    def velocity(self, t, y):
        t, p = t.reshape(1, 1), list(self.p)
        for i in range(3):
            w, b, gate, c, shift = p[5 * i : 5 * i + 5]
            y = linear(y, w, b) * torch.sigmoid(linear(t, gate, c)) + linear(t, shift)
            y = torch.nn.functional.softplus(y) if i < 2 else y
        return y

    def forward(self, t, state):
        with torch.enable_grad():
            y = state[0] if state[0].requires_grad else state[0].requires_grad_()
            v = self.velocity(t, y)
            slope = torch.autograd.grad(v, y, self.probe, create_graph=True)[0]
            return v, (slope * self.probe).sum(-1)


flow = Flow()
begin = {name: a.clone() for name, a in flow.state_dict().items()}
optimiser = torch.optim.Adam(flow.parameters(), lr=1e-3)


def step():
    flow.load_state_dict(begin)
    optimiser.zero_grad()
    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
    z, change = solve(flow, (x.clone(), torch.zeros(ROWS)), ends, rtol=1e-5, atol=1e-5, method="dopri5")
    loss = -(change[-1] - 0.5 * (D * math.log(2 * math.pi) + (z[-1] ** 2).sum(-1))).mean()
    loss.backward()
    optimiser.step()
    return loss.item()


peer = "torchdiffeq adjoint" if adjoint else "torchdiffeq"
tell("W5", args.variant, peer, step(), None if args.values else timed(step, args.reps))
