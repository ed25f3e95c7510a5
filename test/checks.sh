#!/bin/sh
# What the tests cannot see: that both files compile alone, with every compiler and without a warning; what the library
# exports; that it can be used through pkg-config, from CMake and as a subproject of Meson; the CPU tests under
# sanitizers. The last line tells "N passed, N failed, N skipped". Exit status 0: none failed.
#     sh test/checks.sh [--no-install]
# From the environment: BUILD_DIR, where test/run.sh has built (default build-test). What a missing compiler or tool
# would check counts as skipped.
install=$1
cd "$(dirname "$0")/.." || exit 1
root=$PWD
temp=$(mktemp -d) || exit 1
kernels_pid=                         # of what nvcc compiles meanwhile
trap '[ -z "$kernels_pid" ] || kill $kernels_pid 2>/dev/null; rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0 skipped=0

have() { command -v "$1" >/dev/null 2>&1; }
skip() { skipped=$((skipped + 1)); echo "skipped  $1"; }
check() {                            # check "what shall be true" command ...
    what=$1
    shift
    if "$@" >"$temp/output" 2>&1; then
        passed=$((passed + 1))
        echo "ok       $what"
    else
        failed=$((failed + 1))
        echo "FAILED   $what"
        cat "$temp/output"
    fi
}
folder() {                           # a new one, with the two files and the first program
    mkdir -p "$temp/$1" && cd "$temp/$1" && cp "$root/poisson_gpu.h" "$root/poisson_gpu.cu" "$root/samples/hello.c" .
}

sh test/need.sh $install g++ nm 'clang++?' 'openmp?' 'meson?' 'ninja?' 'cmocka?' 'png?' 'pkg-config?' 'cmake?' || exit 1

# ---- both files alone
folder alone

# nvcc takes longest, so it begins now, beside everything else. The code of one architecture is optimised and compared
# with bench/kernels.txt. That the others compile, without a warning, can be seen in a tenth of the time with -Ofc=max,
# which nvcc has from 12.9 on; test/run.sh takes sm_75 so.
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc)
if [ -n "$nvcc" ]; then
    mkdir "$temp/kernels"
    strict="-std=c++17 -Werror all-warnings -Xcompiler -Wall,-Wextra,-fopenmp -c poisson_gpu.cu"
    "$nvcc" $strict -O3 -gencode arch=compute_90,code=sm_90 -Xptxas -v -keep --keep-dir "$temp/kernels" \
        -o nvcc.o >"$temp/nvcc" 2>&1 &
    kernels_pid=$!
    quickly=
    "$nvcc" -Ofc=max -x cu -E /dev/null >/dev/null 2>&1 && quickly="-Ofc=max -Xptxas=--suppress-stack-size-warning"
    less="-DPG_NO_F32 -DPG_NO_DIRECT -DPG_NO_CONDITIONAL"
fi
nvcc_ends_well() {
    wait "$kernels_pid"
    status=$?
    kernels_pid=
    cat "$temp/nvcc"
    return $status
}

license() { sed -n '/^LICENCE - choose/,/^-----/p' poisson_gpu.h | sed '$d' | diff - "$root/LICENSE"; }
check "LICENSE is the text that ends the header" license

header() {                           # header compiler language standard
    echo '#include "poisson_gpu.h"' | "$1" -x "$2" -std="$3" -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only -
}
hello() {                            # hello compiler objects and flags: links the first program and runs it
    "$1" -std=c99 -I. -x c "$temp/alone/hello.c" -x none -o hello $2 -lstdc++ -lm && ./hello
}
fast_math() {                        # fast_math compiler: NaN and Inf, where it may assume that there are none
    "$1" -x c++ -std=c++17 -O3 -ffast-math -c poisson_gpu.cu -o fast.o &&
        "$1" -O3 -ffast-math -I. -x c "$root/test/fast_math.c" -x none fast.o -o fast_math -lstdc++ -lm && ./fast_math
}
switched() {                         # switched compiler switches
    "$1" -x c++ -std=c++17 -O0 $2 -Wall -Wextra -Werror -c poisson_gpu.cu -o switched.o &&
        "$1" -std=c99 -Wall -Wextra -Werror -I. $2 -x c "$root/test/switches.c" -x none switched.o -o switched -lstdc++ -lm &&
        ./switched
}
for cxx in g++ clang++; do
    if ! have $cxx; then
        skip "everything with $cxx"
        continue
    fi
    for standard in c99 c11 c++11 c++20; do
        check "the header alone is $standard ($cxx)" header $cxx ${standard%%[0-9]*} $standard
    done
    for threads in "" -fopenmp; do
        if [ -n "$threads" ] && [ $cxx = clang++ ] && ! sh "$root/test/need.sh" --no-install openmp 2>/dev/null; then
            skip "poisson_gpu.cu alone, $cxx -fopenmp"
            continue
        fi
        check "poisson_gpu.cu alone: $cxx -x c++ -std=c++17 -O3 $threads" \
            $cxx -x c++ -std=c++17 -O3 $threads -Wall -Wextra -Werror -c poisson_gpu.cu -o $cxx$threads.o
        check "the first program, linked to that" hello $cxx "$cxx$threads.o $threads"
    done
    check "NaN and Inf are found: $cxx -O3 -ffast-math" fast_math $cxx
    for switches in -DPG_NO_F32 "-DPG_NO_DIRECT -DPG_NO_DENSE" "-DPG_NO_F32 -DPG_NO_DIRECT -DPG_NO_CUDA"; do
        check "what is left out is refused by name: $cxx $switches" switched $cxx "$switches"
    done
done

# ---- the structure
check "sections use what stands before them, functions are short: test/structure.txt, or better" \
    python3 "$root/test/structure.py"

# ---- names
declared() { sed -n 's/^PG_API .*[ *]\(pg_[a-z_0-9]*\)(.*/\1/p' "$root/poisson_gpu.h" | sort; }
exports() {                          # exports file type-letters nm-options: the names are those that are declared
    nm $3 --defined-only "$1" | awk -v types="$2" 'index(types, $2) { print $3 }' | sort >names
    [ -s names ] && declared | diff - names
}
macros() {
    echo '#include <stddef.h>
#include <stdint.h>' | g++ -x c -dM -E - | sort >before
    echo '#include "poisson_gpu.h"' | g++ -x c -dM -E -I. - | sort >after
    names=$(comm -13 before after | awk '{ print $2 }')
    echo "$names"
    [ -n "$names" ] && [ -z "$(echo "$names" | grep -v -e '^PG_' -e '^POISSON_GPU_')" ]
}
check "the header defines macros PG_... only" macros
check "g++'s object defines the header's functions and no other name" exports g++-fopenmp.o TDBRCWVuGS -g

# ---- the built library
if have meson && have ninja; then
    build=${BUILD_DIR:-build-test}
    case $build in /*) ;; *) build=$root/$build ;; esac
    if [ ! -f "$build/build.ninja" ]; then
        build=$temp/build
        check "meson setup" meson setup "$build" "$root" -Dcuda=disabled -Dsamples=disabled -Dtests=disabled \
            -Dbench=disabled
    fi
    check "meson compile" meson compile -C "$build"
    check "meson install" env DESTDIR="$temp/install" meson install -C "$build" --no-rebuild
    check "the shared library exports the header's functions and no other name" \
        exports "$build/libpoisson_gpu.so" TDBRCWVuGSiA -D

    # pkg-config, told where the prefix lies for now
    pc=$(find "$temp/install" -name poisson_gpu.pc)
    libs=$(dirname "$(dirname "$pc")")
    config() {
        PKG_CONFIG_PATH=$libs/pkgconfig pkg-config \
            --define-variable=prefix="$temp/install$(sed -n 's/^prefix=//p' "$pc")" "$@" poisson_gpu
    }
    shared() (
        export LD_LIBRARY_PATH="$libs"
        hello cc "$(config --cflags --libs)"
    )
    static() {
        mkdir -p "$temp/static" && cp "$libs/libpoisson_gpu.a" "$temp/static" &&
            hello cc "$(config --define-variable=libdir="$temp/static" --static --cflags --libs)"
    }
    version() {
        numbers=$(sed -n 's/^#define PG_VERSION_[A-Z]* //p' "$root/poisson_gpu.h" | paste -sd .)
        [ "$(config --modversion)" = "$numbers" ]
    }
    mkdir -p "$temp/installed" && cd "$temp/installed" || exit 1
    if have pkg-config; then
        check "pkg-config: the first program with the shared library" shared
        check "pkg-config: the first program with the static library" static
        check "pkg-config has the header's version" version
    else
        skip "pkg-config: both libraries, the version"
    fi

    subproject() {
        folder meson && cp "$root/test/consumer/meson/meson.build" . && mkdir -p subprojects/poisson_gpu &&
            cp "$root/meson.build" "$root/meson_options.txt" poisson_gpu.h poisson_gpu.cu subprojects/poisson_gpu &&
            rm poisson_gpu.h poisson_gpu.cu && meson setup build -Dpoisson_gpu:cuda=disabled -Dpoisson_gpu:optimization=0 &&
            meson compile -C build && build/hello && [ "$(meson introspect --tests build)" = "[]" ]
    }
    check "as a subproject of Meson: the first program, and no tests" subproject
else
    skip "everything with Meson"
fi

# CMakeLists.txt is for the CPU; for the GPU it is edited as its comment says.
from_cmake() {
    folder cmake && sed "$1" "$root/test/consumer/cmake/CMakeLists.txt" >CMakeLists.txt &&
        cmake -G Ninja -S . -B build $2 && cmake --build build && build/hello
}
if have cmake && have ninja; then
    check "from CMake, in five lines: the first program" from_cmake ""
    rm -rf "$temp/cmake"
else
    skip "from CMake, in five lines: the first program"
fi
if have cmake && have ninja && [ -n "$nvcc" ]; then
    # Without single precision and dense systems there is half the code; cuFFT is still linked.
    from_cmake_with_cuda() (
        export CUDAFLAGS="$quickly -DPG_NO_F32 -DPG_NO_DENSE"
        from_cmake 's/C CXX)/C CUDA)/; /^set_source/d; s/hello m)/hello cufft m)/' \
            "-DCMAKE_CUDA_COMPILER=$nvcc -DCMAKE_CUDA_ARCHITECTURES=75"
    )
    check "from CMake with CUDA: the first program" from_cmake_with_cuda
else
    skip "from CMake with CUDA: the first program"
fi

# ---- nvcc, quickly
cd "$temp/alone" || exit 1
if [ -n "$nvcc" ]; then
    check "poisson_gpu.cu alone: nvcc for sm_75 and sm_80" "$nvcc" $strict $quickly -o quick.o \
        -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80
    without_cufft() {
        "$nvcc" $strict $quickly -gencode arch=compute_90,code=sm_90 $less -o less.o &&
            "$nvcc" -I. $less -x c "$root/test/switches.c" -c -o switches.o &&
            "$nvcc" less.o switches.o -Xcompiler -fopenmp -o less && ./less
    }
    check "nvcc $less: no warning, no cuFFT to link, what is left out is refused" without_cufft
else
    skip "poisson_gpu.cu alone: nvcc for sm_75 and sm_80"
    skip "nvcc -DPG_NO_F32 -DPG_NO_DIRECT -DPG_NO_CONDITIONAL: no warning, no cuFFT to link, what is left out is refused"
fi

# ---- races: solvers of threads, with FFTW where it is there. OpenMP, which is unknown to the sanitizer, is left out
cd "$temp/alone" || exit 1
races() {
    fftw= libs= alone=
    echo '#include <fftw3.h>' | g++ -x c++ -fsyntax-only - 2>/dev/null && fftw=-DPG_USE_FFTW libs="-lfftw3 -lfftw3f"
    setarch "$(uname -m)" -R true 2>/dev/null && alone="setarch $(uname -m) -R"    # addresses where it expects them
    g++ -x c++ -std=c++17 -O1 -g1 -fsanitize=thread $fftw -c poisson_gpu.cu -o races.o &&
        gcc -std=c99 -O1 -g1 -fsanitize=thread -I. -x c "$root/test/test_threads.c" -x none races.o -o races -lcmocka $libs \
            -lstdc++ -lm -lpthread && PG_TEST_SMALL=1 PG_TEST_FILTER='*_on_cpu' $alone ./races
}
can_race() { printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\nint main(void) { return 0; }' |
    gcc -fsanitize=thread -x c - -o can_race -lcmocka 2>/dev/null; }
if can_race; then
    check "threads with solvers of their own do not race" races
else
    skip "threads with solvers of their own do not race"
fi

# ---- sanitizers: of the address, of undefined behaviour; leaks are errors
cd "$root" || exit 1
if have meson; then
    # With -O2 -g the library takes g++ three times as long, and the tests are no quicker.
    options="-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=true -Dc_args=-g1 -Dcpp_args=-g1"
    BUILD_DIR=build-sanitize MESON_OPTIONS="-Dcuda=disabled -Dbench=disabled $options" \
        ASAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        sh test/run.sh --small $install >"$temp/sanitize" 2>&1
    counts=$(tail -n 1 "$temp/sanitize" | tr -cd '0-9 ')
    set -- $counts
    if [ $# = 3 ]; then
        [ "$2" = 0 ] || cat "$temp/sanitize"
        echo "under sanitizers: $1 passed, $2 failed, $3 skipped"
        passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    else
        check "the tests under sanitizers" sh -c "cat '$temp/sanitize'; false"
    fi
else
    skip "the tests under sanitizers"
fi

# ---- memory that nobody wrote decides nothing: the CPU tests and the samples under Clang's sanitizer of memory. Without
# OpenMP and libpng, whose libraries it cannot see into.
mkdir "$temp/memory" && cd "$temp/memory" || exit 1
sanitize="-O1 -g1 -fsanitize=memory -I$root -I$root/test -I$root/bench -Wno-unknown-pragmas -Wno-missing-field-initializers"
written() {                          # written program arguments: 77, the sanitizer's own status, would be "skipped"
    MSAN_OPTIONS=exit_code=1 PG_TEST_SMALL=1 "$@"
    status=$?
    [ $status = 0 ] || [ $status = 77 ]
}
test_written() { clang++ $sanitize -x c -std=c99 "$root/test/$1.c" -x none msan.o -o "$1" -lcmocka && written "./$1"; }
ranks_written() {
    wait $ranks_pid
    status=$?
    cat ranks
    return $status
}
sample_written() {
    name=$1
    shift
    [ -f "$name" ] || clang++ $sanitize -x c -std=c99 "$root/samples/$name.c" -x none msan.o -o "$name" && written "./$name" "$@"
}
if echo 'int main() {}' | clang++ -fsanitize=memory -x c++ - -o here 2>/dev/null &&
    sh "$root/test/need.sh" --no-install cmocka 2>/dev/null; then
    { clang++ -x c++ -std=c++17 $sanitize "$root/test/test_ranks.cu" -o test_ranks -lcmocka -lpthread &&
        written ./test_ranks; } >ranks 2>&1 &
    ranks_pid=$!
    check "poisson_gpu.cu with Clang's sanitizer of memory" \
        clang++ -x c++ -std=c++17 $sanitize -c "$root/poisson_gpu.cu" -o msan.o
    for file in "$root"/test/test_*.c; do
        name=$(basename "$file" .c)
        check "no memory is read that nobody wrote: $name" test_written $name
    done
    while read -r arguments; do
        check "no memory is read that nobody wrote: sample $arguments" sample_written $arguments
    done <<EOF
hello
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
porous -n 25 -o porous
porous -2 -n 65 -p f32
smoke -n 17 --steps 6 -o smoke
smoke -2 -n 33 --steps 8 --scene wall -p f64 -o wall
EOF
    check "no memory is read that nobody wrote: test_ranks" ranks_written
else
    skip "no memory is read that nobody wrote: what Clang's sanitizer of memory sees"
fi

# ---- what nvcc has compiled meanwhile
cd "$temp/alone" || exit 1
if [ -n "$nvcc" ]; then
    check "poisson_gpu.cu alone: nvcc for sm_90" nvcc_ends_well
    check "its object has at most 10 MB" sh -c '[ -f nvcc.o ] && wc -c nvcc.o && [ $(wc -c <nvcc.o) -le 10000000 ]'
    check "registers, spills, shared memory and code of every kernel: bench/kernels.txt, or better" \
        env NVCC="$nvcc" python3 "$root/bench/kernels.py" "$temp/nvcc" "$temp/kernels"
    # The toolkit's own headers leave weak names in (the constructor of dim3).
    check "it defines the header's functions and, inline ones apart, no other name" exports nvcc.o TDBRCGS -g
else
    skip "poisson_gpu.cu alone: nvcc for sm_90"
    skip "its object has at most 10 MB"
    skip "registers, spills, shared memory and code of every kernel: bench/kernels.txt, or better"
    skip "it defines the header's functions and, inline ones apart, no other name"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
