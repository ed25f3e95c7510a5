#!/usr/bin/env python3
"""What a call from Python costs, and direct solves beside torch.fft and CuPy's (without a GPU SciPy's) dctn.

    bench/python.py [-n 512] [--out FILE.json|FOLDER]      -n 0: only calls

Needs PyTorch, and on a GPU CuPy; what is missing is left out and said. samples/python/poisson_gpu.py finds or makes the
library (POISSON_GPU_LIBRARY names one). Prints tables and writes them as JSON, into a folder as
DEVICE-DATE-python.json; bench/plot.py quotes those of bench/results in the README.

- Calls: arrays of 16^2 where solves run, 50 calls queued one after the other. By turns a round of Solver.solve, one of
  pg_solve, which is the same function with its arguments converted beforehand, and one of a function of the C library
  that does nothing with as many arguments; of each the least of 40 rounds. "Beyond" is the first less the second. What
  ctypes takes, the third, is inside both: the bound is on beyond and ctypes together.
- Solves: n^3 points, f noise without mean, the median of 15 runs on arrays that are there, timed by events on the
  stream (without a GPU by the clock). torch.fft: rfftn, a product with the inverse symbol at hand, irfftn. dctn: type 2
  along three axes, the product, idctn: a Neumann box of cells. The answers are compared.
"""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'samples' / 'python'))
import plot    # noqa: E402
import poisson_gpu    # noqa: E402

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
    cupy.cuda.runtime.getDeviceCount()
except Exception:
    cupy = None

GPU = 'no CUDA' not in poisson_gpu.version and torch is not None and torch.cuda.is_available()
BOUNDS = {'call': 15.0, 'torch.fft': 1.3, 'cupy dctn': 10.0}


def device_name():
    if GPU:
        return torch.cuda.get_device_name(0)
    for line in open('/proc/cpuinfo', encoding='utf-8'):
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return 'CPU'


def milliseconds(run, repeats=15):
    """The median of `repeats` runs, after two that do not count."""
    times = []
    for q in range(repeats + 2):
        if GPU:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            took = begin.elapsed_time(end)
        else:
            start = time.perf_counter()
            run()
            took = (time.perf_counter() - start) * 1e3
        if q > 1:
            times.append(took)
    return statistics.median(times)


def microseconds(calls, wait, count=50, rounds=40):
    """What each of the calls takes, the least of the rounds; they take turns, since clocks change."""
    best = [float('inf')] * len(calls)
    for _ in range(rounds):
        for q, call in enumerate(calls):
            wait()
            start = time.perf_counter()
            for _ in range(count):
                call()
            best[q] = min(best[q], (time.perf_counter() - start) / count)
    wait()
    return [seconds * 1e6 for seconds in best]


def call_row(name, f, u, wait):
    """The cost of Solver.solve beyond that of pg_solve."""
    nothing = ctypes.CDLL(None).qsort    # of no elements
    nothing.argtypes, nothing.restype = [ctypes.c_void_p] * 4, None
    with poisson_gpu.Solver(f.shape, method='DIRECT') as solver:
        solver.solve(f, u, rtol=None)
        addresses = [poisson_gpu._describe(x)[0] for x in (u, f)]
        arguments = [ctypes.c_void_p(x) for x in (solver._last.pointer, *addresses)]
        arguments.append(ctypes.byref(poisson_gpu._stop(rtol=None)))
        none = [ctypes.c_void_p(x) for x in (addresses[0], 0, 8, 0)]
        whole, plain, by_ctypes = microseconds([
            lambda: solver.solve(f, u, rtol=None), lambda: poisson_gpu._pg_solve(*arguments), lambda: nothing(*none)],
            wait)
    row = {'row': 'call', 'what': name, 'call_us': whole, 'c_call_us': plain, 'ctypes_us': by_ctypes,
           'beyond_us': whole - plain}
    if GPU and name != 'numpy':    # host arrays are copied and waited for
        row.update(bound=BOUNDS['call'], holds=whole - plain + by_ctypes <= BOUNDS['call'])
    return row


def call_rows():
    """For every framework."""
    makers = {'numpy': (np.ones, lambda: None)}
    if torch is not None:
        where = 'cuda' if GPU else 'cpu'
        wait = torch.cuda.synchronize if GPU else lambda: None
        makers['torch ' + where] = (lambda shape: torch.ones(shape, dtype=torch.float64, device=where), wait)
    if cupy is not None and GPU:
        makers['cupy'] = (cupy.ones, cupy.cuda.runtime.deviceSynchronize)
    return [call_row(name, make((16, 16)), make((16, 16)), wait) for name, (make, wait) in makers.items()]


def symbol_of(n, periodic, modes_last):
    """Eigenvalues of the box of n^3 points as a sum along three axes, the zero one replaced by 1."""
    def line(count):
        angle = np.arange(count) * (2 * np.pi if periodic else np.pi) / n
        return (2 - 2 * np.cos(angle)) * float(n)**2
    symbol = line(n)[:, None, None] + line(n)[None, :, None] + line(modes_last)[None, None, :]
    symbol[0, 0, 0] = 1
    return symbol


def noise(n, dtype):
    f = np.random.default_rng(1).uniform(-1, 1, (n, n, n))
    return (f - f.mean()).astype(dtype)


def solve_row(n, dtype, bc, what, transform, to, difference):
    """Times both, and compares them."""
    f = to(noise(n, dtype))
    other = transform(f)
    solver = poisson_gpu.Solver((n, n, n), bc=bc, centring='cell', dtype=dtype, method='DIRECT')
    with solver:
        u = solver.solve(f, rtol=None)
        apart = difference(u, other())
        ours = milliseconds(lambda: solver.solve(f, u, rtol=None))
    theirs = milliseconds(other)
    row = {'row': 'solve', 'what': what, 'n': n, 'dtype': dtype, 'bc': bc, 'ms': ours, 'other_ms': theirs,
           'ratio': theirs / ours, 'relative_difference': apart}
    if GPU and what in BOUNDS:
        row.update(bound=BOUNDS[what], holds=row['ratio'] >= BOUNDS[what])
    return row


def torch_row(n, dtype):
    where = 'cuda' if GPU else 'cpu'

    def transform(f):
        inverse = torch.from_numpy((1 / symbol_of(n, True, n // 2 + 1)).astype(dtype)).to(where)
        return lambda: torch.fft.irfftn(torch.fft.rfftn(f) * inverse, s=(n, n, n))

    def difference(u, v):
        v = v - v.mean()
        return float((u - v).abs().max() / v.abs().max())
    return solve_row(n, dtype, 'periodic', 'torch.fft', transform, lambda f: torch.from_numpy(f).to(where), difference)


def cupy_stream(stream):
    """CuPy's own for a stream of PyTorch's."""
    if hasattr(cupy.cuda.Stream, 'from_external') and hasattr(stream, '__cuda_stream__'):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream)    # before CuPy 14


def dct_row(n, dtype):
    on_gpu = cupy is not None and GPU
    if on_gpu:
        import cupyx.scipy.fft as fft
    else:
        import scipy.fft as fft
    xp = cupy if on_gpu else np

    def transform(f):
        inverse = xp.asarray((1 / symbol_of(n, False, n)).astype(dtype))
        return lambda: fft.idctn(fft.dctn(f, type=2) * inverse, type=2)

    def difference(u, v):
        v = v - v.mean()
        return float(abs(u - v).max() / abs(v).max())
    if on_gpu:    # events are taken on PyTorch's stream, so CuPy works on that too
        with cupy_stream(torch.cuda.current_stream()):
            return solve_row(n, dtype, 'neumann', 'cupy dctn', transform, cupy.asarray, difference)
    return solve_row(n, dtype, 'neumann', 'scipy dctn', transform, np.asarray, difference)


def rounded(value):
    """To the six digits of pg_bench's files."""
    return float('%.6g' % value) if isinstance(value, float) else value


def result_path(out, result):
    """The file itself, or one in the folder, named as pg_bench names its own."""
    if out.endswith('.json'):
        return pathlib.Path(out)
    device = re.sub(r'[^a-z0-9]+', '-', re.sub(r'\([^)]*\)', '', result['device']).lower()).strip('-')
    os.makedirs(out, exist_ok=True)
    return pathlib.Path(out) / ('%s-%s-python.json' % (device, result['date']))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=512)
    parser.add_argument('--out', metavar='FILE.json|FOLDER', help='for the result, say bench/results')
    given = parser.parse_args()
    rows = call_rows()
    beside = (torch_row, 'torch.fft', torch is not None), (dct_row, 'dctn', cupy is not None or not GPU)
    for make, name, there in beside if given.n > 0 else ():
        for dtype in ('float64', 'float32'):
            if not there:
                print('left out, %s: not installed' % name)
                continue
            try:
                rows.append(make(given.n, dtype))
            except Exception as error:    # the other rows are worth having
                print('left out, %s %s: %s: %s' % (name, dtype, type(error).__name__, error))
            if cupy is not None:
                cupy.get_default_memory_pool().free_all_blocks()
            if GPU:
                torch.cuda.empty_cache()
    result = {'device': device_name(), 'backend': 'cuda' if GPU else 'cpu', 'date': datetime.date.today().isoformat(),
              'version': poisson_gpu.version,
              'modules': {m.__name__: m.__version__ for m in (np, torch, cupy) if m is not None},
              'python': [{key: rounded(value) for key, value in row.items()} for row in rows]}
    print('\n'.join([result['device'] + ', ' + result['version'], ''] + plot.python_tables(result)))
    if given.out:
        path = result_path(given.out, result)
        path.write_text(json.dumps(result, indent=1) + '\n', encoding='utf-8')
        print('written:', path)


if __name__ == '__main__':
    main()
