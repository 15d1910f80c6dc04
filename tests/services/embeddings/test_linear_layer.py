"""A linear layer gives the products of its floats, though it keeps half of their bits."""

import numpy as np
import pytest

from local.memory.embeddings import LinearLayer

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 39, 40, 200])
@pytest.mark.parametrize(("outputs", "inputs"), [(1152, 384), (384, 1536), (128, 8), (7, 3)])
def test_the_products_are_those_of_the_floats(rows: int, outputs: int, inputs: int) -> None:
    weights, bias, given = normal(outputs, inputs), normal(outputs), normal(rows, inputs)
    # An output's weights are rounded by up to half a share of its largest, here 4 or so, in either direction.
    off = 6 * 4 / 32_767 / 12**0.5 * inputs**0.5
    assert np.allclose(LinearLayer(weights, bias)(given), given @ weights.T + bias, rtol=0, atol=off)


def test_an_output_of_small_weights_is_as_exact_as_one_of_large() -> None:
    weights, given = normal(4, 64) * np.array([[1], [1e-3], [1e-6], [0]], np.float32), normal(5, 64)
    products = LinearLayer(weights, np.zeros(4, np.float32))(given)
    assert np.allclose(products[:, :3] / (given @ weights.T)[:, :3], 1, atol=2e-2)
    assert not products[:, 3].any()


def test_the_weights_take_half_of_their_memory() -> None:
    weights = normal(384, 384)
    layer = LinearLayer(weights, normal(384))
    kept = sum(each.nbytes for each in vars(layer).values())
    assert kept < 0.52 * weights.nbytes


def test_what_it_was_made_of_may_change() -> None:
    weights, bias, given = normal(64, 8), normal(64), normal(2, 8)
    layer = LinearLayer(weights, bias)
    before = layer(given)
    weights[:], bias[:] = 0, 0
    assert np.array_equal(layer(given), before)
