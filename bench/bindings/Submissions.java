// SPDX-License-Identifier: Apache-2.0
import java.nio.DoubleBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.streamgemm.Cell;
import org.streamgemm.Attention;
import org.streamgemm.Axpby;
import org.streamgemm.Context;
import org.streamgemm.ContextOptions;
import org.streamgemm.Conv2d;
import org.streamgemm.DType;
import org.streamgemm.Function;
import org.streamgemm.Gemm;
import org.streamgemm.Heads;
import org.streamgemm.Images;
import org.streamgemm.Indices;
import org.streamgemm.Job;
import org.streamgemm.Layers;
import org.streamgemm.Linear;
import org.streamgemm.Matrix;
import org.streamgemm.Transpose;
import org.streamgemm.Recurrent;
import org.streamgemm.Sequence;
import org.streamgemm.Stream;
import org.streamgemm.Submit;
import org.streamgemm.Windows;

/**
 * What one submission of each operation costs its thread in Java, once its plan is cached, beside a GEMM's: submissions.py in
 * another language. Prints a table.
 */
public final class Submissions {
  private static final int ROWS = 64;
  private static final int CALLS = 200;
  private static final int GATE = 1024;
  private static final int ROUNDS = 30; // the first for the compiler

  private final Context context;
  private final Submit on;
  private final Gemm gate;

  private Submissions(Context context, Stream stream) {
    this.context = context;
    on = new Submit().stream(stream);
    DoubleBuffer ones = context.allocatePinned(8 * GATE * GATE).asDoubleBuffer();
    for (int i = 0; i < GATE * GATE; ++i) ones.put(i, 1);
    Matrix in = Matrix.of(ones, GATE, GATE);
    gate = Gemm.of(in, in, context.pinnedMatrix(DType.F64, GATE, GATE));
  }

  private Matrix zeros(DType type, long rows, long columns) {
    return context.pinnedMatrix(type, rows, columns);
  }

  private Map<String, Supplier<Job<?>>> operations() {
    Layers layers = context.layers();
    Matrix x = zeros(DType.F32, ROWS, ROWS);
    Matrix w = zeros(DType.F32, ROWS, ROWS);
    Matrix out = zeros(DType.F32, ROWS, ROWS);
    Matrix row = zeros(DType.F32, 1, ROWS);
    Matrix half = zeros(DType.F16, ROWS, ROWS);
    Indices indices = Indices.of(new int[ROWS]);
    Heads[] heads = new Heads[8];
    for (int i = 0; i < heads.length; ++i) heads[i] = Heads.inRows(zeros(DType.F16, 4 * 64, 64), 4, 1);
    Images image = Images.nchw(zeros(DType.F32, 2, 16 * 64), 16, 8, 8);
    Images imageOut = Images.nchw(zeros(DType.F32, 2, 16 * 64), 16, 8, 8);
    Matrix filters = zeros(DType.F32, 16, 16 * 9);
    Conv2d conv = new Conv2d(new Windows(3, 3).padding(1, 1));
    Sequence steps = Sequence.byStep(zeros(DType.F32, 16, 16), 1);
    Sequence states = Sequence.byStep(zeros(DType.F32, 16, 16), 1);
    Recurrent lstm = new Recurrent(Cell.LSTM, zeros(DType.F32, 64, 16), zeros(DType.F32, 64, 16));
    Linear biased = new Linear().bias(row);
    Map<String, Supplier<Job<?>>> all = new LinkedHashMap<>();
    all.put("gemm", () -> context.gemmAsync(Gemm.of(x, w, out), on));
    all.put("axpby", () -> layers.axpbyAsync(x, out, new Axpby(), on));
    all.put("gelu", () -> layers.elementwiseAsync(Function.GELU, x, null, out, on));
    all.put("softmax", () -> layers.softmaxAsync(x, out, org.streamgemm.Mask.NONE, 0, on));
    all.put("layer norm", () -> layers.layerNormAsync(x, row, row, out, 1e-5, on));
    all.put("convert", () -> layers.convertAsync(x, Transpose.N, half, on));
    all.put("gather", () -> layers.gatherAsync(x, indices, out, on));
    all.put("attention", () -> layers.attentionAsync(heads[0], heads[1], heads[2], heads[3], new Attention(), on));
    all.put("attention backward",
        () -> layers.attentionBackwardAsync(heads[0], heads[1], heads[2], heads[4], heads[5], heads[6], heads[7], new Attention(), on));
    all.put("conv2d", () -> layers.conv2dAsync(image, filters, imageOut, conv, on));
    all.put("lstm of 16 steps", () -> layers.recurrentAsync(steps, states, lstm, on));
    all.put("linear", () -> layers.linearAsync(x, w, out, biased, on));
    Matrix dx = zeros(DType.F32, ROWS, ROWS);
    Matrix dw = zeros(DType.F32, ROWS, ROWS);
    Matrix dbias = zeros(DType.F32, 1, ROWS);
    all.put("linear backward", () -> layers.linearBackwardAsync(out, x, w, dx, dw, dbias, new Linear(), on));
    return all;
  }

  /** The median of calls behind one that takes some milliseconds, in microseconds. */
  private double cost(Supplier<Job<?>> submit) {
    Job<?>[] jobs = new Job<?>[ CALLS + 1 ];
    long[] cost = new long[CALLS];
    jobs[CALLS] = context.gemmAsync(gate, on);
    for (int i = 0; i < CALLS; ++i) {
      long before = System.nanoTime();
      jobs[i] = submit.get();
      cost[i] = System.nanoTime() - before;
    }
    for (Job<?> job : jobs) job.join();
    Arrays.sort(cost);
    return cost[CALLS / 2] * 1e-3;
  }

  /** Runs it. */
  public static void main(String[] arguments) {
    try (Context context = Context.open(new ContextOptions().device("cpu").computeLanes(1)); Stream stream = context.stream()) {
      Submissions all = new Submissions(context, stream);
      double gemm = 0;
      for (Map.Entry<String, Supplier<Job<?>>> each : all.operations().entrySet()) {
        double[] rounds = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; ++i) rounds[i] = all.cost(each.getValue());
        Arrays.sort(rounds, ROUNDS / 2, ROUNDS);
        double median = rounds[ROUNDS * 3 / 4];
        if (gemm == 0) gemm = median;
        System.out.printf("%-20s %7.2f us  %5.2f x gemm%n", each.getKey(), median, median / gemm);
      }
    }
  }
}
