"""Executors with MXNet's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tofu.mx as mx
from tofu.errors import DataError, ExecutionError, ShapeError

RNG = np.random.default_rng(5)
TWO = [mx.cpu(0), mx.cpu(1)]


@pytest.mark.parametrize("workers", [1, 2])
def test_bind_forward_backward(workers: int) -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")
    data, weight = (mx.nd.array(RNG.integers(-3, 4, shape)) for shape in ((4, 5), (3, 5)))
    gradient = mx.nd.zeros((3, 5))
    context = [mx.cpu(worker) for worker in range(workers)]
    executor = net.bind(context, {"data": data, "fc_weight": weight}, {"fc_weight": gradient}, "add")
    for _ in range(2):
        (output,) = executor.forward(is_train=True)
        executor.backward([mx.nd.ones((4, 3))])
    np.testing.assert_array_equal(output.asnumpy(), data.asnumpy() @ weight.asnumpy().T)
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * np.tile(data.asnumpy().sum(0), (3, 1)))
    assert [array.shape for array in executor.arg_arrays] == [(4, 5), (3, 5)]
    assert executor.grad_arrays[0] is None
    assert executor.grad_dict["fc_weight"] is executor.grad_arrays[1]
    assert executor.output_dict["fc_output"] is executor.outputs[0]
    data[:] = 0
    assert not executor.forward()[0].asnumpy().any()
    executor.close()


def test_auxiliary_states_move_in_training_alone() -> None:
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", momentum=0.5)
    with net.simple_bind(ctx=mx.cpu(), data=(8, 2)) as executor:
        data = RNG.normal(3, 1, (8, 2)).astype("f4")
        executor.forward(is_train=False, data=data)
        assert not executor.aux_dict["bn_moving_mean"].asnumpy().any()
        executor.forward(is_train=True, data=mx.nd.array(data))
        np.testing.assert_allclose(executor.aux_arrays[0].asnumpy(), data.mean(0) / 2, rtol=1e-5)


def test_reshape_and_copy_params_from() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    with net.simple_bind(mx.cpu(), data=(4, 5)) as executor:
        executor.copy_params_from({"fc_weight": mx.nd.ones((3, 5))})
        with executor.reshape(data=(2, 5)) as smaller:
            np.testing.assert_array_equal(
                smaller.forward(data=np.ones((2, 5)))[0].asnumpy(), np.full((2, 3), 5)
            )
        with pytest.raises(mx.MXNetError, match="the symbol has no 'fc_wait'"):
            executor.copy_params_from({"fc_wait": mx.nd.ones((3, 5))})


def test_gradients_of_outputs_by_name_and_beside_losses() -> None:
    x = mx.sym.Variable("x")
    net = mx.sym.Group([mx.sym.MakeLoss(x * x, name="loss"), mx.sym.sqrt(x, name="root")])
    with net.simple_bind(mx.cpu(), x=(3,)) as executor:
        for heads in (
            [mx.nd.zeros((3,)), mx.nd.ones((3,))],
            mx.nd.ones((3,)),
            {"root_output": mx.nd.ones((3,))},
        ):
            executor.forward(is_train=True, x=[1.0, 4.0, 9.0])
            executor.backward(heads)
            np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [2.5, 8.25, 18 + 1 / 6], rtol=1e-6)
        with pytest.raises(mx.MXNetError, match=r"backward needs out_grads for head\(root_output\)"):
            executor.backward()


def test_what_is_no_device() -> None:
    with pytest.raises(mx.MXNetError, match=r"lists a device for each worker, .*found 0"):
        mx.sym.Variable("x").simple_bind(0, x=(2,))
    with pytest.raises(mx.MXNetError, match="names no device"):
        mx.sym.Variable("x").simple_bind([], x=(2,))


def linear() -> mx.sym.Symbol:
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(np.float32)


def test_outputs_are_zeros_before_a_forward_pass_which_overwrites_them() -> None:
    with linear().simple_bind(TWO, data=(4, 5)) as bound:
        (before,) = bound.outputs
        np.testing.assert_array_equal(before, np.zeros((4, 3)))
        bound.arg_dict["fc_weight"][:] = weight = whole(3, 5)
        (output,) = bound.forward(data=(data := whole(4, 5)))
        assert output is before
        assert bound.output_dict == {"fc_output": output}
        np.testing.assert_array_equal(before, data @ weight.T)


def test_bind_shares_the_arrays_of_the_user() -> None:
    data, weight, gradient = whole(4, 5), whole(3, 5), np.full((3, 5), 7, np.float32)
    with linear().bind(TWO, [data, weight], {"fc_weight": gradient}) as bound:
        data[:] = 1
        (output,) = bound.forward(is_train=True)
        np.testing.assert_array_equal(output, np.ones((4, 5)) @ weight.T)
        bound.backward(np.ones((4, 3)))
        np.testing.assert_array_equal(gradient, np.full((3, 5), 4))
        assert bound.grad_arrays[0] is None
        assert bound.arg_arrays[1].numpy_array is weight


@pytest.mark.parametrize("grad_req", ["add", ["null", "add"], {"fc_weight": "add"}])
def test_gradients_add_up_where_asked(grad_req: object) -> None:
    with linear().simple_bind(TWO, grad_req, data=(4, 5)) as bound:
        bound.arg_dict["data"][:] = data = whole(4, 5)
        for head in (heads := [whole(4, 3) for _ in range(3)]):
            bound.forward(is_train=True)
            bound.backward(head)
        np.testing.assert_array_equal(bound.grad_dict["fc_weight"], sum(heads).T @ data)
        assert (bound.grad_dict["data"] is not None) == (grad_req == "add")


def test_a_gradient_of_zero_is_written() -> None:
    still = mx.sym.BlockGrad(mx.sym.Variable("x")) * 2 + mx.sym.Variable("y")
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
        with bound.reshape(allow_up_sizing=True, data=(6, 5)) as larger:
            assert larger.arg_dict["fc_weight"] is bound.arg_dict["fc_weight"]
            data = whole(6, 5)
            np.testing.assert_array_equal(larger.forward(data=data)[0], data @ weight.T)


def test_reshape_to_a_smaller_batch_keeps_its_first_samples() -> None:
    with linear().simple_bind(None, data=(4, 5)) as bound:
        bound.arg_dict["data"][:] = data = whole(4, 5)
        bound.grad_dict["data"][:] = 9
        with bound.reshape(data=(2, 5)) as smaller:
            np.testing.assert_array_equal(smaller.arg_dict["data"], data[:2])
            np.testing.assert_array_equal(smaller.grad_dict["data"], np.full((2, 5), 9))
            smaller.arg_dict["data"][:] = 7
            smaller.arg_dict["fc_weight"][:] = 1
            smaller.forward()
            np.testing.assert_array_equal(bound.outputs[0], [[35] * 3, [35] * 3, [0] * 3, [0] * 3])
            np.testing.assert_array_equal(bound.arg_dict["data"], [[7] * 5, [7] * 5, *data[2:]])


def test_reshape_refuses_what_would_lose_the_users_arrays() -> None:
    with linear().simple_bind(None, data=(4, 5)) as bound:
        with pytest.raises(ShapeError, match=r"'data' has shape \(4, 5\), and \(6, 5\) is larger"):
            bound.reshape(data=(6, 5))
        with pytest.raises(ShapeError, match=r"'fc_weight' has shape \(3, 5\), but would have .*\(3, 2\)"):
            bound.reshape(data=(4, 2))
        with bound.reshape(partial_shaping=True, data=(4, 2)) as other:
            assert other.arg_dict["fc_weight"].shape == (3, 2)
    with (
        linear().bind(None, [whole(5, 4).T, whole(3, 5)]) as bound,
        pytest.raises(DataError, match="the array of 'data' is not contiguous"),
    ):
        bound.reshape(data=(2, 5))


@pytest.mark.parametrize("dtype", ["int32", "float64", "float16"])
def test_bind_shares_arrays_of_any_numbers(dtype: str) -> None:
    data, weight, gradient = (mx.nd.zeros(shape, dtype=dtype) for shape in ((4, 5), (3, 5), (3, 5)))
    with linear().bind(None, [data, weight], {"fc_weight": gradient}) as bound:
        data[:], weight[:] = 2, 3
        (output,) = bound.forward(is_train=True)
        np.testing.assert_array_equal(output, np.full((4, 3), 30))
        bound.backward(np.ones((4, 3)))
        np.testing.assert_array_equal(gradient, np.full((3, 5), 8))
        assert gradient.dtype == np.dtype(dtype)


def test_bind_refuses_arrays_that_are_not_real_numbers() -> None:
    with pytest.raises(DataError, match="args has an array of <U1 for 'x'; give numbers"):
        (mx.sym.Variable("x") * 2).bind(None, {"x": np.array(["a"])})
    with pytest.raises(DataError, match="args has complex numbers for 'x'"):
        (mx.sym.Variable("x") * 2).bind(None, {"x": np.ones(2, complex)})


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
    symbol = mx.sym.Dropout(mx.sym.Variable("x"), p=0.5)
    with symbol.simple_bind(TWO, x=(8, 40)) as bound:
        bound.arg_dict["x"][:] = 1
        for _ in range(2):
            (output,) = bound.forward(is_train=True)
            bound.backward(np.ones((8, 40)))
            np.testing.assert_array_equal(bound.grad_dict["x"], output)
        first = output.copy()
        assert (bound.forward(is_train=True)[0] != first).asnumpy().any()


def test_two_dropouts_drop_differently() -> None:
    x = mx.sym.Variable("x")
    symbol = mx.sym.Group([mx.sym.Dropout(x), mx.sym.Dropout(x)])
    with symbol.simple_bind(None, x=(20, 20)) as bound:
        bound.arg_dict["x"][:] = 1
        one, two = bound.forward(is_train=True)
        assert (one != two).asnumpy().any()


def test_auxiliary_states_in_their_order() -> None:
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn")
    with net.simple_bind(TWO, data=(4, 6)) as bound:
        bound.aux_dict["bn_moving_mean"][:] = 2
        mean, variance = bound.aux_arrays
        assert mean is bound.aux_dict["bn_moving_mean"]
        assert variance is bound.aux_dict["bn_moving_var"]


def test_processor_and_cards_do_not_run_one_graph_together() -> None:
    with (
        linear().simple_bind([mx.cpu(0), mx.gpu(0)], data=(4, 5)) as bound,
        pytest.raises(ExecutionError, match=r"workers on cpu\(0\), gpu\(0\): the processor and GPUs cannot"),
    ):
        bound.forward()


def test_simple_bind_forward_and_backward() -> None:
    """d/dw of a linear output with a given head gradient, and of a loss that needs none."""
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc1")
    generator = np.random.default_rng(0)
    with symbol.simple_bind(TWO, data=(4, 5)) as bound:
        for array in bound.arg_dict.values():
            array[:] = generator.integers(-3, 4, array.shape)
        x, w, b = (bound.arg_dict[name].asnumpy() for name in ("data", "fc1_weight", "fc1_bias"))
        (output,) = bound.forward(is_train=True)
        np.testing.assert_array_equal(output, x @ w.T + b)
        head = generator.integers(-3, 4, (4, 3)).astype(np.float32)
        bound.backward(head)
        np.testing.assert_array_equal(bound.grad_dict["fc1_weight"], head.T @ x)
        np.testing.assert_array_equal(bound.grad_dict["data"], head @ w)
        np.testing.assert_array_equal(bound.grad_dict["fc1_bias"], head.sum(axis=0))
        with pytest.raises(DataError, match=r"backward needs out_grads for head\(fc1_output\)"):
            bound.backward()
        bound.forward(data=np.zeros((4, 5)))
        np.testing.assert_array_equal(bound.output_dict["fc1_output"], np.tile(b, (4, 1)))
        with pytest.raises(DataError, match=r"no argument 'date'"):
            bound.forward(date=x)


def test_gradients_need_no_training_pass_if_it_is_the_same() -> None:
    x = mx.sym.Variable("x")
    with (x * x).simple_bind(TWO, x=(3,)) as bound:
        bound.arg_dict["x"][:] = [3, 2, 1]
        bound.backward(np.ones(3))
        np.testing.assert_array_equal(bound.grad_dict["x"].asnumpy(), [6, 4, 2])
        (output,) = bound.forward(x=[1, 2, 3])
        bound.backward(np.ones(3))
        np.testing.assert_array_equal(bound.grad_dict["x"].asnumpy(), [2, 4, 6])
        np.testing.assert_array_equal(output.asnumpy(), [1, 4, 9])
        bound.forward(x=[5, 5, 5])
        bound.backward(np.ones(3))
        np.testing.assert_array_equal(bound.grad_dict["x"].asnumpy(), [10, 10, 10])
        bound.forward(is_train=True)
        bound.close()
        bound.backward(2 * np.ones(3))
        np.testing.assert_array_equal(bound.grad_dict["x"].asnumpy(), [20, 20, 20])
    with (
        (x * x).simple_bind(TWO, "null", x=(3,)) as bound,
        pytest.raises(ExecutionError, match="every grad_req is 'null'"),
    ):
        bound.backward(np.ones(3))


@pytest.mark.parametrize("name", ["BatchNorm", "Dropout"])
def test_gradients_need_a_training_pass_if_it_is_another(name: str) -> None:
    symbol = getattr(mx.sym, name)(mx.sym.Variable("data"))
    with symbol.simple_bind(TWO, data=(4, 2)) as bound:
        for _ in range(2):
            with pytest.raises(
                ExecutionError, match=r"needs forward\(is_train=True\).*something else in training"
            ):
                bound.backward(np.ones((4, 2)))
            bound.forward(is_train=False)
        bound.forward(is_train=True)
        bound.backward(np.ones((4, 2)))
