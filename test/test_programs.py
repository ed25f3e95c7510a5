#!/usr/bin/env python3
"""The programs that the manual and the front page show are those of samples/, word for word.   test_programs.py [PROJECT_FOLDER]

The header's first screen is samples/hello.c; every block of C or Python in the README is a part of a file of samples/.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
program = re.search(r'^#include <math.h>.*?^}\n', (root / 'poisson_gpu.h').read_text(encoding='utf-8'), re.S | re.M)
assert program and program[0] == (root / 'samples/hello.c').read_text(encoding='utf-8'), 'samples/hello.c'
files = {file: file.read_text(encoding='utf-8') for suffix in ('c', 'py') for file in (root / 'samples').rglob('*.' + suffix)}
blocks = re.findall(r'^```(?:c|python)\n(.*?)^```', (root / 'README.md').read_text(encoding='utf-8'), re.S | re.M)
assert len(blocks) >= 3, 'the README has %d programs' % len(blocks)
for block in blocks:
    found = [file.name for file, text in files.items() if block in text]
    assert found, 'in no file of samples/:\n' + block
    print('%d lines of %s' % (block.count('\n'), ', '.join(found)))
