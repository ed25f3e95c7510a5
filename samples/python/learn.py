"""A right-hand side that is learned: from a potential, measured with noise at a few places, gradient descent (L-BFGS)
through the solver finds the charges. PyTorch does the descent, and the gradient of a solve is a solve.

    python3 learn.py [-n 48] [--steps 200] [-o learn.png]

It checks that the misfit falls to the noise, and that what was found looks like what was there.
"""
import argparse

import torch

import poisson_gpu


def charges(n, device):
    """Two blobs of opposite signs and a ring."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, n, dtype=torch.float64, device=device)] * 2, indexing='ij')
    blob = lambda a, b, s: torch.exp(-((x - a)**2 + (y - b)**2) / (2 * s**2))
    ring = torch.exp(-((((x - 0.6)**2 + (y - 0.62)**2).sqrt() - 0.2) / 0.05)**2)
    return 60 * blob(0.3, 0.3, 0.08) - 80 * blob(0.7, 0.25, 0.07) + 30 * ring


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=48)
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('-o', default='learn.png')
    given = parser.parse_args()
    if given.n < 8 or given.steps < 1:
        parser.error('-n must be 8 or more, --steps 1 or more')
    torch.manual_seed(1)
    has_gpu = torch.cuda.is_available() and 'no CUDA' not in poisson_gpu.version
    device = torch.device('cuda' if has_gpu else 'cpu')
    truth = charges(given.n, device)
    solver = poisson_gpu.Solver(truth.shape, method='DIRECT')
    potential = poisson_gpu.torch_solve(truth, solver)
    seen = torch.rand(truth.shape, device=device) < 0.3
    noise = 1e-3 * potential.abs().max()
    measured = potential[seen] + noise * torch.randn(int(seen.sum()), dtype=torch.float64, device=device)

    guess = torch.zeros_like(truth, requires_grad=True)
    descent = torch.optim.LBFGS([guess], max_iter=given.steps, history_size=20, line_search_fn='strong_wolfe')
    misfits = []

    def loss():
        descent.zero_grad()
        misfit = ((poisson_gpu.torch_solve(guess, solver)[seen] - measured) / noise).square().mean()
        rough = (guess[1:] - guess[:-1]).square().mean() + (guess[:, 1:] - guess[:, :-1]).square().mean()
        total = misfit + 0.01 * rough
        total.backward()
        misfits.append(misfit.item())
        return total

    descent.step(loss)
    found = guess.detach()
    alike = torch.corrcoef(torch.stack((found.ravel(), truth.ravel())))[0, 1].item()
    print('misfit over noise: %.3g at first, %.3g after %d solves; correlation with the truth %.3f' %
          (misfits[0]**0.5, misfits[-1]**0.5, len(misfits), alike))
    try:
        import matplotlib.figure
        figure = matplotlib.figure.Figure(figsize=(13.5, 3.8), layout='constrained')
        shown = potential.clone()
        shown[~seen] = float('nan')
        for axis, (name, field) in zip(figure.subplots(1, 3), (('measured potential', shown), ('charges found', found),
                                                               ('true charges', truth))):
            top = (potential if field is shown else truth).abs().max().item()
            picture = axis.imshow(field.cpu(), 'RdBu_r', vmin=-top, vmax=top, origin='lower', extent=(0, 1, 0, 1))
            axis.set(title=name, xlabel='x', ylabel='y')
            figure.colorbar(picture, label='potential' if field is shown else 'charge density')
        figure.savefig(given.o, dpi=110)
        print(given.o)
    except ImportError:
        print('no picture: matplotlib is not there')
    return None if misfits[-1] < 4 and alike > 0.9 else 'wrong: the misfit must fall below 2, the correlation be 0.9'


if __name__ == '__main__':
    raise SystemExit(main())
