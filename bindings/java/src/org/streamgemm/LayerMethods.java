// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

/** What the methods of {@link Layers} do: submit to a context, wait, or record in a graph. */
abstract class LayerMethods {
  static final Submit DEFAULTS = new Submit();

  private final Context context;
  /** Records; null: submits. */
  private final Graph graph;
  private final Submit recorded;

  LayerMethods(Context context, Graph graph, Submit recorded) {
    this.context = context;
    this.graph = graph;
    this.recorded = recorded;
  }

  <T> Job<T> submit(LayerCall<T> call, Submit submit) {
    if (graph != null) throw new StreamGemmException.InvalidArgument("a graph records by the method without Async");
    return call.submit(context, submit);
  }

  <T> T run(LayerCall<T> call) {
    return graph == null ? call.run(context) : call.record(graph, recorded);
  }

  /**
   * Memory for what the gradients of a recurrent layer need: {@link Recurrent#reserve}.
   *
   * @param y the layer's result
   * @return a matrix in device memory of its own
   */
  public Matrix recurrentReserve(Sequence y) {
    return context.deviceMatrix(Shapes.wide(y.dtype()), y.memory.rows, 5 * y.memory.cols);
  }
}
