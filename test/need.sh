#!/bin/sh
# Sees that tools are there and installs the missing ones with apt-get:   sh test/need.sh [--no-install] meson ninja ...
# Names: commands, or png, cmocka, openmp (clang's) for libraries, venv for Python's virtual environments. "name?" is
# optional: without it, work goes on.
install=yes
[ "${1:-}" = --no-install ] && { install=no; shift; }

have() {
    case $1 in
    meson) version=$(meson --version 2>/dev/null) && [ "${version%%.*}" -ge 1 ] ;;
    cmocka) printf '#include <%s>\n' stdarg.h stddef.h setjmp.h stdint.h cmocka.h | cc -E - >/dev/null 2>&1 ;;
    png) echo '#include <png.h>' | cc -E - >/dev/null 2>&1 ;;
    openmp) echo 'int main() {}' | clang++ -fopenmp -x c++ - -o "${TMPDIR:-/tmp}/need.$$" 2>/dev/null
            status=$?; rm -f "${TMPDIR:-/tmp}/need.$$"; return $status ;;
    venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

package_of() {
    case $1 in
    cc | c++ | g++) echo g++ ;;
    clang++) echo clang ;;
    ninja) echo ninja-build ;;
    cmocka) echo libcmocka-dev ;;
    png) echo libpng-dev ;;
    openmp) echo libomp-dev ;;
    nm) echo binutils ;;
    venv) echo python3-venv ;;
    mpicxx) echo libopenmpi-dev openmpi-bin ;;
    *) echo "$1" ;;
    esac
}

missing=
for name; do
    have "${name%\?}" || missing="$missing $(package_of "${name%\?}")"
done
if [ -n "$missing" ] && [ $install = yes ] && command -v apt-get >/dev/null 2>&1; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    if [ -z "$sudo" ] || command -v sudo >/dev/null 2>&1; then
        echo "Installing by apt-get, which takes a minute or more:$missing"
        $sudo apt-get -qq update
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >/dev/null
    fi
fi

missing=
for name; do
    have "${name%\?}" && continue
    case $name in
    *\?) echo "Going on without ${name%\?} ($(package_of "${name%\?}"))" ;;
    *) missing="$missing $(package_of "$name")" ;;
    esac
done
if [ -n "$missing" ]; then
    echo "Missing, please install:$missing" >&2
    case $missing in
    *meson*) echo "(Meson 1.0 or newer; where the system has an older one: pip install meson)" >&2 ;;
    esac
    exit 1
fi
