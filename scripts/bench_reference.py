#!/usr/bin/env python3
"""The reference's side of the benchmarks in `examples/`: answers each line on standard input with the milliseconds of one run
of what the line names, so that both sides take turns on the same machine.

    bench_reference.py MODEL_DIR             # forward passes, decoding, loading
    bench_reference.py MODEL_DIR patching    # loading, and constructing without and with registered patches
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
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

torch.set_num_threads(2)
torch.set_grad_enabled(False)
folder = sys.argv[1]


def load(implementation="sdpa"):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation=implementation).eval()


def ids(count):
    return torch.tensor([[(i * 7919 + 13) % 49152 for i in range(count)]])


prompt = ids(128)
token = ids(129)[:, 128:]


def prefilled(model):
    cache = DynamicCache(config=model.config)
    model(prompt, cache=cache, use_cache=True)
    return cache


def forward(model, **flags):
    return lambda: model(prompt, use_cache=False, **flags)


def decode(model, cache):
    def run():
        model(token, cache=cache, use_cache=True)

    run.cache = cache
    return run


def dense():
    eager, sdpa = load("eager"), load("sdpa")
    return {
        "load": load,
        "decode": decode(sdpa, prefilled(sdpa)),
        "prefill": forward(sdpa),
        "prefill_eager": forward(eager),
        "prefill_hidden_states": forward(sdpa, output_hidden_states=True),
        "prefill_eager_attentions": forward(eager, output_attentions=True),
    }


def experts():
    model = load()
    runs = {
        "decode": decode(model, prefilled(model)),
        "prefill": forward(model),
        "prefill_router_logits": forward(model, output_router_logits=True),
    }

    def choose(run, name):
        def chosen():
            return run()

        chosen.before = lambda: model.set_experts_implementation(name)
        chosen.cache = getattr(run, "cache", None)
        return chosen

    names = ("eager", "grouped_mm", "batched_mm")
    return {f"{run}.{name}": choose(runs[run], name) for run in runs for name in names}


def patching():
    from transformers.monkey_patching import clear_patch_mapping, register_patch_mapping

    class Replacement(torch.nn.Module):
        pass

    config = AutoConfig.from_pretrained(folder)

    def construct():
        # without the time that random weights take
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)

    def construct_patched():
        return construct()

    construct.before = clear_patch_mapping
    construct_patched.before = lambda: (
        clear_patch_mapping(),
        register_patch_mapping({f"^Nothing{n}.*$": Replacement for n in range(100)}),
    )
    load.before = clear_patch_mapping
    return {"load": load, "construct": construct, "construct_patched": construct_patched}


if sys.argv[2:] == ["patching"]:
    RUNS = patching()
elif getattr(AutoConfig.from_pretrained(folder), "num_experts", 0):
    RUNS = experts()
else:
    RUNS = dense()

print("ready", flush=True)
for line in sys.stdin:
    run = RUNS.get(line.strip())
    if run is None:
        print("nan", flush=True)
        continue
    getattr(run, "before", lambda: None)()
    cache = getattr(run, "cache", None)
    times = []
    for _ in range(10 if cache else 1):
        start = time.perf_counter()
        result = run()
        times.append((time.perf_counter() - start) * 1e3)
        del result
        if cache:
            cache.crop(-1)
    elapsed = statistics.median(times)
    print(elapsed, flush=True)
