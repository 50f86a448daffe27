// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/** A call of an operation of {@link Layers}, with its operands. */
final class LayerCall<T> {
  private static final Submit DEFAULTS = new Submit();

  /** Sizes of an operand that is left out. */
  static final Matrix NONE = Matrix.shape(DType.F32, 0, 0);

  /**
   * A call with the operands' addresses, in the order in which they were named; 0 of one that is left out. With a graph, it
   * records; 0: it submits.
   */
  interface Call {
    long submit(long context, long graph, long[] at, long stream, long after, int afterCount, int priority, int flags, long queue,
        long tag, long options, long deadline, long label);
  }

  private static final class Operand {
    final String name;
    final Matrix matrix;
    final boolean read;
    final boolean written;

    Operand(String name, Matrix matrix, boolean read, boolean written) {
      this.name = name;
      this.matrix = matrix;
      this.read = read;
      this.written = written;
    }
  }

  private final T result;
  private final List<Operand> operands = new ArrayList<>();
  private Call call;
  /** What the call refers to beside its operands, as long as it may run; or null. */
  private Object kept;

  LayerCall(T result) {
    this.result = result;
  }

  /** An operand that is read; null: it is left out. */
  LayerCall<T> reads(String name, Matrix m) {
    operands.add(new Operand(name, m, true, false));
    return this;
  }

  /** A result; null: it is left out. One that is another operand, too, is the same Matrix. */
  LayerCall<T> writes(String name, Matrix m) {
    return writes(name, m, false);
  }

  /** A result; `readToo`: it is added to, or only a part of the matrix is written. */
  LayerCall<T> writes(String name, Matrix m, boolean readToo) {
    if (m != null && m.readOnly) throw new StreamGemmException.InvalidArgument(name + " is in a read-only buffer");
    operands.add(new Operand(name, m, readToo, true));
    return this;
  }

  /** An object to keep reachable as long as the call may run. */
  LayerCall<T> keeps(Object object) {
    kept = object;
    return this;
  }

  /** The call that submits it. */
  LayerCall<T> calls(Call made) {
    call = made;
    return this;
  }

  /** Submits the operation. */
  Job<T> submit(Context context, Submit submit) {
    long on = context.handle();
    Operands prepared = prepared(context);
    return context.launch(result, prepared, submit,
        (stream, after, count, priority, flags, queue, tag, options, deadline, label)
            -> call.submit(on, 0, addresses(prepared), stream, after, count, priority, flags, queue, tag, options, deadline, label));
  }

  /** Submits the operation and waits for it. */
  T run(Context context) {
    long on = context.handle();
    Operands prepared = prepared(context);
    boolean well = false;
    long job = 0;
    try {
      job = DEFAULTS.apply(
          (stream, after, count, priority, flags, queue, tag, options, deadline, label)
              -> call.submit(on, 0, addresses(prepared), stream, after, count, priority, SubmitFlag.WILL_WAIT.value, queue,
                  tag, options, deadline, label),
          0, 0);
      Native.sg_job_wait(job, RawConstants.SG_FOREVER);
      well = true;
      return result;
    } finally {
      if (job != 0) Native.sg_job_release(job);
      prepared.end(well);
      reachabilityFence(this);
      reachabilityFence(context);
    }
  }

  /** Records the operation, whose operands stay where they are. */
  T record(Graph graph, Submit submit) {
    recordAt(graph, submit);
    return result;
  }

  /** Records the operation; returns its index. */
  int recordAt(Graph graph, Submit submit) {
    return graph.record(matrices(), kept, submit, (on, to, stream, after, count, priority, flags, queue, tag, options, deadline, label) -> {
      long[] at = new long[operands.size()];
      for (int i = 0; i < at.length; ++i) at[i] = operands.get(i).matrix == null ? 0 : operands.get(i).matrix.address;
      return call.submit(on, to, at, stream, after, count, priority, flags, queue, tag, options, deadline, label);
    });
  }

  private Operands prepared(Context context) {
    return context.operands(kept == null ? matrices() : List.of(matrices(), kept));
  }

  private List<Matrix> matrices() {
    List<Matrix> given = new ArrayList<>(operands.size());
    for (Operand o : operands)
      if (o.matrix != null) given.add(o.matrix);
    return given;
  }

  private long[] addresses(Operands prepared) {
    long[] at = new long[operands.size()];
    for (int i = 0; i < at.length; ++i) {
      Operand o = operands.get(i);
      int first = firstOf(o.matrix);
      if (o.matrix != null) at[i] = first < i ? at[first] : address(prepared, o);
    }
    return at;
  }

  private int firstOf(Matrix m) {
    int at = 0;
    while (operands.get(at).matrix != m) ++at;
    return at;
  }

  /** Of an operand that may occur again, to be read or written. */
  private long address(Operands prepared, Operand first) {
    boolean read = false;
    boolean written = false;
    for (Operand o : operands) {
      read |= o.matrix == first.matrix && o.read;
      written |= o.matrix == first.matrix && o.written;
    }
    return written ? prepared.writes(first.matrix, 1, 0, read, first.name) : prepared.reads(first.matrix, 1, 0, first.name);
  }

  /** The sizes of an operand that may be left out. */
  static Matrix sizes(Matrix m) {
    return m == null ? NONE : m;
  }

  /** Throws unless an operand, which may be null, has this shape, and its values follow each other row by row. */
  static void requireContiguous(String name, Matrix m, long rows, long cols, DType... types) {
    if (m == null) return;
    boolean byRows = m.layout == Layout.ROW_MAJOR || rows == 1 || cols == 1;
    boolean typed = types.length == 0 || Arrays.asList(types).contains(m.dtype);
    if (m.rows != rows || m.cols != cols || !byRows || m.span(1, 0) != rows * cols || !typed)
      throw new StreamGemmException.InvalidArgument(name + " is " + m + "; it must be " + rows + " x " + cols
          + " contiguous values" + (types.length == 0 ? "" : " of " + types[0]) + (rows == 1 ? "" : ", row by row"));
  }

  /** Throws if an operand is missing that another one needs. */
  static void requireFor(String needing, Object given, String name, Object needed) {
    if (given != null && needed == null)
      throw new StreamGemmException.InvalidArgument(name + " is null; " + needing + " needs it");
  }
}
