#!/bin/sh
# The tests of samples/python/poisson_gpu.py:   python.sh PROJECT_FOLDER LIBRARY FOLDER [OPTIONS OF PYTEST]
# They run in a virtual environment in FOLDER, made once with what python3 lacks of NumPy, SciPy and others.
# PG_TEST_PYTHON names an interpreter to use as it is instead. Exit status 77: they cannot be run here.
root=$1 library=$2 folder=$3
shift 3
case $library in /*) ;; *) library=$PWD/$library ;; esac
export POISSON_GPU_LIBRARY="$library" PYTHONDONTWRITEBYTECODE=1
skip() { echo "$1: the tests of Python are skipped"; exit 77; }
has() { "$python" -c "import $1" 2>/dev/null; }

python=$PG_TEST_PYTHON
if [ -z "$python" ]; then
    python=$folder/bin/python3
    command -v python3 >/dev/null 2>&1 || skip "There is no python3"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "python3 is older than 3.9"
    "$python" -m pip --version >/dev/null 2>&1 ||         # a venv that could not be finished has no pip
        python3 -m venv --clear --system-site-packages "$folder" >/dev/null || skip "venv does not work (python3-venv)"
    pip() { timeout 300 "$python" -m pip -q --retries 1 --timeout 20 --disable-pip-version-check install "$@"; }
    has numpy && has scipy.sparse && has pytest || pip numpy scipy pytest ||
        skip "NumPy, SciPy and pytest cannot be installed"
    has skimage || pip scikit-image || echo "scikit-image is not there: a sample is skipped"
    # What the index for CPUs has is small; elsewhere PyTorch brings gigabytes of CUDA.
    if ! has torch && [ ! -e "$folder/no-torch" ]; then
        pip torch --index-url https://download.pytorch.org/whl/cpu || touch "$folder/no-torch"
    fi
fi
has numpy && has pytest || skip "$python has no NumPy or no pytest"
has torch || echo "PyTorch is not there: its tests are skipped"
exec "$python" "$root/test/test_python.py" "$@"
