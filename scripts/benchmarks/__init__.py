"""Benchmarks: every figure beside its baseline, both measured in the same run. No part of the product."""
