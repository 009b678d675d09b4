"""Modules: single calls in any order, checkpoints, buckets, and errors that say what is missing."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
import pytest

import tofu.mx as mx

RNG = np.random.default_rng(4)
DATA = RNG.normal(size=(12, 5)).astype("f4")
LABEL = RNG.integers(0, 3, 12).astype("f4")


def network(dropout: float = 0.3) -> Any:
    with mx.name.NameManager():
        hidden = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
        hidden = mx.sym.Dropout(mx.sym.BatchNorm(hidden, name="bn"), p=dropout)
        return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), name="softmax")


def batches(size: int = 4) -> Any:
    return mx.io.NDArrayIter(DATA, LABEL, batch_size=size)


def ready(workers: int = 2, dropout: float = 0.3, **options: Any) -> Any:
    data = batches()
    module = mx.mod.Module(network(dropout), context=[mx.cpu(worker) for worker in range(workers)], **options)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(mx.init.Xavier())
    return module


def parameters(module: Any) -> dict[str, np.ndarray]:
    return {name: array.asnumpy() for part in module.get_params() for name, array in part.items()}


def test_outputs_before_the_update_are_those_of_the_update() -> None:
    """Dropout's numbers included: looking changes nothing but the order of sums."""
    module = ready()
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    (batch, *_) = batches()
    before = parameters(module)
    module.forward(batch)
    looked = module.get_outputs()[0].asnumpy()
    module.backward()
    for name, array in parameters(module).items():
        np.testing.assert_array_equal(array, before[name])
    module.update()
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), looked, rtol=1e-5)
    assert (parameters(module)["fc1_weight"] != before["fc1_weight"]).any()
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() != looked).any()


def test_fixed_parameters_and_settings_of_the_optimizer() -> None:
    module = ready(fixed_param_names=["fc2_weight"])
    optimizer = mx.optimizer.SGD(learning_rate=0.1, rescale_grad=1)
    optimizer.set_lr_mult({"fc1_weight": 0, "fc1_bias": 2})
    module.init_optimizer(optimizer=optimizer)
    before = parameters(module)
    for batch in batches():
        module.forward_backward(batch)
        module.update()
    after = parameters(module)
    for name in before:
        same = name in ("fc1_weight", "fc2_weight", "bn_gamma")
        assert (before[name] == after[name]).all() == same, name
    assert optimizer.num_update == 3


def test_gradients_of_the_data_and_heads_of_ones_own() -> None:
    with mx.name.NameManager():
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    module = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 5))], inputs_need_grad=True)
    weight = RNG.integers(-3, 4, (2, 5)).astype("f4")
    module.init_params(arg_params={"fc_weight": mx.nd.array(weight)})
    module.init_optimizer(optimizer_params={"learning_rate": 1.0, "rescale_grad": 1.0})
    head = RNG.integers(-3, 4, (4, 2)).astype("f4")
    data = RNG.integers(-3, 4, (4, 5)).astype("f4")
    module.forward(mx.io.DataBatch([mx.nd.array(data)]))
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), data @ weight.T)
    module.backward([mx.nd.array(head)])
    np.testing.assert_array_equal(module.get_input_grads()[0].asnumpy(), head @ weight)
    module.update()
    np.testing.assert_array_equal(parameters(module)["fc_weight"], weight - head.T @ data)
    module.forward(mx.io.DataBatch([mx.nd.array(data)]))
    module.backward()
    with pytest.raises(mx.MXNetError, match=r"backward needs out_grads for head\(fc_output\)"):
        module.update()


def test_a_checkpoint_goes_on_where_it_was_over_other_workers(tmp_path: Any) -> None:
    prefix = f"{tmp_path}/net"
    settings = {"optimizer": "adam", "optimizer_params": {"learning_rate": 0.05}}
    whole, half = ready(2), ready(2)
    for module, epochs in ((whole, 2), (half, 1)):
        module.init_optimizer(**settings)
        for _ in range(epochs):
            for batch in batches():
                module.forward_backward(batch)
                module.update()
    half.save_checkpoint(prefix, 1, save_optimizer_states=True)
    rest = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=[mx.cpu(k) for k in range(3)])
    rest.bind(batches().provide_data, batches().provide_label)
    rest.init_params()
    rest.init_optimizer(**settings)
    np.testing.assert_array_equal(parameters(rest)["fc1_weight"], parameters(half)["fc1_weight"])
    assert rest._optimizer.num_update == 3
    other = ready()
    other.init_optimizer()
    with pytest.raises(mx.MXNetError, match=r"another optimizer's"):
        other.load_optimizer_states(f"{prefix}-0001.states")
    symbol, arguments, states = mx.model.load_checkpoint(prefix, 1)
    assert symbol.list_arguments() == network().list_arguments()
    assert set(arguments) | set(states) == set(parameters(half))


def test_a_loaded_module_predicts_as_soon_as_it_is_bound(tmp_path: Any) -> None:
    trained, data, prefix = ready(), batches(), str(tmp_path / "net")
    trained.save_checkpoint(prefix, 1)
    loaded = mx.mod.Module.load(prefix, 1, context=mx.cpu())
    loaded.bind(data.provide_data, data.provide_label, for_training=False)
    np.testing.assert_allclose(
        loaded.predict(data).asnumpy(), trained.predict(data).asnumpy(), rtol=1e-5, atol=1e-6
    )


def test_fit_on_data_that_also_validates(caplog: pytest.LogCaptureFixture) -> None:
    data = batches()
    with caplog.at_level(logging.INFO):
        mx.mod.Module(network()).fit(data, eval_data=data, num_epoch=2)
    assert sum("Train-accuracy" in message for message in caplog.messages) == 2
    for _ in data:
        pass
    with pytest.raises(mx.MXNetError, match=r"no batch: .*reset\(\)"):
        mx.mod.Module(network()).fit(data, num_epoch=1)


def test_callbacks_write_checkpoints(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    module = mx.mod.Module(network())
    with caplog.at_level(logging.INFO):
        module.fit(
            batches(),
            batches(),
            num_epoch=2,
            batch_end_callback=[
                mx.callback.Speedometer(4, 2),
                mx.callback.log_train_metric(1),
                mx.callback.ProgressBar(3),
            ],
            epoch_end_callback=[
                mx.callback.do_checkpoint(f"{tmp_path}/a"),
                mx.callback.module_checkpoint(module, f"{tmp_path}/b", 2, save_optimizer_states=True),
            ],
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a-0001.params",
        "a-0002.params",
        "a-symbol.json",
        "b-0002.params",
        "b-0002.states",
        "b-symbol.json",
    ]
    for said in (
        "Speed:",
        "Train-accuracy=",
        "Validation-accuracy=",
        "Iter[0] Batch[1] Train-accuracy",
        "67%",
    ):
        assert said in caplog.text
    with pytest.raises(mx.MXNetError, match="cannot be read"):
        mx.model.load_checkpoint(f"{tmp_path}/c", 1)


def test_parameters_in_files_of_their_own(tmp_path: Any) -> None:
    path, module, other = f"{tmp_path}/net.params", ready(), ready(3)
    module.set_params({"fc2_bias": mx.nd.array([1, 2, 3])}, allow_missing=True)
    module.save_params(path)
    other.load_params(path)
    for name, array in parameters(other).items():
        np.testing.assert_array_equal(array, parameters(module)[name])
    mx.nd.save(path, {"weights": mx.nd.ones(2)})
    with pytest.raises(mx.MXNetError, match=r"net\.params holds 'weights', expected names such as 'arg:"):
        other.load_params(path)


def test_parameters_of_another_module_are_taken_over() -> None:
    first = ready()
    second = mx.mod.Module(network(), context=mx.cpu())
    second.bind(batches(6).provide_data, batches(6).provide_label, shared_module=first)
    second.init_params(mx.init.Zero())
    for name, array in parameters(second).items():
        np.testing.assert_array_equal(array, parameters(first)[name])
    second.init_params(mx.init.Zero(), force_init=True)
    assert (parameters(second)["fc1_weight"] == 0).all()


def test_metrics_are_logged_and_begin_again(caplog: pytest.LogCaptureFixture) -> None:
    metric = mx.metric.create("acc")
    metric.update([mx.nd.array([1])], [mx.nd.array([[0.2, 0.8]])])
    log = mx.callback.log_train_metric(2, auto_reset=True)
    with caplog.at_level(logging.INFO):
        for batch in (1, 2):
            log(mx.callback.BatchEndParam(0, batch, metric, None))
    assert caplog.messages == ["Iter[0] Batch[2] Train-accuracy=1.000000"]
    assert np.isnan(metric.get()[1])


def test_predict_leaves_out_what_only_fills_the_batch() -> None:
    module = ready()
    outputs = module.predict(batches(5), num_batch=None)
    assert outputs.shape == (12, 3)
    assert [part[0].shape for part in module.predict(batches(5), merge_batches=False)] == [
        (5, 3),
        (5, 3),
        (2, 3),
    ]
    assert module.predict(DATA[:7]).shape == (7, 3)
    assert module.score(batches(5), ["acc", "ce"], num_batch=1)[0][0] == "accuracy"


def test_a_loss_of_the_whole_batch() -> None:
    data = mx.sym.Variable("data")
    score = mx.sym.Reshape(mx.sym.FullyConnected(data, num_hidden=1, name="fc"), shape=(-1,))
    loss = mx.sym.MakeLoss(mx.sym.mean(mx.sym.square(score - mx.sym.Variable("target"))), name="loss")
    module = mx.mod.Module(loss, label_names=["target"])
    given = mx.io.NDArrayIter(DATA, np.ones(len(DATA), "f4"), 5, label_name="target")
    settings = {"initializer": mx.init.Zero(), "optimizer_params": {"learning_rate": 0}}
    module.fit(given, eval_metric="loss", num_epoch=1, **settings)
    assert module.score(given, "loss") == [("loss", 1.0)]
    assert module.predict(given).asnumpy().tolist() == [1, 1, 1]


def test_bind_says_what_is_missing() -> None:
    with pytest.raises(mx.MXNetError, match="no argument 'dta'; did you mean 'data'"):
        mx.mod.Module(network(), data_names=["dta"])
    module = mx.mod.Module(network())
    for call in (module.init_params, module.get_params, module.init_optimizer):
        with pytest.raises(mx.MXNetError, match="needs bind before it"):
            call()
    with pytest.raises(mx.MXNetError, match="data_shapes describes x, but the module has data"):
        module.bind([("x", (4, 5))])
    with pytest.raises(mx.MXNetError, match="does not add up gradients"):
        module.bind([("data", (4, 5))], grad_req="add")
    module.bind([("data", (4, 5))], [("softmax_label", (4,))])
    assert module.output_shapes == [("softmax_output", (4, 3))]
    assert (module.data_names, module.label_names) == (["data"], ["softmax_label"])
    assert (module.data_shapes[0].shape, module.label_shapes[0].shape) == ((4, 5), (4,))
    with pytest.raises(mx.MXNetError, match="needs init_params before it"):
        module.forward(next(batches()))
    module.init_params()
    with pytest.raises(mx.MXNetError, match="the batch has 2 arrays of data for data"):
        module.forward(mx.io.DataBatch([mx.nd.ones((4, 5))] * 2))


def test_labels_that_the_symbol_lacks_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    module = mx.mod.Module(network(), label_names=["label"])
    assert module.label_names == []
    assert caplog.messages == ["the symbol has no label label; it has ['softmax_label']"]


def test_parameters_that_do_not_fit() -> None:
    module = ready()
    arguments, states = module.get_params()
    with pytest.raises(mx.MXNetError, match="no parameter 'fc3_weight'; did you mean 'fc2_weight'"):
        module.set_params({**arguments, "fc3_weight": arguments["fc2_weight"]}, states)
    module.set_params({**arguments, "fc3_weight": arguments["fc2_weight"]}, states, allow_extra=True)
    with pytest.raises(mx.MXNetError, match="no value is given for 'fc1_weight'"):
        module.set_params({}, states)
    with pytest.raises(mx.MXNetError, match=r"'fc1_bias' has shape \(8,\), but its value \(3,\)"):
        module.set_params({**arguments, "fc1_bias": arguments["fc2_bias"]}, states)
    module.set_params({"fc2_bias": mx.nd.ones((3,))}, allow_missing=True)
    assert parameters(module)["fc2_bias"].tolist() == [1, 1, 1]


def test_other_shapes_need_a_bound_module() -> None:
    with pytest.raises(mx.MXNetError, match="reshape needs bind before it"):
        mx.mod.Module(network()).reshape([("data", (4, 5))])


def test_calls_in_the_wrong_order() -> None:
    module = ready()
    with pytest.raises(mx.MXNetError, match=r"update needs .* init_optimizer before it"):
        module.update()
    module.init_optimizer()
    with pytest.raises(mx.MXNetError, match="update needs forward before it"):
        module.update()
    module.forward(next(batches()), is_train=False)
    with pytest.raises(mx.MXNetError, match="backward needs forward"):
        module.backward()
    module.forward(next(batches()))
    with pytest.raises(mx.MXNetError, match=r"update needs forward\(batch, is_train=True\) and backward"):
        module.update()
    module.backward()
    with pytest.raises(mx.MXNetError, match="inputs_need_grad"):
        module.get_input_grads()
    module.bind(batches().provide_data, batches().provide_label, inputs_need_grad=True, force_rebind=True)
    module.forward(next(batches()))
    with pytest.raises(mx.MXNetError, match=r"there after backward\(\) and before update\(\)"):
        module.get_input_grads()
    module.backward()
    assert module.get_input_grads()[0].shape == (4, 5)
    module.forward_backward(next(batches(6)))
    with pytest.raises(mx.MXNetError, match="bind again with force_rebind=True, or use a BucketingModule"):
        module.update()


def test_what_is_not_supported_says_so() -> None:
    module = ready()
    with pytest.raises(mx.MXNetError, match=r"no store 'dist_sync' here; .* processes train together"):
        module.init_optimizer(kvstore="dist_sync")
    with pytest.raises(mx.MXNetError, match="no optimizer 'adma'; did you mean 'adam'"):
        module.init_optimizer(optimizer="adma")
    with pytest.raises(mx.MXNetError, match="SGD has no setting 'momentun'"):
        module.init_optimizer(optimizer_params={"momentun": 0.9})

    @mx.optimizer.register
    class Mine(mx.optimizer.Optimizer):
        pass

    with pytest.raises(mx.MXNetError, match="Mine names no update operator: updates run inside"):
        module.init_optimizer(optimizer="mine")

    class Derived(mx.optimizer.SGD):
        def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
            weight[:] = 0

    with pytest.raises(mx.MXNetError, match=r"Derived\.update would never be called: .* use adam, adamw,"):
        module.init_optimizer(optimizer=Derived())
    with pytest.raises(AttributeError, match="get_internals"):
        module.install_monitor(None)
    with pytest.raises(AttributeError, match="get_internals"):
        module.fit(batches(), num_epoch=1, monitor=object())
    for option in ({"state_names": ["h"]}, {"compression_params": {"type": "2bit"}}):
        with pytest.raises(mx.MXNetError, match=r"state_names and compression_params .* are not supported"):
            mx.mod.Module(network(), **option)
    with pytest.raises(mx.MXNetError, match="fit needs num_epoch"):
        module.fit(batches())


@pytest.mark.parametrize("call", ["bind", "reshape"])
def test_binding_again_keeps_what_was_learned(call: str) -> None:
    module = ready()
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    module.forward_backward(next(batches()))
    module.update()
    before, states = parameters(module), module.optimizer_states()
    options = {"force_rebind": True} if call == "bind" else {}
    getattr(module, call)(batches(6).provide_data, batches(6).provide_label, **options)
    for name, array in parameters(module).items():
        np.testing.assert_array_equal(array, before[name])
    after = module.optimizer_states()
    assert any(array.any() for name, array in states.items() if name != "num_update")
    for name, array in states.items():
        np.testing.assert_array_equal(after[name], array)
    module.forward_backward(next(batches(6)))
    module.update()


def test_buckets_share_parameters_and_the_state_of_the_optimizer(tmp_path: Any) -> None:
    """Where the network does not depend on the bucket, buckets that alternate learn as one module does."""
    whole = ready(dropout=0)
    start = whole.get_params()
    several = mx.mod.BucketingModule(
        lambda key: (network(dropout=0), ("data",), ("softmax_label",)), 0, context=[mx.cpu(0), mx.cpu(1)]
    )
    several.bind(batches().provide_data, batches().provide_label)
    assert not several.params_initialized
    several.init_params()
    several.set_params(*start)
    assert (several.params_initialized, several.optimizer_initialized) == (True, False)
    for module in (whole, several):
        module.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.05})
        for key, batch in enumerate(batches()):
            batch.bucket_key = key % 2
            module.forward_backward(batch)
            module.update()
    assert several.optimizer_initialized
    assert several._modules[0]._optimizer.num_update == 3
    for module in (whole, several):
        module.forward(batch, is_train=False)
    np.testing.assert_allclose(
        several.get_outputs()[0].asnumpy(), whole.get_outputs()[0].asnumpy(), rtol=1e-5
    )
    several.save_checkpoint(f"{tmp_path}/net", 1)
    symbol, arguments, _ = mx.model.load_checkpoint(f"{tmp_path}/net", 1)
    assert symbol.list_arguments() == several.symbol.list_arguments()
    np.testing.assert_array_equal(arguments["fc1_weight"].asnumpy(), parameters(several)["fc1_weight"])
    wanted, found = parameters(whole), parameters(several)
    for name in ("fc1_weight", "fc2_weight", "bn_moving_mean"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
    several.save_checkpoint(f"{tmp_path}/net", 1, save_optimizer_states=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "net-0001.params",
        "net-0001.states",
        "net-symbol.json",
    ]
    several.forward_backward(batch)
    several.update()
    several.load_params(f"{tmp_path}/net-0001.params")
    for name, array in parameters(several).items():
        np.testing.assert_array_equal(array, found[name])
    several.close()


def test_buckets_are_bound_anew_once_where_that_is_forced() -> None:
    """And not for every batch, which would forget the momentum."""

    class OneBucket(mx.io.NDArrayIter):
        def next(self) -> Any:
            batch = super().next()
            batch.bucket_key = 0
            return batch

    def learned(forced: bool) -> dict[str, np.ndarray]:
        module = mx.mod.BucketingModule(
            lambda key: (network(dropout=0), ("data",), ("softmax_label",)), 0, context=mx.cpu()
        )
        settings = {"learning_rate": 0.1, "momentum": 0.9}
        data = OneBucket(DATA, LABEL, batch_size=4)
        module.fit(data, num_epoch=2, optimizer_params=settings, force_rebind=forced)
        module.close()
        return parameters(module)

    once, again = learned(False), learned(True)
    for name, array in once.items():
        np.testing.assert_array_equal(again[name], array)


def test_sentences_of_two_lengths_are_learned() -> None:
    def sym_gen(length: int) -> Any:
        with mx.name.NameManager():
            embedded = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=7, output_dim=8, name="embed")
            outputs, _ = mx.rnn.GRUCell(8, prefix="g_").unroll(length, embedded, merge_outputs=True)
            scores = mx.sym.FullyConnected(
                mx.sym.Reshape(outputs, shape=(-1, 8)), num_hidden=7, name="scores"
            )
            label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
            return mx.sym.SoftmaxOutput(scores, label, name="softmax"), ("data",), ("softmax_label",)

    counting = [[1 + (start + step) % 6 for step in range(length)] for length in (3, 5) for start in range(8)]
    data = mx.rnn.BucketSentenceIter(counting, 4, buckets=[3, 5], invalid_label=0)
    module = mx.mod.BucketingModule(sym_gen, data.default_bucket_key, context=[mx.cpu(0), mx.cpu(1)])
    metric = mx.metric.Perplexity(ignore_label=0)
    settings = {"learning_rate": 0.05}
    module.fit(data, eval_metric=metric, optimizer="adam", optimizer_params=settings, num_epoch=12)
    assert metric.get()[1] < 2
    assert {key for key, each in module._modules.items() if each.binded} == {3, 5}
    module.close()
    with pytest.raises(mx.MXNetError, match="default_bucket_key"):
        mx.mod.BucketingModule(sym_gen)


def test_outputs_of_each_device() -> None:
    """A script that asks for parts gets a list of them for each output. The whole output is the only part."""
    module = ready()
    module.forward(next(batches()), is_train=False)
    ((part,),) = module.get_outputs(merge_multi_context=False)
    np.testing.assert_array_equal(part, module.get_outputs()[0])


def test_batches_of_any_class() -> None:
    class Bare(NamedTuple):
        data: list[Any]

    module, given = ready(), next(batches())
    module.forward(given, is_train=False)
    expected = module.get_outputs()[0].asnumpy()
    module.forward(Bare(given.data), is_train=False)
    np.testing.assert_array_equal(module.get_outputs()[0], expected)


def test_inference_as_scripts_for_trained_models_write_it() -> None:
    trained = ready()
    module = mx.mod.Module(network(), label_names=None)
    assert module._label_shapes is None
    module.bind(for_training=False, data_shapes=trained.data_shapes, label_shapes=module._label_shapes)
    module.set_params(*trained.get_params(), allow_missing=True)
    assert module.data_shapes == module._data_shapes == trained._data_shapes
    assert trained._label_shapes == trained.label_shapes
    batch = next(batches())
    module.forward(mx.io.DataBatch(batch.data))
    trained.forward(batch, is_train=False)
    np.testing.assert_allclose(module.get_outputs()[0], trained.get_outputs()[0], rtol=1e-5)
    assert not module.get_params()[0]["softmax_label"].asnumpy().any()


def test_a_store_of_one_worker() -> None:
    store = mx.kv.create("device")
    assert (store.type, store.rank, store.num_workers) == ("device", 0, 1)
    module = ready()
    module.init_optimizer(kvstore=store)
    module.init_optimizer(kvstore=mx.kvstore.create(), force_init=True)
    with pytest.raises(AttributeError, match=r"a store has no 'push': .* Module\.update updates parameters"):
        store.push(0, mx.nd.ones((2,)))
    with pytest.raises(mx.MXNetError, match="no store 'devise' here; did you mean 'device'"):
        mx.kv.create("devise")
