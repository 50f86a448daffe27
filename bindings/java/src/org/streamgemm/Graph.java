// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;

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
  /** What each of them keeps beside its operands, or null; likewise. */
  private List<LayerCall.Kept> extras = List.of();

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
   * Records an operation.
   *
   * @param operation what each run computes
   * @param submit its stream, priority and planning [= DEFAULTS]
   * @return its index
   * @throws StreamGemmException.Busy if the graph has been run
   */
  public int record(OperationDesc<?> operation, Submit submit) {
    return operation.call().recordAt(this, submit);
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

  /** Records an operation, and keeps its operands and what it keeps. */
  synchronized int record(List<Matrix> used, LayerCall.Kept extra, Submit submit, Recording call) {
    for (Matrix m : used) refuseArray(m);
    int index = record(used, submit, (s, order) -> call.submit(s, context.handle(), order));
    List<LayerCall.Kept> more = new ArrayList<>(extras);
    more.add(extra);
    extras = more;
    return index;
  }

  /** What a run in flight keeps. */
  synchronized Object kept() {
    return List.of(operands, extras);
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
   * Sets other operands of the same shapes of a recorded operation, and other scalars, for runs submitted after this call. Its stream and
   * priority stay.
   *
   * @param index as returned by {@link #record}
   * @param operation the same one; what else it may change is in the documentation of sg_graph_update
   */
  public synchronized void update(int index, OperationDesc<?> operation) {
    LayerCall<?> call = operation.call().keepsAs(index >= 0 && index < extras.size() ? extras.get(index) : null);
    List<Matrix> used = call.matrices();
    for (Matrix m : used) refuseArray(m);
    long[] references = Held.take(used);
    try {
      call.describe(false, (number, desc) -> Native.sg_call_graph_update(handle(), index, number, desc));
    } catch (Throwable t) {
      Held.release(references);
      throw t;
    } finally {
      reachabilityFence(call);
      reachabilityFence(this);
    }
    held.replace(index, references);
    List<List<Matrix>> others = new ArrayList<>(operands);
    others.set(index, used);
    operands = others;
  }

  /**
   * Sets other memory of a recorded copy, for runs submitted after this call.
   *
   * @param index as returned by {@link #recordCopy}
   * @param to the destination, like the one recorded in type, layout, size and leading dimension
   * @param from the source, likewise
   */
  public void update(int index, Matrix to, Matrix from) {
    update(index, Operations.copy(to, from));
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

  private static void refuseArray(Matrix m) {
    if (m.array != null)
      throw new StreamGemmException.InvalidArgument("a graph cannot record " + m + "; use a direct buffer");
  }
}
