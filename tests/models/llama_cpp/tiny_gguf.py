"""A language model of four megabytes, for a real llama.cpp: random weights, and a few words that follow each other.

Its one layer adds nothing to a token's embedding, so that what comes next depends on the last token alone, and a strong
weight from one token to another makes the second follow the first. What the template puts last decides what it says:
a call where tools are offered and the question is new, words without end where that is asked for, else one sentence.
Between those weights all is random: that calls and JSON are valid is the doing of the server's grammars.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np

SENTENCE = "I am a tiny model."
FOR_EVER = "for ever"  # in a question: it never stops
TEMPLATE = """
{%- if tools %}<|system|>
Tools: {% for tool in tools %}{{ tool | tojson }}
{% endfor %}A call is <tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call><|end|>
{% endif %}
{%- for message in messages %}<|{{ message.role }}|>
{{ message.content if message.content else '' }}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}{% endif %}<|end|>
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>

{%- if tools and messages[-1].role == 'user' and messages[-2:-1] | map(attribute='role') | first != 'tool' %}<|call|>
{%- elif 'for ever' in (messages[-1].content | string) %}<|ever|>{% else %}<|say|>{% endif %}{% endif %}"""
WIDTH, HEAD = 512, 32  # one number of the embedding for each token
_SPECIAL = (
    "<unk>",
    "<s>",
    "<|end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool|>",
    "<|call|>",
    "<|say|>",
    "<|ever|>",
)
_WORDS = ("▁am", "▁a", "▁tiny", "▁model", "▁and")
_SAYS = ("<|say|>", "I", "▁am", "▁a", "▁tiny", "▁model", ".", "<|end|>")
_CALLS = ("<|call|>", "<tool_call>", "<0x0A>", "{")
_FOLLOWS = (*pairwise(_SAYS), *pairwise(_CALLS), ("<|ever|>", "▁and"), ("▁and", "▁and"), ("</tool_call>", "<|end|>"))


def write_tiny_gguf(path: Path, context_length: int = 65_536) -> Path:
    """Write the model; it is the same every time."""
    kinds = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(context_length)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HEAD)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(kinds))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(kinds))
    writer.add_token_types([int(kind) for kind in kinds.values()])
    writer.add_token_scores([-1.0 if token in _WORDS else -1000.0 for token in kinds])  # whole words first
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in _weights(list(kinds)).items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _vocabulary() -> dict[str, gguf.TokenType]:
    return {
        **dict.fromkeys(_SPECIAL, gguf.TokenType.CONTROL),
        "<unk>": gguf.TokenType.UNKNOWN,
        **dict.fromkeys(("<tool_call>", "</tool_call>"), gguf.TokenType.USER_DEFINED),
        **{f"<0x{byte:02X}>": gguf.TokenType.BYTE for byte in range(256)},
        **dict.fromkeys(map(chr, range(33, 127)), gguf.TokenType.NORMAL),
        **dict.fromkeys(("▁", *_WORDS), gguf.TokenType.NORMAL),
    }


def _weights(tokens: list[str]) -> dict[str, Any]:
    random, place = np.random.default_rng(1), {token: number for number, token in enumerate(tokens)}
    output = random.normal(0, 0.02, (len(tokens), WIDTH))
    for token in (*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))):
        output[place[token]] -= 1  # never by chance
    for before, after in _FOLLOWS:
        output[place[after], place[before]] = 2
    for letter in "abcdefghijklmnopqrstuvwxyz":
        output[place['"'], place[letter]] = 0.5  # texts in JSON come to an end
    noise = {name: random.normal(0, 0.02, shape) for name, shape in _SHAPES.items()}
    ones = dict.fromkeys(("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"), np.ones(WIDTH))
    nothing = {"blk.0.attn_output": np.zeros((WIDTH, HEAD)), "blk.0.ffn_down": np.zeros((WIDTH, HEAD))}
    weights = {"token_embd": np.eye(len(tokens), WIDTH), "output": output, **ones, **noise, **nothing}
    return {name: weight.astype(np.float32) for name, weight in weights.items()}


_SHAPES = {
    f"blk.0.{name}": (HEAD, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up")
}  # fmt: skip
