#!/bin/sh
# The demo: builds the library and samples/potential.c, solves for the electric potential of two molecules and draws it.
#     sh samples/demo.sh [--no-install]        Environment: BUILD_DIR, default build-demo
cd "$(dirname "$0")/.." || exit 1
build=${BUILD_DIR:-build-demo}
sh test/need.sh "$@" c++ meson ninja 'pkg-config?' 'png?' || exit 1

cuda=disabled                        # without a GPU there is no need to compile for one
nvidia-smi -L >/dev/null 2>&1 && cuda=auto
reconfigure=
[ -f "$build/build.ninja" ] && reconfigure=--reconfigure
echo "Building in $build"
output=$(meson setup $reconfigure "$build" -Dcuda=$cuda -Dgpu_archs=native -Dtests=disabled -Dbench=disabled 2>&1 &&
    meson compile -C "$build" potential 2>&1) || { echo "$output"; exit 1; }

export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"   # spinning threads are slow where others want the cores too
for molecule in water rgd; do
    "$build/potential" samples/data/$molecule.pqr -o "$build/$molecule" || exit 1
done
echo "Pictures and volumes:"
ls "$build"/water.* "$build"/rgd.*
