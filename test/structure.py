#!/usr/bin/env python3
"""The structure of poisson_gpu.cu: what a reader needs to find the room, and what may only get better.

    python3 test/structure.py           compares with test/structure.txt; exit status 0: nothing got worse, nothing is out of date
    python3 test/structure.py --write   renews that file

- Every prefix of the file up to a section's tag compiles: a section uses only what stands before it.
- tie NAME FROM TO: section FROM uses a name that the later section TO defines. Such ties make sections one circle.
- long NAME LINES: a function of more than 60 lines, from its template line to its closing brace.
A tie or a long function that the list does not have is a failure, and so is one more line; so is an entry that no longer
holds, that the list may only shrink.
- lines SECTION LINES, kernels NUMBER, bytes NUMBER: how long a section is; how many kernels bench/kernels.txt lists for
  sm_90, and the bytes of their code. Growth is a failure; what has shrunk is recorded when somebody renews the list.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, 'poisson_gpu.cu')
RECORD = os.path.join(ROOT, 'test', 'structure.txt')
KERNELS = os.path.join(ROOT, 'bench', 'kernels.txt')
MOST = 60


def without_comments_and_strings(text):
    """Blanks them out, so that lines keep their numbers."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def sections(lines):
    """First line and name of each; one that is opened again later is one more."""
    tags = [(i, m.group(1)) for i, line in enumerate(lines) if (m := re.match(r'// >>(\w+)', line))]
    return [(i - 1 if lines[i - 1].startswith('// ---') else i, name) for i, name in tags]


def blocks(code):
    """Functions, members included: name, first and last line, as the formatter lays them out."""
    found, begin = [], {}
    for i, line in enumerate(code):
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if indent not in (0, 4) or not text or text.startswith(('#', 'namespace', 'extern')):
            continue
        if text == '}' and indent in begin:
            first = begin.pop(indent)
            head = ' '.join(code[first:i + 1]).split('{')[0]
            m = re.search(r'(\w+)\s*\(', re.sub(r'__launch_bounds__\([^()]*\)|PGI_BOUNDS\([^()]*\)|PGI_\w+_BOUNDS\([^()]*\)', '', head))
            if m and not head.strip().startswith(('struct', 'enum', 'union', '#', 'for', 'if', 'while', 'do', 'switch', 'else')):
                found.append((m.group(1), first, i))
        elif text.startswith('}') or (indent not in begin and text.endswith((';', ':', '}'))):
            begin.pop(indent, None)
        elif text != '{' and indent not in begin and (indent == 0 or 0 in begin and 'struct' in code[begin[0]]):
            begin[indent] = i
    return found


def ties(code, starts):
    """Names of functions and where they are used before their section."""
    text = '\n'.join(code)
    def section_of(line):
        return max((q for q, (first, _) in enumerate(starts) if first <= line), default=0)
    defined = {}
    for name, first, _ in blocks(code):
        if name.startswith('pgi_'):
            defined.setdefault(name, []).append(section_of(first))
    found = {}
    for m in re.finditer(r'\b(pgi_\w+)\b', text):
        own = defined.get(m.group(1))
        if not own:
            continue
        line = text.count('\n', 0, m.start())
        used = section_of(line)
        if used < min(own):
            found.setdefault((m.group(1), starts[used][1], starts[min(own)][1]), line + 1)
    return found


def compiles(lines, end):
    prefix = lines[:end]
    depth = sum(bool(re.match(r'\s*#\s*if', line)) - bool(re.match(r'\s*#\s*endif', line)) for line in prefix)
    text = '\n'.join(prefix + ['#endif'] * depth) + '\n'
    return subprocess.run(['g++', '-x', 'c++', '-std=c++17', '-fsyntax-only', '-w', '-I' + ROOT, '-'], input=text,
                          capture_output=True, text=True)


def sizes(lines, starts):
    """What may not grow: the lines of each section, kernels and their code."""
    found = {}
    for (first, name), end in zip(starts, [first for first, _ in starts[1:]] + [len(lines)]):
        found['lines ' + name] = found.get('lines ' + name, 0) + end - first
    kernels = [line.split() for line in open(KERNELS, encoding='utf-8') if ' sm_90 ' in line]
    found['kernels'] = len(kernels)
    found['bytes'] = sum(int(words[-1]) for words in kernels)
    return found


def read_record():
    """Entries and their numbers; a tie has none."""
    known = {}
    for line in open(RECORD, encoding='utf-8'):
        words = line.split()
        if words[0] == 'tie':
            known[' '.join(words)] = 0
        else:
            known[' '.join(words[:-1])] = int(words[-1])
    return known


def main():
    lines = open(SOURCE, encoding='utf-8').read().split('\n')
    code = without_comments_and_strings('\n'.join(lines)).split('\n')
    starts = sections(lines)
    faults = []
    for first, name in starts[1:]:
        result = compiles(lines, first)
        if result.returncode:
            faults.append('what stands before section %s does not compile:\n%s' % (name, result.stderr))
    now = {'tie %s %s %s' % key: 0 for key in ties(code, starts)}
    for name, first, last in blocks(code):
        if last - first + 1 > MOST:
            now['long ' + name] = max(now.get('long ' + name, 0), last - first + 1)
    size = sizes(lines, starts)
    now.update(size)
    if '--write' in sys.argv:
        with open(RECORD, 'w', encoding='utf-8') as out:
            out.writelines('%s%s\n' % (key, '' if key.startswith('tie') else ' %d' % now[key]) for key in sorted(now))
    known = read_record()
    for key in sorted(set(now) | set(known)):
        if key in size and now[key] <= known.get(key, 0):
            continue
        if key not in known or now.get(key, 0) > known[key]:
            faults.append('new: %s %s' % (key, now[key] or ''))
        elif key not in now or now[key] < known[key]:
            faults.append('better than recorded, so renew test/structure.txt with --write: %s' % key)
    print('\n'.join(faults) or '%d lines in %d sections, %d ties, %d functions over %d lines' % (
        len(lines), len(starts), sum(key.startswith('tie') for key in now), sum(key.startswith('long') for key in now), MOST))
    return len(faults) > 0


sys.exit(main())
