// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import org.streamgemm.Context;
import org.streamgemm.ContextOptions;
import org.streamgemm.DType;
import org.streamgemm.Matrix;

/** The cost of a blocking GEMM in Java: blocking.c in another language. Prints one line of JSON. */
public final class Blocking {
  private static final int[] SIDES = {4, 8, 16, 32, 64, 128, 256, 512};
  private static final int ROUNDS = 15; // the first ones warm up the compiler

  private Blocking() {}

  private static Matrix filled(Context context, DType type, int n, int value) {
    if (type == DType.F32) {
      var memory = context.allocatePinned(4 * n * n).asFloatBuffer();
      for (int i = 0; i < n * n; ++i) memory.put(i, value);
      return Matrix.of(memory, n, n);
    }
    var memory = context.allocatePinned(8 * n * n).asDoubleBuffer();
    for (int i = 0; i < n * n; ++i) memory.put(i, value);
    return Matrix.of(memory, n, n);
  }

  /** Microseconds for each of a row of calls: the median of the rounds. */
  private static double measure(Context context, DType type, int n) {
    Matrix a = filled(context, type, n, 1);
    Matrix b = filled(context, type, n, 1);
    Matrix c = filled(context, type, n, 0);
    int calls = Math.max(1, (int) Math.min(2000, 2e7 / (2.0 * n * n * n)));
    double[] rounds = new double[ROUNDS];
    for (int round = 0; round < ROUNDS; ++round) {
      long start = System.nanoTime();
      for (int i = 0; i < calls; ++i) context.gemm(a, b, c);
      rounds[round] = (System.nanoTime() - start) * 1e-3 / calls;
    }
    Arrays.sort(rounds);
    return rounds[ROUNDS / 2];
  }

  /** Runs it. */
  public static void main(String[] arguments) {
    StringBuilder line = new StringBuilder("{\"language\": \"Java\"");
    try (Context context = Context.open(new ContextOptions().device("cpu"))) {
      for (DType type : new DType[] {DType.F32, DType.F64})
        for (int n : SIDES)
          line.append(String.format(
              ", \"%s %d^3\": %.3f", type == DType.F32 ? "f32" : "f64", n, measure(context, type, n)));
    }
    System.out.println(line.append('}'));
  }
}
