#!/usr/bin/env python3
"""What a call from Python costs, and direct solves beside torch.fft and CuPy's (without a GPU SciPy's) dctn.

    bench/python.py [-n 512] [--out FILE.json]

Needs PyTorch, and on a GPU CuPy; what is missing is left out and said. samples/python/poisson_gpu.py finds or makes the
library (POISSON_GPU_LIBRARY names one). Prints a table and then, as its last line, the same as JSON.

- Call: small device arrays, 50 calls queued one after the other, the least time of 20 such rounds. The C call is the
  same function through ctypes with addresses at hand, less what ctypes itself takes for a function that does nothing.
- Solves: n^3 points, f noise without mean, the median of 15 runs on arrays that are there, timed by events on the
  stream (without a GPU by the clock). torch.fft: rfftn, a product with the inverse symbol at hand, irfftn. dctn: type 2 along
  three axes, the product, idctn: a Neumann box of cells. The answers are compared.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'samples' / 'python'))
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


def microseconds(call, wait, calls=50, rounds=20):
    best = float('inf')
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    wait()
    return best * 1e6


def call_rows():
    """The cost of Solver.solve beyond that of pg_solve, for every framework."""
    makers = {'numpy': (np.ones, lambda: None)}
    if torch is not None:
        where = 'cuda' if GPU else 'cpu'
        wait = torch.cuda.synchronize if GPU else lambda: None
        makers['torch ' + where] = (lambda shape: torch.ones(shape, dtype=torch.float64, device=where), wait)
    if cupy is not None and GPU:
        makers['cupy'] = (cupy.ones, cupy.cuda.runtime.deviceSynchronize)
    rows = []
    nothing = poisson_gpu._library.pg_version
    for name, (make, wait) in makers.items():
        f, u = make((16, 16)), make((16, 16))
        with poisson_gpu.Solver((16, 16), method='DIRECT') as solver:
            solver.solve(f, u, rtol=None)
            handle, stop = solver._last.pointer, poisson_gpu.byref(solver._stop({'rtol': None}))
            addresses = poisson_gpu._describe(u)[0], poisson_gpu._describe(f)[0]
            plain = microseconds(lambda: poisson_gpu._pg_solve(handle, *addresses, stop), wait)
            whole = microseconds(lambda: solver.solve(f, u, rtol=None), wait)
        ctypes_alone = microseconds(nothing, wait)
        rows.append({'row': 'call', 'what': name, 'call_us': whole, 'c_call_us': max(plain - ctypes_alone, 0.0),
                     'beyond_us': whole - max(plain - ctypes_alone, 0.0)})
    return rows


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
    return {'row': 'solve', 'what': what, 'n': n, 'dtype': dtype, 'bc': bc, 'ms': ours, 'other_ms': theirs,
            'ratio': theirs / ours, 'relative_difference': apart}


def torch_row(n, dtype):
    where = 'cuda' if GPU else 'cpu'

    def transform(f):
        inverse = torch.from_numpy((1 / symbol_of(n, True, n // 2 + 1)).astype(dtype)).to(where)
        return lambda: torch.fft.irfftn(torch.fft.rfftn(f) * inverse, s=(n, n, n))

    def difference(u, v):
        v = v - v.mean()
        return float((u - v).abs().max() / v.abs().max())
    return solve_row(n, dtype, 'periodic', 'torch.fft', transform, lambda f: torch.from_numpy(f).to(where), difference)


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
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            return solve_row(n, dtype, 'neumann', 'cupy dctn', transform, cupy.asarray, difference)
    return solve_row(n, dtype, 'neumann', 'scipy dctn', transform, np.asarray, difference)


def print_table(rows):
    print('| call, device arrays of 16^2 | us | C call | beyond it |\n|---|--:|--:|--:|')
    for r in rows:
        if r['row'] == 'call':
            print('| %s | %.1f | %.1f | %.1f |' % (r['what'], r['call_us'], r['c_call_us'], r['beyond_us']))
    print('\n| solve | ms | beside | ms | ratio | apart |\n|---|--:|---|--:|--:|--:|')
    for r in rows:
        if r['row'] == 'solve':
            print('| %s %d^3 %s | %.3f | %s | %.3f | %.2f | %.1e |' % (
                r['bc'], r['n'], r['dtype'], r['ms'], r['what'], r['other_ms'], r['ratio'], r['relative_difference']))


def check(rows):
    """What must hold on a large GPU."""
    for r in rows:
        bound = BOUNDS.get('call' if r['row'] == 'call' else r['what'])
        if r['row'] == 'call' and r['what'] != 'numpy':
            print('Check: a call with %s arrays takes %.1f us beyond the C call (bound %.0f: %s).' % (
                r['what'], r['beyond_us'], bound, 'holds' if r['beyond_us'] <= bound else 'DOES NOT HOLD'))
        elif r['row'] == 'solve' and GPU and bound:
            print('Check: %s %s is %.2f times as fast as %s (bound %.1f: %s).' % (
                r['bc'], r['dtype'], r['ratio'], r['what'], bound, 'holds' if r['ratio'] >= bound else 'DOES NOT HOLD'))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=512)
    parser.add_argument('--out', help='a file for the JSON')
    given = parser.parse_args()
    rows = call_rows()
    beside = (torch_row, 'torch.fft', torch is not None), (dct_row, 'dctn', cupy is not None or not GPU)
    for make, name, there in beside:
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
    result = {'device': device_name(), 'date': datetime.date.today().isoformat(), 'version': poisson_gpu.version,
              'torch': torch and torch.__version__, 'cupy': cupy and cupy.__version__, 'rows': rows}
    print('%s, %s' % (result['device'], result['version']))
    print_table(rows)
    print()
    check(rows)
    text = json.dumps(result)
    if given.out:
        pathlib.Path(given.out).write_text(text + '\n', encoding='utf-8')
    print(text)


if __name__ == '__main__':
    main()
