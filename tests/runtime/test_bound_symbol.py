"""Symbols bound to arrays: whose they are, what backward does with gradients, other shapes."""

from __future__ import annotations

import numpy as np
import pytest

import tofu
from tofu import cpu, gpu, sym
from tofu.errors import DataError, ExecutionError, ShapeError

TWO = [tofu.cpu(0), tofu.cpu(1)]
RNG = np.random.default_rng(3)


def linear() -> sym.Symbol:
    with sym.NameScope():
        return sym.FullyConnected(sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(np.float32)


def test_there_are_no_outputs_before_a_forward_pass() -> None:
    with linear().simple_bind(TWO, data=(4, 5)) as bound:
        assert bound.output_dict == {}
        (output,) = bound.forward()
        assert bound.output_dict == {"fc_output": output}


def test_bind_shares_the_arrays_of_the_user() -> None:
    data, weight, gradient = whole(4, 5), whole(3, 5), np.full((3, 5), 7, np.float32)
    with linear().bind(TWO, [data, weight], {"fc_weight": gradient}) as bound:
        data[:] = 1
        (output,) = bound.forward(is_train=True)
        np.testing.assert_array_equal(output, np.ones((4, 5)) @ weight.T)
        bound.backward(np.ones((4, 3)))
        np.testing.assert_array_equal(gradient, np.full((3, 5), 4))
        assert bound.grad_arrays[0] is None
        assert bound.arg_arrays[1] is weight


@pytest.mark.parametrize("grad_req", ["add", ["null", "add"], {"fc_weight": "add"}])
def test_gradients_add_up_where_asked(grad_req: object) -> None:
    with linear().simple_bind(TWO, grad_req, data=(4, 5)) as bound:
        bound.arg_dict["data"][:] = data = whole(4, 5)
        for head in (heads := [whole(4, 3) for _ in range(3)]):
            bound.forward(is_train=True)
            bound.backward(head)
        np.testing.assert_array_equal(bound.grad_dict["fc_weight"], sum(heads).T @ data)
        assert ("data" in bound.grad_dict) == (grad_req == "add")


def test_a_gradient_of_zero_is_written() -> None:
    with sym.NameScope():
        still = sym.BlockGrad(sym.Variable("x")) * 2 + sym.Variable("y")
    with still.simple_bind(None, x=(2,), y=(2,)) as bound:
        bound.grad_dict["x"][:] = 9
        bound.forward(is_train=True)
        bound.backward(np.ones(2))
        np.testing.assert_array_equal(bound.grad_dict["x"], 0)


def test_requests_that_mean_nothing() -> None:
    with pytest.raises(DataError, match="grad_req of 'data' is 'sum'; it must be one of write, add, null"):
        linear().simple_bind(None, "sum", data=(4, 5))
    with pytest.raises(DataError, match="grad_req has 1 entries; give one for each of 2 arguments"):
        linear().simple_bind(None, ["add"], data=(4, 5))
    with pytest.raises(
        DataError, match="grad_req names 'fc_wait', not an argument; did you mean 'fc_weight'"
    ):
        linear().simple_bind(None, {"fc_wait": "add"}, data=(4, 5))


def test_bind_names_what_is_missing_or_does_not_fit() -> None:
    with pytest.raises(DataError, match="args lacks fc_weight"):
        linear().bind(None, {"data": whole(4, 5)})
    with pytest.raises(DataError, match="args has 1 arrays, but needs 2"):
        linear().bind(None, [whole(4, 5)])
    with pytest.raises(
        DataError, match="args has an array for 'dat', which the symbol does not have; did you mean 'data'"
    ):
        linear().bind(None, {"dat": whole(4, 5), "fc_weight": whole(3, 5)})
    with pytest.raises(
        ShapeError,
        match=r"argument 'fc_weight' has shape \(3, 5\), but its array in args_grad has shape \(5, 3\)",
    ):
        linear().bind(None, [whole(4, 5), whole(3, 5)], {"fc_weight": whole(5, 3)})
    with pytest.raises(ShapeError):
        linear().bind(None, [whole(4, 5), whole(3, 6)])


def test_reshape_shares_what_keeps_its_shape() -> None:
    with linear().simple_bind(TWO, data=(4, 5)) as bound:
        bound.arg_dict["fc_weight"][:] = weight = whole(3, 5)
        with bound.reshape(data=(6, 5)) as larger:
            assert larger.arg_dict["fc_weight"] is bound.arg_dict["fc_weight"]
            data = whole(6, 5)
            np.testing.assert_array_equal(larger.forward(data=data)[0], data @ weight.T)


def test_copy_params_from() -> None:
    with linear().simple_bind(None, data=(4, 5)) as bound:
        bound.copy_params_from({"fc_weight": (weight := whole(3, 5))})
        np.testing.assert_array_equal(bound.arg_dict["fc_weight"], weight)
        with pytest.raises(DataError, match="the symbol has no 'fc_wait'; did you mean 'fc_weight'"):
            bound.copy_params_from({"fc_wait": weight})
        bound.copy_params_from({"fc_wait": weight}, allow_extra_params=True)
        with pytest.raises(
            DataError, match=r"'fc_weight' has shape \(3, 5\), but its new value has shape \(5, 3\)"
        ):
            bound.copy_params_from({"fc_weight": weight.T})


def test_backward_drops_what_forward_dropped() -> None:
    """The pass that takes head gradients draws the same random numbers as the one before."""
    with sym.NameScope():
        symbol = sym.Dropout(sym.Variable("x"), p=0.5)
    with symbol.simple_bind(TWO, x=(8, 40)) as bound:
        bound.arg_dict["x"][:] = 1
        for _ in range(2):
            (output,) = bound.forward(is_train=True)
            bound.backward(np.ones((8, 40)))
            np.testing.assert_array_equal(bound.grad_dict["x"], output)
        first = output
        assert (bound.forward(is_train=True)[0] != first).any()


def test_two_dropouts_drop_differently() -> None:
    with sym.NameScope():
        x = sym.Variable("x")
        symbol = sym.Group([sym.Dropout(x), sym.Dropout(x)])
    with symbol.simple_bind(None, x=(20, 20)) as bound:
        bound.arg_dict["x"][:] = 1
        one, two = bound.forward(is_train=True)
        assert (one != two).any()


def test_auxiliary_states_in_their_order() -> None:
    with sym.NameScope():
        net = sym.BatchNorm(sym.Variable("data"), name="bn")
    with net.simple_bind(TWO, data=(4, 6)) as bound:
        bound.aux_dict["bn_moving_mean"][:] = 2
        mean, variance = bound.aux_arrays
        assert mean is bound.aux_dict["bn_moving_mean"]
        assert variance is bound.aux_dict["bn_moving_var"]


def test_processor_and_cards_do_not_run_one_graph_together() -> None:
    with (
        linear().simple_bind([cpu(0), gpu(0)], data=(4, 5)) as bound,
        pytest.raises(ExecutionError, match=r"workers on cpu\(0\), gpu\(0\): the processor and GPUs cannot"),
    ):
        bound.forward()
