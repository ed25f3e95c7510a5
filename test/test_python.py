"""samples/python/poisson_gpu.py against NumPy, SciPy and PyTorch; with arrays on a GPU where there is one.

test/python.sh runs this file, with what it needs. By hand:
    POISSON_GPU_LIBRARY=build/libpoisson_gpu.so pytest test/test_python.py
"""
import array
import ctypes
import gc
import os
import re
import struct
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'samples', 'python'))
import poisson_gpu as pg    # noqa: E402

HEADER = open(os.path.join(ROOT, 'poisson_gpu.h'), encoding='utf-8').read()
SHAPE = (12, 10, 14)


def random(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def on_gpu():
    return 'CUDA' in pg.version and 'no CUDA' not in pg.version


def framework(name):
    """(array of NumPy's to one of the framework, and back), or skips."""
    if name == 'numpy':
        return np.asarray, np.asarray
    module = pytest.importorskip(name.split('-')[0])
    if name == 'torch':
        return lambda x: module.from_numpy(np.array(x)), lambda x: x.numpy()
    if name == 'jax':
        module.config.update('jax_enable_x64', True)
        return module.numpy.asarray, np.asarray
    if not on_gpu():
        pytest.skip('no GPU back end')
    if name == 'torch-cuda':
        if not module.cuda.is_available():
            pytest.skip('PyTorch sees no GPU')
        return lambda x: module.from_numpy(np.array(x)).cuda(), lambda x: x.cpu().numpy()
    try:
        module.cuda.runtime.getDeviceCount()
    except Exception:
        pytest.skip('CuPy sees no GPU')
    return module.asarray, module.asnumpy


FRAMEWORKS = ('numpy', 'torch', 'jax', 'torch-cuda', 'cupy')


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


# ---- Right answers ----

def matrix(n, ends, centring):
    """-d2/dx2 on the unit interval."""
    sparse = pytest.importorskip('scipy.sparse')
    known = ends.count('D') if centring == 'node' and ends != 'PP' else 0
    cells = n if centring == 'cell' or ends == 'PP' else n - 1 + known
    a = sparse.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1]).tolil()
    for end, kind in zip((0, n - 1), ends):
        beside = 1 if end == 0 else n - 2
        if kind == 'P':
            a[end, n - 1 - end] = -1
        elif centring == 'cell':
            a[end, end] = 3 if kind == 'D' else 1
        elif kind == 'N':
            a[end, beside] = -2
    return a.tocsr() * cells ** 2


@pytest.mark.parametrize('name', FRAMEWORKS)
def test_periodic_boxes_agree_with_fft(name):
    to, back = framework(name)
    f = random(SHAPE)
    f -= f.mean()
    symbol = sum(np.reshape((2 - 2 * np.cos(2 * np.pi * np.arange(n) / n)) * n ** 2,
                            [-1 if q == axis else 1 for q in range(3)]) for axis, n in enumerate(SHAPE))
    symbol[0, 0, 0] = 1
    expected = np.fft.ifftn(np.fft.fftn(f) / symbol).real
    expected -= expected.mean()
    u, report = pg.solve(to(f), bc='periodic', method='DIRECT')
    assert type(u) is type(to(f)) and report.converged
    assert relative(back(u), expected) < 1e-12


@pytest.mark.parametrize('centring', ('node', 'cell'))
@pytest.mark.parametrize('ends', ('DD', 'NN', 'DN', 'PP'))
@pytest.mark.parametrize('method', ('DIRECT', 'FMG'))
def test_boxes_agree_with_scipy(ends, centring, method):
    linalg, sparse = pytest.importorskip('scipy.sparse.linalg'), pytest.importorskip('scipy.sparse')
    shape, f = (9, 7, 8), random((9, 7, 8))
    names = {'D': 'dirichlet', 'N': 'neumann', 'P': 'periodic'}
    a = sparse.csr_matrix((1, 1))
    for n in shape:
        a = sparse.kron(a, sparse.identity(n)) + sparse.kron(sparse.identity(a.shape[0]), matrix(n, ends, centring))
    alpha = 0.0 if 'D' in ends else 3.0
    expected = linalg.spsolve((a + alpha * sparse.identity(a.shape[0])).tocsc(), f.ravel()).reshape(shape)
    bc = {axis + side: names[kind] for axis in 'xyz' for side, kind in zip(('_low', '_high'), ends)}
    u, report = pg.solve(f, bc=bc, centring=centring, alpha=alpha, method=method, rtol=1e-14, max_iter=60)
    assert relative(u, expected) < 1e-12


def line_with_an_open_end(n, below, centring, mu):
    """The inverse of (2 + mu) u_k - u_(k-1) - u_(k+1), which goes on above, and below too or ends there."""
    k, j = np.indices((n, n))
    mirror = k + j + {'node': 2 if below == 'dirichlet' else 0, 'cell': 1}[centring]
    if mu:
        r = 1 / (1 + mu / 2 + np.sqrt(mu * (1 + mu / 4)))
        near, far = (r ** (1 + q) / (1 - r * r) for q in (abs(k - j), mirror))
    else:
        near, far = -abs(k - j) / 2, -mirror / 2
    inverse = near + {'open': 0, 'dirichlet': -1, 'neumann': 1}[below] * far
    if below == 'neumann' and centring == 'node':
        inverse[:, 0] /= 2    # its own mirror
    return inverse


@pytest.mark.parametrize('centring', ('node', 'cell'))
@pytest.mark.parametrize('below', ('open', 'dirichlet', 'neumann'))
@pytest.mark.parametrize('name', ('numpy', 'torch-cuda'))
def test_open_boxes_agree_with_their_modes(name, below, centring):
    to, back = framework(name)
    f = random(SHAPE)
    nz, ny, nx = SHAPE
    symbol = sum(np.reshape((2 - 2 * np.cos(2 * np.pi * np.arange(n) / n)) * n ** 2, shape)
                 for n, shape in ((ny, (-1, 1)), (nx, (1, -1)))) / nz ** 2
    modes = np.fft.fft2(f)
    for y, x in np.ndindex(ny, nx):
        modes[:, y, x] = line_with_an_open_end(nz, below, centring, symbol[y, x]) @ modes[:, y, x] / nz ** 2
    bc = {'x': 'periodic', 'y': 'periodic', 'z': 'open', 'z_low': below}
    with pg.Solver(SHAPE, bc=bc, centring=centring) as solver:
        u = solver.solve(to(f))
        assert solver.report.converged and relative(back(u), np.fft.ifft2(modes).real) < 1e-12
        slopes = [back(solver.gradient(u, axis)) for axis in 'zyx']
        if centring == 'cell':    # what the faces let out is what f puts in
            assert relative(-sum(np.diff(g, axis=q) * SHAPE[q] for q, g in enumerate(slopes)), f) < 1e-12
        with pytest.raises(ValueError, match='PG_OPEN'):
            solver.residual(u, to(f))
        weight = np.multiply.outer(np.multiply.outer(solver.weights('z'), solver.weights('y')), solver.weights('x'))
        assert abs(solver.sum(to(f)) - (weight * f).sum()) < 1e-12 * (weight * abs(f)).sum()


@pytest.mark.parametrize('shape', ((30,), (10, 14), SHAPE))
def test_open_boxes_may_be_of_any_size(shape):
    f, pad = random(shape), [(3, 4)] * len(shape)
    small, report = pg.solve(f, bc='open', h=0.1)
    large = pg.solve(np.pad(f, pad), bc='open', h=0.1)[0]
    assert report.converged and relative(large[tuple(slice(3, -4) for _ in shape)], small) < 1e-12


def test_a_spectral_solve_is_told_as_converged():
    u, report = pg.solve(random((8, 9, 10)), 'spectral')
    assert report.converged and np.isnan(report.residual) and np.isfinite(u).all()
    assert pg.solve(random((8, 9, 10)), 'spectral', rtol=None)[1].outcome == 'completed'


def test_singular_neumann_box_agrees_with_least_squares():
    linalg, sparse = pytest.importorskip('scipy.sparse.linalg'), pytest.importorskip('scipy.sparse')
    f = random((9, 8))
    f -= f.mean()
    a = sparse.kron(matrix(9, 'NN', 'cell'), sparse.identity(8)) + \
                    sparse.kron(sparse.identity(9), matrix(8, 'NN', 'cell'))
    bordered = sparse.bmat([[a, np.ones((72, 1))], [np.ones((1, 72)), None]]).tocsc()
    expected = linalg.spsolve(bordered, np.append(f.ravel(), 0))[:-1].reshape(9, 8)
    u, report = pg.solve(f + 5, bc='neumann', centring='cell')
    assert relative(u, expected) < 1e-12 and abs(report.removed_mean - 5) < 1e-12


def test_single_precision():
    f = random(SHAPE).astype('float32')
    u, report = pg.solve(f)
    assert u.dtype == np.float32 and report.converged
    assert relative(u, pg.solve(f.astype('float64'))[0]) < 1e-5


# ---- Arrays ----

@pytest.mark.parametrize('name', FRAMEWORKS)
def test_windows_are_taken_as_they_are(name):
    to, back = framework(name)
    if name == 'jax':
        pytest.skip('JAX has no windows that can be written')
    f = random(SHAPE)
    expected = pg.solve(f)[0]
    large, u = to(np.full((14, 12, 20), np.nan)), to(np.full((16, 11, 17), np.nan))
    large[1:13, 1:11, 2:16] = to(f)
    window = u[2:14, :10, 3:17]
    with pg.Solver(SHAPE) as solver:
        assert solver.solve(large[1:13, 1:11, 2:16], window) is window
        assert solver.report.converged
    assert np.array_equal(back(u[2:14, :10, 3:17]), expected)
    assert np.isnan(back(u)).sum() == 16 * 11 * 17 - f.size


def test_inputs_of_any_order_are_copied_where_they_must_be():
    f = random(SHAPE)
    expected = pg.solve(f)[0]
    for other in (np.asfortranarray(f), np.repeat(f, 2, axis=2)[:, :, ::2], f[::-1][::-1].copy()[:, ::-1][:, ::-1]):
        assert np.array_equal(pg.solve(other)[0], expected)
    with pg.Solver(SHAPE) as solver, pytest.raises(ValueError, match='no gaps'):
        solver.solve(f, np.empty(SHAPE, order='F'))


def test_every_layout_is_checked_and_none_is_taken_for_another():
    f, large = random(SHAPE), np.zeros((12, 10, 40))
    expected = pg.solve(f)[0]
    with pg.Solver(SHAPE) as solver:
        for u in (np.zeros(SHAPE), large[:, :, :14], large[:, :, 20:34]):
            for right in (f, f.astype('>f8').astype('float64'), np.asfortranarray(f), f):
                u[...] = 0
                assert solver.solve(right, u) is u and np.array_equal(u, expected)
        assert (large[:, :, 14:20] == 0).all() and (large[:, :, 34:] == 0).all()
        u = np.zeros(SHAPE)
        solver.solve(f, u)
        u.flags.writeable = False
        with pytest.raises(ValueError, match='read-only'):
            solver.solve(f, u)
        assert solver.solve(u, np.zeros(SHAPE)).any()    # as f it is only read
        u.flags.writeable = True
        u.shape = (12, 14, 10)
        with pytest.raises(ValueError, match=r'shape \(12, 14, 10\)'):
            solver.solve(f, u)
        wide = large[:, :, :14]
        assert np.array_equal(solver.apply(wide, np.zeros(SHAPE)), solver.apply(wide.copy()))
        assert np.array_equal(solver.residual(wide, np.asfortranarray(f)), solver.residual(wide, f))
        assert solver.dot(f, np.asfortranarray(f)) == solver.dot(f, f)


def test_the_buffer_protocol_and_dlpack():
    expected = pg.solve(np.arange(9.0))[0]
    values = array.array('d', range(9))
    with pg.Solver(9) as solver:
        u = array.array('d', [0] * 9)
        solver.solve(values, u)
        assert np.array_equal(np.array(u), expected)

        class Packed:
            def __init__(self, x):
                self.x = x

            def __dlpack__(self, **_):
                return self.x.__dlpack__()

            def __dlpack_device__(self):
                return self.x.__dlpack_device__()
        assert np.array_equal(solver.solve(Packed(np.arange(9.0))), expected)


def test_batches():
    f = random((3, 9, 8))
    u, report = pg.solve(f, batch=True)
    for q in range(3):
        assert relative(u[q], pg.solve(f[q])[0]) < 1e-12


def sides(**arrays):
    return dict(dict(cell=[(3, 1)], face=['y_high'], value=[2.0]), **arrays)


def masked_box(**options):
    return pg.Solver((5, 4), centring='cell', mask=np.zeros((5, 4), 'uint8'), **options)


@pytest.mark.parametrize('call, says', [
    (lambda s: s.solve(np.zeros((4, 5))), r'shape \(4, 5\)'),
    (lambda s: s.solve(np.zeros((5, 4), 'float32')), 'float32'),
    (lambda s: s.solve(np.zeros((5, 4), '>f8' if sys.byteorder == 'little' else '<f8')), 'byte-swapped'),
    (lambda s: s.solve([[0.0] * 4] * 5), 'no array'),
    (lambda s: s.solve(np.zeros((5, 4)), np.broadcast_to(0.0, (5, 4))), 'read-only'),
    (lambda s: s.solve(np.zeros((5, 4)), tolerance=1), 'tolerance'),
    (lambda s: s.gradient(np.zeros((5, 4)), 'z'), "'z'"),
    (lambda s: s.gradient(np.zeros((5, 4)), 0, 'corners'), 'corners'),
    (lambda s: s.set_faces({'x': 'neumann'}), 'kind'),
    (lambda s: pg.Solver((5, 4), bc={'z_low': 'neumann'}), 'z_low'),
    (lambda s: pg.Solver((5, 4), bc={'x': 'free'}), 'free'),
    (lambda s: pg.Solver((5, 4), bc={'x': ('dirichlet', np.zeros(4))}), 'x_low'),
    (lambda s: pg.Solver((5, 4), method='MAGIC'), 'MAGIC'),
    (lambda s: pg.Solver((5, 4), alpha=-1.0, method='FMG'), 'alpha'),
    (lambda s: pg.Solver((5, 4), coord={'x': [0, 1]}), 'coord of x'),
    (lambda s: pg.Solver((5, 4), dtype='int32'), 'int32'),
    (lambda s: pg.Solver((5, 4), dimension=2), 'dimension'),
    (lambda s: pg.Solver((5, 4), centring='cell', mask=np.zeros((5, 4))), 'mask'),
    (lambda s: s.solve(np.zeros((5, 4)), guess='u'), 'there is no u'),
    (lambda s: s.solve(np.ma.zeros((5, 4))), 'filled'),
    (lambda s: s.solve(np.zeros((5, 4)), max_iter=10**10), '10000000000'),
    (lambda s: s.solve(np.zeros((5, 4)), rtol=np.zeros(2)), 'rtol is array'),
    (lambda s: s.solve(np.zeros((5, 4)), norm=['l2']), 'norm is'),
    (lambda s: s.cycle(np.zeros((5, 4)), np.zeros((5, 4)), 'two'), "cycles is 'two'"),
    (lambda s: s.gradient(np.zeros((5, 4)), ''), "axis is ''"),
    (lambda s: s.set_cells(np.zeros((5, 4), 'uint8')), 'without a mask'),
    (lambda s: s.set_cells(gamma=3), 'gamma is none of the coefficients'),
    (lambda s: s.set_cells(h={'x': np.zeros((5, 4))}), 'h is none of the coefficients'),
    (lambda s: s.set_cells(alpha_cell=np.zeros((5, 4))), 'without alpha_cell'),
    (lambda s: s.set_alpha('a'), "alpha is 'a'"),
    (lambda s: pg.Solver((5, 4)).set_alpha('a'), "alpha is 'a'"),
    (lambda s: pg.Solver((5, 4)).set_faces({'x': 'neumann'}), 'kind of face x_low would change from dirichlet'),
    (lambda s: pg.Solver((5, 4), bc={'xy': 'periodic'}), "'xy'"),
    (lambda s: pg.Solver((5, 4), centring={'xy': 'cell'}), "'xy'"),
    (lambda s: pg.Solver((5, 4), bc={0: 'neumann'}), 'bc names 0'),
    (lambda s: pg.Solver((5, 4), bc=None), 'x_low is None'),
    (lambda s: pg.Solver((5, 4), bc={'x_low': 3.0}), 'x_low is 3.0'),
    (lambda s: pg.Solver((5, 4), bc=('dirichlet', None)), 'g of x_low is None'),
    (lambda s: pg.Solver((5, 4), alpha=None), 'alpha is None'),
    (lambda s: pg.Solver((5, 4), beta=np.ones((5, 4))), r'(?s)beta is array.*beta_cell'),
    (lambda s: pg.Solver((5, 4), alpha=np.ones((5, 4))), r'(?s)alpha is array.*alpha_cell'),
    (lambda s: pg.Solver((5, 4), method=3), 'method is 3'),
    (lambda s: pg.Solver((5, 4), rtol=1e-3), 'Solver.solve takes it'),
    (lambda s: pg.Solver((5, 4), method='CG|FMG'), r'flags F64 \| FMG \| CG .*\(FMG \| CG\)'),
    (lambda s: pg.Solver((5, 4), h={'y': -1}), 'h of y is -1'),
    (lambda s: pg.Solver((5, 4), beta_cell=3, centring='cell'), 'beta_cell: int is no array'),
    (lambda s: pg.Solver((5.5, 4)), '5.5'),
    (lambda s: pg.Solver((5, 4), batch=2.5), 'batch is 2.5'),
    (lambda s: pg.Solver((0, 4)), r'\(0, 4\)'),
    (lambda s: pg.Solver((5, -4)), r'\(5, -4\)'),
    (lambda s: pg.Solver((5, 4), batch=-1), 'batch is -1'),
    (lambda s: pg.Solver('ab'), 'ab'),
    (lambda s: pg.solve(np.zeros((0, 4))), r'\(0, 4\)'),
    (lambda s: pg.solve(np.zeros((0, 5, 4)), batch=True), 'no batch'),
    (lambda s: pg.solve(np.zeros((5, 4), '>f8' if sys.byteorder == 'little' else '<f8')), 'byte-swapped'),
    (lambda s: s.dot(np.zeros((5, 4)), 3), 'no array'),
    (lambda s: masked_box(air_value=[((60, 4), 'y_high', 2.0)]), r'air_value\[0\] has the cell \(60, 4\)'),
    (lambda s: masked_box(air_value=[(3, 1)]), r'air_value\[0\] is \(3, 1\)'),
    (lambda s: masked_box(air_value=5), 'air_value is 5'),
    (lambda s: masked_box(air_value=[((3, 1), 'y_high', 2.0, 0.5, 1)]), r'air_value\[0\] is .* or with theta'),
    (lambda s: masked_box(air_value=[((3, 1), 'y_high', 2.0, 'half')]), r"the theta of air_value\[0\] is 'half'"),
    (lambda s: masked_box(air_value=dict(cell=[(3, 1)], face='y_high')), 'air_value has cell, face; it must have'),
    (lambda s: masked_box(air_value=sides(thetas=1)), 'air_value has cell, face, value, thetas;'),
    (lambda s: masked_box(air_value=sides(cell=[(3.0, 1.0)])), r'cell of air_value is \(1, 2\) of float64'),
    (lambda s: masked_box(air_value=sides(cell=[(3, 1, 0)])), r'cell of air_value is \(1, 3\) of'),
    (lambda s: masked_box(air_value=sides(cell=[(3, 1), (3,)])), 'cell of air_value is .* an array'),
    (lambda s: masked_box(air_value=sides(cell=[(3, 1), (60, 4)])), r'air_value\[1\] has the cell \(60, 4\)'),
    (lambda s: masked_box(air_value=sides(cell=[(-1, 1), (0, 1)])), r'air_value\[0\] has the cell \(-1, 1\)'),
    (lambda s: masked_box(air_value=sides(face=['z_low'])), r"the face of air_value\[0\] is 'z_low'"),
    (lambda s: masked_box(air_value=sides(face=2)), r'the face of air_value\[0\] is 2'),
    (lambda s: masked_box(air_value=sides(face=['x_low'] * 2)), r'face of air_value has the shape \(2,\); cell has 1'),
    (lambda s: masked_box(air_value=sides(value='much')), "value of air_value is 'much'"),
    (lambda s: masked_box(air_value=sides(theta=[0.5, 1])), r'theta of air_value has the shape \(2,\)'),
    (lambda s: masked_box(solid_flux=[((3, 1), 'z_low', 2.0)]), 'z_low'),
])
def test_what_does_not_fit_is_a_value_error(call, says):
    with pg.Solver((5, 4)) as solver:
        solver.solve(np.zeros((5, 4)))
        with pytest.raises(ValueError, match=says):
            call(solver)


def test_channels_that_come_last_are_asked_about():
    image = random((40, 50, 3))
    for f, options in ((image, {}), (image, {'batch': True}), (random((2, 40, 50, 4)), {'batch': True, 'bc': 'periodic'}),
                       (image, {'bc': 'neumann', 'centring': 'cell', 'h': 1})):
        with pytest.raises(ValueError, match='moveaxis'):
            pg.solve(f, **options)
    u, _ = pg.solve(np.moveaxis(image, -1, 0), batch=True)
    assert u.shape == (3, 40, 50)
    for f, options in ((image, {'bc': {'x': 'neumann'}}), (image, {'h': (1, 1, 1)}), (random((8, 9, 3)), {}),
                       (random((40, 3)), {}), (random((3, 40, 50)), {}), (random((40, 50, 5)), {})):
        assert pg.solve(f, **options)[1].converged


def test_numbers_of_numpy_are_numbers():
    f = random((5, 4))
    with pg.Solver((np.int64(5), 4), h=np.float32(0.25), alpha=np.array(2.0), bc=['neumann', np.float64(1)]) as solver:
        u = solver.solve(f, max_iter=20.0, rtol=np.array(1e-9))
        assert np.array_equal(solver.gradient(u, np.int64(0)), solver.gradient(u, 'y'))
    assert np.array_equal(u, pg.solve(f, h=0.25, alpha=2, bc=('neumann', 1.0), max_iter=20, rtol=1e-9)[0])
    assert pg.Solver(np.int64(9)).shape == (9,)


@pytest.mark.parametrize('options, needed', [
    (dict(), 12), (dict(bc={'x_low': 'neumann'}), 11), (dict(bc='neumann'), 10), (dict(bc='periodic'), 11),
    (dict(bc={'x': 'open'}), 12), (dict(bc={'x_low': 'neumann', 'x_high': 'open'}), 11),
    (dict(centring='cell'), 11), (dict(centring='cell', bc='neumann', alpha=1), 11)])
def test_coordinates_have_as_many_values_as_the_axis_needs(options, needed):
    for count in range(9, 15):
        if count == needed:
            assert pg.Solver((8, 10), coord={'x': np.linspace(0, 1, count)}, **options).weights('x').shape == (10,)
        else:
            with pytest.raises(ValueError, match=r'\(%d,\); 10 .* need %d values' % (count, needed)):
                pg.Solver((8, 10), coord={'x': np.linspace(0, 1, count)}, **options)


# ---- Faces, masks, coefficients ----

def test_faces_by_name_with_arrays():
    n = 8
    x, y = np.meshgrid(np.arange(1, n + 1) / (n + 1), np.arange(1, n + 1) / (n + 1))
    with pg.Solver((n, n), bc={'x_low': ('dirichlet', y[:, 0].copy()), 'x_high': ('dirichlet', 2 + y[:, 0]),
                               'y_low': ('dirichlet', 2 * x[0]), 'y_high': ('dirichlet', 2 * x[0] + 1)}) as solver:
        u = solver.solve(np.zeros((n, n)))
        assert relative(u, 2 * x + y) < 1e-12
        assert np.abs(solver.gradient(u, 'x') - 2).max() < 1e-10
        assert solver.gradient(u, 'x').shape == (n, n + 1)
        assert np.abs(solver.gradient(u, 0, 'unknowns') - 1).max() < 1e-10
        with pytest.raises(ValueError, match='kind'):
            solver.set_faces({'x_low': ('neumann', 1.0)})
        gc.collect()
        assert relative(solver.solve(np.zeros((n, n))), 2 * x + y) < 1e-12
        solver.set_faces({name: ('dirichlet', 4.0) for name in ('x', 'y')})
        assert np.abs(solver.solve(np.zeros((n, n))) - 4).max() < 1e-12


def test_arrays_over_the_end_of_a_line_are_kept_by_reference():
    g = np.array(2.0)
    with pg.Solver(9, bc={'x_low': ('dirichlet', g), 'x_high': ('dirichlet', np.float64(2))}) as solver:
        assert np.abs(solver.solve(np.zeros(9)) - 2).max() < 1e-12
        g[()] = 4
        assert np.abs(solver.solve(np.zeros(9)) - np.linspace(3.8, 2.2, 9)).max() < 1e-12
    with pg.Solver((9, 9), bc=('dirichlet', np.array(2.0))) as solver:
        assert np.abs(solver.solve(np.zeros((9, 9))) - 2).max() < 1e-12


def test_masks_and_coefficients():
    n = 16
    mask = np.zeros((n, n), 'uint8')
    mask[4:8, 4:8], mask[10:12, :] = pg.SOLID, pg.AIR
    f = random((n, n))
    with pg.Solver((n, n), bc='neumann', centring='cell', mask=mask) as solver:
        u = solver.solve(f)
        assert solver.report.converged and (u[mask > 0] == 0).all()
        solver.set_cells(np.where(mask == pg.AIR, mask, 0).astype('uint8'))
        assert solver.solve(f)[5, 5] != 0
        mask[:, 2] = pg.SOLID
        solver.set_cells(mask)
        labels, sums, volumes = solver.parts(f)
        assert labels.dtype == 'int32' and (labels[mask > 0] == -1).all() and len(sums) == len(volumes) == 4
        assert list(labels[[0, 0, 15, 15], [0, 15, 0, 15]]) == [0, 1, 2, 3]
        for part in range(4):
            assert abs(sums[part] - f[labels == part].sum() / n**2) < 1e-14
            assert abs(volumes[part] - (labels == part).sum() / n**2) < 1e-14
    beta = np.exp(random((n, n)))
    with pg.Solver((n, n), centring='cell', beta_cell=beta) as solver:
        u = solver.solve(f, rtol=1e-12)
        assert np.abs(solver.residual(u, f)).max() < 1e-9 * np.abs(f).max()
        beta *= 2
        solver.set_cells()
        assert relative(2 * solver.solve(f, rtol=1e-12), u) < 1e-8
    with pg.Solver((n, n), centring='cell', bc='neumann', mask=mask,
                   air_value=[((9, 3), 'y_high', 2.5)]) as solver:
        assert solver.solve(np.zeros((n, n)))[9, 3] > 0
        u = solver.solve(np.zeros((n, n)))
        solver.set_cells(air_value=[((9, 3), 'y_high', 5.0)])
        assert relative(solver.solve(np.zeros((n, n))), 2 * u) < 1e-7
        solver.set_cells(mask, air_value=[])
        assert not solver.solve(np.zeros((n, n))).any()
        with pytest.raises(ValueError, match='2 entries'):
            solver.set_cells(air_value=2 * [((9, 3), 'y_high', 5.0)])
    with pg.Solver((n, n), centring='cell', method='CG | PRECOND_AINV', robust='auto') as solver:
        solver.solve(f)
        assert 'PG_CG' in solver.report.method


STEPS = {'x_low': (0, -1), 'x_high': (0, 1), 'y_low': (-1, 0), 'y_high': (1, 0)}


class Circle:
    """Nodes of the unit square, fluid within a circle, where u = exp(x) sin(2 y) solves -div grad u = 3 u."""
    centre, radius = np.array([0.53, 0.48]), 0.4    # y, x

    def __init__(self, n):
        self.n, self.h = n, 1 / (n + 1)
        at = np.arange(1, n + 1) / (n + 1)
        self.y, self.x = np.meshgrid(at, at, indexing='ij')
        self.fluid = np.hypot(self.y - self.centre[0], self.x - self.centre[1]) < self.radius
        self.mask = np.where(self.fluid, pg.FLUID, pg.AIR).astype('uint8')
        self.u = np.where(self.fluid, self.exact(self.y, self.x), 0)

    @staticmethod
    def exact(y, x):
        return np.exp(x) * np.sin(2 * y)

    def surface(self):
        """What air_value takes: every link that the circle cuts, and where it does."""
        cells, faces, values, thetas = [], [], [], []
        for face, step in STEPS.items():
            cell = np.argwhere(self.fluid & ~np.roll(self.fluid, (-step[0], -step[1]), (0, 1)))
            start = (cell + 1) * self.h - self.centre
            along = start @ step
            theta = (np.sqrt(self.radius**2 - (start**2).sum(1) + along**2) - along) / self.h
            y, x = (start + self.centre + theta[:, None] * self.h * np.array(step)).T
            cells, faces = cells + [cell], faces + [face] * len(cell)
            values, thetas = values + [self.exact(y, x)], thetas + [theta]
        return dict(cell=np.concatenate(cells), face=faces, value=np.concatenate(values), theta=np.concatenate(thetas))

    def solver(self, air_value, **options):
        return pg.Solver((self.n, self.n), mask=self.mask, air_value=air_value, **options)

    def error(self, solver):
        u = solver.solve(3 * self.u, rtol=1e-11)
        assert solver.report.converged and (u[~self.fluid] == 0).all()
        return np.abs(u - self.u).max()


def entries_of(arrays):
    return [(tuple(cell), *rest) for cell, *rest in zip(arrays['cell'].tolist(), *list(arrays.values())[1:])]


def test_surfaces_between_nodes_are_of_second_order():
    errors = []
    for n in (33, 65):
        circle = Circle(n)
        with circle.solver(circle.surface()) as solver:
            errors.append(circle.error(solver))
        with circle.solver(dict(circle.surface(), theta=1)) as solver:
            assert circle.error(solver) > 30 * errors[-1]    # a staircase
    assert errors[0] < 1e-3 and errors[0] > 3 * errors[1]


def test_thetas_are_taken_from_entries_and_from_arrays():
    circle = Circle(33)
    arrays = circle.surface()
    with circle.solver(arrays) as solver:
        u = solver.solve(3 * circle.u)
    for same in (entries_of(arrays), dict(arrays, face=np.array(arrays['face'])),
                 dict(arrays, face=np.array(arrays['face'], object)),
                 dict(arrays, cell=arrays['cell'].astype('uint8'), value=arrays['value'].tolist())):
        with circle.solver(same) as solver:
            assert np.array_equal(solver.solve(3 * circle.u), u)
    one = dict(arrays, face='x_low', value=0.5, theta=np.float32(0.25))
    both = circle.solver(one), circle.solver([(cell, 'x_low', 0.5, 0.25) for cell, *_ in entries_of(arrays)])
    assert bytes(both[0]._keep['air_value', 'list']) == bytes(both[1]._keep['air_value', 'list'])
    nothing = dict(cell=np.zeros((0, 2), int), face=[], value=[])
    with circle.solver(nothing) as solver, circle.solver([]) as other:
        assert np.array_equal(solver.solve(3 * circle.u), other.solve(3 * circle.u))


def test_many_entries_as_arrays():
    mask = np.zeros((320, 320), 'uint8')
    mask[:, 1::2] = pg.AIR
    cell = np.repeat(np.argwhere(mask == pg.FLUID), 2, axis=0)
    face = ['x_low'] * (len(cell) // 2) + ['x_high'] * (len(cell) - len(cell) // 2)
    with pg.Solver(mask.shape, mask=mask) as solver:
        assert solver._cell_values('air_value', dict(cell=cell, face=face, value=1.0, theta=0.5))[1] == len(cell) > 100000


def test_a_surface_may_move():
    circle, arrays = Circle(33), Circle(33).surface()
    with circle.solver(arrays) as made, circle.solver(dict(arrays, value=0.0, theta=1)) as solver:
        solver.solve(3 * circle.u)
        solver.set_cells(air_value=arrays)
        assert relative(solver.solve(3 * circle.u, rtol=1e-12), made.solve(3 * circle.u, rtol=1e-12)) < 1e-10
        assert circle.error(solver) < 1e-3
        solver.set_cells(air_value=[entry[:3] + (1.0,) for entry in entries_of(arrays)])
        assert circle.error(solver) > 1e-2
        with pytest.raises(ValueError, match=r'air_value\[2\] has theta 1.2; it must be 0 .* to 1'):
            solver.set_cells(air_value=dict(arrays, theta=np.where(np.arange(len(arrays['cell'])) == 2, 1.2, 0.5)))
        assert circle.error(solver) > 1e-2    # as it was
    with pytest.raises(ValueError, match=r'air_value\[0\] has theta 1.2; it must be 0 .* to 1'):
        circle.solver(dict(arrays, theta=1.2)).solve(circle.u)
    with pytest.raises(ValueError, match=r'solid_flux\[0\] has theta 0.5;'):
        pg.Solver((4, 4), mask=np.eye(4, dtype=bool), solid_flux=[((0, 1), 'x_low', 1.0, 0.5)]).solve(np.zeros((4, 4)))
    with circle.solver(dict(arrays, theta=0)) as solver:
        solver.solve(circle.u)
        with pytest.raises(ValueError, match='no entry of the list'):
            solver.set_cells(air_value=arrays)


def test_slopes_and_gradients_know_of_surfaces():
    circle = Circle(33)
    arrays = circle.surface()
    with circle.solver(arrays) as solver:
        u = solver.solve(3 * circle.u)
        slopes = {axis: solver.gradient(u, axis) for axis in 'yx'}
        for (j, i), face, value, theta in entries_of(arrays):
            slope = (value - u[j, i]) / (theta * circle.h) * sum(STEPS[face])
            at = (j + (face == 'y_high'), i + (face == 'x_high'))
            assert abs(slopes[face[0]][at] - slope) < 1e-10 * (1 + abs(slope))
        zeros = circle.solver(dict(arrays, value=0.0))
        f = random(u.shape)
        assert relative(solver._solve_homogeneous(f, rtol=1e-12), zeros.solve(f, rtol=1e-12)) < 1e-10
        assert relative(solver.solve(3 * circle.u), u) < 1e-7    # the values are back


def test_masks_go_with_nodes_and_a_metric():
    """Between cylinders of radius 1 at 0 V and radius 2 at 1 V u is log2(r)."""
    errors = []
    for n in (40, 80):
        r = np.linspace(0, 3, n + 1)[:-1]
        mask, h = np.where((r > 1) & (r < 2), pg.FLUID, pg.AIR).astype('uint8'), 3 / n
        fluid = np.flatnonzero(mask == pg.FLUID)
        first, last = fluid[[0, -1]]
        weight, conductance = r.copy(), np.append(0, r + h / 2)
        weight[0] = h / 4
        with pg.Solver(n, {'x_low': 'neumann', 'x_high': 'dirichlet'}, h=h, mask=mask, weight=[weight],
                       conductance=[conductance], air_value=[((first,), 'x_low', 0.0, (r[first] - 1) / h),
                                                             ((last,), 'x_high', 1.0, (2 - r[last]) / h)]) as solver:
            u = solver.solve(np.zeros(n), rtol=1e-11)
        errors.append(np.abs(u - np.log2(r, where=mask == pg.FLUID, out=np.zeros(n))).max())
    assert errors[0] < 1e-3 and errors[0] > 3 * errors[1]


def test_what_is_copied_may_change_and_all_layouts_have_one_problem():
    f, mask, table = random((8, 8)), np.zeros((8, 8), 'uint8', order='F'), np.linspace(0, 1, 9)**1.2
    window = np.zeros((8, 12))[:, :8]
    window[...] = f
    mask[4, 4] = pg.SOLID
    with pg.Solver((8, 8), centring='cell', mask=mask, coord={'x': table}) as solver:
        first = solver.solve(f)
        mask[2, 2], table[1:8] = pg.SOLID, np.linspace(0, 1, 9)[1:8]
        assert np.array_equal(solver.solve(window), first) and first[2, 2] != 0
        solver.set_cells(mask)
        assert all(solver.solve(x)[2, 2] == 0 for x in (f, window))
    with pg.Solver((8, 8), centring='cell', mask=np.eye(8, dtype=bool)) as solver:
        assert (solver.solve(f).diagonal() == 0).all()    # True is a solid


def test_pieces():
    f, g = random((9, 8)), random((9, 8), 2)
    with pg.Solver((9, 8), bc={'x': 'neumann', 'y': 'dirichlet'}, centring={'x': 'cell', 'y': 'node'}, method='VCYCLE',
                   coord={'x': np.linspace(0, 1, 9) ** 1.3, 'y': np.linspace(0, 2, 11) ** 1.1}) as solver:
        w = np.outer(solver.weights('y'), solver.weights('x'))
        assert abs(solver.sum(f) - (w * f).sum()) < 1e-12 and abs(solver.dot(f, g) - (w * f * g).sum()) < 1e-12
        assert abs(solver.norm(f) - np.sqrt((w * f * f).sum())) < 1e-12
        assert abs(solver.dot(solver.apply(f), g) - solver.dot(f, solver.apply(g))) < 1e-9
        u = np.zeros((9, 8))
        solver.cycle(u, f, 30)
        assert np.abs(solver.residual(u, f)).max() < 1e-9
        solver.set_alpha(2.0)
        assert relative(solver.residual(u, f) + 2 * u + 1, np.ones((9, 8))) < 1e-9


def test_pieces_give_arrays_of_the_framework_of_their_input():
    to, back = framework('jax')
    f = random((9, 8))
    x = to(f)
    with pg.Solver((9, 8)) as solver:
        for call in (solver.solve, solver.apply, lambda a: solver.residual(a, a), lambda a: solver.gradient(a, 'x')):
            assert type(call(x)) is type(x) and np.array_equal(back(call(x)), call(f))


# ---- Calls ----

@pytest.mark.parametrize('name', FRAMEWORKS)
@pytest.mark.parametrize('method', ('FMG', 'CG', 'DIRECT'))
def test_what_a_solve_does_not_write_is_nan(name, method):
    to, back = framework(name)
    f = random((2, 9, 8))
    f[1, 2, 3] = np.nan
    u, report = pg.solve(to(f), batch=True, method=method)
    assert report.outcome == 'not a number' and np.isnan(back(u)[1]).all()
    u, report = pg.solve(to(f[1]), method=method)
    assert report.outcome == 'not a number' and np.isnan(back(u)).all()


def test_threads_take_turns():
    f, wrong = [random((24, 20), seed) for seed in range(4)], []
    with pg.Solver((24, 20), method='VCYCLE') as solver:
        expected = [solver.solve(x) for x in f]

        def work(q):
            for _ in range(60):
                if not np.array_equal(solver.solve(f[q]), expected[q]):
                    wrong.append(q)
        threads = [threading.Thread(target=work, args=(q,)) for q in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='this system forks no processes')
@pytest.mark.parametrize('n, says', [(48, 'RuntimeError'), (4, 'solved')])
def test_a_forked_process_is_refused_where_it_would_hang(n, says):
    done = subprocess.run([sys.executable, '-c', '''
import os, sys
sys.path.insert(0, %r)
import numpy, poisson_gpu
poisson_gpu.solve(numpy.ones((%d,) * 3), backend='cpu')
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    try:
        poisson_gpu.solve(numpy.ones((48,) * 3), backend='cpu')
        print('solved', flush=True)
    except RuntimeError as error:
        print('RuntimeError', error, flush=True)
    os._exit(0)
''' % (os.path.dirname(pg.__file__), n)], capture_output=True, text=True, timeout=60, env=dict(
        os.environ, OMP_NUM_THREADS='2', POISSON_GPU_LIBRARY=os.path.abspath(pg._library._name)))
    assert done.stdout.startswith(says) and (says == 'solved' or 'spawn' in done.stdout), done.stderr


def test_a_closed_solver_is_refused():
    with pg.Solver((5, 4)) as solver:
        solver.solve(np.zeros((5, 4)))
    for call in (lambda: solver.solve(np.zeros((5, 4))), lambda: solver.sum(np.zeros((5, 4))),
                 lambda: solver.set_alpha(1.0)):
        with pytest.raises(ValueError, match='closed'):
            call()
    with pytest.raises(RuntimeError, match='closed'):
        solver.report


def test_only_the_handles_used_last_are_kept():
    f = random((5, 4))
    with pg.Solver((5, 4)) as solver:
        expected, first = solver.solve(f), solver._last
        for width in range(5, 60):
            window = np.zeros((5, width))[:, :4]
            window[...] = f
            solver.sum(window)
            assert len(solver._handles) <= pg._HANDLES
            assert solver.report.converged and solver._last is first    # the report's is kept
        for width in (5, 59, 5):
            window = np.zeros((5, width))[:, :4]
            window[...] = f
            assert np.array_equal(solver.solve(window), expected) and len(solver._handles) <= pg._HANDLES
        used = solver._last
        for width in range(20, 40):
            solver.solve(f, np.zeros((5, width))[:, :4])
            solver.solve(window)
        assert solver._last is used    # again and again, so it stays


def test_reports_and_monitors():
    seen = []
    with pg.Solver((63, 63), method='VCYCLE') as solver:
        with pytest.raises(RuntimeError, match='no solve'):
            solver.report
        u = np.zeros((63, 63))
        solver.solve(np.ones((63, 63)), u, monitor=seen.append, rtol=1e-9)
        report = solver.report
        assert report.converged and report.residual <= 1e-9 * report.rhs_norm and len(report.history) >= 2
        assert seen and isinstance(seen[0], pg.Report) and seen[0].outcome == 'running'
        seen.clear()
        solver.solve(np.ones((63, 63)), monitor=seen.append)
        assert seen and solver.report.converged
        u = np.zeros((63, 63))
        solver.solve(np.ones((63, 63)), u, rtol=1e-9, monitor=lambda r: pg.CANCEL)
        assert solver.report.outcome == 'cancelled'
        with pytest.raises(ZeroDivisionError):
            solver.solve(np.ones((63, 63)), u, monitor=lambda r: 1 / 0)
        solver.solve(np.ones((63, 63)), u, rtol=None, max_iter=2)
        assert solver.report.outcome == 'completed' and solver.report.iterations == 2


def test_other_threads_run_during_a_solve():
    counted, running = [0], [True]

    def count():
        while running[0]:
            counted[0] += 1
            time.sleep(0.0005)
    f, u = np.ones((96, 96, 96)), np.zeros((96, 96, 96))
    with pg.Solver(f.shape, method='RBGS') as solver:
        solver.solve(f, u, rtol=None, max_iter=1)
        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        start = time.perf_counter()
        solver.solve(f, u, rtol=None, max_iter=150)
        took, counted_now = time.perf_counter() - start, counted[0] - before
        running[0] = False
        thread.join()
    assert took < 0.02 or counted_now > 3


def test_solvers_leave_nothing_behind():
    solver = pg.Solver((5, 4))
    solver.solve(np.zeros((5, 4)))
    solver.close()
    solver.close()
    del solver
    gc.collect()


def microseconds(call, wait, count=1000):
    """What a call takes, the least of five times."""
    best = float('inf')
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
        wait()
    return best * 1e6


@pytest.mark.parametrize('name', FRAMEWORKS)
def test_the_overhead_of_a_call_is_small(name):
    to, back = framework(name)
    if name == 'jax':
        pytest.skip('JAX arrays are waited for')
    f, u = to(np.ones((4, 4))), to(np.zeros((4, 4)))
    with pg.Solver((4, 4), method='DIRECT') as solver:
        solver.solve(f, u)
        handle, pu, pf = solver._last.pointer, pg._describe(u)[0], pg._describe(f)[0]
        plain = microseconds(lambda: pg._pg_solve(handle, pu, pf, None), lambda: solver.report)
        whole = microseconds(lambda: solver.solve(f, u), lambda: solver.report)
    print('%s: %.1f us beyond the C call of %.1f' % (name, whole - plain, plain))
    assert whole - plain < 15


# ---- Arrays on a device, by the runtime of test/simt, which the library has in it there ----

class Device:
    """A copy on the device, of which only the interface is known."""

    def __init__(self, x):
        if not hasattr(pg._library, 'cudaMalloc'):
            pytest.skip('the library shows no runtime of its own')
        self.x, self.pointer, self.stream = x, ctypes.c_void_p(), 1
        assert pg._library.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(x.nbytes)) == 0
        self.copy(self.pointer, ctypes.c_void_p(x.ctypes.data), 1)

    def copy(self, to, start, kind):
        assert pg._library.cudaMemcpy(to, start, ctypes.c_size_t(self.x.nbytes), kind) == 0

    def back(self):
        x = np.empty_like(self.x)
        self.copy(ctypes.c_void_p(x.ctypes.data), self.pointer, 2)
        return x

    @property
    def __cuda_array_interface__(self):
        return {'shape': self.x.shape, 'typestr': self.x.dtype.str, 'data': (self.pointer.value, False), 'version': 3,
                'strides': self.x.strides, 'stream': self.stream}


def test_what_is_on_the_device_stays_there():
    f = random((6, 7, 8))
    on_device, u, v = Device(f), Device(np.zeros_like(f)), Device(np.zeros((6, 7, 9)))
    with pg.Solver(f.shape, bc={'x': 'periodic'}) as solver:
        assert solver.solve(on_device, u) is u
        assert solver.report.converged and solver.report.backend == 'cuda'
        expected = solver.solve(f)
        assert np.array_equal(u.back(), expected)
        solver.gradient(u, 'x', out=v)
        assert np.array_equal(v.back(), solver.gradient(expected, 'x'))
        with pytest.raises(ValueError, match='one is in host memory, the other on CUDA device 0'):
            solver.solve(on_device, np.zeros_like(f))
    with pg.Solver(f.shape, bc={'y_low': ('dirichlet', Device(np.ones((6, 8))))}) as solver:
        solver.solve(on_device, u)
        assert solver.report.converged
        with pytest.raises(ValueError, match='face arrays'):
            solver.solve(f)


def test_the_stream_of_arrays_on_the_device_is_followed():
    f = random((6, 7, 8))
    on_device, u, stream = Device(f), Device(np.zeros_like(f)), ctypes.c_void_p()
    assert pg._library.cudaStreamCreate(ctypes.byref(stream)) == 0
    with pg.Solver(f.shape) as solver:
        solver.solve(on_device, u)
        assert solver._last.stream == 0
        on_device.stream = u.stream = stream.value
        solver.solve(on_device, u)
        assert solver._last.stream == stream.value and solver.report.converged
        assert np.array_equal(u.back(), solver.solve(f))


def test_the_overhead_of_a_call_is_small_on_the_device(monkeypatch):
    on_device, u = Device(np.ones((4, 4))), Device(np.zeros((4, 4)))
    with pg.Solver((4, 4), method='DIRECT') as solver:
        solver.solve(on_device, u)
        monkeypatch.setattr(pg, '_pg_solve', lambda *_: 0)    # the C call is slow here
        took = microseconds(lambda: solver.solve(on_device, u), lambda: None)
    print('%.1f us beyond the C call' % took)
    assert took < 15


# ---- PyTorch ----

@pytest.mark.parametrize('options', [
    dict(bc='dirichlet'),
    dict(bc={'x': 'neumann', 'y': ('neumann', 1.0)}),
    dict(bc={'x': 'periodic', 'y': ('robin', 1.0, 0.5, 2.0)}, alpha=0.5),
    dict(bc={'x': 'periodic', 'y': 'open'}),
    dict(bc={'x_low': 'neumann', 'x_high': 'open', 'y': 'neumann'}, coord={'x': np.linspace(0, 1, 7) ** 1.5}),
    dict(bc='neumann', coord={'x': np.linspace(0, 1, 6) ** 1.5, 'y': np.linspace(0, 2, 5) ** 1.2}),
    dict(bc='neumann', centring='cell', coord={'x': np.linspace(0, 1, 7) ** 1.5, 'y': np.linspace(0, 2, 6) ** 1.2}),
    dict(bc={'x': 'dirichlet', 'y': 'neumann'}, weight={
         'x': np.linspace(1, 2, 6)}, conductance={'x': np.linspace(1, 2, 7)}),
])
def test_gradients_of_torch(options):
    torch = pytest.importorskip('torch')
    f = torch.tensor(random((5, 6)), requires_grad=True)
    solver = pg.Solver((5, 6), **options)

    def call(x):
        return pg.torch_solve(x, solver, stop={'rtol': 1e-13})
    assert torch.autograd.gradcheck(call, (f,)) and torch.autograd.gradgradcheck(call, (f,))
    assert np.allclose(call(f).detach().numpy(), solver.solve(f.detach().numpy(), rtol=1e-13))


@pytest.mark.parametrize('values', [dict(air_value=[((3, 1), 'y_high', 2.0)]),
                                    dict(air_value=[((3, 1), 'y_high', 2.0, 0.3)]),
                                    dict(solid_flux=[((1, 1), 'y_low', 1.5)]), dict()])
def test_gradients_of_torch_among_obstacles(values):
    torch = pytest.importorskip('torch')
    f, mask = torch.tensor(random((6, 5)), requires_grad=True), np.zeros((6, 5), 'uint8')
    mask[4, :], mask[0, 1] = pg.AIR, pg.SOLID
    solver = pg.Solver((6, 5), bc='neumann', centring='cell', mask=mask, **values)
    before = solver.solve(f)

    def call(x):
        return pg.torch_solve(x, solver, stop={'rtol': 1e-12})
    assert torch.autograd.gradcheck(call, (f,)) and torch.autograd.gradgradcheck(call, (f,))
    assert np.array_equal(solver.solve(f), before)


def test_torch_func():
    torch = pytest.importorskip('torch')
    if not hasattr(torch, 'func'):
        pytest.skip('this PyTorch has no torch.func')
    f, solver = torch.tensor(random((3, 5, 6))), pg.Solver((5, 6))

    def loss(x):
        return pg.torch_solve(x, solver).square().sum()
    x = f[0].clone().requires_grad_()
    loss(x).backward()
    assert torch.equal(torch.func.grad(loss)(f[0]), x.grad)
    assert torch.equal(torch.func.vmap(torch.func.grad(loss))(f)[0], x.grad)
    assert torch.equal(torch.func.vmap(lambda x: pg.torch_solve(x, solver), 1)(f.movedim(0, 1))[2], solver.solve(f[2]))


def test_what_torch_cannot_differentiate_is_refused():
    torch = pytest.importorskip('torch')
    f = torch.ones((5, 4), dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match='self-adjoint'):
        pg.torch_solve(f, velocity={'x': 1.0}, method='BICGSTAB')
    solver = pg.Solver((5, 4), alpha=1.0)
    u = pg.torch_solve(f, solver)
    solver.set_alpha(500.0)
    with pytest.raises(ValueError, match='were set after torch_solve'):
        u.sum().backward()
    with pytest.raises(ValueError, match='bc, alpha: .* options of a new Solver'):
        pg.torch_solve(f, solver, bc='neumann', alpha=3.0)
    with pytest.raises(ValueError, match=r'float\(rtol\)'):    # it would be remembered as it is now
        solver.solve(f, rtol=torch.tensor(1e-3))
    with pytest.raises(ValueError, match='ndarray'):
        pg.torch_solve(np.ones((5, 4)))
    with pytest.raises(ValueError, match='resolve_neg'):
        pg.torch_solve(torch._neg_view(f.detach()), solver)
    with pytest.raises(ValueError, match=r'\(0, 4\)'):
        pg.torch_solve(torch.ones((0, 4)))


def test_a_solve_of_torch_that_fails_is_warned_of():
    torch = pytest.importorskip('torch')
    f = torch.full((5, 4), float('nan'), dtype=torch.float64, requires_grad=True)
    with pytest.warns(RuntimeWarning, match='not a number'):
        u = pg.torch_solve(f)
    assert u.isnan().all()
    with pytest.warns(RuntimeWarning, match='a gradient: not a number'):
        u.sum().backward(torch.tensor(float('nan')))
    assert f.grad.isnan().all()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert pg.torch_solve(f, check=False).isnan().all()


# ---- The samples ----

@pytest.mark.parametrize('name, needs, arguments', [
    ('first', (), []), ('clone', ('skimage', 'PIL'), []), ('heat', (), ['-n', '48']), ('learn', ('torch',), ['-n', '32']),
    ('turbulence', (), ['-n', '64', '--time', '1'])])
def test_samples_meet_their_answers(name, needs, arguments, tmp_path):
    for module in needs:
        pytest.importorskip(module)
    script = os.path.join(ROOT, 'samples', 'python', name + '.py')
    environment = dict(os.environ, POISSON_GPU_LIBRARY=os.path.abspath(pg._library._name))
    done = subprocess.run([sys.executable, script] + arguments, cwd=tmp_path, env=environment, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(script, encoding='utf-8') as file:
        assert len(file.readlines()) < 80
    picture = tmp_path / (name + '.png')
    if picture.exists():
        width, height = struct.unpack('>II', picture.read_bytes()[16:24])
        assert width >= 512 and height >= 250


@pytest.mark.parametrize('name, arguments, says', [
    ('learn', '-n 16 --steps 1', 'the misfit must fall'), ('learn', '-n 1', '-n must be'),
    ('turbulence', '--time 0', '--time more than 0'), ('turbulence', '-n 0', '-n must be'),
    ('turbulence', '-n 1', '-n must be')])
def test_samples_that_fail_say_why(name, arguments, says, tmp_path):
    if name == 'learn':
        pytest.importorskip('torch')
    script = os.path.join(ROOT, 'samples', 'python', name + '.py')
    environment = dict(os.environ, POISSON_GPU_LIBRARY=os.path.abspath(pg._library._name))
    done = subprocess.run([sys.executable, script] + arguments.split(), cwd=tmp_path, env=environment, text=True,
                          capture_output=True)
    assert done.returncode and says in done.stderr and 'Traceback' not in done.stderr


# ---- The library ----

def test_constants_are_those_of_the_header():
    flags = {name: int(value, 16) for name, value in re.findall(r'\bPG_(\w+) = (0x[0-9a-f]+)', HEADER)}
    for name in ('BACKWARD', 'RESTORE'):
        del flags[name]    # of dense systems
    assert flags == {**pg.FLAGS, **pg.SMOOTHERS, **pg.PRECONDS}
    robust = re.findall(r'\bPG_ROBUST_(\w+)', re.search(r'enum pg_robust \{.*?\}', HEADER, re.S).group())
    assert [name.lower() for name in robust] == list(pg.ROBUST)
    outcomes = re.search(r'define PG_OUTCOME_LIST.*?\n\n', HEADER, re.S).group()
    assert tuple(re.findall(r'X\(PG_\w+, "(.*?)"', outcomes)) == pg.OUTCOMES
    kinds = re.findall(r'PG_(\w+)', re.search(r'enum pg_face_kind \{.*?\}', HEADER, re.S).group())
    assert [kind.lower().replace('open_', '') for kind in kinds] == list(pg.KINDS) and list(pg.KINDS.values()) == list(range(6))
    assert int(re.search(r'PG_HISTORY (\d+)', HEADER).group(1)) == pg.HISTORY


def rows_of_methods():
    table = re.search(r'^   method  .*\n((?:   PG_.*\n)+)', HEADER, re.M).group(1)
    return [re.match(r'   PG_(\w+) .* (0|u|-) +([0-9.]+) +([cvnm-]{4})$', line).groups() for line in table.splitlines()]


@pytest.mark.parametrize('name, guess, grids, takes', rows_of_methods())
def test_the_table_of_methods_is_true(name, guess, grids, takes):
    def is_taken(**options):
        try:
            pg.Solver((8, 8, 8), centring='cell', **{'method': name, 'alpha': 1, **options}).close()
        except ValueError:
            return False
        return True
    assert [is_taken(mask=np.zeros((8, 8, 8), 'uint8')), is_taken(velocity=1.0), is_taken(alpha=-1.0),
            is_taken(method=name + ' | MIXED')] == [letter != '-' for letter in takes]
    with pg.Solver((128, 128, 128), method=name) as solver:
        own = solver.workspace_bytes / 8 / 128**3
    assert own <= 1.001 * float(grids)
    if name not in ('FASTEST', 'DIRECT', 'RBGS', 'SOR'):    # the first chooses; these take less on the CPU or at some sizes
        assert own > 0.9 * float(grids)
    f = random((40, 40))
    with pg.Solver(f.shape, method=name, coarsest=8) as solver:
        exact = solver.solve(f, rtol=1e-11, max_iter=20000)
        solver.solve(f, exact, max_iter=1, rtol=1e-3)
        begins_well = solver.report.first_residual < 1e-6 * solver.report.rhs_norm
    assert guess == '-' or begins_well == (guess == 'u')


def test_constants_of_fortran_are_those_of_the_header():
    fortran = open(os.path.join(ROOT, 'samples', 'poisson_gpu.f90'), encoding='utf-8').read()
    pattern = r"\b(PG_\w+) = (?:int\(z'|0x)([0-9a-f]+)"
    assert dict(re.findall(pattern, fortran)) == {
        name: value.lstrip('0') for name, value in re.findall(pattern, HEADER)}
    enums = [re.findall(r'PG_\w+', names) for names in re.findall(r'enumerator :: ((?:.*&\n)*.*)', fortran)]
    listed = [re.findall(r'X\((PG_\w+),', text) for text in re.findall(r'define PG_\w+_LIST\(X\)((?:.*\\\n)+.*)', HEADER)]
    plain = [re.findall(r'PG_\w+', names) for names in re.findall(r'typedef enum pg_\w+ \{([^()}]*)\}', HEADER)
             if '= 0x' not in names]
    assert sorted(enums) == sorted(listed + plain)
    declared = set(re.findall(r'^PG_API .*?\b(pg_\w+)\(', HEADER, re.M))
    assert declared == set(re.findall(r'\b(pg_\w+)\([^)]*\) bind\(c\)', fortran))


def names_of_the_header():
    """Every struct, and after it its fields: pg_face, pg_face.kind, ..."""
    text = re.sub(r'/\*.*?\*/', '', HEADER, flags=re.S)
    for struct, body in re.findall(r'typedef struct (pg_\w+) \{(.*?)\} \1;', text, re.S):
        yield struct
        for declaration in body.split(';')[:-1]:
            function = re.search(r'\(\*(\w+)\)', declaration)
            names = function.groups() if function else re.findall(r'(\w+)(?:\[\w+\])?(?:,|$)', declaration)
            yield from ('%s.%s' % (struct, name) for name in names)


def test_the_abi_is_that_of_the_header():
    entries, told = pg._library.pg_abi(), []
    while entries[len(told)].name:
        told.append(entries[len(told)].name.decode())
    assert told == ['version'] + [name for name in names_of_the_header() if not name.startswith('pg_abi_entry')]


def test_a_stale_copy_is_refused_by_name(monkeypatch):
    fields = [field for field in pg.pg_stop._fields_ if field[0] != 'check']
    stale = pg._struct('pg_stop', *fields)
    monkeypatch.setattr(pg, 'STRUCTS', tuple(stale if s is pg.pg_stop else s for s in pg.STRUCTS))
    with pytest.raises(ImportError, match='pg_stop'):
        pg._check_abi(pg._library, 'the library')
    renamed = pg._struct('pg_stop', *[('cheque' if n == 'check' else n, t) for n, t in pg.pg_stop._fields_])
    monkeypatch.setattr(pg, 'STRUCTS', (renamed,))
    with pytest.raises(ImportError, match=r'pg_stop\.ch'):
        pg._check_abi(pg._library, 'the library')


def test_a_stale_library_is_refused_by_the_first_field_that_it_lacks(monkeypatch):
    fields = list(pg.pg_stop._fields_)
    fields.insert(3, ('tolerance', ctypes.c_double))
    newer = pg._struct('pg_stop', *fields)
    monkeypatch.setattr(pg, 'STRUCTS', tuple(newer if s is pg.pg_stop else s for s in pg.STRUCTS))
    with pytest.raises(ImportError, match=r'pg_stop\.tolerance of 8 bytes at 24, but the library has no'):
        pg._check_abi(pg._library, 'the library')
    wider = pg._struct('pg_report', *[(n, ctypes.c_double if n in ('problem', 'backend') else t)
                                      for n, t in pg.pg_report._fields_])
    monkeypatch.undo()
    monkeypatch.setattr(pg, 'STRUCTS', tuple(wider if s is pg.pg_report else s for s in pg.STRUCTS))
    with pytest.raises(ImportError, match=r'has pg_report\.backend'):    # the first one in the header
        pg._check_abi(pg._library, 'the library')


@pytest.mark.parametrize('variables, says', [
    ({'POISSON_GPU_SOURCES': '/nowhere'}, 'POISSON_GPU_SOURCES is /nowhere'),
    ({'CXX': 'no-such-compiler -O2'}, 'there is no no-such-compiler'),
    ({'CXX': 'env true', 'XDG_CACHE_HOME': __file__}, 'POISSON_GPU_LIBRARY')])
def test_what_cannot_be_made_is_an_import_error(variables, says, monkeypatch):
    which = pg.shutil.which
    monkeypatch.setattr(pg.shutil, 'which', lambda name: None if 'nvcc' in name else which(name))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImportError, match=says):
        pg._build()


def test_no_sources_and_no_library_is_an_import_error(tmp_path):
    (tmp_path / 'poisson_gpu.py').write_text(open(pg.__file__, encoding='utf-8').read(), encoding='utf-8')
    environment = {k: v for k, v in os.environ.items() if not k.startswith('POISSON_GPU') and k != 'PYTHONPATH'}
    done = subprocess.run([sys.executable, '-c', 'import poisson_gpu'], cwd=tmp_path, env=environment, text=True,
                          capture_output=True)
    assert done.returncode and 'poisson_gpu.cu and poisson_gpu.h were not found' in done.stderr


def test_the_library_is_made_once(tmp_path, monkeypatch, capfd):
    tool = tmp_path / 'c++'    # stands in for a compiler, which would take a minute
    tool.write_text('#!/bin/sh\nfor last; do :; done\ncp "$REAL_LIBRARY" "$last"\n')
    tool.chmod(0o755)
    monkeypatch.setenv('REAL_LIBRARY', pg._library._name)
    monkeypatch.setenv('CXX', 'env %s' % tool)    # as ccache has one
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setenv('POISSON_GPU_SOURCES', ROOT)
    monkeypatch.setattr(pg.shutil, 'which', lambda name: name if name == 'env' else None)
    first = pg._build()
    assert str(tool) in capfd.readouterr().err and os.path.isfile(first)
    assert pg._build() == first and not capfd.readouterr().err
    ctypes.CDLL(first)


class Tap:
    """A line a case, as test/run.sh counts them."""

    def __init__(self):
        self.lines = {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split('::')[-1]
        if report.failed or report.skipped or report.when == 'call':
            reason = ' # SKIP ' + report.longrepr[2].replace('Skipped: ', '', 1).split('\n')[0] if report.skipped else ''
            self.lines.setdefault(name, '%s %%d - %s%s' % ('not ok' if report.failed else 'ok', name, reason))

    def pytest_terminal_summary(self):
        print('\n1..%d' % len(self.lines))
        for number, line in enumerate(self.lines.values(), 1):
            print(line.replace('%d', str(number), 1))


if __name__ == '__main__':
    sys.exit(pytest.main([__file__, '-q', '-rs', '-p', 'no:cacheprovider'] + sys.argv[1:], plugins=[Tap()]))
