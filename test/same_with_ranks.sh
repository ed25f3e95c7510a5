#!/bin/sh
# cavity or smoke print with several ranks of MPI what they print with one, but for times and for what is round-off only,
# and find their own answer right.
#     same_with_ranks.sh MPIRUN RANKS SAMPLE [OPTION]...
mpirun=$1 ranks=$2
shift 2
prints() {                           # prints RANKS SAMPLE [OPTION]...
    output=$("$mpirun" --oversubscribe --allow-run-as-root -n "$@") || { echo "with $1 ranks: $output"; exit 1; }
    printf '%s\n' "$output" | sed -E -e 's/ +/ /g' -e 's/, [0-9.]+ s$//' -e 's/; the last step left.*//' \
        -e 's/[0-9.]+ ms a/ms a/' -e 's/^( [0-9]+ .*) [0-9.]+ ([0-9.]+)$/\1 \2/'
}
one=$(prints 1 "$@") || { echo "$one"; exit 1; }
all=$(prints "$ranks" "$@") || { echo "$all"; exit 1; }
printf '%s\n' "$one"
[ "$one" = "$all" ] && exit 0
printf 'but with %s ranks:\n%s\n' "$ranks" "$all"
exit 1
