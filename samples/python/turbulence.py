"""Two-dimensional turbulence in a periodic box: vortices of random vorticity merge. Vorticity w is carried by the flow
of the stream function, -laplacian psi = w, one solve a stage; A. Arakawa's Jacobian (1966) keeps energy and enstrophy.

    python3 turbulence.py [-n 128] [--time 4] [-o turbulence.png]

On a GPU arrays stay there, with CuPy. It checks the mean vorticity, and that energy is lost to viscosity alone.
"""
import argparse

import numpy as np

import poisson_gpu

try:
    import cupy as xp
    xp.cuda.runtime.getDeviceCount()
except Exception:
    xp = np


def at(a, i, j):    # the field, i columns and j rows on
    return xp.roll(a, (-j, -i), (0, 1))


def jacobian(p, w, h):
    """dp/dx dw/dy - dp/dy dw/dx, the mean of three second-order forms."""
    ways = (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)
    e, f, g, k, ne, nw, se, sw = (at(p, *way) for way in ways)
    E, F, G, K, NE, NW, SE, SW = (at(w, *way) for way in ways)
    plain = (e - f) * (G - K) - (g - k) * (E - F)
    inner = e * (NE - SE) - f * (NW - SW) - g * (NE - NW) + k * (SE - SW)
    outer = G * (ne - nw) - K * (se - sw) - E * (ne - se) + F * (nw - sw)
    return (plain + inner + outer) / (12 * h * h)


def main():
    parser = argparse.ArgumentParser()
    for name, kind, value in ('-n', int, 128), ('--time', float, 4.0), ('-o', str, 'turbulence.png'):
        parser.add_argument(name, type=kind, default=value)
    given = parser.parse_args()
    if given.n < 8 or not given.time > 0:
        parser.error('-n must be 8 or more, --time more than 0')
    n, h, viscosity, noise = given.n, 1 / given.n, 3e-5, np.random.default_rng(4)
    size = np.hypot(*np.meshgrid(*[np.fft.fftfreq(n, 1 / n)] * 2))
    w = np.fft.ifft2(np.fft.fft2(noise.standard_normal((n, n))) * size**2 * np.exp(-(size / 8)**2)).real
    first = w = xp.asarray(10 * (w - w.mean()) / w.std())
    psi = xp.zeros_like(w)
    with poisson_gpu.Solver((n, n), bc='periodic') as solver:
        def change(w):
            solver.solve(w, psi)
            around = at(w, 1, 0) + at(w, -1, 0) + at(w, 0, 1) + at(w, 0, -1)
            return viscosity * (around - 4 * w) / h**2 + jacobian(psi, w, h)
        begin, lost, steps, dt = None, 0.0, 0, 0.4 * h    # velocities are about 1
        while steps * dt < given.time:
            one = w + dt * change(w)    # psi is that of w
            begin, steps = begin or float((w * psi).mean()) / 2, steps + 1
            lost += dt * viscosity * float((w * w).mean())
            two = 0.75 * w + 0.25 * (one + dt * change(one))
            w = w / 3 + 2 / 3 * (two + dt * change(two))
        solver.solve(w, psi)
    energy, mean = float((w * psi).mean()) / 2, abs(float(w.mean()))
    found = steps, energy / begin, abs(begin - energy - lost) / begin, mean
    print('%d steps; energy %.4f of the first, off its balance by %.1e; mean vorticity %.1e' % found)
    try:
        import matplotlib.figure
        figure = matplotlib.figure.Figure(figsize=(13, 6), layout='constrained')
        for axis, field, time in zip(figure.subplots(1, 2), (first, w), (0, given.time)):
            picture = axis.imshow(field if xp is np else field.get(), 'RdBu_r', vmin=-20, vmax=20, origin='lower')
            axis.set(title='Vortices in a periodic box, t = %g' % time, xlabel='x, cells', ylabel='y, cells')
        figure.colorbar(picture, label='vorticity')
        figure.savefig(given.o, dpi=110)
        print(given.o)
    except ImportError:
        print('no picture: matplotlib is not there')
    return None if energy < begin and found[2] < 1e-3 and mean < 1e-10 else 'wrong: energy, its balance or the mean'


if __name__ == '__main__':
    raise SystemExit(main())
