#!/usr/bin/env python3
"""What it takes to compile poisson_gpu.cu, whole and with switches: seconds of one core, and bytes of the object.

    python3 bench/compile.py [--out bench/results]    writes compile-DATE.json there

A line whose compiler is not there is left out. nvcc makes code for sm_90.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent / 'poisson_gpu.cu'
CPU = ['g++', '-x', 'c++', '-std=c++17', '-O3', '-fopenmp']
NVCC = [shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc', '-O3', '-std=c++17', '-arch=sm_90', '-Xcompiler', '-fopenmp']
ALL = ['-DPG_NO_' + part for part in ('F32', 'DIRECT', 'DENSE', 'CELLS', 'KRYLOV', 'RANKS')]


def compiled(line, folder):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before, object_file = used(), pathlib.Path(folder) / 'poisson_gpu.o'
    subprocess.run(line + ['-c', str(SOURCE), '-o', str(object_file)], check=True)
    name = ' '.join([os.path.basename(line[0])] + line[1:])
    return {'line': name, 'core_seconds': round(used() - before, 1), 'object_bytes': object_file.stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=pathlib.Path, default=SOURCE.parent / 'bench' / 'results')
    lines = [CPU, CPU + ['-DPG_NO_CELLS'], CPU + ALL, NVCC]
    today = datetime.date.today().isoformat()
    folder = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        rows = [compiled(line, scratch) for line in lines if shutil.which(line[0])]
    processor = next((line.split(':')[1].strip() for line in open('/proc/cpuinfo', encoding='utf-8')
                      if line.startswith('model name')), 'unknown')
    versions = [subprocess.run([line[0], '--version'], capture_output=True, text=True).stdout.strip().split('\n')
                for line in (CPU, NVCC) if shutil.which(line[0])]
    result = {'processor': processor, 'date': today, 'compilers': [v[0] if 'g++' in v[0] else v[-2] for v in versions],
              'rows': rows}
    path = folder / f'compile-{today}.json'
    path.write_text(json.dumps(result, indent=1) + '\n', encoding='utf-8')
    print('written:', path)


if __name__ == '__main__':
    main()
