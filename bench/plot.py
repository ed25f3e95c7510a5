#!/usr/bin/env python3
"""Draws the results of pg_bench, writes them as tables, and quotes some of them in the README.

    plot.py [FILE.json ...]            an SVG and tables (.md) beside each file (default: every file in results/)
    plot.py --readme [FILE.json ...]   also rewrites the README between <!-- bench --> and <!-- /bench -->: the newest
                                       files of the GPU of results/peers.json, beside the times of others there, and
                                       between <!-- compile --> and <!-- /compile -->: the newest of compile.py. Draws
                                       results/beside-peers.svg of the former

Only Python's standard library is needed.
"""
import argparse
import json
import math
import pathlib
import re
import textwrap
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parent / 'README.md'

INK, GREY, RULE = '#1b2430', '#66717f', '#e3e7ec'
F64, F32 = '#1f5fa8', '#9cc3ea'
BARS = ['jacobi sweep', 'red-black sweep', 'SOR sweep', 'residual', 'apply', 'norm', 'dot',
        'V(2,1) cycle', 'W(2,1) cycle', 'FMG pass']
TABLE = ['jacobi sweep', 'red-black sweep', 'V(2,1) cycle', 'FMG pass', 'solve 1e-8', 'mixed solve 1e-10', 'direct solve',
         'slab solve', 'open solve', 'padding by cuFFT', 'CG', 'pipelined CG', 'BiCGStab', 'pipelined BiCGStab', 'CG, cycle, mixed 1e-10']
NAMES = {'CG': 'CG iteration', 'pipelined CG': 'pipelined CG iteration', 'BiCGStab': 'BiCGStab iteration',
         'pipelined BiCGStab': 'pipelined BiCGStab iteration'}
# what is solved, precision, what the picture calls it, colour
LINES = [('FMG pass', 'f32', 'FMG pass, f32', '#8fc7b0'), ('FMG pass', 'f64', 'FMG pass', '#17795a'),
         ('mixed solve 1e-10', 'f64', 'to 1e-10, mixed', '#c65d0e'), ('solve 1e-8', 'f64', 'to 1e-8', '#1f5fa8')]


def beats_floor(result, row):
    """Why a row took less time than its floor, or nothing."""
    if row['over_floor'] >= 0.995:                      # 1.00 in tables
        return ''
    if 'sweep' in row['row'] and result['backend'] == 'cuda':
        return 'two sweeps share a pass over memory, so that one can take less than its floor'
    return 'what fits into a cache can take less than the floor of the main memory'


def cubes(result, dim=3):
    """The measured rows of cell-centred cubes (or of squares), as {(row, n, precision): row}."""
    found = {}
    for row in result['rows']:
        n = row['n']
        if 'milliseconds' in row and sum(m > 1 for m in n) == dim and (dim < 3 or row['centring'] == 'cell'):
            found[row['row'], n[0], row['precision']] = row
    return found


def copied(result):
    return 'copy' if result['backend'] == 'cuda' else 'triad'


def points(row):
    return math.prod(row['n'])


def power_of_ten(exponent):
    return f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'


class Picture:
    def __init__(self, width, height):
        self.size = width, height
        self.parts = []

    def text(self, x, y, text, size=12, colour=INK, anchor='start', weight='normal', raw=False):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
                          f'font-weight="{weight}">{text if raw else escape(text)}</text>')

    def line(self, x0, y0, x1, y1, colour=RULE, width=1.0, dash=''):
        dash = f' stroke-dasharray="{dash}"' if dash else ''
        self.parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"{dash}/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="1.5" '
                          f'fill="{colour}"/>')

    def curve(self, xy, colour, dash=''):
        dash = f' stroke-dasharray="{dash}"' if dash else ''
        path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in xy)
        self.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dash} '
                          f'points="{path}"/>')
        for x, y in xy:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def __str__(self):
        width, height = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" '
                'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
                f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n'
                + '\n'.join(self.parts) + '\n</svg>\n')


def draw_floors(picture, result, x, y, width, height):
    """Bars: how many times the floor each operation takes, on the largest cube."""
    found = cubes(result)
    largest = max((n for _, n, _ in found), default=0)
    names = [b for b in BARS if (b, largest, 'f64') in found or (b, largest, 'f32') in found]
    picture.text(x, y - 30, f'Time over the memory floor, {largest}\u00b3', 14, weight='600')
    picture.text(x, y - 13, '1: the bytes of one operation, at copy speed; shorter is better', 11.5, GREY)
    if not names:
        return
    left, top = x + 112, y + 6
    value = {key: found[key]['over_floor'] for key in found if key[0] in names and key[1] == largest}
    end = max(1.25, *value.values()) * 1.08
    scale = (width - 112 - 34) / end
    for tick in range(0, int(end) + 1, 1 if end < 9 else math.ceil(end / 6)):
        picture.line(left + tick * scale, top - 4, left + tick * scale, y + height, RULE)
        picture.text(left + tick * scale, y + height + 16, str(tick), 11, GREY, 'middle')
    picture.line(left + scale, top - 4, left + scale, y + height, INK, 1.2, '4 3')
    below = [(name, reason) for name in names for precision in ('f64', 'f32')
             if (reason := beats_floor(result, found.get((name, largest, precision), {'over_floor': 1})))]
    if below:
        picture.text(x, y + height + 34, '* ' + '; '.join(sorted({reason for _, reason in below})), 11, GREY)
    step = (height - 10) / len(names)
    thick = min(10.0, step * 0.36)
    for i, name in enumerate(names):
        middle = top + (i + 0.5) * step
        picture.text(left - 8, middle + 4, name + ' *' * (name in dict(below)), 12, INK, 'end')
        for precision, colour, at in (('f64', F64, middle - thick - 0.75), ('f32', F32, middle + 0.75)):
            if (name, largest, precision) in value:
                v = value[name, largest, precision]
                picture.bar(left, at, v * scale, thick, colour)
                beside = scale if v < 1 < v + 30 / scale else v * scale    # not across the line of 1
                picture.text(left + beside + 4, at + thick - 1, f'{v:.2f}', 10, GREY)
    for i, (label, colour) in enumerate((('f64', F64), ('f32', F32))):
        picture.bar(x + width - 108 + 46 * i, y - 39, 10, 10, colour)
        picture.text(x + width - 94 + 46 * i, y - 30, label, 11.5)


def draw_rates(picture, result, x, y, width, height):
    """Curves: unknowns solved in a second, over the size of the problem."""
    curves = []
    for row, precision, label, colour in LINES:
        for dim in (3, 2):
            rows = [r for key, r in cubes(result, dim).items() if key[0] == row and key[2] == precision]
            rows.sort(key=points)
            if rows:
                curves.append((dim, label, colour, [(points(r), r['gdof_per_s']) for r in rows]))
    picture.text(x, y - 30, 'Unknowns solved in a second', 14, weight='600')
    picture.text(x, y - 13, 'in 1e9/s; 3D solid, 2D dashed; higher is better', 11.5, GREY)
    if not curves:
        return
    flat = [p for c in curves for p in c[3]]
    x0, x1 = (math.log10(f(p[0] for p in flat)) for f in (min, max))
    y0, y1 = math.floor(math.log10(min(p[1] for p in flat))), math.ceil(math.log10(max(p[1] for p in flat)))
    x0, x1 = x0 - 0.1, max(x1, x0 + 0.5) + 0.1
    left, right, bottom = x + 46, x + width - 112, y + height

    def at(p):
        return (left + (math.log10(p[0]) - x0) / (x1 - x0) * (right - left),
                bottom - (math.log10(p[1]) - y0) / (y1 - y0) * (height - 4))

    for e in range(math.ceil(x0), math.floor(x1) + 1):
        picture.line(at((10.0**e, 10.0**y0))[0], y, at((10.0**e, 10.0**y0))[0], bottom, RULE)
        picture.text(at((10.0**e, 10.0**y0))[0], bottom + 16, power_of_ten(e), 11, GREY, 'middle', raw=True)
    for e in range(y0, y1 + 1):
        level = at((10.0**x0, 10.0**e))[1]
        picture.line(left, level, right, level, RULE)
        picture.text(left - 6, level + 4, f'{10.0**e:g}', 11, GREY, 'end')
    picture.text((left + right) / 2, bottom + 33, 'unknowns', 11, GREY, 'middle')

    labels = []
    for dim, label, colour, series in curves:
        picture.curve([at(p) for p in series], colour, '' if dim == 3 else '5 4')
        if dim == 3:
            labels.append([at(series[-1])[1], label, colour])
    labels.sort()
    for i in range(1, len(labels)):             # keep the labels apart
        labels[i][0] = max(labels[i][0], labels[i - 1][0] + 15)
    for level, label, colour in labels:
        picture.text(right + 8, level + 4, label, 11.5, colour, weight='600')


def draw(result):
    picture = Picture(960, 464)
    threads = f", {result['threads']} threads" if 'threads' in result else ''
    picture.text(28, 38, result['device'] + threads, 18, weight='600')
    picture.text(932, 38, f"{copied(result)} {result['copy']['gb_per_s']:.0f} GB/s, read + write", 12, GREY, 'end')
    picture.text(28, 58, f"{result['date']}, {result['version']}", 11.5, GREY)
    draw_floors(picture, result, 28, 124, 424, 284)
    draw_rates(picture, result, 500, 124, 432, 270)
    return str(picture)


def figure(value):
    """Three significant digits, without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f'{value:.{digits}f}'


def scene_table(result):
    """Markdown for the scenes with obstacles and coefficients: of each the largest size, in every precision."""
    rows = [row for row in result.get('scenes', []) if 'milliseconds' in row]
    largest = {}
    for row in rows:
        largest[row['scene']] = max(row['n'][0], largest.get(row['scene'], 0))
    rows = [row for row in rows if row['n'][0] == largest[row['scene']]]
    if not rows:
        return []
    out = ['', '| scene | cells | iterations | ms | cycle, of empty box | set-up, in cycles | grids beyond u, f |',
           '|---' + '|--:' * 6 + '|']
    for row in rows:
        share = f"{row['over_empty_box']:.2f}" if 'over_empty_box' in row else ''
        remark = f" ({row['remark']})" if 'remark' in row else ''
        out.append(f"| {row['scene']}, {row['precision']} | {row['n'][0]}^3 | {row['iterations']}{remark} | "
                   f"{figure(row['milliseconds']['median'])} | {share} | {row['set_up_cycles']:.1f} | "
                   f"{row['workspace_grids']:.1f} |")
    return out


def scene_checks(result):
    out = []
    for row in result.get('scenes', []):
        for check in row.get('checks', []):
            out += ['', f"Check: {row['scene']} {row['n'][0]}^3 {row['precision']}, {check['what']}: "
                    f"{check['value']:.2f} (bound {check['bound']:.2f}: {'holds' if check['holds'] else 'missed'})."]
    return out


def quote(result, svg):
    """Markdown: all of one device, with the bounds that its rows have."""
    found = cubes(result)
    largest = max((n for _, n, _ in found), default=0)
    threads = f", {result['threads']} threads" if 'threads' in result else ''
    out = [f"**{result['device']}{threads}**, {result['date']}, {result['version']}; "
           f"{copied(result)} {result['copy']['gb_per_s']:.0f} GB/s (read + write)", '']
    if svg:
        out += [f"![Time over the memory floor, and unknowns solved in a second, on {result['device']}]({svg})", '']
    out += [f'| 3D, {largest}^3 cells | f64 ms | x floor | GDOF/s | f32 ms | x floor | GDOF/s |',
            '|---' + '|--:' * 6 + '|']
    for name in TABLE:
        cells, iterations = [], ''
        for precision in ('f64', 'f32'):
            row = found.get((name, largest, precision))
            if not row:
                cells += [''] * 3
                continue
            cells += [figure(row['milliseconds']['median']), f"{row['over_floor']:.2f}", figure(row['gdof_per_s'])]
            if row.get('iterations', 1) > 1:
                iterations = f" ({row['iterations']} iterations)"
        if any(cells):
            out.append(f'| {NAMES.get(name, name)}{iterations} | ' + ' | '.join(cells) + ' |')
    for reason in sorted({beats_floor(result, found[key]) for key in found if key[0] in TABLE and key[1] == largest} - {''}):
        out += ['', f'Below 1 x floor: {reason}.']
    solves = {n: row for (name, n, _), row in sorted(found.items()) if name == 'solve 1e-8'}
    if solves:
        out += ['', '| solve 1e-8 | ' + ' | '.join(f'{n}^3' for n in solves) + ' |',
                '|---' + '|--:' * len(solves) + '|',
                '| ms | ' + ' | '.join(figure(row['milliseconds']['median']) for row in solves.values()) + ' |']
    dense = [row for row in result.get('dense', []) if row['precision'] == 'f64']
    if dense:
        out += ['', '| dense sweep, f64 | n | ms | of the copy bandwidth |', '|---' + '|--:' * 3 + '|']
        out += [f"| {row['sweep']} | {row['n']} | {figure(row['milliseconds']['median'])} | {row['share_of_copy']:.0%} |"
                for row in dense]
    out += scene_table(result)
    for row in result['rows']:
        if 'bound' in row:
            out += ['', f"Check: {row['row']} {row['n'][0]}^3 {row['precision']} takes {row['over_floor']:.2f} times "
                    f"its floor (bound {row['bound']:.2f}: {'holds' if row['holds'] else 'missed'})."]
    out += scene_checks(result)
    return '\n'.join(out)


def python_tables(result):
    """Markdown for what bench/python.py measured."""
    calls = [row for row in result['python'] if row['row'] == 'call']
    solves = [row for row in result['python'] if row['row'] == 'solve']
    out = []
    if calls:
        out += ['| call from Python, arrays | us | C call | beyond it | of both ctypes |', '|---' + '|--:' * 4 + '|']
        out += [f"| {row['what']} | {row['call_us']:.1f} | {row['c_call_us']:.1f} | {row['beyond_us']:.1f} | "
                f"{row['ctypes_us']:.1f} |" for row in calls]
    if solves:
        out += [''] * bool(calls) + ['| direct solve | ms | beside | ms | ratio | apart |', '|---|--:|---|--:|--:|--:|']
        out += [f"| {row['bc']} {row['n']}^3 {row['dtype']} | {figure(row['ms'])} | {row['what']} | "
                f"{figure(row['other_ms'])} | {row['ratio']:.1f} | {row['relative_difference']:.0e} |"
                for row in solves]
    for row in result['python']:
        if 'bound' in row:
            holds = f"(bound {row['bound']:g}: {'holds' if row['holds'] else 'missed'})"
            if row['row'] == 'call':
                beyond = row['beyond_us'] + row['ctypes_us']
                out += ['', f"Check: a call with {row['what']} arrays takes {beyond:.1f} us beyond the C call, ctypes "
                        f"included {holds}."]
            else:
                out += ['', f"Check: {row['bc']} {row['n']}^3 {row['dtype']} is {row['ratio']:.1f} times as fast as "
                        f"{row['what']} {holds}."]
    return out


def quote_python(result):
    """Markdown: one device from Python."""
    modules = ', '.join(f'{name} {version}' for name, version in result['modules'].items())
    return '\n'.join([f"From Python on {result['device']}, {result['date']}, {modules}:", ''] + python_tables(result))


def rows_beside_peers(peers, result, python):
    """What is solved, our milliseconds, and pairs of others and theirs on the same kind of GPU."""
    measured = {(row['row'], row['n'][0], row['centring']): row['milliseconds']['median'] for row in result['rows']
                if row['precision'] == 'f64' and row['n'][2] > 1}
    rows = []
    for row in peers['rows']:
        unknowns = 'cells' if row['centring'] == 'cell' else 'nodes'
        what = row['row'].replace('solve 1e-8', 'multigrid to 1e-8').replace('FMG pass', 'one pass of full multigrid')
        rows.append((f"{what}, {row['n']}^3 {unknowns}", measured[row['row'], row['n'], row['centring']], row['peers']))
    for row in python['python']:
        if row['row'] == 'solve' and row['dtype'] == 'float64':
            rows.append((f"direct solve from Python, {row['bc']}, {row['n']}^3", row['ms'],
                         [(row['what'].replace('cupy dctn', 'CuPy, dctn + idctn'), row['other_ms'])]))
    return rows


def beside_peers(peers, result, python):
    """Markdown for the README."""
    out = ['| f64, 3D | ms | others, ms |', '|---|--:|---|']
    out += [f"| {what} | {figure(own)} | {'; '.join(f'{name}: {float(figure(ms)):g}' for name, ms in others)} |"
            for what, own, others in rows_beside_peers(peers, result, python)]
    return '\n'.join(out + ['', f"One {result['device']}, {result['version']}; ours {result['date']} (from Python "
                            f"{python['date']}), others {peers['date']}: {peers['how']}."])


def draw_peers(peers, result, python):
    """The same as bars of milliseconds on a logarithmic axis, ours first in each group."""
    rows = rows_beside_peers(peers, result, python)
    bars, left, right, top, thick, gap = sum(1 + len(row[2]) for row in rows), 300, 700, 84, 13, 9
    height = top + bars * (thick + 2) + len(rows) * gap
    picture = Picture(960, height + 40)
    times = [ms for _, own, others in rows for ms in (own, *(ms for _, ms in others))]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    scale = (right - left) / (high - low)
    picture.text(28, 36, f"Milliseconds of a solve, {result['device']}, 3D, f64", 18, weight='600')
    picture.text(28, 56, 'logarithmic: a grid line is a factor of 10; shorter is better', 11.5, GREY)
    for e in range(low, high + 1):
        picture.line(left + (e - low) * scale, top - 8, left + (e - low) * scale, height, RULE)
        picture.text(left + (e - low) * scale, height + 16, f'{10.0**e:g} ms', 11, GREY, 'middle')
    y = top
    for what, own, others in rows:
        picture.text(left - 10, y + thick - 2, what.replace('^3', '\u00b3'), 12, INK, 'end')
        for name, ms, colour in [('poisson_gpu', own, F64), *((name, ms, '#b9c1cb') for name, ms in others)]:
            width = (math.log10(ms) - low) * scale
            picture.bar(left, y, width, thick, colour)
            picture.text(left + width + 6, y + thick - 3, f'{float(figure(ms)):g}  {name}', 11,
                         INK if colour == F64 else GREY)
            y += thick + 2
        y += gap
    return str(picture)


def compile_text(result):
    """A paragraph for the README: what compile.py measured."""
    compilers = ', '.join(name.split(',')[0] for name in result['compilers'])
    rows = []
    for row in result['rows']:
        line = row['line'].replace(' -x c++ -std=c++17 -O3 -fopenmp', '').replace(
            ' -O3 -std=c++17 -arch=sm_90 -Xcompiler -fopenmp', ' for sm_90')
        rows.append(f"{line} {row['core_seconds']:.0f} s, {row['object_bytes'] / 1e6:.1f} MB")
    text = f"Time of one core and size of the object: {'; '.join(rows)} ({result['processor']}, {compilers}, {result['date']})."
    return textwrap.fill(text, 126, break_on_hyphens=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('files', nargs='*', type=pathlib.Path)
    parser.add_argument('--readme', action='store_true')
    arguments = parser.parse_args()
    peers = json.loads((HERE / 'results' / 'peers.json').read_text(encoding='utf-8'))
    newest = {}                                 # of pg_bench, and of python.py
    for path in arguments.files or sorted((HERE / 'results').glob('*-20*.json')):
        result = json.loads(path.read_text(encoding='utf-8'))
        if 'compilers' in result:               # of compile.py: only the README has it
            newest['compile'] = result
            continue
        table = path.with_suffix('.md')
        if 'python' in result:                  # it has no picture
            table.write_text(quote_python(result) + '\n', encoding='utf-8')
        else:
            picture = path.with_suffix('.svg')
            picture.write_text(draw(result), encoding='utf-8')
            table.write_text(quote(result, picture.name) + '\n', encoding='utf-8')
            print('written:', picture)
        print('written:', table)
        kind = 'python' if 'python' in result else 'bench'
        if result['device'] == peers['device'] and result['date'] >= newest.get(kind, result)['date']:
            newest[kind] = dict(result, path=path)
    if not arguments.readme:
        return
    result = newest['bench']
    picture = HERE / 'results' / 'beside-peers.svg'
    picture.write_text(draw_peers(peers, result, newest['python']), encoding='utf-8')
    picture = picture.relative_to(README.parent).as_posix()
    text = README.read_text(encoding='utf-8')
    block = '\n'.join(['<!-- bench -->', beside_peers(peers, result, newest['python']), '',
                       f"![Milliseconds of a solve beside other libraries, {result['device']}]({picture})",
                       '<!-- /bench -->'])
    blocks = {'bench': block, 'compile': '\n'.join(['<!-- compile -->', compile_text(newest['compile']), '<!-- /compile -->'])}
    for name, block in blocks.items():
        text, count = re.subn(f'<!-- {name} -->.*?<!-- /{name} -->', lambda match: block, text, flags=re.S)
        if count != 1:
            raise SystemExit(f'{README}: {count} places between <!-- {name} --> and <!-- /{name} -->, not 1')
    README.write_text(text, encoding='utf-8')
    print('written:', README)


if __name__ == '__main__':
    main()
