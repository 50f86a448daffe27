# SPDX-License-Identifier: Apache-2.0
"""The operations of layers.h. Each public function lists all of its parameters."""

from . import _raw
from ._enums import Function, Mask, RotaryPairs, integer, value_of
from ._job import Job, finished

_NOTHING = ()
ELEMENTWISE, SOFTMAX, CAUSAL_SOFTMAX, LAYER_NORM, RMS_NORM = range(5)  # as in src/layers.c


# fmt: off
class LayerMethods:
    """The operations of deep networks of a Context, which has _target."""

    def _layer(self, kind, x, second, third, out, epsilon, number, stream, after, priority, untracked, timeout, label):
        return _raw.submit_layer(
            Job, self._target or self._open_target(), kind, x, second, third, out, epsilon, number, stream, after,
            priority, untracked, timeout, label,
        )

    def elementwise_async(
        self, function, x, b=None, out=None, *, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Submits out = function(x), or function(x, b), element by element, and returns its Job at once.

        function: "relu", "gelu" (by tanh), "gelu_erf", "silu", "sigmoid", "tanh", or of two operands "add", "multiply".
            The gradient of the first six has "_gradient" behind the name: x is the gradient of the function's result, and b
            is its operand.
        x, b: arrays of f64, f32, f16 or bf16, of one shape, or Jobs. In device memory, unless the device is the cpu.
        out: the array that is written, which may be x or b; None makes a new one, row major as x must be then.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._layer(
            ELEMENTWISE, x, b, None, out, 0.0, value_of(Function, function, "function"), stream, after, priority,
            untracked, timeout, label,
        )

    def elementwise(
        self, function, x, b=None, out=None, *, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None,
        label=None,
    ):
        """Computes out = function(x), or function(x, b), element by element, waits, and returns out.

        function, x, b, out, stream, after, priority, untracked, timeout, label: as for elementwise_async.
        """
        return finished(self.elementwise_async(
            function, x, b, out, stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout,
            label=label,
        ))

    def axpby_async(
        self, a, c, *, alpha=1.0, beta=1.0, activation=None, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Submits c = activation(alpha * a + beta * c), a scale-and-add, and returns its Job at once.

        a, c: arrays of one shape and type, or Jobs; c is written. In device memory, unless the device is the cpu.
        alpha, beta: numbers; 0 does not read the array. activation: None, "relu" or "gelu".
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_axpby(
            Job, self._target or self._open_target(), a, c, alpha, beta, activation, stream, after, priority, untracked,
            timeout, label,
        )

    def axpby(
        self, a, c, *, alpha=1.0, beta=1.0, activation=None, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Computes c = activation(alpha * a + beta * c), waits, and returns c.

        a, c, alpha, beta, activation, stream, after, priority, untracked, timeout, label: as for axpby_async.
        """
        return finished(self.axpby_async(
            a, c, alpha=alpha, beta=beta, activation=activation, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))

    def softmax_async(
        self, x, out=None, *, mask=None, mask_offset=0, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Submits the softmax of each row of x, that is over its last dimension, and returns its Job at once.

        x, out: as for elementwise_async.
        mask: None or "causal": row i of each matrix has the columns j <= i + mask_offset, and 0 in the others.
        mask_offset: of a causal mask: the number of keys before the first query's own.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        causal = mask is not None and value_of(Mask, mask, "mask") != Mask.NONE
        return self._layer(
            CAUSAL_SOFTMAX if causal else SOFTMAX, x, None, None, out, 0.0,
            integer(mask_offset, "mask_offset", -(1 << 61), 1 << 61), stream, after, priority, untracked, timeout, label,
        )

    def softmax(
        self, x, out=None, *, mask=None, mask_offset=0, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Computes the softmax of each row of x, waits, and returns out.

        x, out, mask, mask_offset, stream, after, priority, untracked, timeout, label: as for softmax_async.
        """
        return finished(self.softmax_async(
            x, out, mask=mask, mask_offset=mask_offset, stream=stream, after=after, priority=priority,
            untracked=untracked, timeout=timeout, label=label,
        ))

    def layer_norm_async(
        self, x, gamma=None, beta=None, out=None, *, epsilon=1e-5, stream=None, after=_NOTHING, priority=0,
        untracked=False, timeout=None, label=None,
    ):
        """Submits (x - mean) / sqrt(variance + epsilon) * gamma + beta for each row of x, and returns its Job at once.

        x, out: as for elementwise_async. gamma, beta: vectors of x's type with a value for each column; None: ones, zeros.
        epsilon: added to the variance. stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._layer(
            LAYER_NORM, x, gamma, beta, out, epsilon, 0, stream, after, priority, untracked, timeout, label,
        )

    def layer_norm(
        self, x, gamma=None, beta=None, out=None, *, epsilon=1e-5, stream=None, after=_NOTHING, priority=0,
        untracked=False, timeout=None, label=None,
    ):
        """Computes the layer norm of each row of x, waits, and returns out.

        x, gamma, beta, out, epsilon, stream, after, priority, untracked, timeout, label: as for layer_norm_async.
        """
        return finished(self.layer_norm_async(
            x, gamma, beta, out, epsilon=epsilon, stream=stream, after=after, priority=priority, untracked=untracked,
            timeout=timeout, label=label,
        ))

    def rms_norm_async(
        self, x, gamma=None, out=None, *, epsilon=1e-5, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Submits x / sqrt(mean of x^2 + epsilon) * gamma for each row of x, and returns its Job at once.

        x, out: as for elementwise_async. gamma, epsilon: as for layer_norm_async.
        stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return self._layer(
            RMS_NORM, x, gamma, None, out, epsilon, 0, stream, after, priority, untracked, timeout, label,
        )

    def rms_norm(
        self, x, gamma=None, out=None, *, epsilon=1e-5, stream=None, after=_NOTHING, priority=0, untracked=False,
        timeout=None, label=None,
    ):
        """Computes the RMS norm of each row of x, waits, and returns out.

        x, gamma, out, epsilon, stream, after, priority, untracked, timeout, label: as for rms_norm_async.
        """
        return finished(self.rms_norm_async(
            x, gamma, out, epsilon=epsilon, stream=stream, after=after, priority=priority, untracked=untracked,
            timeout=timeout, label=label,
        ))

    def rotary_async(
        self, x, cos=None, sin=None, out=None, *, head_size=0, rotated_size=0, position=0, theta=10000.0, pairs="halves",
        inverse=False, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Submits the rotary embedding of x: pairs of elements of each head turn with the row's position; returns its Job.

        x, out: as for elementwise_async. Rows are tokens; dimensions before the last two are of separate sequences.
        cos, sin: tables with a row for each position and a column for each pair, of x's type or f32; None: by theta.
        head_size: columns of a head; 0: a row is one head. rotated_size: its first elements, which turn; 0: all of them.
        position: of the first row of each sequence. theta: pair j of d/2 turns by p * theta^(-2j/d) at position p.
        pairs: "halves": elements j and j + d/2 (GPT-NeoX, Llama), or "interleaved": 2j and 2j + 1 (GPT-J).
        inverse: turns back, which is the gradient. stream, after, priority, untracked, timeout, label: as for gemm_async.
        """
        return _raw.submit_rotary(
            Job, self._target or self._open_target(), x, cos, sin, out, *(
                integer(value, name, -(1 << 62), 1 << 62)
                for value, name in ((head_size, "head_size"), (rotated_size, "rotated_size"), (position, "position"))
            ), theta, value_of(RotaryPairs, pairs, "pairs"), inverse, stream, after, priority, untracked, timeout, label,
        )

    def rotary(
        self, x, cos=None, sin=None, out=None, *, head_size=0, rotated_size=0, position=0, theta=10000.0, pairs="halves",
        inverse=False, stream=None, after=_NOTHING, priority=0, untracked=False, timeout=None, label=None,
    ):
        """Computes the rotary embedding of x, waits, and returns out.

        x, cos, sin, out, head_size, rotated_size, position, theta, pairs, inverse, stream, after, priority, untracked,
        timeout, label: as for rotary_async.
        """
        return finished(self.rotary_async(
            x, cos, sin, out, head_size=head_size, rotated_size=rotated_size, position=position, theta=theta, pairs=pairs,
            inverse=inverse, stream=stream, after=after, priority=priority, untracked=untracked, timeout=timeout,
            label=label,
        ))
# fmt: on
