"""Trainings and generations of known models on the board that is here, beside what `stoker validate` predicts of them: for gpu_day.py.
Weights are random and made on the board: nothing is fetched. Needs PyTorch and transformers; torchvision and peft for the cases that name them.

    tools/gpu_day_models.py rows --gpu H100-SXM --memory-gb 80 --out FOLDER    training.csv, memory.csv, inference.csv without a measurement
    tools/gpu_day_models.py measure --out FOLDER [--seconds 240]               measured.json: seconds a step, peak of the allocator
    tools/gpu_day_models.py join --out FOLDER                                  fills the measurements into the rows
"""
import argparse
import csv
import gc
import json
import os
import statistics
import sys
import time

# id, model, sequence (0: an image), sequences a step, precision, recompute, framework
TRAININGS = [
    ("gpt2", "gpt2", 1024, 16, "amp_bf16", "none", "Hugging Face transformers"),
    ("llama-1b", "llama-3.2-1b", 2048, 4, "amp_bf16", "none", "Hugging Face transformers"),
    ("lora-8b", "llama-3.1-8b", 2048, 2, "bf16", "full", "Hugging Face transformers / peft lora"),
    ("resnet-50", "resnet-50", 0, 256, "amp_bf16", "none", "PyTorch"),
    ("bert-base", "bert-base", 128, 128, "amp_bf16", "none", "Hugging Face transformers"),
    ("vit-b-16", "vit-b-16", 0, 128, "amp_bf16", "none", "Hugging Face transformers"),
    ("qwen-0.5b", "qwen2.5-0.5b", 1024, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("llama-1b-recompute", "llama-3.2-1b", 2048, 16, "amp_bf16", "full", "Hugging Face transformers"),
    ("gpt2-medium", "gpt2-medium", 1024, 16, "amp_bf16", "none", "Hugging Face transformers"),
    ("gpt2-large", "gpt2-large", 1024, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("gpt2-fp32", "gpt2", 1024, 16, "fp32", "none", "Hugging Face transformers"),
    ("bert-large", "bert-large", 512, 16, "amp_bf16", "none", "Hugging Face transformers"),
    ("t5-base", "t5-base", 512, 16, "amp_bf16", "none", "Hugging Face transformers"),
    ("gpt2-small-batch", "gpt2", 1024, 2, "amp_bf16", "none", "Hugging Face transformers"),
    ("lora-8b-long", "llama-3.1-8b", 8192, 1, "bf16", "full", "Hugging Face transformers / peft lora"),
    ("gpt2-compiled", "gpt2", 1024, 16, "amp_bf16", "none", "PyTorch torch.compile"),
]
# id, model, prompt, answer, sequences at once
GENERATIONS = [
    ("8b-1", "llama-3.1-8b", 512, 64, 1),
    ("8b-32", "llama-3.1-8b", 512, 64, 32),
    ("0.5b-1", "qwen2.5-0.5b", 512, 64, 1),
]
# A second visit: models that nothing was changed for after the first, and two that say why two of the first were off.
MORE_TRAININGS = [
    ("gpt2-medium-one-gelu", "gpt2-medium", 1024, 16, "amp_bf16", "none", "Hugging Face transformers; gelu in one kernel"),
    ("bert-large-written-out", "bert-large", 512, 16, "amp_bf16", "none", "Hugging Face transformers; attention written out"),
    ("qwen-1.5b", "qwen2.5-1.5b", 2048, 4, "amp_bf16", "none", "Hugging Face transformers"),
    ("smollm2-360m", "smollm2-360m", 2048, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("tinyllama", "tinyllama-1.1b", 2048, 4, "amp_bf16", "none", "Hugging Face transformers"),
    ("opt-1.3b", "opt-1.3b", 1024, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("bloom-560m", "bloom-560m", 1024, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("phi-1.5", "phi-1.5", 1024, 8, "amp_bf16", "none", "Hugging Face transformers"),
    ("roberta-large", "roberta-large", 256, 32, "amp_bf16", "none", "Hugging Face transformers"),
    ("distilbert", "distilbert-base", 128, 256, "amp_bf16", "none", "Hugging Face transformers"),
    ("vit-l-16", "vit-l-16", 0, 64, "amp_bf16", "none", "Hugging Face transformers"),
    ("convnext-base", "convnext-base", 0, 128, "amp_bf16", "none", "PyTorch"),
    ("resnet-101", "resnet-101", 0, 256, "amp_bf16", "none", "PyTorch"),
    ("swin-base", "swin-base", 0, 128, "amp_bf16", "none", "PyTorch"),
    ("lora-mistral", "mistral-7b", 4096, 2, "bf16", "full", "Hugging Face transformers / peft lora"),
    ("esm2-650m", "esm2-650m", 512, 16, "amp_bf16", "none", "Hugging Face transformers"),
]
MORE_GENERATIONS = [
    ("1.1b-8", "tinyllama-1.1b", 512, 64, 8),
    ("7b-4", "mistral-7b", 2048, 64, 4),
]
LEFT = ("t5-base", "gpt2-small-batch", "lora-8b-long", "gpt2-compiled")  # of the first visit
SHAPES = {
    "gpt2": dict(n_embd=768, n_layer=12, n_head=12), "gpt2-medium": dict(n_embd=1024, n_layer=24, n_head=16), "gpt2-large": dict(n_embd=1280, n_layer=36, n_head=20),
    "llama-3.2-1b": dict(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192, vocab_size=128256, head_dim=64, tie_word_embeddings=True),
    "llama-3.1-8b": dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336, vocab_size=128256),
    "qwen2.5-0.5b": dict(hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864, vocab_size=151936, tie_word_embeddings=True),
    "bert-base": dict(), "bert-large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
    "t5-base": dict(d_model=768, d_ff=3072, d_kv=64, num_layers=12, num_heads=12), "vit-b-16": dict(num_labels=1000), "resnet-50": dict(),
    "qwen2.5-1.5b": dict(hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2, intermediate_size=8960, vocab_size=151936, tie_word_embeddings=True),
    "smollm2-360m": dict(hidden_size=960, num_hidden_layers=32, num_attention_heads=15, num_key_value_heads=5, intermediate_size=2560, vocab_size=49152, tie_word_embeddings=True),
    "tinyllama-1.1b": dict(hidden_size=2048, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, intermediate_size=5632, vocab_size=32000),
    "mistral-7b": dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336, vocab_size=32000),
    "opt-1.3b": dict(hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, ffn_dim=8192, word_embed_proj_dim=2048, vocab_size=50272),
    "bloom-560m": dict(hidden_size=1024, n_layer=24, n_head=16, vocab_size=250880),
    "phi-1.5": dict(hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, intermediate_size=8192, vocab_size=51200),
    "roberta-large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, vocab_size=50265, max_position_embeddings=514),
    "distilbert-base": dict(), "vit-l-16": dict(num_labels=1000, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
    "convnext-base": dict(), "resnet-101": dict(), "swin-base": dict(),
    "esm2-650m": dict(hidden_size=1280, num_hidden_layers=33, num_attention_heads=20, intermediate_size=5120, vocab_size=33, pad_token_id=1, mask_token_id=32, position_embedding_type="rotary", token_dropout=False),
}
VISION = {"resnet-50": "resnet50", "resnet-101": "resnet101", "convnext-base": "convnext_base", "swin-base": "swin_b"}
TINY = {"n_layer": 2, "num_hidden_layers": 2, "num_layers": 2}  # for a rehearsal on a processor
SECONDS_A_CASE = 2.0


def cases(visit):
    """What a visit measures: trainings, generations."""
    if visit == 1:
        return TRAININGS, GENERATIONS
    return MORE_TRAININGS + [c for c in TRAININGS if c[0] in LEFT], MORE_GENERATIONS


def architecture(model):
    return {"gpt": "gpt", "opt": "gpt", "blo": "gpt", "phi": "gpt", "ber": "bert", "rob": "bert", "dis": "bert", "esm": "bert", "t5-": "encdec", "vit": "vit", "res": "cnn", "con": "cnn",
            "swi": "cnn"}.get(model[:3], "llama")


# --- rows -----------------------------------------------------------------------------------------------------------------

def rows(a):
    """The same columns as data/validation, so that one program predicts both."""
    source = f"Stoker's own measurements, docs/measurements/gpu.md ({a.gpu})"
    def columns(kind):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "validation", kind + ".csv"), newline="") as file:
            return next(csv.reader(file))
    def write(kind, found):
        with open(os.path.join(a.out, kind + ".csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, columns(kind), restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    os.makedirs(a.out, exist_ok=True)
    training, memory = [], []
    trainings, generations = cases(a.visit)
    for name, model, length, batch, precision, recompute, framework in trainings:
        row = dict(id="G-" + name, source=source, gpu_model=a.gpu, gpu_mem_gb=a.memory_gb, gpus=1, model_name=model, seq_len=length or "", global_batch=batch, micro_batch=batch,
                   tp=1, pp=1, dp=1, recompute=recompute, precision=precision, framework=framework)
        training.append(row | dict(source_group="gpu-day", gpus_per_node=1, arch=architecture(model), optimizer="AdamW", measured_step_s="1", notes="LoRA r=16, all linear layers" if "lora" in name else ""))
        memory.append(row | dict(peak_mem_gb="1", mem_kind="peak torch allocated (1e9 bytes)", notes="LoRA r=16, all linear layers" if "lora" in name else ""))
    write("training", training)
    write("memory", memory)
    inference = []
    for name, model, prompt, answer, batch in generations:
        inference.append(dict(id="G-" + name, source=source, gpu_model=a.gpu, gpus=1, tp=1, pp=1, model=model, precision_weights="BF16", precision_kv="BF16", engine="Hugging Face transformers", input_len=prompt,
                              output_len=answer, batch_or_concurrency=batch, scenario="single_stream" if batch == 1 else "offline_batch", measured_out_tokens_per_s="1", split_group="gpu-day"))
    write("inference", inference)


# --- measured -------------------------------------------------------------------------------------------------------------

def build(torch, model, device, tiny, dtype, variant=""):
    import transformers as t
    shape = dict(SHAPES[model])
    if tiny:
        shape |= {k: TINY[k] for k in TINY if k in shape} | ({"n_layers": 2} if model.startswith("distil") else {"num_hidden_layers": 2} if model[:3] in ("ber", "vit") else {})
    if model in VISION:
        import torchvision
        return getattr(torchvision.models, VISION[model])().to(device, memory_format=torch.channels_last)
    if variant:
        shape |= {"gelu in one kernel": {"activation_function": "gelu_pytorch_tanh"}, "attention written out": {"attn_implementation": "eager"}}[variant]
    with torch.device(device):
        old = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            if model.startswith("gpt2"):
                return t.GPT2LMHeadModel(t.GPT2Config(**shape))
            for begins, network, config in (("mistral", t.MistralForCausalLM, t.MistralConfig), ("opt", t.OPTForCausalLM, t.OPTConfig), ("bloom", t.BloomForCausalLM, t.BloomConfig),
                                            ("phi", t.PhiForCausalLM, t.PhiConfig), ("roberta", t.RobertaForMaskedLM, t.RobertaConfig), ("distilbert", t.DistilBertForMaskedLM, t.DistilBertConfig),
                                            ("esm2", t.EsmForMaskedLM, t.EsmConfig)):
                if model.startswith(begins):
                    return network(config(**shape))
            if model.startswith(("llama", "smollm2", "tinyllama")):
                return t.LlamaForCausalLM(t.LlamaConfig(max_position_embeddings=16384, **shape))
            if model.startswith("qwen"):
                return t.Qwen2ForCausalLM(t.Qwen2Config(max_position_embeddings=16384, **shape))
            if model.startswith("bert"):
                return t.BertForMaskedLM(t.BertConfig(**shape))
            if model.startswith("t5"):
                return t.T5ForConditionalGeneration(t.T5Config(decoder_start_token_id=0, pad_token_id=0, **shape))
            return t.ViTForImageClassification(t.ViTConfig(**shape))
        finally:
            torch.set_default_dtype(old)


def train(torch, case, device, tiny):
    name, model_name, length, batch, precision, recompute, framework = case
    if tiny:
        length, batch = min(length, 64), min(batch, 2)
    torch.manual_seed(1)
    began = time.monotonic()
    lora = "lora" in framework
    model = build(torch, model_name, device, tiny, torch.bfloat16 if lora else torch.float32, framework.partition("; ")[2])
    model.train()
    if recompute == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.config.use_cache = False
    if lora:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
        model.enable_input_require_grads()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    run = torch.compile(model) if "compile" in framework else model
    if length == 0:
        x = torch.randn(batch, 3, 224, 224, device=device)
        if model_name in VISION:
            x = x.to(memory_format=torch.channels_last)
        y = torch.randint(0, 1000, (batch,), device=device)
    else:
        x = torch.randint(3, 30 if model_name.startswith("esm") else 20000, (batch, length), device=device)
    amp = torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "amp_bf16")
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()

    def step():
        with amp:
            if model_name in VISION:
                loss = torch.nn.functional.cross_entropy(run(x), y)
            elif length == 0:
                loss = run(pixel_values=x, labels=y).loss
            else:
                loss = run(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()
    built = time.monotonic() - began
    for _ in range(3):
        loss = step()
    wait()
    took, end = [], time.monotonic() + SECONDS_A_CASE
    while len(took) < 5 or (time.monotonic() < end and len(took) < 40):
        at = time.perf_counter()
        step()
        wait()
        took.append(time.perf_counter() - at)
    # Without a wait after each: what the host has queued hides its launches.
    at = time.perf_counter()
    for _ in range(len(took)):
        step()
    wait()
    together = (time.perf_counter() - at) / len(took)
    found = dict(step_s=together, step_alone_s=statistics.median(took), low=min(took), high=max(took), steps=len(took), build_s=round(built, 2), loss=float(loss.detach()),
                 parameters=sum(p.numel() for p in model.parameters()), trained=sum(p.numel() for p in trained))
    if device == "cuda":
        found |= dict(peak_allocated_bytes=torch.cuda.max_memory_allocated(), peak_reserved_bytes=torch.cuda.max_memory_reserved())
    return found


def generate(torch, case, device, tiny):
    name, model_name, prompt, answer, batch = case
    if tiny:
        prompt, answer, batch = 16, 4, min(batch, 2)
    model = build(torch, model_name, device, tiny, torch.bfloat16)
    model.eval()
    x = torch.randint(0, 20000, (batch, prompt), device=device)
    kept = {}
    for times, tokens in ((1, 4), (2, answer), (2, 1)):
        took = []
        for _ in range(times):
            at = time.perf_counter()
            with torch.inference_mode():
                model.generate(input_ids=x, attention_mask=torch.ones_like(x), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
            if device == "cuda":
                torch.cuda.synchronize()
            took.append(time.perf_counter() - at)
        kept[tokens] = took
    whole, first = min(kept[answer]), min(kept[1])
    return dict(out_tokens_per_s=batch * answer / whole, whole_s=kept[answer], ttft_s=first, tpot_s=(whole - first) / (answer - 1) if answer > 1 else None)


def measure(a):
    import torch
    device = "cpu" if a.tiny else "cuda"
    os.makedirs(a.out, exist_ok=True)
    path, began = os.path.join(a.out, "measured.json"), time.monotonic()
    found = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0) if device == "cuda" else "none", "trainings": {}, "generations": {}}
    import transformers
    found["transformers"] = transformers.__version__
    trainings, generations = cases(a.visit)
    work = [("trainings", c, train) for c in trainings[:6]] + [("generations", c, generate) for c in generations] + [("trainings", c, train) for c in trainings[6:]]
    for kind, case, how in work:
        if time.monotonic() - began > a.seconds:
            found[kind][case[0]] = {"skipped": "no time left"}
            continue
        try:
            told = how(torch, case, device, a.tiny)
        except Exception as error:  # told, and the next goes on
            told = {"failed": f"{type(error).__name__}: {error}"[:600]}
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        found[kind][case[0]] = told
        with open(path, "w") as file:
            json.dump(found, file, indent=1)
        print(f"{time.monotonic() - began:5.0f} s  {kind[:-1]} {case[0]}: " + ", ".join(f"{k} {v:.5g}" for k, v in told.items() if isinstance(v, float) or k == "peak_allocated_bytes") + told.get("failed", ""), flush=True)


def join(a):
    with open(os.path.join(a.out, "measured.json")) as file:
        found = json.load(file)
    for kind, part, fill in (("training", "trainings", lambda r, m: r.update(measured_step_s=f"{m['step_s']:.6g}")),
                             ("memory", "trainings", lambda r, m: r.update(peak_mem_gb=f"{m['peak_allocated_bytes'] / 1e9:.4g}")),
                             ("inference", "generations", lambda r, m: r.update(measured_out_tokens_per_s=f"{m['out_tokens_per_s']:.6g}"))):
        path = os.path.join(a.out, kind + ".csv")
        with open(path, newline="") as file:
            reader = csv.DictReader(file)
            header, all_rows = reader.fieldnames, list(reader)
        kept = []
        for row in all_rows:
            told = found[part].get(row["id"][2:], {})
            if "failed" not in told and "skipped" not in told and told:
                fill(row, told)
                kept.append(row)
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, header, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("rows")
    one.add_argument("--gpu", required=True, help="as data/validation calls it")
    one.add_argument("--memory-gb", type=int, required=True)
    two = verbs.add_parser("measure")
    two.add_argument("--seconds", type=float, default=240)
    two.add_argument("--tiny", action="store_true", help="two layers on a processor: a rehearsal")
    three = verbs.add_parser("join")
    for each in (one, two, three):
        each.add_argument("--out", required=True)
        each.add_argument("--visit", type=int, choices=(1, 2), default=1, help="which models")
    a = parser.parse_args()
    {"rows": rows, "measure": measure, "join": join}[a.verb](a)


if __name__ == "__main__":
    sys.exit(main())
