// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/** A call of an operation of {@link Layers}, with its operands. */
final class LayerCall<T> extends OperationDesc<T> {
  /** SG_PLAN_ADDRESS. */
  private static final long PLAN_ADDRESS = -4096;

  /** Fills in a descriptor at an offset, with the operands' addresses in the order in which they were named; 0 of one that is left out. */
  interface Fill {
    void fill(Scratch d, int to, long[] at);
  }

  private static final class Operand {
    final String name;
    /** Or null: the operand is `items`, or left out. */
    final Matrix matrix;
    /** Matrices whose addresses are the operand, or null. */
    final List<Matrix> items;
    final long batch;
    final long stride;
    final boolean read;
    final boolean written;

    Operand(String name, Matrix matrix, List<Matrix> items, long batch, long stride, boolean read, boolean written) {
      this.name = name;
      this.matrix = matrix;
      this.items = items;
      this.batch = batch;
      this.stride = stride;
      this.read = read;
      this.written = written;
    }

    boolean isInArray() {
      return matrix != null && matrix.array != null;
    }

    /** Lists of addresses are complete in plans, too. */
    void requireAddresses() {
      for (int i = 0; items != null && i < items.size(); ++i)
        if (items.get(i).address == 0)
          throw new StreamGemmException.InvalidArgument(
              name + "[" + i + "] is " + items.get(i) + "; a plan needs the items of a batch in direct buffers or on the device");
    }

    /** Where it is when a plan runs; without memory, where the options say: its own, or that of all operands. */
    MemoryKind place(Context context, MemoryKind own, MemoryKind common) {
      if (isInArray()) return MemoryKind.PINNED;
      if (items != null || own != MemoryKind.AUTO) return own;
      return matrix.address == 0 ? common : context.memoryKind(matrix);
    }

    boolean isSame(Operand other) {
      return matrix == other.matrix && batch == other.batch && stride == other.stride;
    }
  }

  /** Takes the number of a call and the address of its descriptor. */
  interface Use {
    long of(int call, long desc);
  }

  private final T result;
  private final List<Operand> operands = new ArrayList<>();
  /** The GEMMs of a group, which have the operands; or null. */
  private List<LayerCall<?>> group;
  private int call;
  private int size;
  private Fill fill;
  /** What the call refers to beside its operands, as long as it may run; or null. */
  private Kept kept;

  LayerCall(T result) {
    this.result = result;
  }

  /** GEMMs as one call. */
  static LayerCall<List<Gemm>> group(List<Gemm> products) {
    List<Gemm> all = List.copyOf(products);
    if (all.isEmpty()) throw new StreamGemmException.InvalidArgument("products is empty");
    LayerCall<List<Gemm>> made = new LayerCall<>(all);
    made.group = new ArrayList<>(all.size());
    for (Gemm each : all) made.group.add(each.call());
    return made.calls(Structs.CALL_GEMM_GROUPED, 2 * Long.BYTES, null);
  }

  private LayerCall<T> add(String name, Matrix m, List<Matrix> items, long batch, long stride, boolean read, boolean written) {
    if (written && m != null && m.readOnly) throw new StreamGemmException.InvalidArgument(name + " is in a read-only buffer");
    operands.add(new Operand(name, m, items, batch, stride, read, written));
    return this;
  }

  /** An operand that is read; null: it is left out. */
  LayerCall<T> reads(String name, Matrix m) {
    return reads(name, m, 1, 0);
  }

  /** The items of a batch, at a stride. */
  LayerCall<T> reads(String name, Matrix m, long batch, long stride) {
    return add(name, m, null, batch, stride, true, false);
  }

  /** A list of addresses. */
  LayerCall<T> reads(String name, List<Matrix> items) {
    return add(name, null, items, 1, 0, true, false);
  }

  /**
   * A result; null: it is left out. One that is another operand, too, is the same Matrix. `readToo`: it is added to, or only a part
   * of the matrix is written.
   */
  LayerCall<T> writes(String name, Matrix m, boolean readToo) {
    return writes(name, m, 1, 0, readToo);
  }

  LayerCall<T> writes(String name, Matrix m, long batch, long stride, boolean readToo) {
    return add(name, m, null, batch, stride, readToo, true);
  }

  LayerCall<T> writes(String name, List<Matrix> items, boolean readToo) {
    return add(name, null, items, 1, 0, readToo, true);
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

  @Override
  LayerCall<T> call() {
    return this;
  }

  /** The function of a custom operation, or the shapes of a copy: what a plan and a graph keep of an operation. */
  interface Kept {
    /** Refuses another one than was planned or recorded for the same operation. */
    void requireLike(Kept planned);
  }

  /** Takes what the operation was planned or recorded with. Whether that is the same operation, the library checks. */
  LayerCall<T> keepsAs(Kept planned) {
    if (kept == null || planned == null || kept.getClass() != planned.getClass()) return this;
    kept.requireLike(planned);
    return keeps(planned);
  }

  Kept kept() {
    return kept;
  }

  /** An object to keep reachable as long as the call may run. */
  LayerCall<T> keeps(Kept object) {
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

  private long make(Scratch s, long on, long order, Operands prepared) {
    return Native.sg_call(call, on, s.address(write(s, prepared)), order);
  }

  /** Writes the descriptor; returns its offset. Without preparation of the operands: they stay where they are. */
  int write(Scratch s, Operands prepared) {
    int to = s.push(size);
    write(s, to, prepared, 0);
    return to;
  }

  private void write(Scratch s, int to, Operands prepared, long absent) {
    if (group == null) {
      fill.fill(s, to, addresses(s, prepared, absent));
      return;
    }
    Scratch descs = s.another(group.size() * Structs.sg_gemm_desc.SIZE);
    int first = descs.push(group.size() * Structs.sg_gemm_desc.SIZE);
    for (int i = 0; i < group.size(); ++i) group.get(i).write(descs, first + i * Structs.sg_gemm_desc.SIZE, prepared, absent);
    s.putLong(to, descs.address(first));
    s.putLong(to + Long.BYTES, group.size());
  }

  /** Passes on its number and the address of the descriptor, with operands that stay where they are; of a plan they may have no memory. */
  long describe(boolean isPlan, Use use) {
    if (isPlan) requireAddresses();
    Scratch s = Scratch.get();
    int to = s.push(size);
    try {
      write(s, to, null, isPlan ? PLAN_ADDRESS : 0);
      return use.of(call, s.address(to));
    } finally {
      s.pop(to);
      reachabilityFence(operands);
    }
  }

  /** Submits the operation. */
  Job<T> submit(Context context, Submit submit) {
    long on = context.handle();
    Operands prepared = prepared(context);
    return context.launch(result, prepared, submit, (s, order) -> make(s, on, order, prepared));
  }

  /** Runs a plan with it. */
  Job<T> runPlan(Context context, long plan, Submit submit) {
    Operands prepared = prepared(context);
    return context.launch(result, prepared, submit,
        (s, order) -> Native.sg_call(Structs.CALL_PLAN_RUN, plan, s.longs(call, s.address(write(s, prepared))), order));
  }

  /** Submits the operation and waits for it. */
  T run(Context context) {
    return run(context, LayerMethods.DEFAULTS, SubmitFlag.WILL_WAIT.value);
  }

  /** The same with options; without WILL_WAIT the call itself waits. */
  T run(Context context, Submit submit, int flags) {
    long on = context.handle();
    Operands prepared = prepared(context);
    boolean well = false;
    long job = 0;
    try {
      job = submit.apply((s, order) -> make(s, on, order, prepared), 0, 0, 0, flags);
      if (flags != 0) Native.sg_job_wait(job, RawConstants.SG_FOREVER);
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
    return graph.record(matrices(), kept, submit, (s, on, order) -> make(s, on, order, null));
  }

  /** Sets where operands are when a plan runs, for those without an address: arrays are copied to pinned memory. */
  void place(Context context, PlanOptions options) {
    if (operands.stream().noneMatch(Operand::isInArray)) return;
    if (isGemm()) { // the options apply to A, B and C if one of them has no address
      MemoryKind common = options.place() == MemoryKind.AUTO ? MemoryKind.DEVICE : options.place();
      options.placeA(operands.get(0).place(context, options.placeA(), common));
      options.placeB(operands.get(1).place(context, options.placeB(), common));
      options.placeC(operands.get(2).place(context, options.placeC(), common));
    }
    if (operands.stream().skip(isGemm() ? 3 : 0).anyMatch(Operand::isInArray)) options.place(MemoryKind.PINNED);
  }

  /** Of batches at arbitrary addresses; and of groups no arrays, whose copies one option for all A, B and C does not describe. */
  private void requireAddresses() {
    if (group != null) {
      for (int i = 0; i < group.size(); ++i) {
        group.get(i).requireAddresses();
        for (Operand o : group.get(i).operands)
          if (o.isInArray())
            throw new StreamGemmException.InvalidArgument(
                "products.get(" + i + ")." + o.name + " is " + o.matrix + "; a plan of a group needs direct buffers or memory of the device");
      }
    } else if (isGemm()) {
      operands.forEach(Operand::requireAddresses);
    }
  }

  private boolean isGemm() {
    return call == Structs.CALL_GEMM || call == Structs.CALL_LINEAR;
  }

  private Operands prepared(Context context) {
    return context.operands(kept == null ? matrices() : List.of(matrices(), kept));
  }

  /** All of the operands. */
  List<Matrix> matrices() {
    List<Matrix> given = new ArrayList<>(operands.size());
    if (group != null) group.forEach(each -> given.addAll(each.matrices()));
    for (Operand o : operands)
      if (o.items != null) given.addAll(o.items);
      else if (o.matrix != null) given.add(o.matrix);
    return given;
  }

  /** The address of each operand; `absent`: of one without memory. */
  private long[] addresses(Scratch s, Operands prepared, long absent) {
    long[] at = new long[operands.size()];
    for (int i = 0; i < at.length; ++i) {
      Operand o = operands.get(i);
      if (o.items != null) {
        long[] each = new long[o.items.size()];
        for (int item = 0; item < each.length; ++item) {
          each[item] = address(prepared, o, o.items.get(item), o.name + "[" + item + "]", o.read, o.written);
          if (each[item] == 0) each[item] = absent;
        }
        at[i] = s.longs(each);
      } else if (o.matrix != null) {
        int first = 0;
        while (!operands.get(first).isSame(o)) ++first;
        at[i] = first < i ? at[first] : address(prepared, o);
        if (at[i] == 0) at[i] = absent;
      }
    }
    return at;
  }

  /** Of an operand that may occur again, to be read or written. */
  private long address(Operands prepared, Operand first) {
    boolean read = false;
    boolean written = false;
    for (Operand o : operands) {
      read |= o.isSame(first) && o.read;
      written |= o.isSame(first) && o.written;
    }
    return address(prepared, first, first.matrix, first.name, read, written);
  }

  private static long address(Operands prepared, Operand o, Matrix m, String name, boolean read, boolean written) {
    if (prepared == null) return m.address;
    return written ? prepared.writes(m, o.batch, o.stride, read, name) : prepared.reads(m, o.batch, o.stride, name);
  }
}
