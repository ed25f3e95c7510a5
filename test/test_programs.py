#!/usr/bin/env python3
"""The programs of the manual and the front page are those of samples/, word for word.   test_programs.py [PROJECT_FOLDER]

The header's first screen is samples/hello.c; its recipes, and every block of C or Python in the README, are parts of files
of samples/. Both texts have lines of bounded length and no words that only the authors know.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
header, readme = ((root / name).read_text(encoding='utf-8') for name in ('poisson_gpu.h', 'README.md'))
files = {file: file.read_text(encoding='utf-8') for suffix in ('c', 'py') for file in (root / 'samples').rglob('*.' + suffix)}


def stripped(text):
    return [line.strip() for line in text.split('\n') if line.strip()]


def expect_in_samples(block):
    """Lines one after the other in a file, whatever their indentation."""
    lines, found = stripped(block), []
    for file, text in files.items():
        own = stripped(text)
        if any(own[q:q + len(lines)] == lines for q in range(len(own))):
            found.append(file.name)
    assert found, 'in no file of samples/:\n' + block
    print('%d lines of %s' % (len(lines), ', '.join(found)))


program = re.search(r'^#include <math.h>.*?^}\n', header, re.S | re.M)
assert program and program[0] == (root / 'samples/hello.c').read_text(encoding='utf-8'), 'samples/hello.c'
recipes = re.search(r'^   RECIPES.*?^   CONVENTIONS', header, re.S | re.M)[0]
blocks = re.findall(r'(?:^ {7}.*\n)+', recipes, re.M)
assert len(blocks) == 2, 'the header has %d recipes' % len(blocks)
for block in blocks:
    expect_in_samples(block)
blocks = re.findall(r'^```(?:c|python)\n(.*?)^```', readme, re.S | re.M)
assert len(blocks) >= 3, 'the README has %d programs' % len(blocks)
for block in blocks:
    expect_in_samples(block)

manual = header[:header.index('#endif /* POISSON_GPU_H */')]
assert header.count('\n') <= 480, 'the header has %d lines' % header.count('\n')
for number, line in enumerate(header.split('\n'), 1):
    assert len(line) <= 100, 'poisson_gpu.h:%d has %d columns' % (number, len(line))
assert readme.count('\n') <= 160, 'the README has %d lines' % readme.count('\n')
for text, name in ((manual, 'poisson_gpu.h'), (readme, 'README.md')):
    words = re.findall(r'\b(?:pockets?|lattices?|afresh|spoilt|thrice|quads?|eighths|missed)\b', text)
    assert not words, '%s has the words %s' % (name, ', '.join(words))
