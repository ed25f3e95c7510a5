#!/usr/bin/env python3
"""A model of cycles on up to 1024 GPUs, from what pg_ranks and comm have measured: two tables in Markdown.

    model.py [RANKS.json COMM.json]      default: the newest files of results/ranks/ (of GPUs) and results/comm/
"""
import json
import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETWORK_GB, NETWORK_MS = 42, 0.018     # of each GPU, and of an exchange: assumed
SHARED = int(re.search(r'define PGI_SHARED_POINTS_GPU (\d+)', (HERE.parent / 'poisson_gpu.cu').read_text('utf-8')).group(1))
NODE = 2, 2, 2                         # GPUs of a node
V, FMG = 'V(2,1) cycle', 'FMG pass'


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding='utf-8'))


def newest(folder):
    found = [result for path in (HERE / 'results' / folder).glob('*.json')
             if (result := read(path)).get('backend', 'cuda') == 'cuda' and result.get('transport') != 'NCCL']
    if not found:
        raise SystemExit(f'no results of GPUs in {HERE / "results" / folder}')
    return max(found, key=lambda result: (result['date'], result['ranks'], result['device']))


def line(known):
    """The straight lines between known points, (x, y), and on beyond them."""
    known = sorted(known)
    if len(known) < 2:
        raise SystemExit('a file lacks rows that the model needs')
    def at(x):
        after = min(max(1, sum(p[0] < x for p in known)), len(known) - 1)
        (x0, y0), (x1, y1) = known[after - 1:after + 1]
        return max(0.0, y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return at


def problem(scaling, side):
    return f'{scaling}, {side}^3' + ' a GPU' * (scaling == 'weak')


class Model:
    def __init__(self, ranks, comm):
        self.rows = [r for r in ranks['rows'] if 'milliseconds' in r and r['precision'] == 'f64' and r['n'][2] > 1]
        alone = [(r['row'], math.prod(r['n']), r['milliseconds']['median']) for r in self.rows if r['ranks'] == 1]
        self.work = {name: line({points: ms for row, points, ms in alone if row == name}.items()) for name in (V, FMG)}
        peers = {r['what']: r for r in comm['comm'] if r['transport'] == 'peers'}
        self.peers = line((r['bytes'], 1e-3 * r['us_in_graph']) for what, r in peers.items() if 'two grids' in what)
        self.gather = line((int(m.group(1)) ** 3, 1e-3 * r['us_in_graph']) for what, r in peers.items()
                           if (m := re.match(r'all ranks get (\d+)', what)))
        self.side = next(r['n'][0] for r in self.rows if r['scaling'] == 'weak')
        self.more, self.measured_on = 0.0, None       # ms of an exchange beyond what `comm` says
        for r in self.rows:
            if (r['scaling'], r['row']) == ('weak', V) and r['ranks'] > 1:
                work, waits, _, count = self.cycle(r['row'], r['n'], (1, 1, r['ranks']), (1, 1, r['ranks']))
                self.more += (r['milliseconds']['median'] - work - waits) / count
                self.measured_on = r['ranks']

    def measured(self, *wanted):
        return next((r.get('speed_up', r.get('efficiency')) for r in self.rows
                     if (r['scaling'], r['row'], r['n'][0], r['ranks']) == wanted), None)

    def faces(self, local, parts, node):
        """Bytes of a plane for all neighbours: those of the same node, and others."""
        near = far = 0
        for a in range(3):
            neighbours = min(parts[a] - 1, 2)
            inside = neighbours if node[a] >= parts[a] else min(node[a] - 1, 1)
            face = 8 * math.prod(local) / local[a]
            near, far = near + inside * face, far + (neighbours - inside) * face
        return near, far

    def cycle(self, name, n, parts, node, overlap=False):
        """ms of the work of a GPU and of what it waits for others, bytes that leave it, exchanges."""
        work, full = self.work[name](math.prod(n) / math.prod(parts)), name == FMG
        levels, ms, sent, count = [], 0.0, 0.0, 0
        while math.prod(n) > SHARED:
            levels.append(self.faces([n[a] / parts[a] for a in range(3)], parts, node))
            n = [m / 2 for m in n]
        for start in range(len(levels) if full else 1):        # V-cycles
            for depth, (near, far) in enumerate(levels[start:]):
                planes = [6, 2] if depth else [4, 2]           # of f and the correction; of u
                if full and depth and start == 0:
                    planes += [6, 5]                           # of f, and of u to interpolate
                for p in planes:
                    wire = 0 if overlap and depth == 0 else 1e-6 * p * far / NETWORK_GB
                    ms += (self.peers(p * near) if near else 0) + (NETWORK_MS + wire if far else 0)
                    sent, count = sent + p * (near + far), count + 1
            ms += self.gather(math.prod(n))
            ms += NETWORK_MS + 8e-6 * math.prod(n) / NETWORK_GB if levels and levels[0][1] else 0
            count += 1
        return work, ms + count * self.more, sent, count

    def inside(self):
        print('\n| | GPUs |' + ''.join(f' {name}: sent a GPU, exchanges | work + communication, ms | model | measured |'
                                     for name in self.work))
        print('|---|--:|' + '--:|' * 8)
        for scaling, side in (('weak', self.side), ('strong', 2 * self.side), ('strong', self.side)):
            for gpus in (2, 4, 8):
                cells, parts = '', (1, 1, gpus)
                for name in self.work:
                    n = side, side, side * (gpus if scaling == 'weak' else 1)
                    work, waits, sent, count = self.cycle(name, n, parts, parts)
                    gain = self.work[name](side ** 3) / (work + waits)
                    found = self.measured(scaling, name, side, gpus)
                    show = '{:.0%} |' if scaling == 'weak' else '{:.2f} x |'
                    cells += f' {1e-6 * sent:.0f} MB, {count} | {work:.2f} + {waits:.2f} | {show.format(gain)} '
                    cells += show.format(found) if found else '|'
                print(f'| {problem(scaling, side)} | {gpus} |{cells}')

    def across(self):
        most = (8, 16, 64, 128, 512, 1024)
        print('| V(2,1) |' + ''.join(f' {gpus} GPUs |' for gpus in most))
        print('|---|' + '--:|' * len(most))
        for label, overlap in ('no overlap', False), ('the finest level overlapped', True):
            for scaling, side in (('weak', self.side), ('strong', 2 * self.side), ('strong', 4 * self.side)):
                cells = ''
                for gpus in most:
                    parts = [2 ** len(range(a, gpus.bit_length() - 1, 3)) for a in (2, 1, 0)]
                    n = [side * (parts[a] if scaling == 'weak' else 1) for a in range(3)]
                    gain = self.work[V](side ** 3) / sum(self.cycle(V, n, parts, NODE, overlap)[:2])
                    cells += f' {gain:.0%} |' if scaling == 'weak' else f' {gain:.1f} x |'
                print(f'| {problem(scaling, side)}, {label} |{cells}')


def main():
    ranks, comm = map(read, sys.argv[1:]) if len(sys.argv) == 3 else (newest('ranks'), newest('comm'))
    model = Model(ranks, comm)
    print(f"""**A model, not measured**, but for the columns that say so. f64 cells, u = 0 at the sides. Assumptions:
- Work: times of one {ranks['device']} ({ranks['date']}) at other sizes, on straight lines between them and beyond.
- Inside a host: slabs. Exchanges, gatherings: as by `comm`, peers ({comm['ranks']} {comm['device']}, {comm['date']}).
- Planes a neighbour: u 4 and 2 on the finest level; f 6, the correction 2 on others; full multigrid f 6, u 5 more.
  A level of at most {SHARED} points is on all ranks.""")
    if model.measured_on:
        print(f'- An exchange takes {1e3 * model.more:.1f} us more, as in weak V(2,1) on {model.measured_on} GPUs.')
    model.inside()
    print(f"""
Nodes of 8 GPUs as boxes of 2 x 2 x 2, which the library does not have. Assumed: {NETWORK_GB} GB/s a GPU and
{1e3 * NETWORK_MS:.0f} us an exchange between nodes; overlapped: the finest level hides its bytes, not that time.
""")
    model.across()


if __name__ == '__main__':
    main()
