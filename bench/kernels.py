#!/usr/bin/env python3
"""Registers, spills, shared memory and code size of every kernel, as a file that tests compare with: bench/kernels.txt.

    nvcc -O3 -std=c++17 -gencode arch=compute_90,code=sm_90 -Xptxas -v -keep --keep-dir DIR -c poisson_gpu.cu 2>nvcc.log
    python3 bench/kernels.py nvcc.log DIR           compares; exit status 0: as recorded, or better
    python3 bench/kernels.py nvcc.log DIR --write   renews the file: on purpose, with figures in the commit

More registers or spilled bytes than recorded fail, so do a kernel that is not recorded, one that is recorded and not
compiled, and 5 % more code. Figures of another release of nvcc are not compared. Needs readelf and c++filt.
"""
import os
import re
import subprocess
import sys

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'kernels.txt')
COLUMNS = ['registers', 'spilled', 'shared', 'code']
SLACK = {'code': 1.05}


def compiler(log_folder):
    release = subprocess.run([os.environ.get('NVCC', 'nvcc'), '--version'], capture_output=True, text=True).stdout
    return re.search(r'release \S+, (V\S+)', release).group(1)


def measured(log, folder):
    """{(kernel, architecture): figures}"""
    found = {}
    entry = re.compile(r"Compiling entry function '(\S+)' for '(sm_\d+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
                       r"(\d+) bytes spill loads.*?Used (\d+) registers([^\n]*)", re.S)
    for name, arch, _, stores, loads, registers, rest in entry.findall(open(log, encoding='utf-8').read()):
        shared = re.search(r'(\d+) bytes smem', rest)
        found[name, arch] = [int(registers), int(stores) + int(loads), int(shared.group(1)) if shared else 0, 0]
    archs = {arch for _, arch in found}
    for file in sorted(os.listdir(folder)):
        m = re.search(r'(?:[._](\d+))?\.cubin$', file)           # its name tells the architecture if there are several
        if not m:
            continue
        arch = 'sm_' + m.group(1) if m.group(1) else ''.join(archs)
        table = subprocess.run(['readelf', '-SW', os.path.join(folder, file)], capture_output=True, text=True).stdout
        for name, size in re.findall(r' \.text\.(\S+)\s+PROGBITS\s+\S+\s+\S+\s+(\S+)', table):
            if (name, arch) in found:
                found[name, arch][3] = int(size, 16)
    names = sorted({name for name, _ in found})
    plain = subprocess.run(['c++filt'], input='\n'.join(names), capture_output=True, text=True).stdout
    plain = plain.replace('(anonymous namespace)::', '').split('\n')
    short = {name: re.sub(r'^void ', '', text).rsplit('>(', 1)[0] + '>' if '>(' in text else text.split('(')[0]
             for name, text in zip(names, plain)}
    return {(short[name].replace(' ', ''), arch): figures for (name, arch), figures in found.items()}


def main():
    log, folder = sys.argv[1:3]
    now, version = measured(log, folder), compiler(log)
    if not now:
        print('no kernels in ' + log)
        return 1
    if '--write' in sys.argv:
        with open(RECORD, 'w', encoding='utf-8') as out:
            out.write('nvcc %s; kernel, architecture, %s (bytes but for registers)\n' % (version, ', '.join(COLUMNS)))
            for (name, arch), figures in sorted(now.items()):
                out.write('%s %s %s\n' % (name, arch, ' '.join(map(str, figures))))
    with open(RECORD, encoding='utf-8') as record:
        recorded_version = next(record).split(';')[0].split()[1]
        known = {tuple(line.split()[:2]): list(map(int, line.split()[2:])) for line in record}
    if version != recorded_version:
        print('recorded with nvcc %s, and this is %s: not compared' % (recorded_version, version))
        return 0
    faults = ['%s for %s is not recorded' % key for key in sorted(set(now) - set(known))]
    faults += ['%s for %s is recorded, but not compiled' % key for key in sorted(set(known) - set(now))]
    better = 0
    for key in sorted(set(now) & set(known)):
        for column, new, old in zip(COLUMNS, now[key], known[key]):
            if new > old * SLACK.get(column, 1):
                faults.append('%s for %s: %s %d, recorded %d' % (key + (column, new, old)))
            better += new < old
    archs = sorted({arch for _, arch in now})
    sums = ['%s %d kernels, %.2f MB of code, %d B spilled' %
            (arch, sum(a == arch for _, a in now), sum(f[3] for (_, a), f in now.items() if a == arch) / 1e6,
             sum(f[1] for (_, a), f in now.items() if a == arch)) for arch in archs]
    print('\n'.join(faults + sums + (['%d figures are better than recorded' % better] if better else [])))
    return len(faults) > 0


sys.exit(main())
