"""Executors with MXNet's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tofu.mx as mx

RNG = np.random.default_rng(5)


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
