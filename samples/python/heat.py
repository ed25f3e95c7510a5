"""The heat equation du/dt = laplacian u on a plate with warm and cold sides, by Crank and Nicolson's scheme.

    python3 heat.py [-n 128] [-o heat.png]

A step (1/dt + A/2) u' = (1/dt - A/2) u + f is a solve with alpha = 2/dt, started from nothing but the last u: the
residual of (u, 2 f), taken with that alpha, is 2 f - A u - (2/dt) u. Jumps would ring for long, so the first two steps
are four of half the length by Euler's implicit scheme (R. Rannacher 1984). On a GPU arrays stay there, with CuPy.
It checks the scheme with a mode, whose decay is known, and that the plate comes to rest.
"""
import argparse

import numpy as np
import poisson_gpu

try:
    import cupy as xp
    xp.cuda.runtime.getDeviceCount()
except Exception:
    xp = np


def march(solver, u, dt, steps):
    f, right = xp.zeros_like(u), xp.empty_like(u)
    for _ in range(steps):
        solver.residual(u, f, right)
        right += (4 / dt) * u
        solver.solve(right, u)
    return u


def smoothed(solver, u, dt):
    for _ in range(4):
        solver.solve((2 / dt) * u, u)
    return u


def error_of_a_mode(n, dt, steps):
    """Against what Crank and Nicolson make of an eigenfunction of the discrete operator."""
    h = 1 / (n + 1)
    mode = np.outer(*[np.sin(q * np.pi * h * np.arange(1, n + 1)) for q in (1, 2)])
    rate = (2 - 2 * np.cos(np.pi * h) + 2 - 2 * np.cos(2 * np.pi * h)) / h**2
    with poisson_gpu.Solver((n, n), alpha=2 / dt) as solver:
        u = march(solver, xp.array(mode), dt, steps)
    factor = ((1 - dt * rate / 2) / (1 + dt * rate / 2))**steps
    return float(abs(u / factor - xp.asarray(mode)).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=128)
    parser.add_argument('-o', default='heat.png')
    given, dt = parser.parse_args(), 1 / 80
    n = given.n
    mode = error_of_a_mode(n, dt, 10)
    sides = {'x_low': ('dirichlet', 1.0), 'x_high': ('robin', 1.0, 0.2, 0.0), 'y': ('neumann', 0.2)}
    with poisson_gpu.Solver((n, n), bc=sides, centring='cell', alpha=2 / dt) as solver:
        begin = xp.zeros((n, n))
        begin[n // 4:n // 2, n // 2:3 * n // 4] = 3
        shots = [begin] + [march(solver, smoothed(solver, begin.copy(), dt), dt, k) for k in (0, 5, 160)]
        change = float(abs(march(solver, shots[-1].copy(), dt, 1) - shots[-1]).max())
    print('a mode, after ten steps: error %.1e; the plate at rest: a step changes it by %.1e' % (mode, change))
    try:
        import matplotlib.figure
        figure = matplotlib.figure.Figure(figsize=(15, 3.8), layout='constrained')
        for axis, shot, step in zip(figure.subplots(1, 4, sharey=True), shots, (0, 2, 7, 162)):
            shown, view = shot if xp is np else shot.get(), {'origin': 'lower', 'extent': (0, 1, 0, 1)}
            picture = axis.imshow(shown, 'inferno', vmin=0, vmax=1.2, **view)
            axis.contour(shown, np.arange(0.1, 3, 0.1), colors='white', linewidths=0.7, **view)
            axis.set(title='Temperature, t = %.3f' % (step * dt), xlabel='x', ylabel='y')
        figure.colorbar(picture, label='temperature', extend='max')
        figure.savefig(given.o, dpi=110)
        print(given.o)
    except ImportError:
        print('no picture: matplotlib is not there')
    return None if mode < 1e-9 and change < 1e-3 else 'wrong: the error must be below 1e-9, the change below 1e-3'


if __name__ == '__main__':
    raise SystemExit(main())
