// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.Objects;
import org.streamgemm.internal.Native;

/** A recurrent layer beside its sequences: {@link Layers#recurrentAsync}, {@link Layers#recurrentBackwardAsync}. Read during the call only. */
public final class Recurrent {
  private final Cell cell;
  private final Matrix wIh;
  private final Matrix wHh;
  private Matrix biasIh;
  private Matrix biasHh;
  private Matrix h0;
  private Matrix c0;
  private Matrix hn;
  private Matrix cn;
  private Matrix reserve;
  private GateOrder gateOrder = GateOrder.DEFAULT;
  private boolean reverse;
  private Compute compute = Compute.EXACT;

  /**
   * A layer without biases, which begins with zeros. An LSTM has 4 gates, a GRU 3.
   *
   * @param cell LSTM or GRU
   * @param wIh weights of X: gates * hidden by inputs, contiguous; only read
   * @param wHh weights of the state: gates * hidden by hidden, contiguous; only read
   */
  public Recurrent(Cell cell, Matrix wIh, Matrix wHh) {
    this.cell = Objects.requireNonNull(cell, "cell");
    this.wIh = Objects.requireNonNull(wIh, "wIh");
    this.wHh = Objects.requireNonNull(wHh, "wHh");
  }

  /**
   * Adds biases. The gradients do not need them.
   *
   * @param biasIh a row of gates * hidden values; only read; null: zeros
   * @param biasHh likewise
   * @return this layer
   */
  public Recurrent biases(Matrix biasIh, Matrix biasHh) {
    this.biasIh = biasIh;
    this.biasHh = biasHh;
    return this;
  }

  /**
   * Sets the first state.
   *
   * @param h0 a row of hidden values for each sequence; only read; null: zeros
   * @param c0 likewise, of an LSTM; null: zeros
   * @return this layer
   */
  public Recurrent start(Matrix h0, Matrix c0) {
    this.h0 = h0;
    this.c0 = c0;
    return this;
  }

  /**
   * Stores the last state.
   *
   * @param hn a result like h0, which it may be, by the same Matrix; null: it is not stored
   * @param cn likewise, of an LSTM
   * @return this layer
   */
  public Recurrent end(Matrix hn, Matrix cn) {
    this.hn = hn;
    this.cn = cn;
    return this;
  }

  /**
   * Sets the memory of what the gradients need: the layer writes it, they read it.
   *
   * @param reserve of {@link Layers#recurrentReserve}, or a matrix like it; null: none
   * @return this layer
   */
  public Recurrent reserve(Matrix reserve) {
    this.reserve = reserve;
    return this;
  }

  /**
   * Sets the order of the gates in weights and biases.
   *
   * @param gateOrder PyTorch's, or ONNX's
   * @return this layer
   */
  public Recurrent gateOrder(GateOrder gateOrder) {
    this.gateOrder = Objects.requireNonNull(gateOrder, "gateOrder");
    return this;
  }

  /**
   * Sets the direction.
   *
   * @param reverse from the last step to the first
   * @return this layer
   */
  public Recurrent reverse(boolean reverse) {
    this.reverse = reverse;
    return this;
  }

  /**
   * Sets the arithmetic of the products.
   *
   * @param compute the least accurate one allowed
   * @return this layer
   */
  public Recurrent compute(Compute compute) {
    this.compute = Objects.requireNonNull(compute, "compute");
    return this;
  }

  /** Elements of the reserve for each step of each sequence. */
  static long reserveWidth(Sequence y) {
    long bytes = Native.sg_flat_recurrent_reserve_size(y.steps, y.batch, y.values(), y.memory.dtype.value);
    long rows = y.memory.rows;
    return rows == 0 ? 0 : bytes / rows / Native.sg_dtype_size(reserveType(y).value);
  }

  static DType reserveType(Sequence y) {
    return y.memory.dtype == DType.F64 ? DType.F64 : DType.F32;
  }

  private long gates() {
    return cell == Cell.LSTM ? 4 : 3;
  }

  private void checkLayer(Sequence x, Sequence y) {
    DType type = x.memory.dtype;
    long hidden = y.values();
    y.requireLike("y", x, "x", hidden);
    LayerCall.requireContiguous("wIh", wIh, gates() * hidden, x.values(), type);
    LayerCall.requireContiguous("wHh", wHh, gates() * hidden, hidden, type);
    LayerCall.requireContiguous("reserve", reserve, y.memory.rows, reserveWidth(y), reserveType(y));
  }

  /** Elements from one state to the next, which are the same for all given; 0 without any. */
  static long stateStride(Sequence y, String[] names, Matrix... states) {
    Matrix first = null;
    for (int i = 0; i < states.length; ++i) {
      Matrix m = states[i];
      if (m == null) continue;
      if (m.dtype != y.memory.dtype || m.rows != y.batch || m.cols != y.values() || m.layout != Layout.ROW_MAJOR)
        throw new StreamGemmException.InvalidArgument(names[i] + " is " + m + "; it must be " + y.batch + " x " + y.values()
            + " by rows, of " + y.memory.dtype);
      if (first != null && m.ld != first.ld)
        throw new StreamGemmException.InvalidArgument(names[i] + " is " + m + "; the leading dimension of another state is " + first.ld);
      first = m;
    }
    return first == null ? 0 : first.ld;
  }

  LayerCall<Sequence> forward(Sequence x, Sequence y) {
    checkLayer(x, y);
    DType type = x.memory.dtype;
    LayerCall.requireContiguous("biasIh", biasIh, 1, gates() * y.values(), type);
    LayerCall.requireContiguous("biasHh", biasHh, 1, gates() * y.values(), type);
    long stateStride = stateStride(y, new String[] {"h0", "c0", "hn", "cn"}, h0, c0, hn, cn);
    return new LayerCall<>(y).reads("x", x.memory).writes("y", y.memory).reads("wIh", wIh).reads("wHh", wHh)
        .reads("biasIh", biasIh).reads("biasHh", biasHh).reads("h0", h0).reads("c0", c0).writes("hn", hn).writes("cn", cn)
        .writes("reserve", reserve)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_recurrent_async(on, graph, cell.value, gateOrder.value, x.steps, x.batch, x.values(), y.values(), at[0],
                x.stepStride, x.batchStride, at[1], y.stepStride, y.batchStride, at[2], at[3], at[4], at[5], at[6], at[7],
                at[8], at[9], stateStride, at[10], type.value, compute.value, reverse ? 1 : 0, stream, after, count, priority, flags,
                queue, tag, options, deadline, label));
  }

  LayerCall<Void> backward(Sequence x, Sequence y, RecurrentGradients g) {
    checkLayer(x, y);
    if (reserve == null) throw new StreamGemmException.InvalidArgument("reserve is null; the gradients need it");
    if (g.dy != null) g.dy.requireLike("dy", x, "x", y.values());
    if (g.dx != null) g.dx.requireLike("dx", x, "x", x.values());
    long rows = gates() * y.values();
    DType type = x.memory.dtype;
    DType gradientType = g.type(type);
    LayerCall.requireContiguous("dwIh", g.dwIh, rows, x.values(), gradientType);
    LayerCall.requireContiguous("dwHh", g.dwHh, rows, y.values(), gradientType);
    LayerCall.requireContiguous("dbiasIh", g.dbiasIh, 1, rows, gradientType);
    LayerCall.requireContiguous("dbiasHh", g.dbiasHh, 1, rows, gradientType);
    Matrix start = g.dwHh == null ? null : h0;
    long stateStride =
        stateStride(y, new String[] {"h0", "dhn", "dcn", "dh0", "dc0"}, start, g.dhn, g.dcn, g.dh0, g.dc0);
    Sequence dy = g.dy == null ? y : g.dy; // only its strides without one
    Sequence dx = g.dx == null ? x : g.dx;
    return new LayerCall<Void>(null).reads("x", g.dwIh == null ? null : x.memory).reads("y", g.dwHh == null ? null : y.memory)
        .reads("wIh", g.dx == null ? null : wIh).reads("wHh", wHh).reads("h0", start).reads("reserve", reserve)
        .reads("dy", g.dy == null ? null : g.dy.memory).reads("dhn", g.dhn).reads("dcn", g.dcn)
        .writes("dx", g.dx == null ? null : g.dx.memory).writes("dwIh", g.dwIh, g.accumulate)
        .writes("dwHh", g.dwHh, g.accumulate).writes("dbiasIh", g.dbiasIh, g.accumulate)
        .writes("dbiasHh", g.dbiasHh, g.accumulate).writes("dh0", g.dh0).writes("dc0", g.dc0)
        .calls((on, graph, at, stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> Native.sg_flat_recurrent_backward_async(on, graph, cell.value, gateOrder.value, x.steps, x.batch, x.values(), y.values(),
                at[0], x.stepStride, x.batchStride, at[1], y.stepStride, y.batchStride, at[2], at[3], at[4], at[5], at[6],
                dy.stepStride, dy.batchStride, at[7], at[8], at[9], dx.stepStride, dx.batchStride, at[10], at[11], at[12],
                at[13], at[14], at[15], stateStride, type.value, gradientType.value, compute.value, reverse ? 1 : 0, g.accumulate ? 1 : 0,
                stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }
}
