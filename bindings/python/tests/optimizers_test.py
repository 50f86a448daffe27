# SPDX-License-Identifier: Apache-2.0
"""SGD and Adam of many arrays: ten steps against NumPy, and against PyTorch where it is installed."""

import importlib.util
import io
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

STEPS = 10
FORMS = {
    sg.SGD: ({}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True}),
    sg.Adam: ({}, {"weight_decay": 0.1}, {"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1, "decoupled": True}),
}
SHAPES = {"w": (4, 3), "filters": (2, 2, 3, 3), "bias": (7,), "scalar": (), "sometimes": (5,)}


class ByNumpy:
    """The states of one array, in f64."""

    def __init__(self, shape):
        self.count, self.states = 0, [np.zeros(shape), np.zeros(shape)]

    def step(self, kind, p, g, lr, momentum=0.0, weight_decay=0.0, nesterov=False, betas=(0.9, 0.999), eps=1e-8, decoupled=False):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        self.count += 1
        if kind is sg.SGD:
            self.states[0] = momentum * self.states[0] + g
            return p - lr * (g + momentum * self.states[0] if nesterov else self.states[0])
        self.states = [beta * state + (1 - beta) * power for beta, state, power in zip(betas, self.states, (g, g * g))]
        first, second = (state / (1 - beta**self.count) for beta, state in zip(betas, self.states))
        return p - lr * first / (np.sqrt(second) + eps)


class Optimizers(DeviceTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(4)

    def forms(self):
        for kind, forms in FORMS.items():
            for form in forms:
                with self.subTest(kind=kind.__name__, **form):
                    yield kind, form

    def gradients(self, step):
        """By name; one array has a gradient at every other step only."""
        return {name: self.random.standard_normal(shape) if name != "sometimes" or step % 2 == 0 else None for name, shape in SHAPES.items()}

    def test_ten_steps(self):
        for kind, form in self.forms():
            wanted = {name: self.random.standard_normal(shape) for name, shape in SHAPES.items()}
            found = {name: np.array(values) for name, values in wanted.items()}
            found["bias"] = self.context.array(found["bias"])
            by_numpy = {name: ByNumpy(shape) for name, shape in SHAPES.items()}
            optimizer, jobs = kind(self.context, found, lr=0.1, **form), []
            for step in range(STEPS):
                optimizer.lr = 0.1 / (1 + step)
                gradients = self.gradients(step)
                for name, gradient in gradients.items():
                    if gradient is not None:
                        wanted[name] = by_numpy[name].step(kind, wanted[name], gradient, optimizer.lr, **form)
                jobs.append(optimizer.step(gradients))
            self.assertEqual([len(SHAPES) - step % 2 for step in range(STEPS)], [len(job.result(300)) for job in jobs])
            self.assertIs(found["w"], jobs[0].result()[0])
            for name, values in found.items():
                np.testing.assert_allclose(values.asnumpy() if name == "bias" else values, wanted[name], rtol=1e-10, atol=1e-10, err_msg=name)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not here")
    def test_ten_steps_of_pytorch(self):
        import torch

        for kind, form in self.forms():
            if form.get("decoupled"):
                make = torch.optim.AdamW
            else:
                make = torch.optim.SGD if kind is sg.SGD else torch.optim.Adam
            first = [torch.tensor(self.random.standard_normal(shape)) for shape in SHAPES.values()]
            wanted, found = ([each.clone() for each in first] for _ in range(2))
            for each in wanted:
                each.requires_grad_()
            theirs = make(wanted, lr=0.1, **{key: value for key, value in form.items() if key != "decoupled"})
            ours = kind(self.context, found, lr=0.1, **form)
            for step in range(STEPS):
                gradients = [gradient if gradient is None else torch.tensor(gradient) for gradient in self.gradients(step).values()]
                for each, gradient in zip(wanted, gradients):
                    each.grad = gradient
                theirs.step()
                ours.step(gradients).result(300)
            for each, other in zip(wanted, found):
                np.testing.assert_allclose(other.numpy(), each.detach().numpy(), rtol=1e-10, atol=1e-10)

    def test_short_types_have_wide_states(self):
        for dtype, wide in (("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f64", "f64")):
            w = self.context.array(np.ones((3, 4)) if dtype == "f64" else np.ones((3, 4), np.float32), dtype)
            optimizer = sg.Adam(self.context, [w], lr=0.25)
            optimizer.step([self.context.convert(w)]).result(300)
            self.assertEqual(np.dtype(wide[0] + str(int(wide[1:]) // 8)), optimizer.state_dict()["first.0"].dtype)
            np.testing.assert_allclose(self.context.convert(w, dtype="f32").asnumpy(), 0.75, rtol=1e-2)

    def test_a_step_is_one_job(self):
        arrays = [np.ones((4, 4)) for _ in range(20)]
        optimizer = sg.SGD(self.context, arrays, lr=1)
        before = self.context.metrics.jobs_submitted
        job = optimizer.step([np.full((4, 4), 0.25)] * 20, label="a step")
        self.assertTrue(all(each is array for each, array in zip(job.result(300), arrays, strict=True)))
        self.assertEqual("a step", job.label)
        self.assertEqual(1 + 20, self.context.metrics.jobs_submitted - before)  # and one for each array, as of each graph's run
        self.assertEqual(0.75, min(map(np.min, arrays)))

    def test_jobs(self):
        gate = self.gate(np.ones((2, 2)))
        w = np.ones((2, 2))
        optimizer = sg.SGD(self.context, {"w": w}, lr=0.5)
        gradient = self.context.gemm_async(gate.matrix, np.ones((2, 2)))  # twos
        step = optimizer.step({"w": gradient}, untracked=True)  # after the Job, whatever the memory
        product = self.context.gemm_async(w, np.ones((2, 2)), after=[step])
        self.assertFalse(step.done())
        gate.open()
        np.testing.assert_array_equal(np.zeros((2, 2)), product.result(300))
        stream = self.context.stream()
        self.long_job(stream=stream)
        cancelled = self.context.gemm_async(np.ones((2, 10)), np.ones((10, 2)), stream=stream)
        cancelled.cancel()
        failed = optimizer.step({"w": cancelled})
        if cancelled.exception(300) is not None:
            self.assertIsInstance(failed.exception(300), sg.DependencyFailed)

    def test_state(self):
        for kind, form in self.forms():
            arrays = [{name: np.ones(shape) for name, shape in SHAPES.items()} for _ in range(2)]
            first, second = (kind(self.context, each, lr=0.1, **form) for each in arrays)
            gradients = [self.gradients(step) for step in range(4)]
            for step in range(4):
                first.step(gradients[step])
            for step in range(2):
                second.step(gradients[step])
            file = io.BytesIO()
            np.savez(file, **second.state_dict())
            file.seek(0)
            third = kind(self.context, arrays[1], lr=0.1, **form)
            third.load_state_dict(np.load(file))
            for step in (2, 3):
                third.step(gradients[step]).result(300)
            self.context.synchronize()
            for name in SHAPES:
                np.testing.assert_array_equal(arrays[0][name], arrays[1][name])
            found, wanted = third.state_dict(), first.state_dict()
            self.assertEqual(wanted.keys(), found.keys())
            for name, values in wanted.items():
                np.testing.assert_array_equal(values, found[name])

    def test_wrong_calls(self):
        c, w = self.context, np.ones((2, 3), np.float32)
        optimizer = sg.SGD(c, {"w": w}, momentum=0.5)
        state = optimizer.state_dict()
        for call, kind, text in (
            (lambda: sg.SGD(c, w), TypeError, r"parameters is ndarray of shape \(2, 3\); it must be a list of arrays, or a dict"),
            (lambda: sg.SGD(c, [w, 3]), TypeError, r"parameters\[1\] is a int, which is no array"),
            (lambda: sg.SGD(c, {"w": np.ones(3, np.int8)}), sg.InvalidArgument, r"parameters\['w'\] has elements of i8; they must be f64"),
            (lambda: sg.SGD(c, [w], lr="fast"), TypeError, "lr is 'fast', which is no number"),
            (lambda: sg.SGD(c, [w], lr=float("inf")), sg.InvalidArgument, "lr is inf; it must be finite"),
            (lambda: sg.SGD(c, [w], momentum=1.5), sg.InvalidArgument, "momentum is 1.5; it must be finite, from 0, to 1"),
            (lambda: sg.SGD(c, [w], nesterov=True), sg.InvalidArgument, "nesterov is True and momentum is 0; it must be positive"),
            (lambda: sg.Adam(c, [w], betas=0.9), TypeError, "betas is 0.9; it must be two numbers"),
            (lambda: sg.Adam(c, [w], betas=(0.9, 1)), sg.InvalidArgument, r"betas\[1\] is 1.0; it must be finite, from 0, below 1"),
            (lambda: sg.Adam(c, [w], eps=-1), sg.InvalidArgument, "eps is -1.0; it must be finite, from 0"),
            (lambda: sg.Adam(c, [w], weight_decay=-1), sg.InvalidArgument, "weight_decay is -1.0"),
            (lambda: optimizer.step([]), sg.InvalidArgument, "gradients has 0 arrays; there are 1 parameters"),
            (lambda: optimizer.step({"v": w}), sg.InvalidArgument, r"gradients has 'v', which is none of the parameters: \['w'\]"),
            (lambda: optimizer.step(w), TypeError, r"gradients is ndarray of shape \(2, 3\); it must be a list"),
            (lambda: optimizer.step([w.T.copy()]), sg.InvalidArgument, r"gradients\['w'\]: gradient has shape \(3, 2\); it must be \(2, 3\)"),
            (lambda: optimizer.step([w.astype(float)]), sg.InvalidArgument, r"gradients\['w'\]: parameters is f32 and gradient is f64"),
            (lambda: optimizer.step([w]), sg.InvalidArgument, r"gradients\['w'\]: gradient .* and parameters .* overlap"),
            (lambda: optimizer.step([3]), TypeError, r"gradients\['w'\]: gradient is a int"),
            (lambda: optimizer.step([w + 1], labl=""), TypeError, "labl is none of the options; did you mean label"),
            (lambda: optimizer.load_state_dict({}), sg.InvalidArgument, r"state has the entries \[\]; .*'momentum_buffer.w' is in one only"),
            (lambda: optimizer.load_state_dict({**state, "momentum_buffer.w": 0}), sg.InvalidArgument, r"state\['momentum_buffer.w'\] has shape \(\)"),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()
        self.assertEqual(0, optimizer.state_dict()["steps.w"])  # refused steps do not count


if __name__ == "__main__":
    unittest.main()
