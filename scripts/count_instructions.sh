#!/usr/bin/env bash
# Instructions of a forward pass of 128 tokens with recording on and off, by valgrind: the same whatever else the
# machine does. usage: count_instructions.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-}
if [ -z "$binary" ]; then
    cargo build --release --example capture_cost
    binary=${CARGO_TARGET_DIR:-target}/release/examples/capture_cost
fi
export RAYON_NUM_THREADS=1
total() { # attention record passes -> instructions
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
pass() { # attention record -> instructions of one pass; what comes before the passes is left out
    echo $(( $(total "$1" "$2" 2) - $(total "$1" "$2" 1) ))
}
off=$(pass sdpa off) hidden=$(pass sdpa hidden_states)
eager=$(pass eager off) attentions=$(pass eager attentions)
awk -v off="$off" -v hidden="$hidden" -v eager="$eager" -v attentions="$attentions" 'BEGIN {
    printf "hidden states: off %d, on %d, ratio %.5f\n", off, hidden, hidden / off
    printf "attentions:    eager %d, on %d, ratio %.5f\n", eager, attentions, attentions / eager
}'
