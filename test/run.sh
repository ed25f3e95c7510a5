#!/bin/sh
# Builds everything, runs every test: a quarter of an hour on two cores. What is skipped is told with its reason. The last
# line tells "N passed, N failed, N skipped". Exit status 0: none failed.
#     sh test/run.sh [--small] [--no-install]
#       --small        fewer and smaller cases, for slow machines and for sanitizers
#       --no-install   no apt-get: what is missing is named instead
# Tests that need a GPU count as skipped where there is none; the tests simt_* run its code on the CPU, see
# test/simt/README.md. Those of Python install what they need in the build folder, see test/python.sh.
# From the environment:
#     BUILD_DIR       build folder, default build-test
#     MESON_OPTIONS   for "meson setup", for instance "-Dgpu_archs=80,90" or "-Dcuda=disabled -Dc_args=-march=native"
#     TEST_WRAPPER    what runs the tests, for instance "compute-sanitizer --error-exitcode 1"
install=
for argument; do
    case $argument in
    --small) PG_TEST_SMALL=1; export PG_TEST_SMALL ;;
    --no-install) install=--no-install ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
done
cd "$(dirname "$0")/.." || exit 1
build=${BUILD_DIR:-build-test}

give_up() { echo "$1" >&2; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

sh test/need.sh $install c++ meson ninja cmocka python3 'venv?' 'pkg-config?' 'png?' 'gfortran?' 'mpicxx?' ||
    give_up "Nothing was built."

# For the GPU that is here; without one nvcc, which takes long, is left to test/checks.sh.
cuda="-Dcuda=disabled"
nvidia-smi -L >/dev/null 2>&1 && cuda="-Dgpu_archs=native"
began=$(date +%s)
minutes() { echo "$((($(date +%s) - began) / 60)) min $((($(date +%s) - began) % 60)) s"; }
echo "Building in $build and running all tests: on two idle cores a quarter of an hour, with a GPU nvcc's time more"
reconfigure=
[ -f "$build/build.ninja" ] && reconfigure=--reconfigure
meson setup $reconfigure "$build" -Dtests=enabled -Dsamples=enabled $cuda $MESON_OPTIONS ||
    give_up "meson setup failed."
meson compile -C "$build" || give_up "The build failed."
echo "Built after $(minutes)"
rm -f "$build"/meson-logs/testlog*.json
meson test -C "$build" --no-rebuild --print-errorlogs ${TEST_WRAPPER:+--wrapper "$TEST_WRAPPER"}

# Meson counts programs; here every case of a cmocka program counts, told by its TAP lines. A case without a line (the
# program ended early) has failed.
results=$(echo "$build"/meson-logs/testlog*.json)         # with a wrapper its name comes before the dot
[ -f "$results" ] || give_up "No results in $build/meson-logs."
echo "Built and tested in $(minutes)"
python3 - "$results" "$cuda $MESON_OPTIONS" <<'EOF'
import collections, json, re, sys
passed = failed = skipped = 0
reasons = collections.Counter()
for test in map(json.loads, open(sys.argv[1])):
    output = test.get('stdout', '')
    good = test['result'] in ('OK', 'EXPECTEDFAIL')        # a program that is to refuse something
    plan = re.search(r'^1\.\.(\d+)', output, re.M)
    cases = re.findall(r'^(not )?ok \d+(.*)', output, re.M) if plan else []
    bad = [name.strip(' -') for no, name in cases if no and '# SKIP' not in name]
    lost = max(int(plan[1]) - len(cases), 0) if plan else 0
    if lost:
        bad += ['%d without a result' % lost]
    if not good and test['result'] != 'SKIP' and not bad:
        bad = ['%s, status %s' % (test['result'].lower(), test['returncode'])]
    for name in bad:
        print('FAILED  %s: %s' % (test['name'], name))
    failed += len(bad) + max(lost - 1, 0)
    left_out = [name for no, name in cases if '# SKIP' in name]
    if not plan and test['result'] == 'SKIP':
        left_out = ['all # SKIP ' + (output.strip() or 'not for this system').split('\n')[-1]]
    for case in left_out:                                  # cmocka tells no reason, and names the case on either side
        name, reason = (part.strip(' -') for part in case.split('# SKIP'))
        if not (name and reason):
            name, reason = name or reason, ''
        if not reason and '-Dcuda=disabled' in sys.argv[2] and not test['name'].startswith(('simt_', 'mpi_')):
            reasons['need a GPU and CUDA; the tests simt_* run the same code on the CPU'] += 1
        else:
            reasons['%s: %s' % (test['name'], reason or name)] += 1
    skipped += len(left_out)
    passed += sum(not no and '# SKIP' not in name for no, name in cases) if plan else good
most = reasons.most_common(20)
rest = skipped - sum(count for _, count in most)
for reason, count in most + [('for other reasons: see testlog.txt beside ' + sys.argv[1], rest)] * (rest > 0):
    print('skipped %4d  %s' % (count, reason))
print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
sys.exit(failed != 0)
EOF
