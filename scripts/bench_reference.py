#!/usr/bin/env python3
"""The reference's side of `examples/bench_smollm2.rs`: answers each line on standard input with the milliseconds of one
run of what the line names, so that both sides take turns on the same machine.

    bench_reference.py MODEL_DIR
"""
import os
import statistics
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

torch.set_num_threads(2)
torch.set_grad_enabled(False)
folder = sys.argv[1]


def load(implementation="sdpa"):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation=implementation).eval()


def ids(count):
    return torch.tensor([[(i * 7919 + 13) % 49152 for i in range(count)]])


eager, sdpa = load("eager"), load("sdpa")
prompt = ids(128)
cache = DynamicCache(config=sdpa.config)
sdpa(prompt, cache=cache, use_cache=True)
token = ids(129)[:, 128:]


def decode():
    sdpa(token, cache=cache, use_cache=True)


def forward(model, **flags):
    return lambda: model(prompt, use_cache=False, **flags)


RUNS = {
    "load": load,
    "decode": decode,
    "prefill": forward(sdpa),
    "prefill_eager": forward(eager),
    "prefill_hidden_states": forward(sdpa, output_hidden_states=True),
    "prefill_eager_attentions": forward(eager, output_attentions=True),
}

print("ready", flush=True)
for line in sys.stdin:
    run = RUNS.get(line.strip())
    if run is None:
        print("nan", flush=True)
        continue
    times = []
    for _ in range(10 if run is decode else 1):
        start = time.perf_counter()
        result = run()
        times.append((time.perf_counter() - start) * 1e3)
        del result
        if run is decode:
            cache.crop(-1)
    elapsed = statistics.median(times)
    print(elapsed, flush=True)
