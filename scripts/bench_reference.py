#!/usr/bin/env python3
"""The reference's side of the benchmarks in `examples/`: answers each line on standard input with the milliseconds of one run
of what the line names, so that both sides take turns on the same machine.

    bench_reference.py MODEL_DIR             # forward passes, decoding, loading
    bench_reference.py MODEL_DIR patching    # loading, and constructing without and with registered patches
    bench_reference.py MODEL_DIR sentences   # an encoder of text on a batch of 32 sentences
    bench_reference.py MODEL_DIR speech      # an encoder of speech on 30 seconds, and its decoder
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


def sentences():
    """32 sentences of 8 to 24 tokens, padded."""
    from transformers import AutoModel

    def load(implementation="sdpa"):
        return AutoModel.from_pretrained(folder, attn_implementation=implementation).eval()

    lengths = [8 + (row * 5) % 17 for row in range(32)]
    mask = torch.tensor([[int(at < length) for at in range(24)] for length in lengths])
    tokens = torch.tensor([[1000 + (row * 31 + at * 17) % 20000 for at in range(24)] for row in range(32)]) * mask
    sdpa, eager = load(), load("eager")

    def run(model, **flags):
        return lambda: model(input_ids=tokens, attention_mask=mask, **flags)

    return {
        "load": load,
        "sentences": run(sdpa),
        "sentences_eager": run(eager),
        "sentences_hidden_states": run(sdpa, output_hidden_states=True),
        "sentences_eager_attentions": run(eager, output_attentions=True),
    }


def speech():
    """A spectrogram of 30 seconds, and tokens one by one after it."""
    from transformers import WhisperForConditionalGeneration
    from transformers.cache_utils import EncoderDecoderCache

    def load():
        return WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="sdpa").eval()

    model = load()
    bins, frames = model.config.num_mel_bins, 2 * model.config.max_source_positions
    features = torch.tensor([(at * 37 % 101) / 50 - 1 for at in range(bins * frames)]).reshape(1, bins, frames)
    encoded = model.model.encoder(features)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    prompt = torch.tensor([[(at * 7919 + 13) % 50000 for at in range(32)]])
    model(decoder_input_ids=prompt, encoder_outputs=encoded, cache=cache, use_cache=True)
    token = torch.tensor([[400]])

    def decode():
        model(decoder_input_ids=token, encoder_outputs=encoded, cache=cache, use_cache=True)

    decode.cache = cache
    return {"load": load, "encode": lambda: model.model.encoder(features), "decode": decode}


if sys.argv[2:] == ["patching"]:
    RUNS = patching()
elif sys.argv[2:] == ["sentences"]:
    RUNS = sentences()
elif sys.argv[2:] == ["speech"]:
    RUNS = speech()
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
