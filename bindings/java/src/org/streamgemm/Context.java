// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.streamgemm.internal.Native;

/**
 * A device with its streams, memory and jobs. Safe for use by several threads.
 *
 * <p>A submission returns a {@link Job} at once. Jobs whose operands overlap in memory run in the order of their
 * submission; others run concurrently. Closing a context does not wait: jobs in flight and their futures complete.
 *
 * <p>Futures are completed on the context's executor, one task for each job, so that a blocking stage delays no
 * other. The executor {@code Runnable::run} avoids that hand-over: futures are then completed by the thread that waits
 * for the library, and their stages must not block.
 */
public final class Context extends NativeObject {
  private static final Submit DEFAULTS = new Submit();

  private final Executor executor;
  private final Completions completions;
  private final PinnedPool pool;
  private final PendingResults pending = new PendingResults();

  private Context(long handle, Executor executor, Completions completions, PinnedPool pool) {
    super(handle, held -> {
      completions.close();
      pool.close();
      Native.sg_context_release(held);
    });
    this.executor = executor;
    this.completions = completions;
    this.pool = pool;
  }

  /**
   * Opens the default device: the one that the variable SG_DEVICE names, else the first CUDA device, else the cpu.
   *
   * @return a context, to be closed
   */
  public static Context open() {
    return open(new ContextOptions());
  }

  /**
   * Opens a device.
   *
   * @param device "cpu", "cuda:0", "sim:h200", "auto", ...
   * @return a context, to be closed
   */
  public static Context open(String device) {
    return open(new ContextOptions().device(Objects.requireNonNull(device, "device")));
  }

  /**
   * Opens a device; futures are completed on a pool of daemon threads that all such contexts share.
   *
   * @param options the device, and how to use it
   * @return a context, to be closed
   */
  public static Context open(ContextOptions options) {
    return open(options, Job.SHARED);
  }

  /**
   * Opens a device.
   *
   * @param options the device, and how to use it
   * @param executor completes the futures, one task for each
   * @return a context, to be closed
   */
  public static Context open(ContextOptions options, Executor executor) {
    Objects.requireNonNull(executor, "executor");
    long handle = options.with(Native::sg_context_create);
    Completions completions;
    try {
      String name = nameOf(handle);
      CustomCalls.opened(name);
      completions = new Completions(handle, name);
    } catch (Throwable t) {
      Native.sg_context_release(handle);
      throw t;
    }
    return new Context(handle, executor, completions, new PinnedPool(handle));
  }

  private static String nameOf(long handle) {
    return DeviceInfo.from(struct -> Native.sg_context_device(handle, struct)).name();
  }

  /**
   * Properties of the device.
   *
   * @return its properties
   */
  public DeviceInfo device() {
    try {
      return DeviceInfo.from(struct -> Native.sg_context_device(handle(), struct));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * The memory space of a matrix, as the device sees it.
   *
   * @param matrix the matrix
   * @return PAGEABLE for a matrix in an array; on the cpu otherwise always DEVICE
   */
  public MemoryKind memoryKind(Matrix matrix) {
    if (matrix.address() == 0) return MemoryKind.PAGEABLE;
    try {
      long bytes = Math.max(1, matrix.rows() * matrix.cols());
      return MemoryKind.of((int) Native.sg_context_memory_kind(handle(), matrix.address(), bytes));
    } finally {
      reachabilityFence(this);
      reachabilityFence(matrix);
    }
  }

  /**
   * Its counters.
   *
   * @return as they are now
   */
  public ContextMetrics metrics() {
    try {
      return ContextMetrics.from(struct -> Native.sg_context_get_metrics(handle(), struct));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Waits until everything submitted so far has completed in the library, successfully or not. Futures follow on the executor.
   */
  public void synchronize() {
    try {
      Native.sg_context_synchronize(handle());
    } finally {
      reachabilityFence(this);
    }
  }

  // GEMMs.

  /**
   * C = A * B.
   *
   * @param a only read
   * @param b only read
   * @param c the result
   * @return a future of c
   */
  public Job<Matrix> gemmAsync(Matrix a, Matrix b, Matrix c) {
    return gemmAsync(Gemm.of(a, b, c), DEFAULTS);
  }

  /**
   * Submits a GEMM.
   *
   * @param product the GEMM
   * @return a future of C
   */
  public Job<Matrix> gemmAsync(Gemm product) {
    return gemmAsync(product, DEFAULTS);
  }

  /**
   * Submits a GEMM.
   *
   * @param product the GEMM
   * @param submit order, priority, planning
   * @return a future of C (of the first item's, for a batch)
   */
  public Job<Matrix> gemmAsync(Gemm product, Submit submit) {
    long context = handle();
    if (product.plain) {
      Gemm.Places places = new Gemm.Places(product);
      return launch(product.c, product, submit, (s, order) -> product.call(s, Structs.CALL_GEMM, context, places, order));
    }
    Operands operands = operands(product);
    return launch(product.c, operands, submit,
        (s, order) -> product.call(s, Structs.CALL_GEMM, context, new Gemm.Places(product, operands), order));
  }

  /**
   * Submits GEMMs of different shapes, types and scalars as one job.
   *
   * @param products at least one; no C overlaps another's operands
   * @param submit order, priority, planning
   * @return a future of the GEMMs
   */
  public Job<List<Gemm>> gemmAsync(List<Gemm> products, Submit submit) {
    List<Gemm> all = List.copyOf(products);
    if (all.isEmpty()) throw new StreamGemmException.InvalidArgument("products is empty");
    long context = handle();
    Operands operands = operands(all);
    return launch(all, operands, submit, (s, order) -> {
      Gemm.Places[] places = new Gemm.Places[all.size()];
      Scratch group = Scratch.of(all.size() * Structs.sg_gemm_desc.SIZE);
      int first = group.push(all.size() * Structs.sg_gemm_desc.SIZE);
      try {
        for (int i = 0; i < places.length; ++i) {
          places[i] = new Gemm.Places(all.get(i), operands);
          all.get(i).write(group, first + i * Structs.sg_gemm_desc.SIZE, places[i]);
        }
        return Native.sg_call(Structs.CALL_GEMM_GROUPED, context, s.longs(group.address(first), places.length), order);
      } finally {
        reachabilityFence(group);
        reachabilityFence(places);
      }
    });
  }

  /**
   * C = A * B, blocking. For the lowest latency: the calling thread itself waits in the library.
   *
   * @param a only read
   * @param b only read
   * @param c the result
   * @return c
   */
  public Matrix gemm(Matrix a, Matrix b, Matrix c) {
    return gemm(Gemm.of(a, b, c), DEFAULTS);
  }

  /**
   * Computes a GEMM; blocks until C is complete.
   *
   * @param product the GEMM
   * @return C
   */
  public Matrix gemm(Gemm product) {
    return gemm(product, DEFAULTS);
  }

  /**
   * Computes a GEMM; blocks until C is complete.
   *
   * @param product the GEMM
   * @param submit order, priority, planning
   * @return C
   */
  public Matrix gemm(Gemm product, Submit submit) {
    long context = handle();
    Operands operands = product.plain ? null : operands(product);
    boolean well = false;
    try {
      Gemm.Places places = operands == null ? new Gemm.Places(product) : new Gemm.Places(product, operands);
      submit.apply((s, order) -> product.call(s, Structs.CALL_GEMM_AND_WAIT, context, places, order), 0, 0, 0, 0);
      well = true;
      return product.c;
    } finally {
      if (operands != null) operands.end(well);
      reachabilityFence(product);
      reachabilityFence(this);
    }
  }

  // Copies.

  /**
   * Copies a matrix between any memory spaces.
   *
   * @param to the destination
   * @param from the source, alike in type, layout and size
   * @return a future of the destination
   */
  public Job<Matrix> copyAsync(Matrix to, Matrix from) {
    return copyAsync(to, from, DEFAULTS);
  }

  /**
   * Copies a matrix between any memory spaces.
   *
   * @param to the destination
   * @param from the source, alike in type, layout and size; no overlap
   * @param submit order and priority
   * @return a future of the destination
   */
  public Job<Matrix> copyAsync(Matrix to, Matrix from, Submit submit) {
    checkCopy(to, from);
    long context = handle();
    Operands operands = operands(List.of(to, from));
    return launch(to, operands, submit, (s, order) -> {
      long source = operands.reads(from, 1, 0, "from");
      return copy(s, context, to, operands.writes(to, 1, 0, false, "to"), from, source, order);
    });
  }

  /** Copies, or records a copy, between addresses. */
  static long copy(Scratch s, long context, Matrix to, long target, Matrix from, long source, long order) {
    long size = Native.sg_dtype_size(to.dtype.value);
    int d = s.push(Structs.sg_copy_desc.SIZE);
    s.putLong(d, Structs.sg_copy_desc.SIZE);
    s.putLong(d + Structs.sg_copy_desc.dst, target);
    s.putLong(d + Structs.sg_copy_desc.src, source);
    s.putLong(d + Structs.sg_copy_desc.width, to.rows == 0 ? 0 : to.inner() * size);
    s.putLong(d + Structs.sg_copy_desc.height, to.rows == 0 || to.cols == 0 ? 0 : to.outer());
    s.putLong(d + Structs.sg_copy_desc.dst_pitch, to.ld * size);
    s.putLong(d + Structs.sg_copy_desc.src_pitch, from.ld * size);
    return Native.sg_call(Structs.CALL_COPY, context, s.address(d), order);
  }

  static void checkCopy(Matrix to, Matrix from) {
    if (to.readOnly) throw new StreamGemmException.InvalidArgument("to is in a read-only buffer");
    if (to.dtype != from.dtype || to.layout != from.layout || to.rows != from.rows || to.cols != from.cols)
      throw new StreamGemmException.InvalidArgument("to is " + to + " and from is " + from);
  }

  /**
   * Submits a function of the application's as a job.
   *
   * @param operation the function and its operands
   * @return a future without a result
   */
  public Job<Void> customAsync(CustomOperation operation) {
    return customAsync(operation, DEFAULTS);
  }

  /**
   * Submits a function of the application's as a job. It runs after the jobs that write what it accesses, or read what it writes,
   * and those that follow wait for it likewise. If the job is cancelled before it starts, the function is not called.
   *
   * @param operation the function and its operands
   * @param submit order and priority
   * @return a future without a result; an exception of the function fails it with {@link StreamGemmException.BackendFailure}
   */
  public Job<Void> customAsync(CustomOperation operation, Submit submit) {
    return operation.call().submit(this, submit);
  }

  /**
   * Runs a function of the application's as a job; blocks until it is complete.
   *
   * @param operation the function and its operands
   */
  public void custom(CustomOperation operation) {
    operation.call().run(this);
  }

  /**
   * The operations of deep networks between GEMMs.
   *
   * @return its methods submit to this context
   */
  public Layers layers() {
    return new Layers(this, null, LayerMethods.DEFAULTS);
  }

  /**
   * A job without work, which completes after everything before it in its stream and the jobs in {@code after}.
   *
   * @param submit its stream and order
   * @return a future without a result
   */
  public Job<Void> marker(Submit submit) {
    long context = handle();
    Matrix none = Matrix.shape(DType.F32, 0, 0);
    return launch(null, null, submit, (s, order) -> copy(s, context, none, 0, none, 0, order));
  }

  /**
   * Makes a submission whose completion completes a job. Until then the job keeps `operands`, and this object's queue
   * keeps the job.
   */
  <T> Job<T> launch(T result, Object operands, Submit submit, Submit.Call call) {
    Job<T> job = new Job<>(completions, executor, result, operands, submit);
    long tag = 0;
    try {
      tag = completions.admit(job);
      job.submitted(submit.apply(call, completions.queue(), tag, 0, 0));
      if (operands instanceof Operands) ((Operands) operands).submitted();
      return job;
    } catch (Throwable t) {
      if (tag != 0) completions.forget(tag);
      if (operands instanceof Operands) ((Operands) operands).end(false);
      throw t;
    } finally {
      reachabilityFence(this);
    }
  }

  // Streams and events.

  /**
   * A stream of normal priority.
   *
   * @return a stream, to be closed
   */
  public Stream stream() {
    return stream(0);
  }

  /**
   * A stream.
   *
   * @param priority -1 low, 0 normal, 1 high
   * @return a stream, to be closed
   */
  public Stream stream(int priority) {
    return stream(priority, 0);
  }

  /**
   * A stream whose GEMMs use a limited number of compute units.
   *
   * @param priority -1 low, 0 normal, 1 high
   * @param computeUnits multiprocessors, or cores, to use at most; 0: all
   * @return a stream, to be closed
   */
  public Stream stream(int priority, int computeUnits) {
    try {
      return new Stream(Native.sg_stream_create_limited(handle(), priority, computeUnits));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Wraps a native stream, for instance a cudaStream_t of another library. A submission to the wrapper runs after work
   * enqueued in the native stream before the call, and before work enqueued there after the call. A submission that is not
   * one command on device memory returns when it has completed.
   *
   * @param address the native stream; it must outlive the wrapper, whose closing waits for its work
   * @return a stream, to be closed
   */
  public Stream wrapStream(long address) {
    try {
      return new Stream(Native.sg_stream_wrap(handle(), address));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * An event.
   *
   * @return an event, to be closed
   */
  public Event event() {
    try {
      return new Event(Native.sg_event_create(handle()));
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Wraps a native event, for instance a cudaEvent_t of another library. The wrapper refers to its latest recording, by any
   * caller: {@link Stream#waitFor} lets the device wait for it, {@link Event#record} records it. Its time is not known.
   *
   * @param address the native event; it must outlive the wrapper
   * @return an event, to be closed
   */
  public Event wrapEvent(long address) {
    try {
      return new Event(Native.sg_event_wrap(handle(), address));
    } finally {
      reachabilityFence(this);
    }
  }

  // Memory.

  /**
   * Pinned host memory, which the device copies from and to at full speed. It is freed when neither the buffer nor a
   * view of it is reachable and no work uses it, whether the context is closed or not. Not cleared.
   *
   * @param bytes its size
   * @return a direct buffer of native order, aligned to 4096 bytes
   */
  public ByteBuffer allocatePinned(int bytes) {
    PinnedPool.Block block = take(bytes);
    ByteBuffer root = Native.window(block.address, bytes);
    Pinned.giveBackWith(root, pool, block);
    return root.order(ByteOrder.nativeOrder());
  }

  /**
   * A tight row-major matrix in pinned host memory of its own, of any size. Not cleared.
   *
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @return the view, which keeps the memory
   */
  public Matrix pinnedMatrix(DType dtype, long rows, long cols) {
    long bytes = bytesOf(dtype, rows, cols);
    PinnedPool.Block block = take(bytes);
    PinnedMemory owner = new PinnedMemory(block.address, bytes);
    Pinned.giveBackWith(owner, pool, block);
    return Matrix.ofAddress(block.address, owner, dtype, rows, cols, 0, Layout.ROW_MAJOR);
  }

  /**
   * Frees pooled pinned memory: staging memory of arrays, and buffers that are garbage. Otherwise the pool keeps as
   * much as the maximum heap size, because pinning is slow.
   */
  public void trim() {
    pool.trim();
  }

  private PinnedPool.Block take(long bytes) {
    if (bytes < 0) throw new StreamGemmException.InvalidArgument("bytes is " + bytes);
    try {
      return pool.take(bytes);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Pins the memory between a direct buffer's position and its limit where it is.
   *
   * @param buffer a direct buffer
   * @return a registration; closing it unpins the memory
   */
  public Registration register(Buffer buffer) {
    try {
      return Registration.make(handle(), buffer);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Device memory. Not cleared.
   *
   * @param bytes its size, at least 1
   * @return a buffer, to be closed
   */
  public DeviceBuffer allocateDevice(long bytes) {
    try {
      return new DeviceBuffer(Pinned.patiently(() -> Native.sg_buffer_create(handle(), bytes)), bytes);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * A tight row-major matrix in device memory of its own. Not cleared.
   *
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @return the view, whose {@link Matrix#owner()} is the buffer
   */
  public Matrix deviceMatrix(DType dtype, long rows, long cols) {
    return Matrix.of(allocateDevice(Math.max(1, bytesOf(dtype, rows, cols))), 0, dtype, rows, cols);
  }

  private static long bytesOf(DType dtype, long rows, long cols) {
    if (rows < 0 || cols < 0) throw new StreamGemmException.InvalidArgument("a matrix of " + rows + " x " + cols);
    try {
      return Math.multiplyExact(Math.multiplyExact(rows, cols), Native.sg_dtype_size(dtype.value));
    } catch (ArithmeticException e) {
      throw new StreamGemmException.InvalidArgument("a matrix of " + rows + " x " + cols + " does not fit 63 bits");
    }
  }

  // Plans.

  /**
   * Makes a plan, for inspection and repeated runs.
   *
   * @param product only shapes and memory spaces of its operands are used; {@link Matrix#shape} is device memory
   * @return a plan, to be closed
   */
  public Plan plan(Gemm product) {
    return plan(product, new PlanOptions());
  }

  /**
   * Makes a plan, for inspection and repeated runs.
   *
   * @param product only shapes and memory spaces of its operands are used; the options may set the spaces
   * @param options restrict the planner's choice
   * @return a plan, to be closed
   */
  public Plan plan(Gemm product, PlanOptions options) {
    PlanOptions known = options.copy();
    if (product.a.array != null) known.placeA(MemoryKind.PINNED);
    if (product.b.array != null) known.placeB(MemoryKind.PINNED);
    if (product.c.array != null) known.placeC(MemoryKind.PINNED);
    Gemm.Places places = new Gemm.Places(product);
    if (product.bias != null && places.bias == 0)
      throw new StreamGemmException.InvalidArgument("bias is " + product.bias + "; a plan needs one in a direct buffer or on the device");
    try {
      return new Plan(known.with(struct -> {
        Scratch s = Scratch.get();
        int to = s.push(Structs.sg_gemm_desc.SIZE);
        try {
          product.write(s, to, places);
          return Native.sg_call_plan_create(handle(), s.address(to), struct);
        } finally {
          s.pop(to);
          reachabilityFence(places);
        }
      }), this);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * An empty graph: submissions are recorded into it and run together, many times.
   *
   * @return a graph, to be closed
   */
  public Graph graph() {
    Graph.Held held = new Graph.Held();
    try {
      return new Graph(Native.sg_graph_create(handle()), held, this);
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * A pipeline without stages.
   *
   * @param options of which inputBytes is needed
   * @return a pipeline, to be closed
   */
  public Pipeline pipeline(PipelineOptions options) {
    try {
      return new Pipeline(options.with(struct -> Native.sg_pipeline_create(handle(), struct)), options.inputBytes(), this);
    } finally {
      reachabilityFence(this);
    }
  }

  /** Operands of a submission of this context. */
  Operands operands(Object given) {
    return new Operands(pool, pending, given);
  }

  /** Submissions whose completion has not been delivered. */
  int inFlight() {
    return completions.count();
  }
}
