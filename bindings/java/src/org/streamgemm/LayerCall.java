// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/** A call of an operation of {@link Layers}, with its operands. */
final class LayerCall<T> {
  /** Fills in a descriptor at an offset, with the operands' addresses in the order in which they were named; 0 of one that is left out. */
  interface Fill {
    void fill(Scratch d, int to, long[] at);
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
  private int call;
  private int size;
  private Fill fill;
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

  /**
   * A result; null: it is left out. One that is another operand, too, is the same Matrix. `readToo`: it is added to, or only a part
   * of the matrix is written.
   */
  LayerCall<T> writes(String name, Matrix m, boolean readToo) {
    if (m != null && m.readOnly) throw new StreamGemmException.InvalidArgument(name + " is in a read-only buffer");
    operands.add(new Operand(name, m, readToo, true));
    return this;
  }

  LayerCall<T> reads(String name, View m) {
    return reads(name, m == null ? null : m.memory);
  }

  LayerCall<T> reads(String name, Indices m) {
    return reads(name, m.memory);
  }

  LayerCall<T> writes(String name, View m, boolean readToo) {
    return writes(name, m == null ? null : m.memory, readToo || (m != null && m.isPart()));
  }

  /** An object to keep reachable as long as the call may run. */
  LayerCall<T> keeps(Object object) {
    kept = object;
    return this;
  }

  /** The call that submits it: its number, the size of its descriptor, and what fills that in. */
  LayerCall<T> calls(int number, int bytes, Fill how) {
    call = number;
    size = bytes;
    fill = how;
    return this;
  }

  private long make(Scratch s, long on, long order, long[] at) {
    int to = s.push(size);
    fill.fill(s, to, at);
    return Native.sg_call(call, on, s.address(to), order);
  }

  /** Submits the operation. */
  Job<T> submit(Context context, Submit submit) {
    long on = context.handle();
    Operands prepared = prepared(context);
    return context.launch(result, prepared, submit, (s, order) -> make(s, on, order, addresses(prepared)));
  }

  /** Submits the operation and waits for it. */
  T run(Context context) {
    long on = context.handle();
    Operands prepared = prepared(context);
    boolean well = false;
    long job = 0;
    try {
      job = LayerMethods.DEFAULTS.apply((s, order) -> make(s, on, order, addresses(prepared)), 0, 0, 0, SubmitFlag.WILL_WAIT.value);
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
    long[] at = new long[operands.size()];
    for (int i = 0; i < at.length; ++i) at[i] = operands.get(i).matrix == null ? 0 : operands.get(i).matrix.address;
    return graph.record(matrices(), kept, submit, (s, on, order) -> make(s, on, order, at));
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
}
