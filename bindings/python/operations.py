# SPDX-License-Identifier: Apache-2.0
# fmt: off
"""The operations of Python, one definition each: its parameters, what it computes, and the native call. bindings/api/python.py writes
the methods from them: NAME_async and NAME of Context, NAME of Graph, with the options of every submission, their docstrings, and
the stubs. This file is data for it, and is not part of the package.

A native call submits where it is returned, with the job's type, the target and the options put in. An operation of the headers is
called by its name and those fields of its descriptor that are not named as a parameter; None leaves one out. The sizes of the arrays give
the others. STACK is the rows of each matrix of a stack, and STACK.mask is those where the field mask is set; rule_ decorators name functions of src/operation_rules.c. ORDER stands for
the options, WAITS for whether the method waits. `planned` operations have options for the planner, `recording` methods record in a graph. The first
line of a docstring names what is computed; `->` names the results.
"""

class Context:
    @planned
    @unrecorded
    def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, op_a='N', op_b='N', compute='exact', bias=None, activation=None, copy=False) -> "c":
        """c = activation(alpha * op_a(a) @ op_b(b) + beta * c + bias).

        a, b: arrays of two dimensions or more, vectors, lists of matrices, or Jobs, after whose completion it runs.
            Dimensions before the last two are a batch, broadcast as by numpy.matmul. They stay unchanged until the Job completes.
        c: the array (or list) that the result is written to; None makes a new one.
        alpha, beta: scalars. beta needs c.
        op_a, op_b: "N", "T" (transposed) or "C" (conjugate transposed), applied to the last two dimensions.
        compute: the least accurate arithmetic allowed: "exact", "tf32", "3xtf32", "bf16", "bf16x3", "f8".
        bias: of the result's type, broadcast as by NumPy: a value for each column (n,), for each row (m, 1), or one for
            all: a number or an array (1,), which is read by the call.
        activation: "relu" or "gelu".
        copy: copies operands whose strides a GEMM cannot take (host memory only; Jobs must have completed).
        """
        return submit_gemm(WAITS, 'gemm', a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, copy)

    @planned
    @unrecorded
    def matmul(
        a, b, out=None, *, alpha=1.0, beta=0.0, op_a='N', op_b='N', compute='exact', bias=None, activation=None, copy=False
    ) -> "result":
        """a @ b, like numpy.matmul.

        out: the array that the result is written to; None makes a new one. a, b, alpha, beta, op_a, op_b, compute, bias,
        activation, copy: as for gemm_async.
        """
        return submit_gemm(WAITS, 'matmul', a, b, out, alpha, beta, op_a, op_b, compute, bias, activation, copy)

    @planned
    @unrecorded
    def gemm_grouped(products, *, copy=False) -> "[results]":
        """GEMMs of different shapes, types and scalars as one job.

        products: each is (a, b), (a, b, c) or a dict of gemm_async's a, b, c, alpha, beta, op_a, op_b, compute, bias,
        activation. copy: as for gemm_async.
        """
        return submit_group(tuple([item(p) for p in products]), copy)

    @unrecorded
    def copy(dst, src) -> "dst":
        """a copy of the array `src` to the array `dst`, from and to host or device memory.

        dst, src: either array may be a Job. A copy is ordered like GEMMs.
        """
        return submit_copy(dst, src)

    @rule_elementwise
    def elementwise(function, x, b=None, out=None) -> "out":
        """out = function(x), or function(x, b), element by element.

        function: "relu", "gelu" (by tanh), "gelu_erf", "silu", "sigmoid", "tanh", or of two operands "add", "multiply".
            The gradient of the first six has "_gradient" behind the name: x is the gradient of the function's result, and b
            is its operand.
        x, b: arrays of f64, f32, f16 or bf16, of one shape, or Jobs, in any memory.
        out: the array that is written, which may be x or b; None makes a new one of the layout of x.
        """
        return elementwise(a=x, c=out)

    def clamp(x, low: "float", high: "float", out=None) -> "out":
        """out = min(max(x, low), high), element by element; NaN stays NaN.

        x, out: as for elementwise_async. low, high: the limits; with low > high all elements become high.
        """
        return clamp(y=out)

    def clamp_backward(dy, x, low: "float", high: "float", out=None) -> "out":
        """the gradient of a clamp: dy where low <= x <= high, limits included, and 0 elsewhere.

        dy: the gradient of the clamp's result. x, low, high: as given to clamp_async. out: as for elementwise_async; it may be dy or x.
        """
        return clamp_backward(dx=out)

    def fill(y, value=0.0) -> "y":
        """y = value, element by element.

        y: an array of any type, in any memory, or a Job; it is written, and not read.
        value: a number, rounded to the type; of i8 and i32 an integer.
        """
        return fill()

    def row_dot(a, b, out=None) -> "out":
        """the dot product of each row of a with that of b: the sum of a * b over the last dimension, which becomes 1.

        a, b: arrays of f64, f32, f16 or bf16, of one shape, or Jobs, in any memory.
        out: the array that is written, of a's shape but for the last dimension, which is 1; None makes a new one.
        """
        return row_dot(a=a, b=b, y=out)

    def row_reduce(x, reduction='sum', out=None, *, axis=-1) -> "out":
        """the sum, mean, maximum or minimum of each row of x, that is over its last dimension, which becomes 1.

        x: an array of f64, f32, f16 or bf16, or a Job, in any memory.
        reduction: "sum", "mean", "max" or "min". A NaN is the maximum and the minimum of its row.
        out: the array that is written, of x's shape but for that dimension, which is 1; None makes a new one.
        axis: as for softmax_async.
        """
        return row_reduce(y=out)

    def axpby(a, c, *, alpha=1.0, beta=1.0, activation=None) -> "c":
        """c = activation(alpha * a + beta * c), a scale-and-add.

        a, c: arrays of one shape and type, or Jobs; c is written.
        alpha, beta: numbers; 0 does not read the array. activation: None, "relu" or "gelu".
        """
        return axpby()

    def triangular(a, b, *, kind='solve', side='left', triangle='lower', op_a='N', diagonal='stored', alpha=1.0) -> "b":
        """a triangular solve or product in place: b = the X of op_a(a) @ X = alpha * b, or alpha * op_a(a) @ b.

        a: a square array of f64, f32, c64 or c128, of which one triangle is used, or a Job. b: an array of its type, or a Job; it is
            written.
        kind: "solve" or "multiply". side: "left", or "right": X @ op_a(a) = alpha * b, or alpha * b @ op_a(a).
        triangle: "lower" or "upper", of a before the op. op_a: "N", "T" or "C". diagonal: "stored" or "unit", ones whatever is stored.
        alpha: a number; 0 reads neither array.
        """
        return triangular()

    def symmetric(a, b, c, *, side='left', triangle='lower', symmetry='symmetric', alpha=1.0, beta=0.0) -> "c":
        """c = alpha * a @ b + beta * c with a symmetric or Hermitian a.

        a: a square array of f64, f32, c64 or c128, of which one triangle is used, or a Job. b, c: arrays of one shape and of its type,
            or Jobs; c is written.
        side: "left", or "right": alpha * b @ a + beta * c. triangle: "lower" or "upper". symmetry: "symmetric" or "hermitian".
        alpha, beta: numbers; 0 does not read the arrays.
        """
        return symmetric()

    def rank_k(a, c, *, b=None, triangle='lower', symmetry='symmetric', op_a='N', alpha=1.0, beta=0.0) -> "c":
        """an update of a symmetric or Hermitian matrix: c = alpha * op_a(a) @ op_a(a)' + beta * c in one triangle of c.

        a: an array of f64, f32, c64 or c128, or a Job. c: a square array of its type, or a Job; one triangle is written, and read unless
            beta is 0; the other one is not accessed.
        b: an array of a's shape: c = alpha * op_a(a) @ op_a(b)' + alpha' * op_a(b) @ op_a(a)' + beta * c.
        triangle: "lower" or "upper". symmetry: "symmetric", where ' is the transpose, or "hermitian", where it is the conjugate
            transpose, and alpha (without b) and beta are real.
        op_a: "N", or "T", or of a Hermitian c "C". alpha, beta: numbers.
        """
        return rank_k()

    def softmax(x, out=None, *, axis=-1, mask=None, mask_offset=0) -> "out":
        """the softmax of each row of x, that is over its last dimension.

        x, out: as for elementwise_async.
        axis: of the dimension that is a row instead. Rows along it must be evenly spaced in memory, as along the first dimension.
        mask: None or "causal": row i of each matrix has the columns j <= i + mask_offset, and 0 in the others.
        mask_offset: of a causal mask: the number of keys before the first query's own.
        """
        return softmax(y=out, mask_rows=STACK.mask)

    def softmax_backward(y, dy, out=None, *, axis=-1) -> "out":
        """the gradient of a softmax: y * (dy - the sum of y * dy) for each row.

        y: the softmax, as softmax_async has written it. dy: the gradient of the loss with respect to it.
        out: as for elementwise_async; it may be y or dy. axis: as for softmax_async.
        """
        return softmax_backward(dx=out)

    def cross_entropy(x, indices, out=None, *, index_type=None) -> "out":
        """the cross entropy of each row of x: log(sum of e^x) - x at the row's class.

        x: scores (logits), with one for each class along the last dimension: f64, f32, f16 or bf16, or a Job.
        indices: the class of each row, i32 or i64, an array of x's shape but for the last dimension. A row whose class does not
            exist, such as -100, is ignored: 0.
        out: the array that is written, of x's shape but for the last dimension, which is 1; None makes a new one.
        index_type: as for gather_async.
        """
        indices, index_type = words_of(indices, index_type)
        return cross_entropy(y=out)

    def cross_entropy_backward(x, indices, dy=None, out=None, *, scale=1.0, index_type=None) -> "out":
        """the gradient of a cross entropy: scale * dy * (softmax of x, less 1 at the row's class).

        x, indices, index_type: as given to cross_entropy_async. dy: the gradient of its result; None: ones.
        out: as for elementwise_async; it may be x. scale: a number; 1 / rows for the mean of all rows.
        """
        indices, index_type = words_of(indices, index_type)
        return cross_entropy_backward(dx=out)

    def layer_norm(x, gamma=None, beta=None, out=None, *, axis=-1, epsilon=1e-05) -> "out":
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta for each row of x.

        x, out: as for elementwise_async. gamma, beta: vectors of x's type with a value for each column; None: ones, zeros.
        axis: as for softmax_async. epsilon: added to the variance.
        """
        return norm(y=out)

    def rms_norm(x, gamma=None, out=None, *, axis=-1, epsilon=1e-05) -> "out":
        """x / sqrt(mean of x^2 + epsilon) * gamma for each row of x.

        x, out: as for elementwise_async. gamma, axis, epsilon: as for layer_norm_async.
        """
        return norm(y=out, kind=_raw.SG_NORM_RMS)

    def layer_norm_backward(
        dy, x, gamma=None, *, dx=None, dgamma=None, dbeta=None, epsilon=1e-05
    ) -> "(dx, dgamma, dbeta)":
        """the gradients of a layer norm as one job.

        dy: the gradient of the loss with respect to the norm, or a Job. x, gamma, epsilon: as given to layer_norm_async.
        dx: like x; it may be dy or x. dgamma, dbeta: vectors with a value for each column; False: not computed, and None in the result. dx,
            dgamma, dbeta: arrays that are written; None makes a new one.
        """
        return norm_backward()

    def rms_norm_backward(dy, x, gamma=None, *, dx=None, dgamma=None, epsilon=1e-05) -> "(dx, dgamma)":
        """the gradients of an RMS norm as one job.

        dy, dx, dgamma: as for layer_norm_backward_async. x, gamma, epsilon: as given to rms_norm_async.
        """
        return norm_backward(kind=_raw.SG_NORM_RMS)

    def rotary(
        x, cos=None, sin=None, out=None, *, head_size=0, rotated_size=0, position=0, theta=10000.0, pairs='halves', inverse=False
    ) -> "out":
        """the rotary embedding of x: pairs of elements of each head turn with the row's position.

        x, out: as for elementwise_async. Rows are tokens; dimensions before the last two are of separate sequences.
        cos, sin: tables with a row for each position and a column for each pair, of x's type or f32; None: by theta.
        head_size: columns of a head; 0: a row is one head. rotated_size: its first elements, which turn; 0: all of them.
        position: of the first row of each sequence. theta: pair j of d/2 turns by p * theta^(-2j/d) at position p.
        pairs: "halves": elements j and j + d/2 (GPT-NeoX, Llama), or "interleaved": 2j and 2j + 1 (GPT-J).
        inverse: turns back, which is the gradient.
        """
        return rotary(y=out, first_position=position, sequence_length=STACK)

    def rotary_backward(
        dy, cos=None, sin=None, out=None, *, head_size=0, rotated_size=0, position=0, theta=10000.0, pairs='halves'
    ) -> "out":
        """the gradient of a rotary embedding: dy turned back.

        dy: the gradient of the loss with respect to the embedding, or a Job. out: as for elementwise_async; it may be dy.
        cos, sin, head_size, rotated_size, position, theta, pairs: as given to rotary_async.
        """
        return rotary_backward(dx=out, first_position=position, sequence_length=STACK)

    @rule_dequantize
    def dequantize(x, scales, zero_points=None, out=None, *, quantization='i8', dtype=None) -> "out":
        """out = (x - zero_points) * scales, block by block.

        x: quantized values: bytes of i8 (numpy.int8). A row is along the last dimension.
        scales: f32, f16 or bf16, like x but with one value for each block of a row: consecutive values, which the number
        of scales divides into blocks of one even size.
        zero_points: i8, one for each block; None: zeros.
        out: the array that is written: f32, f16 or bf16; None makes a new one.
        quantization: "i8", or "i4": two values in a byte of x, the first in the low four bits.
        dtype: of a new array: "f32", "f16" or "bf16"; None: that of scales.
        """
        return dequantize(y=out)

    def convert(a, out=None, *, dtype=None, op_a='N') -> "out":
        """out = op(a), cast to the type of out with one rounding.

        a: an array of f64, f32, f16 or bf16, or a Job.
        out: the array that is written, of one of these types; None makes a new one.
        dtype: of a new array: "f32", ...; None: that of a.
        op_a: "N", or "T": the transpose of a matrix.
        """
        return convert(c=out)

    def gather(table, indices, out=None, *, index_type=None, from_end=False, nan=False) -> "out":
        """out[i] = table[indices[i]], row by row.

        table: a matrix of any element type, or a Job.
        indices: an array of any shape of i32 or i64 (numpy.int32, numpy.int64).
        out: the array that is written, of the shape of indices and one more dimension, a row; None makes a new one.
        index_type: "i32", or "i64" of a vector in device memory, given as i32 with two elements for each index; None: as
        the array says, and i32 in device memory.
        from_end: indices below 0 count from the table's end, as in NumPy.
        nan: the row of an index out of range becomes NaN, not 0.
        """
        indices, index_type = words_of(indices, index_type)
        flags = (_raw.SG_GATHER_FROM_END if from_end else 0) | (_raw.SG_GATHER_NAN if nan else 0)
        return gather(y=out, flags=flags)

    @rule_scatter
    def scatter_add(table, x, indices, *, index_type=None, from_end=False) -> "table":
        """table[indices[i]] += x[i], row by row: the gradient of gather.

        Rows of one index are added in their order, so that results are the same at each run.
        table: the matrix that is added to: f64, f32, f16 or bf16. x: a row for each index, of the table's type, or a Job.
        indices: as for gather_async; a row whose index is out of range is left out.
        index_type, from_end: as for gather_async.
        """
        indices, index_type = words_of(indices, index_type)
        return scatter_add(flags=_raw.SG_GATHER_FROM_END if from_end else 0)

    @rule_momentum
    def sgd(
        parameters, gradient, momentum_buffer=None, *, rate=0.01, momentum=0.0, weight_decay=0.0, nesterov=False
    ) -> "parameters":
        """a step of stochastic gradient descent, in place: parameters -= rate * (gradient + weight_decay * parameters).

        parameters: an array without gaps, of any dimensions: f64, f32, f16 or bf16. gradient: of the same shape and type, or a Job.
        momentum_buffer: with a momentum: its state, f32, or f64 for f64, which begins at zeros.
        rate: the learning rate. momentum: momentum_buffer = momentum * momentum_buffer + gradient, which takes the gradient's place.
        weight_decay: of the parameters. nesterov: the gradient plus momentum * momentum_buffer takes its place.
        """
        return sgd()

    def adam(
        parameters, gradient, first, second, *, step=1, rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.0,
        decoupled=False
    ) -> "parameters":
        """a step of Adam, or with decoupled AdamW, in place.

        parameters, gradient: as for sgd_async. first, second: the moments, f32, or f64 for f64, which begin at zeros.
        step: the number of the step, from 1 on. rate: the learning rate. beta1, beta2: of the moments. epsilon: added to the root.
        weight_decay: of the parameters; decoupled: it is not part of the gradient.
        """
        return adam()

    @planned
    def linear(x, w, bias=None, out=None, *, op_w='N', activation=None, compute='exact') -> "out":
        """out = activation(x @ w + bias).

        x: an array whose rows, along its last dimension, have a value for each input, or a Job.
        w: a matrix of inputs by outputs, or of outputs by inputs with op_w "T". bias: a vector with a value for each output.
        out: the array that is written, with the dimensions of x, but outputs for inputs; None makes a new one.
        op_w: "N" or "T". activation: "relu" or "gelu". compute: as for gemm_async.
        """
        return linear(y=out, waits=WAITS)

    @planned
    def linear_backward(
        dy, x=None, w=None, *, dx=None, dw=None, dbias=None, op_w='N', accumulate=False, compute='exact'
    ) -> "(dx, dw, dbias)":
        """the gradients of a linear layer as one job.

        dy: the gradient of the loss with respect to x @ w + bias, with a value for each output in each row, or a Job.
        x: as given to linear_async; None: dw is not computed, and None in the result.
        w: as given to linear_async; None: dx is not computed, and None in the result.
        dx: dy @ w.T, with the dimensions of dy, but inputs for outputs. dw: x.T @ dy, with the dimensions of w.
        dbias: the sum of dy's rows; False: not computed. dx, dw, dbias: arrays that are written; None makes a new one.
        op_w: as for linear_async, of w and dw.
        accumulate: adds to dw and dbias, which must be given then.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        """
        return linear_backward()

    def attention(
        q, k, v, out=None, *, mask=None, mask_offset=0, window=0, bias=None, visible=None, query_lengths=None, key_lengths=None,
        scale=None, workspace=0, compute='exact'
    ) -> "out":
        """out = softmax(scale * q @ k.T + mask) @ v for each head.

        q, k, v: arrays of (batch, heads, tokens, width), or of the last three or two of these, or Jobs: f64, f32, f16 or
            bf16, with any strides except for the last dimension. k and v may have fewer heads, of which each serves as many
            of q.
        out: the array that is written; None makes a new one.
        mask: None, "causal": query i has the keys j <= i + mask_offset, or "causal_from_end": those up to i + keys - queries +
            mask_offset, where the numbers are the lengths of its batch.
        mask_offset: of a causal mask: the number of keys before the first query's own.
        window: of a causal mask: a query has the last so many of those positions only; 0: all.
        bias: is added to the scores; an array of (batch, heads, queries, keys), of the type of q, or of what NumPy broadcasts to it but
            for the last dimension. -inf hides a key.
        visible: the same of bool, or of bytes (numpy.uint8, or i8 in device memory): False or 0 hides a key.
        query_lengths, key_lengths: numpy.int32 arrays of (batch,), read when the job runs: of each batch the queries and keys that exist.
            Queries beyond get zeros, keys beyond are hidden.
        scale: of the products; None: 1 / sqrt(width).
        workspace: limit of the memory for scores, in bytes; 0: the library's choice.
        compute: as for gemm_async.
        """
        visible = bytes_of(visible)
        return attention(o=out)

    def attention_backward(
        q, k, v, d_out, *, dq=None, dk=None, dv=None, mask=None, mask_offset=0, window=0, bias=None, visible=None,
        query_lengths=None, key_lengths=None, scale=None, workspace=0, compute='exact'
    ) -> "(dq, dk, dv)":
        """the gradients of an attention as one job.

        q, k, v, mask, mask_offset, window, bias, visible, query_lengths, key_lengths, scale: as given to attention_async, without a
            gradient of bias. d_out: the gradient of its result, of the same shape.
        dq, dk, dv: arrays that are written, of the shapes of q, k and v; None makes a new one, False: it is not computed, and
            None in the result. They may be parts of one packed array.
        workspace: as for attention_async. compute: as for gemm_async.
        """
        visible = bytes_of(visible)
        return attention_backward(dout=d_out)

    def lstm(
        x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, c0=None, out=None, *, hn=None, cn=None, reserve=None,
        gate_order='default', batch_first=False, reverse=False, compute='exact'
    ) -> "(out, hn, cn)":
        """an LSTM over all steps of x.

        x: (steps, batch, inputs), (batch, steps, inputs) with batch_first, or (steps, inputs); an array or a Job: f64, f32, f16 or
            bf16, like all others.
        w_ih, w_hh: (4 * hidden, inputs) and (4 * hidden, hidden). bias_ih, bias_hh: 4 * hidden values each; None: zeros.
        h0, c0: the first states, (batch, hidden), or (hidden,) without a batch; None: zeros.
        out: h after each step, with the dimensions of x. hn, cn: the last states. An array that is written; None makes a new one;
            False for hn or cn: it is not stored.
        reserve: an array of (steps, batch, 5 * hidden) of f32, or f64 for f64, which is written for lstm_backward; None: nothing.
        gate_order: "default": i, f, g, o as in PyTorch; "onnx": i, o, f, g. reverse: from the last step to the first.
        batch_first, compute: as for x and gemm_async.
        """
        return recurrent(y=out, cell=_raw.SG_CELL_LSTM)

    def gru(
        x, w_ih, w_hh, bias_ih=None, bias_hh=None, h0=None, out=None, *, hn=None, reserve=None, reset_before=False,
        gate_order='default', batch_first=False, reverse=False, compute='exact'
    ) -> "(out, hn)":
        """a GRU over all steps of x.

        x, w_ih, w_hh, bias_ih, bias_hh, h0, out, hn, reserve, batch_first, reverse, compute: as for lstm_async, with 3 * hidden gates.
        reset_before: the reset gate is applied to the state before its product, as in ONNX's linear_before_reset = 0.
        gate_order: "default": r, z, n as in PyTorch; "onnx": z, r, n.
        """
        cell = _raw.SG_CELL_GRU_RESET_BEFORE if reset_before else _raw.SG_CELL_GRU
        return recurrent(y=out, cell=cell)

    def lstm_backward(
        x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dcn=None, dx=None, dw_ih=None, dw_hh=None, dbias_ih=None,
        dbias_hh=None, dh0=None, dc0=None, gate_order='default', batch_first=False, reverse=False, accumulate=False, compute='exact'
    ) -> "(dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0)":
        """the gradients of an LSTM as one job.

        x, w_ih, w_hh, h0, gate_order, batch_first, reverse: as given to lstm_async. y, reserve: as it has written them.
        dy, dhn, dcn: gradients of the loss with respect to out, hn and cn; None: zeros.
        dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, dc0: the results, whose tuple is the job's. Arrays that are written; None makes a
            new one, False: it is not computed, and None in the result. Those of weights and biases may be f32 for f16 and bf16.
        accumulate: adds to those of weights and biases, which must be given then, or False.
        compute: as for gemm_async.
        """
        return recurrent_backward(cell=_raw.SG_CELL_LSTM)

    def gru_backward(
        x, w_ih, w_hh, y, reserve, h0=None, *, dy=None, dhn=None, dx=None, dw_ih=None, dw_hh=None, dbias_ih=None, dbias_hh=None,
        dh0=None, gate_order='default', batch_first=False, reverse=False, accumulate=False, compute='exact'
    ) -> "(dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0)":
        """the gradients of a GRU without reset_before as one job.

        x, w_ih, w_hh, y, reserve, h0, dy, dhn, dx, dw_ih, dw_hh, dbias_ih, dbias_hh, dh0, gate_order, batch_first, reverse,
        accumulate, compute: as for lstm_backward_async, of gru_async; the result is the tuple of dx to dh0.
        """
        return recurrent_backward(cell=_raw.SG_CELL_GRU)

    @planned
    def conv2d(
        x, w, bias=None, out=None, *, stride=1, padding=0, dilation=1, groups=1, layout='nchw', filter_layout='oihw',
        activation=None, workspace=0, compute='exact'
    ) -> "out":
        """out = activation(conv(x, w) + bias).

        x: images, an array of four dimensions in the order of layout, or a Job: f64, f32, f16 or bf16. The elements of an image
            are contiguous.
        w: filters, an array of (filters, channels of a group, rows, columns), or in the order of filter_layout.
        bias: a vector with a value for each filter.
        out: the images that are written; None makes new ones.
        stride, dilation: a number, or one for rows and one for columns.
        padding: a number, or (rows, columns), or (top, left, bottom, right).
        groups: of channels; each has its own filters.
        layout: "nchw" or "nhwc", of x and out. filter_layout: "oihw" or "ohwi".
        activation: "relu" or "gelu".
        workspace: limit of the memory for windows, in bytes; 0: the library's choice.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        """
        return conv2d(y=out, windows=windows_of(None, stride, padding, dilation), image_layout=layout)

    @planned
    @rule_size
    def conv2d_backward(
        dy, x=None, w=None, *, dx=None, dw=None, dbias=None, size=None, stride=1, padding=0, dilation=1, groups=1, layout='nchw',
        filter_layout='oihw', accumulate=False, workspace=0, compute='exact'
    ) -> "(dx, dw, dbias)":
        """the gradients of a convolution as one job.

        dy: the gradient of the loss with respect to conv(x, w) + bias, or a Job.
        x: as given to conv2d_async; None: dw is not computed, and None in the result.
        w: as given to conv2d_async; None: dx is not computed, and None in the result; dw must be given then.
        dx: images like x: the transposed convolution of dy with w. dw: like w.
        dbias: the sums of dy over images and pixels; False: not computed. dx, dw, dbias: arrays that are written; None makes a
            new one.
        size: the height and width of dx, if neither x nor dx is given.
        stride, padding, dilation, groups, layout, filter_layout, workspace: as given to conv2d_async.
        accumulate: adds to dw and dbias, which must be given then.
        compute: as for gemm_async. options: PlanOptions, of which streams and memory_limit apply.
        """
        height, width = (None, None) if size is None else integers(size, 'size', (2,))
        return conv2d_backward(height=height, width=width, windows=windows_of(None, stride, padding, dilation), image_layout=layout)

    def pool2d(x, kernel, out=None, *, stride: "int | Sequence[int] | None" = None, padding=0, dilation=1, pooling='max', layout='nchw') -> "out":
        """the maximum or the average of each window of images.

        x: images, an array of four dimensions in the order of layout, or a Job: f64, f32, f16 or bf16. The elements of an image
            are contiguous.
        kernel: rows and columns of a window, or one number for both.
        out: the images that are written; None makes new ones.
        stride: a number, or one for rows and one for columns; None: kernel. padding, dilation, layout: as for conv2d_async. Pixels outside an image
            take no part in a maximum; a window without any pixel is minus infinity.
        pooling: "max", "average", whose pixels outside the image are zeros, or "average_inside", of the pixels inside.
        """
        return pool2d(y=out, windows=pooled_windows(kernel, stride, padding, dilation), image_layout=layout)

    @rule_pool_gradient
    def pool2d_backward(
        dy, x: "_Source | None", kernel, *, dx=None, size=None, stride: "int | Sequence[int] | None" = None, padding=0, dilation=1, pooling='max', layout='nchw'
    ) -> "dx":
        """the gradient of pool2d.

        dy: the gradient of the loss with respect to the pooled images, or a Job.
        x: as given to pool2d_async; of an average None.
        dx: images like x; None makes new ones.
        size: the height and width of dx, if neither x nor dx is given.
        kernel, stride, padding, dilation, pooling, layout: as given to pool2d_async.
        """
        height, width = (None, None) if size is None else integers(size, 'size', (2,))
        return pool2d_backward(
            height=height, width=width, windows=pooled_windows(kernel, stride, padding, dilation), image_layout=layout
        )

    @rule_windows
    def im2col(x, kernel, out=None, *, stride=1, padding=0, dilation=1, channels=None, layout='nchw', filter_layout='oihw') -> "out":
        """the matrix of the windows of images.

        x: images, an array of four dimensions of any element type in the order of layout, or a Job. The elements of an image are
            contiguous.
        kernel: rows and columns of a window, or one number for both.
        out: the matrix that is written, with a row for each window of each image and a column for each pixel of a window in each
            channel; None makes a new one.
        stride, padding, dilation, layout: as for conv2d_async.
        channels: the first channel and the number of channels that the matrix has; None: all.
        filter_layout: the order of the columns: "oihw", channel by channel, or "ohwi", pixel by pixel.
        """
        first, used = (0, 0) if channels is None else integers(channels, 'channels', (2,), 0)
        return im2col(
            matrix=out, channels=None, first_channel=first, used_channels=used, windows=windows_of(kernel, stride, padding, dilation),
            image_layout=layout, columns=filter_layout
        )

    @rule_windows
    def col2im(
        matrix, kernel, out=None, *, shape=None, stride=1, padding=0, dilation=1, channels=None, layout='nchw',
        filter_layout='oihw', accumulate=False
    ) -> "out":
        """the sums of windows: the gradient of im2col.

        Each element of the images becomes the sum of those that im2col takes from it.
        matrix: as im2col makes it, or a Job: f64, f32, f16 or bf16.
        kernel, stride, padding, dilation, layout, filter_layout: as given to im2col_async.
        out: the images that are written; None makes new ones.
        shape: of new images, four numbers in the order of layout.
        channels: as given to im2col_async; of other channels nothing is written, and out must be given.
        accumulate: adds to out, which must be given then.
        """
        first, used = (0, 0) if channels is None else integers(channels, 'channels', (2,), 0)
        images, in_all, height, width = sizes_of(shape, layout)
        return col2im(
            x=out, images=images, channels=in_all, height=height, width=width, first_channel=first, used_channels=used,
            windows=windows_of(kernel, stride, padding, dilation), image_layout=layout, columns=filter_layout
        )

    def custom(function, *, reads=(), writes=(), updates=(), seconds=0.0, compute_units=0) -> "written":
        """a function as a job.

        function: called with the native stream and the arrays of reads, writes and updates. On a CUDA device it enqueues work on that
        cudaStream_t, an int, of operands that are Matrix objects in device memory (DLPack, __cuda_array_interface__), and does
        not wait. On other devices the stream is 0, the operands are NumPy arrays, and the work is done when it returns. It runs
        on a thread of the library and calls nothing of this package that submits or waits. An exception fails the job.
        reads: arrays that it only reads, or Jobs; read-only in the function on other devices. writes: arrays that it writes, whatever they contain. updates: arrays that it
        reads and writes. Four at most in all. The function gets copies of those in pageable memory, unless the device is the cpu.
        seconds: expected time, for predictions and simulated devices; 0: by the bytes of the operands.
        compute_units: multiprocessors that it occupies, for predictions; 0: all; -1: none, as of a transfer between devices.
        """
        return submit_custom(*custom_arguments(function, reads, writes, updates, seconds, compute_units))

    def all_reduce(operands) -> "[operands]":
        """the sum of arrays in each of them, as of gradients on several devices.

        operands: a list of arrays without gaps, of one type and number of elements, each in the memory of its device
            (`context.buffer(nbytes, device=1)`), or Jobs. One job for all devices, which the memory orders.
        """
        return submit_all_reduce(tuple(operands))


class Plan:
    def run(a, b=None, c=None, *, alpha=None, beta=None, bias=None) -> "c":
        """the planned operation of other arrays.

        a: the operation, by a function of streamgemm.operations; of a GEMM also its operands. a, b, c: of the planned shapes and memory
        spaces. alpha, beta: None keeps those of the plan. bias: of a plan that was made with one.
        """
        self._open()
        return self._described(a, b, c, alpha, beta, bias)._use((RUN, Job, 0, self._function), self._target, ORDER)


class Graph:
    @planned
    @recording
    def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, op_a="N", op_b="N", compute="exact", bias=None, activation=None) -> "c":
        """a GEMM, whose result each run overwrites.

        A Job must have completed. a, b, c, alpha, beta, op_a, op_b, compute, bias, activation: as for Context.gemm_async.
        """
        with self._lock:
            keeper, result = _raw.submit_gemm(
                self._open(), self._target, False, 'gemm', a, b, c, alpha, beta, op_a, op_b, compute, bias, activation, False, *ORDER
            )
            self._kept.append((keeper, result, Form(op_a, op_b, compute, activation)))
        return result

    @recording
    def copy(dst, src) -> "dst":
        """a copy of the array `src` to the array `dst`.

        dst, src: arrays.
        """
        with self._lock:
            keeper, result = _raw.submit_copy(self._open(), self._target, dst, src, ORDER)
            self._kept.append((keeper, result, COPY))
        return dst

    def run() -> "[results]":
        """everything recorded, in the order of recording.
        """
        with self._lock:
            kept = list(self._kept)
            return _raw.submit_graph(Job, self._open(), tuple([each[0] for each in kept]), [each[1] for each in kept], ORDER)


class Pipeline:
    def push(x, out=None) -> "out":
        """a batch.

        It blocks at the limit of batches in flight.
        x: an array of the pipeline's shape and type, row major without gaps, or a Job. out: an array of the last stage's shape;
        None makes a new one.
        """
        forms = tuple([Matrix.placeholder(form.shape, form.dtype) for form in (self._forms[0], self._forms[-1])])
        return self._calls.during(
            lambda kept: _raw.push_batch(Job, self._open(), self._target, forms, (self._kept, kept), x, out, ORDER))

    def push_batches(x, out=None) -> "[outs]":
        """several batches at once, as one job.

        With replicas they run beside each other, one on each device, and share streamed weights
        (PipelineInfo.shares_weights).
        It blocks at the limit of batches in flight, which is also that of their number.
        x: a sequence of arrays, each as of push_async. out: a sequence of as many arrays, each as of push_async; None makes
        new ones.
        """
        x = arrays(x, "x")
        out = (None,) * len(x) if out is None else arrays(out, "out")
        forms = tuple([Matrix.placeholder(form.shape, form.dtype) for form in (self._forms[0], self._forms[-1])])
        return self._calls.during(
            lambda kept: _raw.push_batches(Job, self._open(), self._target, forms, (self._kept, kept), x, out, ORDER))
