#!/bin/sh
# samples/hello.c is the program of the header's first screen, word for word.   test_hello_is_header.sh [PROJECT_FOLDER]
cd "${1:-$(dirname "$0")/..}" || exit 1
program=$(sed -n '/^#include <math.h>/,/^}/p' poisson_gpu.h)
[ -n "$program" ] || { echo "no program found in poisson_gpu.h"; exit 1; }
printf '%s\n' "$program" | diff - samples/hello.c && echo "the same $(printf '%s\n' "$program" | wc -l) lines"
