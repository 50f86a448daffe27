// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.streamgemm.internal.Native;

/**
 * Batches that pass through stages, beside their transfers and those of streamed weights. Stages are added and recorded
 * first; then batches are pushed. Safe for use by several threads.
 */
public final class Pipeline extends NativeObject {
  private static final Submit DEFAULTS = new Submit();

  private final Context context;
  private final long inputBytes;
  /** Weights, which every batch in flight keeps; replaced, never changed. */
  private volatile List<List<Matrix>> weights = List.of();
  /** Those of the stages, whose recorded functions every batch in flight keeps; likewise. */
  private volatile List<Graph> graphs = List.of();
  private volatile long outputBytes;

  Pipeline(long handle, long inputBytes, Context context) {
    super(handle, Native::sg_pipeline_release);
    this.context = context;
    this.inputBytes = inputBytes;
  }

  /** A stage, whose operations are recorded into its graph. The matrices of it have no memory: they stand for each batch's. */
  public static final class Stage {
    private final Pipeline pipeline;
    private final Graph graph;
    private final long input;
    private final long output;
    private final long workspace;
    private final long[] weights;

    private Stage(Pipeline pipeline, Scratch s, int filled, int weightCount) {
      this.pipeline = pipeline;
      long recorder = s.getLong(filled + Structs.sg_stage.graph);
      Native.sg_graph_retain(recorder);
      graph = new Graph(recorder, pipeline.context);
      input = s.getLong(filled + Structs.sg_stage.input);
      output = s.getLong(filled + Structs.sg_stage.output);
      workspace = s.getLong(filled + Structs.sg_stage.workspace);
      weights = new long[weightCount];
      if (weightCount == 0) return;
      Native.window(s.getLong(filled + Structs.sg_stage.weights), 8L * weightCount).order(ByteOrder.nativeOrder()).asLongBuffer().get(weights);
    }

    private Matrix at(long address, DType dtype, long rows, long cols) {
      return Matrix.ofAddress(address, pipeline, dtype, rows, cols, 0, Layout.ROW_MAJOR);
    }

    /**
     * What records the stage's operations. The pipeline runs it.
     *
     * @return the graph
     */
    public Graph graph() {
      return graph;
    }

    /**
     * The batch's input, or the output of the stage before.
     *
     * @param dtype type of its elements
     * @param rows its rows
     * @param cols its columns
     * @return a row-major matrix
     */
    public Matrix input(DType dtype, long rows, long cols) {
      return at(input, dtype, rows, cols);
    }

    /**
     * The stage's output.
     *
     * @param dtype type of its elements
     * @param rows its rows
     * @param cols its columns
     * @return a row-major matrix
     */
    public Matrix output(DType dtype, long rows, long cols) {
      return at(output, dtype, rows, cols);
    }

    /**
     * A matrix in the stage's workspace, whose contents at the start are undefined.
     *
     * @param offset bytes from the start of the workspace
     * @param dtype type of its elements
     * @param rows its rows
     * @param cols its columns
     * @return a row-major matrix
     */
    public Matrix workspace(long offset, DType dtype, long rows, long cols) {
      if (workspace == 0) throw new StreamGemmException.InvalidArgument("the stage has no workspace");
      return at(workspace + offset, dtype, rows, cols);
    }

    /**
     * A matrix of weights.
     *
     * @param index its place among the weights that the stage was added with
     * @param dtype type of its elements
     * @param rows its rows
     * @param cols its columns
     * @return a row-major matrix
     */
    public Matrix weight(int index, DType dtype, long rows, long cols) {
      return at(weights[index], dtype, rows, cols);
    }
  }

  /**
   * Adds the next stage, on a device that the library chooses.
   *
   * @param name in messages and labels; null: by its number
   * @param output bytes of its output
   * @param workspace bytes of its workspace; 0: none
   * @param place where its weights are while batches run
   * @param given its weights, in direct buffers, pinned or device memory, unchanged as long as batches run
   * @return the stage, to record its operations
   * @throws StreamGemmException.Busy if the pipeline is prepared
   */
  public Stage stage(String name, long output, long workspace, WeightsPlace place, Matrix... given) {
    return stage(name, output, workspace, place, DEVICE_OF_STAGE_BEFORE, given);
  }

  private static final int DEVICE_OF_STAGE_BEFORE = -1; // SG_DEVICE_ANY

  /**
   * Adds the next stage, on one of several devices.
   *
   * @param name in messages and labels; null: by its number
   * @param output bytes of its output
   * @param workspace bytes of its workspace; 0: none
   * @param place where its weights are while batches run
   * @param device the number of the context's device that runs it
   * @param given its weights, in direct buffers, pinned or device memory, unchanged as long as batches run
   * @return the stage, to record its operations
   * @throws StreamGemmException.Busy if the pipeline is prepared
   */
  public synchronized Stage stage(
      String name, long output, long workspace, WeightsPlace place, int device, Matrix... given) {
    int words = Structs.sg_weight.SIZE / 8;
    long[] places = new long[words * given.length];
    for (int i = 0; i < given.length; ++i) {
      if (given[i].array != null)
        throw new StreamGemmException.InvalidArgument("weights cannot be " + given[i] + "; use a direct buffer");
      places[words * i + Structs.sg_weight.data / 8] = given[i].address;
      places[words * i + Structs.sg_weight.bytes / 8] = bytesOf(given[i]);
    }
    Scratch s = Scratch.get();
    int d = s.push(Structs.sg_stage_desc.SIZE);
    try {
      s.putLong(d, Structs.sg_stage_desc.SIZE);
      s.putLong(d + Structs.sg_stage_desc.name, s.utf8("name", name));
      s.putLong(d + Structs.sg_stage_desc.output_bytes, Names.requireSize("output", output));
      s.putLong(d + Structs.sg_stage_desc.workspace_bytes, Names.requireSize("workspace", workspace));
      s.putLong(d + Structs.sg_stage_desc.weights, s.longs(places));
      s.putInt(d + Structs.sg_stage_desc.weight_count, given.length);
      s.putInt(d + Structs.sg_stage_desc.place, place.value);
      s.putInt(d + Structs.sg_stage_desc.device, device);
      int filled = s.push(Structs.sg_stage.SIZE);
      s.putLong(filled, Structs.sg_stage.SIZE);
      Native.sg_call_add_stage(handle(), s.address(d), s.address(filled));
      Stage made = new Stage(this, s, filled, given.length);
      List<List<Matrix>> more = new ArrayList<>(weights);
      more.add(List.of(given));
      weights = more;
      List<Graph> others = new ArrayList<>(graphs);
      others.add(made.graph);
      graphs = others;
      outputBytes = output;
      return made;
    } finally {
      s.pop(d);
      reachabilityFence(this);
    }
  }

  private static long bytesOf(Matrix m) {
    if (m.rows == 0 || m.cols == 0) return 0;
    return ((m.outer() - 1) * m.ld + m.inner()) * Native.sg_dtype_size(m.dtype.value);
  }

  /**
   * Pushes a batch. Blocks at the limit of batches in flight.
   *
   * @param input without gaps, of as many bytes as the pipeline's options say
   * @param output without gaps, of as many bytes as the last stage's output
   * @param submit order and priority [= DEFAULTS]
   * @return a future of the output; futures complete in the order of the batches
   */
  public Job<Matrix> pushAsync(Matrix input, Matrix output, Submit submit) {
    requireBytes("input", input, inputBytes);
    requireBytes("output", output, outputBytes);
    if (output.readOnly) throw new StreamGemmException.InvalidArgument("output is in a read-only buffer");
    Operands operands = context.operands(List.of(input, output, weights, graphs));
    try {
      return context.launch(output, operands, submit, (s, order) -> {
        long from = operands.reads(input, 1, 0, "input");
        long to = operands.writes(output, 1, 0, false, "output");
        return Native.sg_call(Structs.CALL_PIPELINE_PUSH, handle(), s.longs(from, to), order);
      });
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Pushes several batches at once, as one job. With replicas they run beside each other, one on each device, and share
   * streamed weights. Blocks at the limit of batches in flight, which is also that of their number.
   *
   * @param inputs each as of pushAsync
   * @param outputs each as of pushAsync, as many as there are inputs
   * @param submit order and priority [= DEFAULTS]
   * @return a future of the outputs
   */
  public Job<List<Matrix>> pushBatchesAsync(List<Matrix> inputs, List<Matrix> outputs, Submit submit) {
    List<Matrix> all = List.copyOf(inputs);
    List<Matrix> results = List.copyOf(outputs);
    int count = all.size();
    if (results.size() != count)
      throw new StreamGemmException.InvalidArgument("outputs has " + results.size() + " items, and inputs has " + count);
    for (int i = 0; i < count; ++i) {
      requireBytes("inputs.get(" + i + ")", all.get(i), inputBytes);
      requireBytes("outputs.get(" + i + ")", results.get(i), outputBytes);
      if (results.get(i).readOnly)
        throw new StreamGemmException.InvalidArgument("outputs.get(" + i + ") is in a read-only buffer");
    }
    Operands operands = context.operands(List.of(all, results, weights, graphs));
    try {
      return context.launch(results, operands, submit, (s, order) -> {
        long[] from = new long[count];
        long[] to = new long[count];
        for (int i = 0; i < count; ++i) {
          from[i] = operands.reads(all.get(i), 1, 0, "inputs.get(" + i + ")");
          to[i] = operands.writes(results.get(i), 1, 0, false, "outputs.get(" + i + ")");
        }
        long desc = s.longs(s.longs(from), s.longs(to), count);
        return Native.sg_call(Structs.CALL_PIPELINE_PUSH_BATCHES, handle(), desc, order);
      });
    } finally {
      reachabilityFence(this);
    }
  }

  private static void requireBytes(String name, Matrix given, long bytes) {
    if (given.ld != given.inner() && given.outer() > 1)
      throw new StreamGemmException.InvalidArgument(name + " is " + given + ", which has gaps");
    if (bytesOf(given) != bytes)
      throw new StreamGemmException.InvalidArgument(
          name + " is " + given + ", of " + bytesOf(given) + " bytes; the pipeline's has " + bytes);
  }
}
