// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/**
 * Submissions recorded once and run with one call, many times. They are ordered as separate submissions would
 * be: by their streams, and by operands that overlap in memory. Runs of one graph are sequential. Operands are
 * direct buffers, pinned memory or device memory, which the graph keeps; arrays cannot be recorded, because they would
 * be copied once and not for each run. Safe for use by several threads.
 */
public final class Graph extends NativeObject {
  private static final Submit DEFAULTS = new Submit();

  private final Context context;
  private final Held held;
  /** Operands of each recorded submission; replaced, never changed, so that a run in flight keeps its own. */
  private List<List<Matrix>> operands = List.of();
  /** Functions of recorded custom operations; likewise. */
  private List<Object> functions = List.of();

  /** References to the device memory of recorded operands, by submission. Does not refer to the graph. */
  static final class Held {
    private final List<long[]> buffers = new ArrayList<>();

    private boolean closed;

    synchronized void add(long[] references) {
      if (closed) release(references);
      else buffers.add(references);
    }

    synchronized void replace(int index, long[] references) {
      release(closed ? references : buffers.set(index, references));
    }

    synchronized void releaseAll() {
      closed = true;
      for (long[] references : buffers) release(references);
      buffers.clear();
    }

    static long[] take(List<Matrix> matrices) {
      long[] references = new long[matrices.size()];
      try {
        for (int i = 0; i < references.length; ++i) {
          DeviceBuffer device = matrices.get(i).device();
          if (device != null) references[i] = device.retain();
        }
        return references;
      } catch (Throwable t) {
        release(references);
        throw t;
      }
    }

    static void release(long[] references) {
      for (long buffer : references)
        if (buffer != 0) Native.sg_buffer_release(buffer);
    }
  }

  Graph(long handle, Context context) {
    this(handle, new Held(), context);
  }

  private Graph(long handle, Held held, Context context) {
    super(handle, value -> {
      Native.sg_graph_release(value);
      held.releaseAll();
    });
    this.context = context;
    this.held = held;
  }

  /**
   * Records a GEMM.
   *
   * @param product the GEMM of each run
   * @param submit its stream, priority and planning [= DEFAULTS]
   * @return its index
   * @throws StreamGemmException.Busy if the graph has been run
   */
  public int record(Gemm product, Submit submit) {
    return product.call(Structs.CALL_GEMM).recordAt(this, submit);
  }

  /**
   * Records a copy.
   *
   * @param to the destination
   * @param from the source, alike in type, layout and size
   * @param submit its stream and priority [= DEFAULTS]
   * @return its index
   * @throws StreamGemmException.Busy if the graph has been run
   */
  public int recordCopy(Matrix to, Matrix from, Submit submit) {
    return Context.copyCall(to, to, from).recordAt(this, submit);
  }

  /**
   * Records a custom operation.
   *
   * @param operation its function is called in each run
   * @param submit its stream and priority [= DEFAULTS]
   * @return its index
   * @throws StreamGemmException.Busy if the graph has been run
   */
  public int recordCustom(CustomOperation operation, Submit submit) {
    return operation.call().recordAt(this, submit);
  }

  /**
   * Records an all-reduce.
   *
   * @param operands as of {@link Context#allReduce}
   * @param submit its stream and priority [= DEFAULTS]
   * @return its index
   * @throws StreamGemmException.Busy if the graph has been run
   */
  public int recordAllReduce(List<Matrix> operands, Submit submit) {
    return AllReduce.call(operands).recordAt(this, submit);
  }

  /**
   * What records the layers of deep networks.
   *
   * @param submit stream and priority of each [= DEFAULTS]
   * @return methods that record; those without {@code Async}, each of which returns its result at once
   */
  public Layers layers(Submit submit) {
    return new Layers(context, this, submit);
  }

  /** A call that records into a graph of a context. */
  interface Recording {
    long submit(Scratch s, long context, long order);
  }

  /** Records a layer, or a custom operation, whose function the graph keeps. */
  synchronized int record(List<Matrix> used, Object function, Submit submit, Recording call) {
    for (Matrix m : used) refuseArray(m);
    int index = record(used, submit, (s, order) -> call.submit(s, context.handle(), order));
    if (function != null) {
      List<Object> more = new ArrayList<>(functions);
      more.add(function);
      functions = more;
    }
    return index;
  }

  /** What a run in flight keeps. */
  synchronized Object kept() {
    return List.of(operands, functions);
  }

  private int record(List<Matrix> used, Submit submit, Submit.Call call) {
    long[] references = Held.take(used);
    int index;
    try {
      index = size();
      submit.apply(call, 0, 0, handle(), 0);
    } catch (Throwable t) {
      Held.release(references);
      throw t;
    } finally {
      reachabilityFence(this);
      reachabilityFence(context);
    }
    held.add(references);
    List<List<Matrix>> more = new ArrayList<>(operands);
    more.add(used);
    operands = more;
    return index;
  }

  /**
   * Sets other operands, scalars and strides of a recorded GEMM, for runs submitted after this call.
   *
   * @param index as returned by {@link #record}
   * @param product of the same shapes
   */
  public synchronized void update(int index, Gemm product) {
    LayerCall<Matrix> call = product.call(Structs.CALL_GEMM);
    replace(index, unmoved(call), call, RawConstants.SG_OPERATION_GEMM);
  }

  /**
   * Sets other memory of a recorded copy, for runs submitted after this call.
   *
   * @param index as returned by {@link #recordCopy}
   * @param to the destination, like the one recorded in type, layout, size and leading dimension
   * @param from the source, likewise
   */
  public synchronized void update(int index, Matrix to, Matrix from) {
    LayerCall<Matrix> call = Context.copyCall(to, to, from);
    List<Matrix> used = unmoved(call);
    if (index >= 0 && index < operands.size()) {
      refuseUnlike("to", to, operands.get(index).get(0));
      refuseUnlike("from", from, operands.get(index).get(1));
    }
    replace(index, used, call, RawConstants.SG_OPERATION_COPY);
  }

  private void replace(int index, List<Matrix> used, LayerCall<?> call, int operation) {
    long[] references = Held.take(used);
    try {
      call.describe(desc -> Native.sg_call_graph_update(handle(), index, operation, desc));
    } catch (Throwable t) {
      Held.release(references);
      throw t;
    } finally {
      reachabilityFence(this);
    }
    held.replace(index, references);
    List<List<Matrix>> others = new ArrayList<>(operands);
    others.set(index, used);
    operands = others;
  }

  /**
   * Number of submissions recorded so far.
   *
   * @return the number, also the index of the next one
   */
  public int size() {
    try {
      return (int) Native.sg_graph_submission_count(handle());
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Runs the graph.
   *
   * @param submit order and priority of the run [= DEFAULTS]
   * @return a future without a result; it fails like the first child that failed
   */
  public synchronized Job<Void> runAsync(Submit submit) {
    try {
      return context.launch(null, kept(), submit,
          (s, order) -> Native.sg_call(Structs.CALL_GRAPH_RUN, handle(), 0, order));
    } finally {
      reachabilityFence(this);
    }
  }

  /** The operands of a call, which stay where they are. */
  private static List<Matrix> unmoved(LayerCall<?> call) {
    List<Matrix> used = call.matrices();
    for (Matrix m : used) refuseArray(m);
    return used;
  }

  private static void refuseArray(Matrix m) {
    if (m.array != null)
      throw new StreamGemmException.InvalidArgument("a graph cannot record " + m + "; use a direct buffer");
  }

  private static void refuseUnlike(String name, Matrix now, Matrix recorded) {
    if (now.dtype != recorded.dtype || now.layout != recorded.layout || now.rows != recorded.rows
        || now.cols != recorded.cols || now.ld != recorded.ld)
      throw new StreamGemmException.InvalidArgument(name + " is " + now + ", and " + recorded + " was recorded");
  }
}
