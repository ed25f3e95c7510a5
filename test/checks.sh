#!/bin/sh
# What the tests cannot see: that both files compile alone, with every compiler and without a warning; what the library
# exports; that it can be used through pkg-config, from CMake and as a subproject of Meson; the tests under sanitizers.
# The last line tells "N passed, N failed, N skipped". Exit status 0: none failed.
#     sh test/checks.sh [--no-install]
# From the environment: BUILD_DIR, where test/run.sh has built (default build-test). What a missing compiler or tool
# would check counts as skipped.
#
# Three lanes run side by side: nvcc, which takes longest and has the right of way; compilers, consumers, and sanitizers of
# memory and threads; all tests under sanitizers of addresses and of undefined behaviour.
install=$1
cd "$(dirname "$0")/.." || exit 1
root=$PWD
temp=$(mktemp -d) || exit 1
lanes=
trap '[ -z "$lanes" ] || kill $lanes 2>/dev/null; rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM

have() { command -v "$1" >/dev/null 2>&1; }
count() { echo "$1 $2 $3" >>"$temp/counts"; }                # passed, failed, skipped
skip() { count 0 0 1; echo "skipped         $1"; }
check() {                            # check "what shall be true" command ...
    what=$1 began=$(date +%s)
    shift
    "$@" >output 2>&1
    status=$? took=$(($(date +%s) - began))
    if [ $status = 0 ]; then
        count 1 0 0
        echo "ok     $(printf %4d $took) s   $what"
    else
        count 0 1 0
        echo "FAILED $(printf %4d $took) s   $what"
        cat output
    fi
}
folder() {                           # a new one, with the two files and the program of a consumer
    mkdir -p "$temp/$1" && cd "$temp/$1" && cp "$root/poisson_gpu.h" "$root/poisson_gpu.cu" "$root/test/consumer/main.c" .
}
sh test/need.sh $install g++ nm 'clang++?' 'openmp?' 'meson?' 'ninja?' 'cmocka?' 'png?' 'pkg-config?' 'cmake?' || exit 1
have meson && have ninja && meson=yes || meson=
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc)
build=${BUILD_DIR:-build-test}
case $build in /*) ;; *) build=$root/$build ;; esac

declared() { sed -n 's/^PG_API .*[ *]\(pg_[a-z_0-9]*\)(.*/\1/p' "$root/poisson_gpu.h" | sort; }
exports() {                          # exports file type-letters nm-options: the names are those that are declared
    nm $3 --defined-only "$1" | awk -v types="$2" 'index(types, $2) { print $3 }' | sort >names
    [ -s names ] && declared | diff - names
}
hello() {                            # hello compiler objects and flags: links the first program and runs it
    "$1" -std=c99 -I"$root" -x c "$root/samples/hello.c" -x none -o hello $2 -lstdc++ -lm && ./hello
}
# What takes the least time to compile, where not the library but a way to build it is what is tested
little="-DPG_NO_F32 -DPG_NO_DENSE"

# ---- the library as Meson builds and installs it: lane_nvcc with CUDA, else lane_compilers. $build: where
installed() {
    check "meson compile" meson compile -C "$build"
    check "meson install" env DESTDIR="$PWD/install" meson install -C "$build" --no-rebuild
    check "the shared library exports the header's functions and no other name" \
        exports "$build/libpoisson_gpu.so" TDBRCWVuGSiA -D
    # pkg-config, told where the prefix lies for now
    pc=$(find "$PWD/install" -name poisson_gpu.pc)
    libs=$(dirname "$(dirname "$pc")")
    config() {
        PKG_CONFIG_PATH=$libs/pkgconfig pkg-config \
            --define-variable=prefix="$PWD/install$(sed -n 's/^prefix=//p' "$pc")" "$@" poisson_gpu
    }
    shared() (
        export LD_LIBRARY_PATH="$libs"
        hello cc "$(config --cflags --libs)"
    )
    static() {
        mkdir -p static && cp "$libs/libpoisson_gpu.a" static &&
            hello cc "$(config --define-variable=libdir="$PWD/static" --static --cflags --libs)"
    }
    version() {
        numbers=$(sed -n 's/^#define PG_VERSION_[A-Z]* //p' "$root/poisson_gpu.h" | paste -sd .)
        [ "$(config --modversion)" = "$numbers" ]
    }
    if have pkg-config; then
        check "pkg-config: the first program with the shared library" shared
        check "pkg-config: the first program with the static library" static
        check "pkg-config has the header's version" version
    else
        skip "pkg-config: both libraries, the version"
    fi
}
setup() { meson setup "$build" "$root" -Dtests=disabled -Dbench=disabled -Dwerror=true "$@"; }
from_cmake() (                       # from_cmake folder edit options: README's CMakeLists.txt
    folder "$1" && sed -n '/^```cmake/,/^```/{ /^```/!p; }' "$root/README.md" | sed "$2" >CMakeLists.txt &&
        cmake -G Ninja -S . -B build $3 && cmake --build build && build/app
)

# ---- nvcc: the code of one architecture optimised, which takes longest of all, and compared with bench/kernels.txt. That
# the others compile, without a warning, can be seen in a tenth of the time with -Ofc=max, which nvcc has from 12.9 on.
lane_nvcc() {
    quickly=
    "$nvcc" -Ofc=max -x cu -E /dev/null >/dev/null 2>&1 && quickly="-Ofc=max -Xptxas=--suppress-stack-size-warning"
    strict="-std=c++17 -Werror all-warnings -Xcompiler -Wall,-Wextra,-fopenmp"
    mkdir kernels
    optimised() {
        "$nvcc" $strict -O3 -gencode arch=compute_90,code=sm_90 -Xptxas -v -keep --keep-dir kernels -c \
            "$root/poisson_gpu.cu" -o nvcc.o >log 2>&1
        status=$?
        cat log
        return $status
    }
    check "poisson_gpu.cu alone: nvcc for sm_90" optimised
    check "its object has at most 10 MB" sh -c '[ -f nvcc.o ] && wc -c nvcc.o && [ $(wc -c <nvcc.o) -le 10000000 ]'
    check "registers, spills, shared memory and code of every kernel: bench/kernels.txt, or better" \
        env NVCC="$nvcc" python3 "$root/bench/kernels.py" log kernels
    # The toolkit's own headers leave weak names in (the constructor of dim3).
    check "it defines the header's functions and, inline ones apart, no other name" exports nvcc.o TDBRCGS -g

    # Without half of the code: for an architecture between those, and by CMake
    less="-DPG_NO_F32 -DPG_NO_DIRECT -DPG_NO_CONDITIONAL"
    from_cmake_with_cuda() (
        export CUDAFLAGS="$strict $quickly $less"
        from_cmake cmake_cuda 's/native)/80)/' "-DCMAKE_CUDA_COMPILER=$nvcc" &&
            cp "$(find "$temp/cmake_cuda" -name poisson_gpu.cu.o)" less.o
    )
    from_nvcc() { "$nvcc" $strict $quickly $less -gencode arch=compute_80,code=sm_80 -c "$root/poisson_gpu.cu" -o less.o; }
    if have cmake && have ninja; then
        check "README's CMakeLists.txt with CUDA for sm_80, $less: no warning, a program" from_cmake_with_cuda
    else
        check "nvcc for sm_80, $less: no warning" from_nvcc
    fi
    left_out() {
        "$nvcc" -I"$root" $less -x c "$root/test/switches.c" -c -o switches.o &&
            "$nvcc" less.o switches.o -Xcompiler -fopenmp -o less && ./less
    }
    check "nvcc $less: what is left out is refused" left_out

    if [ -n "$meson" ]; then
        build=$temp/nvcc/build
        check "meson setup, with CUDA" setup -Dcuda=enabled -Dsamples=enabled -Dgpu_archs=75 -Dgpu_optimize=false
        installed
    fi
}

# ---- every compiler alone; consumers
header() {                           # header compiler language standard
    echo '#include "poisson_gpu.h"' | "$1" -x "$2" -std="$3" -I"$root" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -
}
alone() {                            # alone compiler options
    compiler=$1
    shift
    "$compiler" -x c++ -std=c++17 -Wall -Wextra -Werror -c "$root/poisson_gpu.cu" "$@"
}
fast_math() {                        # fast_math compiler options: NaN and Inf, where it may assume that there are none
    "$1" -O3 -ffast-math -I"$root" -x c "$root/test/fast_math.c" -x none $1.o -o fast_math $2 -lstdc++ -lm && ./fast_math
}
switched() {                         # switched compiler switches
    alone $1 -O0 $2 -o switched.o &&
        "$1" -std=c99 -Wall -Wextra -Werror -I"$root" $2 -x c "$root/test/switches.c" -x none switched.o -o switched -lstdc++ \
            -lm && ./switched
}
license() { sed -n '/^[/][*] LICENCE/,$p' "$root/poisson_gpu.h" | sed '1s,^/. ,,; $s, ./$,,' | diff - "$root/LICENSE"; }
macros() {
    echo '#include <stddef.h>
#include <stdint.h>' | g++ -x c -dM -E - | sort >before
    echo '#include "poisson_gpu.h"' | g++ -x c -dM -E -I"$root" - | sort >after
    names=$(comm -13 before after | awk '{ print $2 }')
    echo "$names"
    [ -n "$names" ] && [ -z "$(echo "$names" | grep -v -e '^PG_' -e '^POISSON_GPU_')" ]
}
# Whole compilations are few: without a warning, with OpenMP and without, and the first program; NaN and Inf with the same
# object, compiled with -ffast-math. The same without that are those of test/run.sh and of the sanitizers. Clang sees all that
# it warns of without making code, g++ needs to.
some="-DPG_NO_DIRECT -DPG_NO_DENSE -DPG_NO_KRYLOV"
all="-DPG_NO_F32 -DPG_NO_DIRECT -DPG_NO_DENSE -DPG_NO_CELLS -DPG_NO_RANKS -DPG_NO_CUDA"
lane_compilers() {
    check "LICENSE is the text that ends the header" license
    check "sections use what stands before them, functions are short: test/structure.txt, or better" \
        python3 "$root/test/structure.py"
    # README's own words, with the names of other compilers and without what takes long to compile
    from_line() (
        case $cxx in clang++) cc=clang ;; *) cc=gcc ;; esac
        folder "line_$cxx" && eval "$(sed -n "s/^    c++ /$cxx -Wall -Wextra -Werror $all /; s/ && cc / \&\& $cc /p" \
            "$root/README.md")" && ./a.out
    )
    from_cmake_on_cpu() {
        CXX=$cxx CXXFLAGS="-Wall -Wextra -Werror $all" from_cmake "cmake_$cxx" 's/ C CXX CUDA)/ C CXX)/'
    }
    for cxx in g++ clang++; do
        if ! have $cxx; then
            skip "everything with $cxx"
            continue
        fi
        for standard in c99 c11 c++11 c++20; do
            check "the header alone is $standard ($cxx)" header $cxx ${standard%%[0-9]*} $standard
        done
        openmp=-fopenmp
        if [ $cxx = clang++ ]; then
            sh "$root/test/need.sh" --no-install openmp 2>/dev/null || openmp=
            for options in $openmp -DPG_NO_F32 "$some"; do
                check "poisson_gpu.cu alone: $cxx $options" alone $cxx -fsyntax-only $options
            done
            check "poisson_gpu.cu alone: $cxx -O3 -ffast-math $openmp" alone $cxx -w -O3 -ffast-math $openmp -o $cxx.o
            check "what is left out is refused by name: $cxx $all" switched $cxx "$all"
        else
            openmp=
            check "poisson_gpu.cu alone: $cxx -O2 -ffast-math" alone $cxx -O2 -ffast-math -o $cxx.o
            for switches in -DPG_NO_F32 "$some"; do
                check "what is left out is refused by name: $cxx $switches" switched $cxx "$switches"
            done
        fi
        check "the first program, linked to that" hello $cxx "$cxx.o $openmp"
        check "NaN and Inf are found by that" fast_math $cxx $openmp
        if [ $cxx = clang++ ] && [ -z "$openmp" ]; then
            skip "README's line for the CPU and its CMakeLists.txt with clang++, which has no OpenMP"
            continue
        fi
        check "README's line for the CPU: $cxx, no warning, a program with threads" from_line
        if have cmake && have ninja; then
            check "README's CMakeLists.txt for the CPU: $cxx, no warning, a program with threads" from_cmake_on_cpu
        else
            skip "README's CMakeLists.txt for the CPU: $cxx"
        fi
    done
    check "the header defines macros PG_... only" macros
    check "g++'s object defines the header's functions and no other name" exports g++.o TDBRCWVuGS -g

    subproject() (
        folder meson && mkdir -p subprojects/poisson_gpu &&
            mv poisson_gpu.h poisson_gpu.cu subprojects/poisson_gpu &&
            cp "$root/meson.build" "$root/meson_options.txt" subprojects/poisson_gpu &&
            sed -n "s/.*\`\(dependency(.*)\)\`.*/project('app', 'c')\nexecutable('app', 'main.c', dependencies: \1)/p" \
                "$root/README.md" >meson.build && meson setup build -Dpoisson_gpu:cuda=disabled \
            -Dpoisson_gpu:optimization=0 "-Dcpp_args=$little" && meson compile -C build && build/app &&
            [ "$(meson introspect --tests build)" = "[]" ]
    )
    if [ -n "$meson" ]; then
        check "as a subproject of Meson, in README's words: a program with threads, and no tests" subproject
        if [ -z "$nvcc" ]; then
            if [ ! -f "$build/build.ninja" ]; then
                build=$temp/compilers/build
                check "meson setup" setup -Dcuda=disabled -Dsamples=disabled
            fi
            installed
        fi
    else
        skip "everything with Meson"
    fi
    races_and_memory
}

# ---- races: solvers of threads. OpenMP, which is unknown to the sanitizer, is left out
races() {
    alone=
    setarch "$(uname -m)" -R true 2>/dev/null && alone="setarch $(uname -m) -R"    # addresses where it expects them
    g++ -x c++ -std=c++17 -O1 -g1 -fsanitize=thread -c "$root/poisson_gpu.cu" -o races.o &&
        gcc -std=c99 -O1 -g1 -fsanitize=thread -I"$root" -x c "$root/test/test_threads.c" -x none races.o -o races -lcmocka \
            -lstdc++ -lm -lpthread && PG_TEST_SMALL=1 PG_TEST_FILTER='*_on_cpu' $alone ./races
}
can_race() { printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\nint main(void) { return 0; }' |
    gcc -fsanitize=thread -x c - -o can_race -lcmocka 2>/dev/null; }

# ---- memory that nobody wrote decides nothing: the CPU tests and the samples under Clang's sanitizer of memory. Without
# OpenMP and libpng, whose libraries it cannot see into. The object of test_kernels.cu is the library for all of them.
sanitize="-O1 -g1 -fsanitize=memory -I$root -I$root/test -I$root/bench -Wno-unknown-pragmas -Wno-missing-field-initializers"
written() {                          # written program arguments: 77, the sanitizer's own status, would be "skipped"
    MSAN_OPTIONS=exit_code=1 PG_TEST_SMALL=1 "$@"
    status=$?
    [ $status = 0 ] || [ $status = 77 ]
}
linked() {                           # linked language file: a program with the library
    [ -f "$(basename "${2%.*}")" ] ||
        clang++ $sanitize -x $1 -std=${1}${3} "$2" -x none msan.o -o "$(basename "${2%.*}")" -lcmocka -lpthread
}
test_written() { linked $1 "$root/test/$2" $3 && written "./${2%.*}"; }
sample_written() {
    name=$1
    shift
    linked c "$root/samples/$name.c" 99 && written "./$name" "$@"
}
can_see() { echo 'int main() {}' | clang++ -fsanitize=memory -x c++ - -o can_see 2>/dev/null &&
    sh "$root/test/need.sh" --no-install cmocka 2>/dev/null; }

races_and_memory() {
    if can_race; then
        check "threads with solvers of their own do not race" races
    else
        skip "threads with solvers of their own do not race"
    fi
    if ! can_see; then
        skip "no memory is read that nobody wrote: what Clang's sanitizer of memory sees"
        return
    fi
    check "poisson_gpu.cu with Clang's sanitizer of memory, without a warning" \
        clang++ -x c++ -std=c++17 -Wall -Wextra -Werror $sanitize -c "$root/test/test_kernels.cu" -o msan.o
    for file in "$root"/test/test_*.c; do
        check "no memory is read that nobody wrote: $(basename "$file")" test_written c "$(basename "$file")" 99
    done
    check "no memory is read that nobody wrote: test_ranks.cpp" test_written c++ test_ranks.cpp 17
    while read -r arguments; do
        check "no memory is read that nobody wrote: sample $arguments" sample_written $arguments
    done <<END
hello
charges
projection
steps
electrode -o electrode
droplet -n 16
droplet -n 16 --air 0.05 -o droplet
cube -n 31
own_stream
many_gpus -n 24
channel -n 48
blend -o moon
potential $root/samples/data/water.pqr -s 0.5 -o water
grad_shafranov -n 129 -o flux
cavity -n 24 --re 100 -o cavity
cavity -n 17 --re 100 -p f32 --solver cg --precond ainv
cavity --table -n 16 -s 2
dense --make spd -n 100 -m sor -w system.txt
dense $root/samples/data/system.txt --backward -o read.txt
dense $root/samples/data/truss.mtx -m sor -o truss.txt
dielectric -n 33 -o ion
dielectric $root/samples/data/water.pqr -n 33 --spacings 1 --salt 0.1 -o molecule
slab -n 24 -o slab
gravity -n 32 -o gravity
molecule -o hydrogen_bond
porous -n 25 -o porous
porous -2 -n 65 -p f32
smoke -n 17 --steps 6 -o smoke
smoke -2 -n 33 --steps 8 --scene wall -p f64 -o wall
END
}

# ---- sanitizers: of the address, of undefined behaviour; leaks are errors
lane_addresses() {
    if [ -z "$meson" ]; then
        skip "the tests under sanitizers"
        return
    fi
    # Clang takes a minute for all kernels, g++ eight. gfortran's programs cannot be linked with Clang's sanitizers.
    # With -O2 -g the library takes g++ three times as long as so, and the tests are no quicker.
    compilers=
    have clang && have clang++ && sh "$root/test/need.sh" --no-install openmp 2>/dev/null &&
        compilers="CC=clang CXX=clang++ FC=none"
    options="-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=true"
    env $compilers CFLAGS=-g1 CXXFLAGS="-g1 -Wno-pass-failed" BUILD_DIR=build-sanitize${compilers:+-clang} \
        MESON_OPTIONS="-Dcuda=disabled -Dbench=disabled $options" \
        ASAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        sh "$root/test/run.sh" --small $install >output 2>&1
    counts=$(tail -n 1 output | tr -cd '0-9 ')
    set -- $counts
    if [ $# = 3 ]; then
        [ "$2" = 0 ] || cat output
        echo "under sanitizers: $1 passed, $2 failed, $3 skipped"
        count $1 $2 $3
    else
        mv output lines
        check "the tests under sanitizers" sh -c "cat lines; false"
    fi
}

in_background() {                    # in_background lane: its lines come when it has ended
    mkdir "$temp/$1"
    (
        cd "$temp/$1" && "lane_$1"
    ) >"$temp/$1.lines" 2>&1 &
    lanes="$lanes $!"
}
if [ -n "$nvcc" ]; then
    in_background nvcc
else
    skip "poisson_gpu.cu alone: nvcc for sm_90, sm_80 and sm_75, registers and code of every kernel, its names, CMake with CUDA"
fi
renice -n 10 $$ >/dev/null 2>&1      # what comes now leaves nvcc its core
in_background compilers
in_background addresses
for lane in $lanes; do wait $lane; done
lanes=
cat "$temp"/*.lines

set -- $(awk '{ passed += $1; failed += $2; skipped += $3 } END { print passed + 0, failed + 0, skipped + 0 }' "$temp/counts")
echo "$1 passed, $2 failed, $3 skipped"
[ $2 = 0 ]
