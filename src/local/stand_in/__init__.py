"""The stand-in model: a small rule-based server that speaks Ollama's HTTP API, for machines and tests without a model.

`conversation` reads a request and tells what it is for; `brain`, `structured_reply` or `judging` (or a `script`)
decides the reply, `chunked_reply` cuts it into chunks, `faults` spoil it on demand, `endpoint` sends it; `ollama_api`
and `openai_api` are the doors.
"""
