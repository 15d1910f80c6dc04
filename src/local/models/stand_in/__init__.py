"""The stand-in model: a small rule-based server that speaks Ollama's HTTP API, for machines and tests without a model.

`conversation` reads a request, `task` tells what it is for, `brain`, `classifying` or `judging` (or a `script`) decides
the reply, `delivery` cuts it into chunks, `faults` spoil it on demand, `generation` sends it; `ollama_api` and
`openai_api` are the doors.
"""
