#!/bin/sh
# The demo: builds the library and samples/potential.c, solves for the electric potential of two molecules and draws it.
#     sh samples/demo.sh [--no-install]        Environment: BUILD_DIR, default build-demo
cd "$(dirname "$0")/.." || exit 1
build=${BUILD_DIR:-build-demo}
sh test/need.sh "$@" c++ meson ninja 'pkg-config?' 'png?' || exit 1

cuda=disabled                        # without a GPU there is no need to compile for one
with="a C++ compiler, little optimised: half a minute of one core"
nvidia-smi -L >/dev/null 2>&1 && { cuda=auto with="nvcc, where it is: some five minutes of one core"; }
reconfigure=
[ -f "$build/build.ninja" ] && reconfigure=--reconfigure
echo "Compiling the library and samples/potential.c in $build, with $with"
# For the CPU -O3 takes three times as long as -O1, and the solves, which are a tenth of a second here, half as long.
output=$(meson setup $reconfigure "$build" -Dcuda=$cuda -Dgpu_archs=native -Doptimization=1 -Dtests=disabled \
    -Dbench=disabled 2>&1) || { echo "$output"; exit 1; }
ninja -C "$build" potential || exit 1

export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"   # spinning threads are slow where others want the cores too
for molecule in water rgd; do
    echo
    echo "The potential of samples/data/$molecule.pqr, on two grids; a few seconds"
    "$build/potential" samples/data/$molecule.pqr -o "$build/$molecule" || exit 1
done
cat <<END

Look at the pictures (.png) with any viewer, at the volumes (.vti) with ParaView:
$(ls "$build"/water.* "$build"/rgd.* | sed 's/^/    /')
What to do next:
    $build/potential FILE.pqr -o NAME
        a molecule of yours
    ninja -C $build smoke && $build/smoke
        smoke around a sphere, half a minute; samples/README.md tells what the others are about
    README.md
        three first programs, and the two lines that build your own with -O3
END
