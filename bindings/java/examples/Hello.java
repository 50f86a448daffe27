// SPDX-License-Identifier: Apache-2.0
// Multiplies two small matrices and prints the result.
import java.util.Arrays;
import org.streamgemm.Context;
import org.streamgemm.Matrix;

/** The smallest program. */
public final class Hello {
  /** Runs it. */
  public static void main(String[] arguments) {
    float[] a = {1, 2, 3, 4};
    float[] b = {5, 6, 7, 8};
    float[] c = new float[4];
    try (Context context = Context.open(arguments.length > 0 ? arguments[0] : "auto")) {
      context.gemmAsync(Matrix.of(a, 2, 2), Matrix.of(b, 2, 2), Matrix.of(c, 2, 2))
          .thenRun(() -> System.out.println(context.device().name() + ": " + Arrays.toString(c)))
          .join();
    }
    if (!Arrays.equals(c, new float[] {19, 22, 43, 50})) throw new AssertionError(Arrays.toString(c));
  }
}
