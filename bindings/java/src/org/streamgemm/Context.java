// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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
   * Opens a device.
   *
   * @param options the device, and how to use it
   * @param executor completes the futures, one task for each [= Job.SHARED]
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
    return DeviceInfo.from(struct -> Native.sg_context_get_device_info(handle, 0, struct)).name();
  }

  // Devices.

  /**
   * The properties of its device, the first of several.
   *
   * @return the device
   */
  public DeviceInfo device() {
    return deviceInfo(0);
  }

  /**
   * The properties of each of its devices, in order.
   *
   * @return a list of {@link #deviceCount()}
   */
  public List<DeviceInfo> devices() {
    return IntStream.range(0, deviceCount()).mapToObj(this::deviceInfo).collect(Collectors.toUnmodifiableList());
  }

  /**
   * A stream.
   *
   * @return a stream, to be closed
   */
  public Stream stream() {
    return stream(new StreamOptions());
  }

  /**
   * A stream with options, on one of several devices for instance.
   *
   * @param options its priority, its compute units, the number of the device that its work runs on
   * @return a stream, to be closed
   */
  public Stream stream(StreamOptions options) {
    try {
      return new Stream(options.with(struct -> Native.sg_stream_create(handle(), struct)));
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
   * @param submit order, priority, planning [= DEFAULTS]
   * @return a future of C (of the first item's, for a batch)
   */
  public Job<Matrix> gemmAsync(Gemm product, Submit submit) {
    if (!product.plain) return product.call(Structs.CALL_GEMM).submit(this, submit);
    long context = handle();
    long[] at = product.addresses();
    return launch(product.c, product, submit, (s, order) -> product.call(s, Structs.CALL_GEMM, context, at, order));
  }

  /**
   * Submits GEMMs of different shapes, types and scalars as one job.
   *
   * @param products at least one; no C overlaps another's operands
   * @param submit order, priority, planning
   * @return a future of the GEMMs
   */
  public Job<List<Gemm>> gemmAsync(List<Gemm> products, Submit submit) {
    return LayerCall.group(products).submit(this, submit);
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
   * @param submit order, priority, planning [= DEFAULTS]
   * @return C
   */
  public Matrix gemm(Gemm product, Submit submit) {
    if (!product.plain) return product.call(Structs.CALL_GEMM_AND_WAIT).run(this, submit, 0);
    long context = handle();
    long[] at = product.addresses();
    try {
      submit.apply((s, order) -> product.call(s, Structs.CALL_GEMM_AND_WAIT, context, at, order), 0, 0, 0, 0);
      return product.c;
    } finally {
      reachabilityFence(product);
      reachabilityFence(this);
    }
  }

  // Copies.

  /**
   * Copies a matrix between any memory spaces.
   *
   * @param to the destination
   * @param from the source, alike in type, layout and size; no overlap
   * @param submit order and priority [= DEFAULTS]
   * @return a future of the destination
   */
  public Job<Matrix> copyAsync(Matrix to, Matrix from, Submit submit) {
    return copyCall(to, to, from).submit(this, submit);
  }

  /** A copy, with what its job gives. */
  static <T> LayerCall<T> copyCall(T result, Matrix to, Matrix from) {
    if (to.readOnly) throw new StreamGemmException.InvalidArgument("to is in a read-only buffer");
    if (to.dtype != from.dtype || to.layout != from.layout || to.rows != from.rows || to.cols != from.cols)
      throw new StreamGemmException.InvalidArgument("to is " + to + " and from is " + from + "; shapes, types and layouts must be equal");
    long size = to.elementSize();
    LayerCall<T> made = new LayerCall<T>(result).writes("to", to, false).reads("from", from).keeps(new CopyShapes(to, from));
    return made.calls(Structs.CALL_COPY, Structs.sg_copy_desc.SIZE, (s, d, at) -> {
      s.putLong(d, Structs.sg_copy_desc.SIZE);
      s.putLong(d + Structs.sg_copy_desc.dst, at[0]);
      s.putLong(d + Structs.sg_copy_desc.src, at[1]);
      s.putLong(d + Structs.sg_copy_desc.width, to.rows == 0 ? 0 : to.inner() * size);
      s.putLong(d + Structs.sg_copy_desc.height, to.rows == 0 || to.cols == 0 ? 0 : to.outer());
      s.putLong(d + Structs.sg_copy_desc.dst_pitch, to.ld * size);
      s.putLong(d + Structs.sg_copy_desc.src_pitch, from.ld * size);
    });
  }

  /**
   * Submits a function of the application's as a job. It runs after the jobs that write what it accesses, or read what it writes,
   * and those that follow wait for it likewise. If the job is cancelled before it starts, the function is not called.
   *
   * @param operation the function and its operands
   * @param submit order and priority [= DEFAULTS]
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
   * Submits an all-reduce: each matrix becomes the sum of all of them. One job for all of the context's devices, which the memory of
   * the matrices orders.
   *
   * @param operands matrices without gaps, each in the memory of its device, of one shape, type and layout
   * @param submit order and priority [= DEFAULTS]
   * @return a future without a result
   */
  public Job<Void> allReduceAsync(List<Matrix> operands, Submit submit) {
    return AllReduce.call(operands).submit(this, submit);
  }

  /**
   * The same; blocks until it is complete.
   *
   * @param operands matrices without gaps, each in the memory of its device, of one shape, type and layout
   */
  public void allReduce(List<Matrix> operands) {
    AllReduce.call(operands).run(this);
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
    Matrix none = Matrix.shape(DType.F32, 0, 0);
    return Context.<Void>copyCall(null, none, none).submit(this, submit);
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
    return pinnedMatrix(take(bytes), bytes, dtype, rows, cols);
  }

  /**
   * A tight row-major matrix in pinned host memory of its own, on the NUMA node of a device. Not cleared.
   *
   * @param dtype type of its elements
   * @param rows its rows
   * @param cols its columns
   * @param device the index of the device; -1: interleaved over all nodes
   * @return the view, which keeps the memory
   */
  public Matrix pinnedMatrix(DType dtype, long rows, long cols, int device) {
    long bytes = bytesOf(dtype, rows, cols);
    try {
      return pinnedMatrix(pool.takeNear(device, bytes), bytes, dtype, rows, cols);
    } finally {
      reachabilityFence(this);
    }
  }

  private Matrix pinnedMatrix(PinnedPool.Block block, long bytes, DType dtype, long rows, long cols) {
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
    if (bytes < 0) throw new StreamGemmException.InvalidArgument("bytes is " + bytes + "; it must not be negative");
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
    return allocateDevice(bytes, new BufferOptions());
  }

  /**
   * Memory of one of several devices. Not cleared.
   *
   * @param bytes its size, above 0
   * @param options the number of the context's device
   * @return a buffer, to be closed
   */
  public DeviceBuffer allocateDevice(long bytes, BufferOptions options) {
    try {
      long made = Pinned.patiently(() -> options.with(struct -> Native.sg_buffer_create(handle(), bytes, struct)));
      return new DeviceBuffer(made, bytes);
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

  /**
   * A copy of a matrix in device memory of its own, which lives as long as the view.
   *
   * @param matrix what is copied: in an array, a buffer or device memory
   * @return a matrix of its shape, type and layout, without gaps
   */
  public Matrix onDevice(Matrix matrix) {
    long bytes = bytesOf(matrix.dtype, matrix.rows, matrix.cols);
    Matrix made = Matrix.of(allocateDevice(Math.max(1, bytes)), 0, matrix.dtype, matrix.rows, matrix.cols, 0, matrix.layout);
    if (bytes > 0) copyAsync(made, matrix).join();
    return made;
  }

  /**
   * The elements of an f32 matrix in any memory, after the jobs that write them.
   *
   * @param matrix what is read
   * @return a new array: row by row, or column by column if the matrix is column major
   */
  public float[] toFloats(Matrix matrix) {
    float[] made = new float[elementsOf(matrix, DType.F32)];
    if (made.length > 0) copyAsync(Matrix.of(made, 0, matrix.rows, matrix.cols, 0, matrix.layout), matrix).join();
    return made;
  }

  /**
   * The elements of an f64 matrix in any memory, after the jobs that write them.
   *
   * @param matrix what is read
   * @return a new array: row by row, or column by column if the matrix is column major
   */
  public double[] toDoubles(Matrix matrix) {
    double[] made = new double[elementsOf(matrix, DType.F64)];
    if (made.length > 0) copyAsync(Matrix.of(made, 0, matrix.rows, matrix.cols, 0, matrix.layout), matrix).join();
    return made;
  }

  private static int elementsOf(Matrix matrix, DType dtype) {
    if (matrix.dtype != dtype)
      throw new StreamGemmException.InvalidArgument("matrix is " + matrix + "; its elements must be " + dtype);
    long elements = bytesOf(dtype, matrix.rows, matrix.cols) / Native.sg_dtype_size(dtype.value);
    if (elements > Integer.MAX_VALUE - 8)
      throw new StreamGemmException.InvalidArgument("matrix is " + matrix + ", more than an array holds");
    return (int) elements;
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
   * @param operation only shapes and memory spaces of its operands are used, which may have no memory; the options may set the spaces
   * @param options restrict the planner's choice [= new PlanOptions()]
   * @return a plan, to be closed
   */
  public Plan plan(OperationDesc<?> operation, PlanOptions options) {
    PlanOptions known = options.copy();
    LayerCall<?> call = operation.call();
    call.place(this, known);
    try {
      long plan = known.with(struct -> call.describe(true, (number, desc) -> Native.sg_call_plan_create(handle(), number, desc, struct)));
      return new Plan(plan, this, call.kept());
    } finally {
      reachabilityFence(call);
      reachabilityFence(this);
    }
  }

  /**
   * Whether the context's devices compute an operation. Other failures are thrown.
   *
   * @param operation its operands may have no memory
   * @return false if a device does not
   */
  public boolean supports(OperationDesc<?> operation) {
    LayerCall<?> call = operation.call();
    try {
      return call.describe(true, (number, desc) -> Native.sg_call_supports(handle(), number, desc)) != 0;
    } finally {
      reachabilityFence(call);
      reachabilityFence(this);
    }
  }

  /**
   * Submits an operation.
   *
   * @param <T> what it gives
   * @param operation the operation
   * @param submit order and priority [= DEFAULTS]
   * @return a future of its result
   */
  public <T> Job<T> runAsync(OperationDesc<T> operation, Submit submit) {
    return operation.call().submit(this, submit);
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
