// SPDX-License-Identifier: Apache-2.0
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import org.streamgemm.Context;
import org.streamgemm.ContextOptions;
import org.streamgemm.DType;
import org.streamgemm.Gemm;
import org.streamgemm.Job;
import org.streamgemm.Matrix;
import org.streamgemm.Stream;
import org.streamgemm.Submit;

/**
 * The cost of one asynchronous GEMM of 4 x 4 matrices in Java: overhead.c in another language. Prints one line of
 * JSON.
 *
 * <p>usage: Overhead CALLS
 */
public final class Overhead {
  private static final int N = 4;
  private static final int BLOCK = 1000;
  private static final int GATE = 512;
  private static final int WARM_UP = 100; // for the compiler
  private static final int PIPELINE = 64;

  private static Context context;
  private static Submit inOrder;
  private static Matrix a;
  private static Matrix b;
  private static final Matrix[] C = new Matrix[BLOCK];
  private static FloatBuffer results;
  private static Gemm gate;

  private Overhead() {}

  private static Matrix filled() {
    FloatBuffer memory = context.allocatePinned(4 * N * N).asFloatBuffer();
    for (int i = 0; i < N * N; ++i) memory.put(i, 1);
    return Matrix.of(memory, N, N);
  }

  private static void prepare() {
    a = filled();
    b = filled();
    results = context.allocatePinned(4 * BLOCK * N * N).asFloatBuffer();
    for (int i = 0; i < BLOCK; ++i) C[i] = Matrix.of(results.duplicate().position(i * N * N), N, N);
    DoubleBuffer ones = context.allocatePinned(8 * GATE * GATE).asDoubleBuffer();
    for (int i = 0; i < GATE * GATE; ++i) ones.put(i, 1);
    Matrix in = Matrix.of(ones, GATE, GATE);
    gate = Gemm.of(in, in, context.pinnedMatrix(DType.F64, GATE, GATE));
  }

  /**
   * Calls that the worker cannot start yet, behind a GEMM of some milliseconds: only the submission is timed.
   */
  private static void runBehindGate(int blocks, long[] cost) {
    Job<?>[] jobs = new Job<?>[ BLOCK + 1 ];
    for (int block = 0; block < blocks; ++block) {
      jobs[BLOCK] = context.gemmAsync(gate, inOrder);
      for (int i = 0; i < BLOCK; ++i) {
        long before = System.nanoTime();
        jobs[i] = context.gemmAsync(Gemm.of(a, b, C[i]), inOrder);
        cost[block * BLOCK + i] = System.nanoTime() - before;
      }
      for (Job<?> job : jobs) job.join();
    }
  }

  /** Calls that run at once, some in flight together. Microseconds for each, start to completion. */
  private static double runPipelined(int calls) {
    Job<?>[] jobs = new Job<?>[ PIPELINE ];
    long start = System.nanoTime();
    for (int done = 0; done < calls; done += PIPELINE) {
      for (int i = 0; i < PIPELINE; ++i) jobs[i] = context.gemmAsync(a, b, C[i]);
      for (Job<?> job : jobs) job.join();
    }
    return (System.nanoTime() - start) * 1e-3 / calls;
  }

  /** Calls that are waited for one by one, through a future or in the library. */
  private static void runLone(int calls, long[] cost, Runnable call) {
    for (int i = 0; i < calls; ++i) {
      long before = System.nanoTime();
      call.run();
      cost[i] = System.nanoTime() - before;
    }
  }

  private static double median(long[] values, int count) {
    Arrays.sort(values, 0, count);
    return values[count / 2] * 1e-3;
  }

  /** Runs it. */
  public static void main(String[] arguments) {
    int blocks = (arguments.length > 0 ? Integer.parseInt(arguments[0]) : 100_000) / BLOCK;
    int calls = blocks * BLOCK;
    int lone = calls / 10;
    boolean direct =
        arguments.length > 1 && arguments[1].equals("direct"); // futures completed by the completion thread itself
    ContextOptions cpu = new ContextOptions().device("cpu").computeLanes(1); // the caller keeps a core for itself
    try (Context opened = direct ? Context.open(cpu, Runnable::run) : Context.open(cpu);
         Stream stream = opened.stream()) {
      context = opened;
      inOrder = new Submit().stream(stream);
      prepare();
      long[] cost = new long[Math.max(blocks, WARM_UP) * BLOCK];
      runBehindGate(WARM_UP, cost);
      runBehindGate(blocks, cost);
      double call = median(cost, calls);
      double pipelined = runPipelined(calls / PIPELINE * PIPELINE);
      runLone(lone, cost, () -> context.gemmAsync(a, b, C[0]).join());
      double future = median(cost, lone);
      runLone(lone, cost, () -> context.gemm(a, b, C[0]));
      double blocking = median(cost, lone);
      System.out.printf(
          "{\"language\": \"Java%s\", \"calls\": %d, \"call_us\": %.3f, \"pipelined_us\": %.3f, \"lone_us\": %.3f, "
              + "\"blocking_us\": %.3f}%n",
          direct ? " (direct)" : "", calls, call, pipelined, future, blocking);
      for (int i = 0; i < N * N; ++i)
        if (results.get((BLOCK - 1) * N * N + i) != N) throw new AssertionError("wrong result");
    }
  }
}
