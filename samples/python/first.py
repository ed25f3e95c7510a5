"""A pressure in a channel: periodic along x, walls beside, f from random noise. Any array will do."""
import numpy as np
import poisson_gpu as pg

f = np.random.default_rng(0).standard_normal((96, 128, 160))    # z, y, x; a CuPy or PyTorch array stays on the GPU
f -= f.mean()                                                   # what flows in flows out, or there is no solution
with pg.Solver(f.shape, bc={'x': 'periodic', 'y': 'neumann', 'z': 'neumann'}, centring='cell', h=0.01) as solver:
    u = solver.solve(f)                                         # as often as f changes
    print(solver.report.message)
    assert solver.report.converged
