# SPDX-License-Identifier: Apache-2.0
"""Optimizers of many arrays, whose step is one job."""

from collections.abc import Mapping

from ._device_array import DeviceArray
from ._errors import InvalidArgument
from ._graph import Graph
from ._job import Job
from ._matrix import Matrix
from ._messages import brief
from ._results import plain

_WIDE = {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32"}  # the type of a state, by that of its parameters


def _number(given, name, low=None, high=None, below=None):
    """A number in a range, or an error that names the option."""
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {brief(given)}, which is no number") from None
    if value - value != 0 or (low is not None and value < low) or (high is not None and value > high) or (below is not None and value >= below):
        rule = "finite" + "".join(f", {text} {limit}" for text, limit in (("from", low), ("to", high), ("below", below)) if limit is not None)
        raise InvalidArgument(f"{name} is {value}; it must be {rule}")
    return value


class _Optimizer:
    """The arrays and states of an optimizer. One thread at a time uses it."""

    def __init__(self, context, parameters, states):
        self._context = context
        self._parameters = self._by_name(parameters, "parameters")
        self._options()
        self._states = {state: {} for state in states}
        self._steps = dict.fromkeys(self._parameters, 0)
        for key, array in self._parameters.items():
            seen, name = Matrix._look(array, f"parameters[{key!r}]"), f"parameters[{key!r}]"
            if seen.dtype not in _WIDE:
                raise InvalidArgument(f"{name} has elements of {seen.dtype}; they must be f64, f32, f16 or bf16")
            on_device = isinstance(array, DeviceArray) or seen.device != "cpu"
            for made in self._states.values():
                made[key] = (context.zeros if on_device else plain)(seen.shape, _WIDE[seen.dtype])

    @staticmethod
    def _by_name(given, name):
        if isinstance(given, Mapping):
            return dict(given)
        if isinstance(given, (list, tuple)):
            return dict(enumerate(given))
        raise TypeError(f"{name} is {brief(given)}; it must be a list of arrays, or a dict of arrays by name")

    def step(self, gradients, **order):
        """Submits the step of all parameters as one job, and returns its Job at once; the result is the list of the parameters that it updates.

        gradients: a list with an array, a Job or None for each parameter, or a dict of them by name. A parameter without a gradient stays as it is.
        A step counts when it is submitted, also if its job fails or is cancelled: state_dict and load_state_dict go back to an earlier state.

        The keywords, `order`, are the options of every submission: stream, after, priority, untracked, timeout, label, trace_id.
        """
        given, options = self._by_name(gradients, "gradients"), self._options()
        if not isinstance(gradients, Mapping):
            if len(given) != len(self._parameters):
                raise InvalidArgument(f"gradients has {len(given)} arrays; there are {len(self._parameters)} parameters, which must be as many")
            given = dict(zip(self._parameters, gradients))
        if unknown := [key for key in given if key not in self._parameters]:
            raise InvalidArgument(f"gradients has {unknown[0]!r}, which is none of the parameters: {brief(list(self._parameters))}")
        given = {key: array for key, array in given.items() if array is not None}
        pending = [array for array in given.values() if isinstance(array, Job)]
        with Graph(self._context) as graph:
            for key, array in given.items():
                states = [made[key] for made in self._states.values()]
                try:
                    self._record(graph, self._parameters[key], array._result if isinstance(array, Job) else array, states, key, options)
                except (InvalidArgument, TypeError) as wrong:
                    raise type(wrong)(f"the step of parameters[{key!r}] by gradients[{key!r}]: {wrong}") from None
            after = order.pop("after", ())
            if not isinstance(after, (list, tuple)):
                raise TypeError(f"after is {brief(after)}; it must be a sequence of jobs")
            job = graph.run_async(after=[*after, *pending], **order)
        for key in given:
            self._steps[key] += 1
        return job

    def state_dict(self):
        """The state as new NumPy arrays by name, after the steps that were submitted: "steps.NAME", and "STATE.NAME" of each state. numpy.savez writes them."""
        import numpy

        found = {f"steps.{key}": numpy.array(count) for key, count in self._steps.items()}
        for state, arrays in self._states.items():
            for key, array in arrays.items():
                host = numpy.empty(array.shape, "f8" if array.dtype == "f64" else "f4")
                found[f"{state}.{key}"] = self._context.copy(host, array)
        return found

    def load_state_dict(self, state):
        """Sets the `state` that state_dict has given, of parameters of the same names and shapes."""
        import numpy

        wanted = self.state_dict()
        if missing := sorted(wanted.keys() - set(state)) + sorted(set(state) - wanted.keys()):
            raise InvalidArgument(f"state has the entries {brief(sorted(state))}; they must be {brief(sorted(wanted))}, and {missing[0]!r} is in one only")
        for name, like in wanted.items():
            if numpy.shape(state[name]) != like.shape:
                raise InvalidArgument(f"state[{name!r}] has shape {numpy.shape(state[name])}; it must be {like.shape}")
        counts = {key: int(state[f"steps.{key}"]) for key in self._parameters}
        for key, count in counts.items():
            if count < 0:
                raise InvalidArgument(f"state['steps.{key}'] is {count}; it must not be negative")
        for key in self._parameters:
            self._steps[key] = counts[key]
            for name, arrays in self._states.items():
                self._context.copy(arrays[key], numpy.array(state[f"{name}.{key}"], wanted[f"{name}.{key}"].dtype, order="C"))

    def __repr__(self):
        return f"<streamgemm.{type(self).__name__} of {len(self._parameters)} arrays, {max(self._steps.values(), default=0)} steps>"


class SGD(_Optimizer):
    """Stochastic gradient descent of many arrays, as torch.optim.SGD; a step is one job.

    The options are attributes: a new `lr` applies from the next step on. Its states, in a device's memory for parameters there, are
    f64 for f64 and f32 for the other types.

    context: computes the steps. parameters: a list of arrays, or a dict of them by name, which steps update in place.
    lr: the learning rate. momentum: from 0 to 1; its state is made if it is not 0. weight_decay: of the parameters.
    nesterov: Nesterov's momentum.
    """

    def __init__(self, context, parameters, *, lr=1e-3, momentum=0.0, weight_decay=0.0, nesterov=False):
        """context, parameters, lr, momentum, weight_decay, nesterov: as the class says."""
        self.lr, self.momentum, self.weight_decay, self.nesterov = lr, momentum, weight_decay, nesterov
        super().__init__(context, parameters, ("momentum_buffer",) if momentum else ())

    def _options(self):
        momentum = _number(self.momentum, "momentum", 0, 1)
        if self.nesterov and not momentum:
            raise InvalidArgument("nesterov is True and momentum is 0; it must be positive for that")
        return {
            "rate": _number(self.lr, "lr"), "momentum": momentum, "weight_decay": _number(self.weight_decay, "weight_decay", 0),
            "nesterov": bool(self.nesterov),
        }  # fmt: skip

    def _record(self, graph, parameters, gradient, states, key, options):
        graph.sgd(parameters, gradient, *states, **options)


class Adam(_Optimizer):
    """Adam of many arrays, as torch.optim.Adam, or with decoupled as AdamW; a step is one job.

    Each array counts its own steps. The options are attributes: a new `lr` applies from the next step on. Its states, in a device's memory for
    parameters there, are f64 for f64 and f32 for the other types.

    context: computes the steps. parameters: a list of arrays, or a dict of them by name, which steps update in place.
    lr: the learning rate. betas: of the first and the second moment. eps: added to the root. weight_decay: of the parameters.
    decoupled: the decay is not part of the gradient (AdamW).
    """

    def __init__(self, context, parameters, *, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
        """context, parameters, lr, betas, eps, weight_decay, decoupled: as the class says."""
        self.lr, self.betas, self.eps, self.weight_decay, self.decoupled = lr, betas, eps, weight_decay, decoupled
        super().__init__(context, parameters, ("first", "second"))

    def _options(self):
        if not isinstance(self.betas, (tuple, list)) or len(self.betas) != 2:
            raise TypeError(f"betas is {brief(self.betas)}; it must be two numbers")
        first, second = (_number(beta, f"betas[{i}]", 0, below=1) for i, beta in enumerate(self.betas))
        return {
            "rate": _number(self.lr, "lr"), "beta1": first, "beta2": second, "epsilon": _number(self.eps, "eps", 0),
            "weight_decay": _number(self.weight_decay, "weight_decay", 0), "decoupled": bool(self.decoupled),
        }  # fmt: skip

    def _record(self, graph, parameters, gradient, states, key, options):
        graph.adam(parameters, gradient, *states, step=self._steps[key] + 1, **options)
