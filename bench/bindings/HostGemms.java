// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.Random;
import org.streamgemm.Compute;
import org.streamgemm.Context;
import org.streamgemm.Gemm;
import org.streamgemm.Matrix;

/**
 * GEMMs of square f32 matrices from host memory to host memory: Java's own direct buffers (pageable), pinned
 * buffers, and arrays, alternately. Prints one line of JSON for each, the median of the samples. Some elements are checked
 * against sums in double precision.
 *
 * <p>usage: HostGemms DEVICE SAMPLES SIZE...
 */
public final class HostGemms {
  private static Context context;

  private HostGemms() {}

  /** Memory of one kind: its owner, a view to fill it, and a matrix. */
  private interface Memory {
    Matrix matrix();

    void put(int index, float[] values);

    float get(int index);
  }

  private static Memory of(FloatBuffer buffer, int n) {
    return new Memory() {
      @Override
      public Matrix matrix() {
        return Matrix.of(buffer, n, n);
      }

      @Override
      public void put(int index, float[] values) {
        buffer.duplicate().position(index).put(values);
      }

      @Override
      public float get(int index) {
        return buffer.get(index);
      }
    };
  }

  private static Memory of(float[] array, int n) {
    return new Memory() {
      @Override
      public Matrix matrix() {
        return Matrix.of(array, n, n);
      }

      @Override
      public void put(int index, float[] values) {
        System.arraycopy(values, 0, array, index, values.length);
      }

      @Override
      public float get(int index) {
        return array[index];
      }
    };
  }

  private static Memory allocate(String kind, int n) {
    switch (kind) {
      case "pageable":
        return of(ByteBuffer.allocateDirect(4 * n * n).order(ByteOrder.nativeOrder()).asFloatBuffer(), n);
      case "pinned":
        return of(context.allocatePinned(4 * n * n).asFloatBuffer(), n);
      default:
        return of(new float[n * n], n);
    }
  }

  private static Memory random(String kind, int n, long seed) {
    Memory made = allocate(kind, n);
    Random random = new Random(seed);
    float[] row = new float[n];
    for (int i = 0; i < n; ++i) {
      if (i < 64)
        for (int j = 0; j < n; ++j)
          row[j] = random.nextFloat() * 2 - 1; // then the same rows again, rotated by some elements
      else rotate(row, i % 7 + 1);
      made.put(i * n, row);
    }
    return made;
  }

  private static void rotate(float[] row, int by) {
    float[] head = Arrays.copyOf(row, by);
    System.arraycopy(row, by, row, 0, row.length - by);
    System.arraycopy(head, 0, row, row.length - by, by);
  }

  /** The greatest error of some elements, in units of the bound for the sum of the products' magnitudes. */
  private static double error(Memory a, Memory b, Memory c, int n) {
    Random random = new Random(7);
    double worst = 0;
    for (int sample = 0; sample < 50; ++sample) {
      int i = random.nextInt(n);
      int j = random.nextInt(n);
      double sum = 0;
      double size = 0;
      for (int l = 0; l < n; ++l) {
        double product = (double) a.get(i * n + l) * b.get(l * n + j);
        sum += product;
        size += Math.abs(product);
      }
      worst = Math.max(worst, Math.abs(c.get(i * n + j) - sum) / size);
    }
    return worst;
  }

  private static void measure(String kind, Compute compute, int n, int samples, Memory a, Memory b, Memory c) {
    Gemm gemm = Gemm.of(a.matrix(), b.matrix(), c.matrix()).with(compute);
    double[] seconds = new double[samples];
    for (int i = -2; i < samples; ++i) {
      long start = System.nanoTime();
      context.gemmAsync(gemm).join();
      if (i >= 0) seconds[i] = (System.nanoTime() - start) * 1e-9;
    }
    Arrays.sort(seconds);
    double error = error(a, b, c, n);
    double allowed = compute == Compute.EXACT ? 1e-5 : 2e-3;
    System.out.printf(
        "{\"language\": \"Java\", \"device\": \"%s\", \"case\": \"%s %d^3 %s\", \"seconds\": %.6f, \"min\": %.6f, \"max\": %.6f, "
            + "\"samples\": %d, \"error\": %.2e}%n",
        context.device().name(), compute == Compute.EXACT ? "f32" : "tf32", n, kind, seconds[samples / 2], seconds[0],
        seconds[samples - 1], samples, error);
    if (!(error < allowed)) throw new AssertionError("wrong result");
  }

  /** Runs it. */
  public static void main(String[] arguments) {
    int samples = Integer.parseInt(arguments[1]);
    try (Context opened = Context.open(arguments[0])) {
      context = opened;
      for (String size : Arrays.copyOfRange(arguments, 2, arguments.length)) {
        int n = Integer.parseInt(size);
        for (String kind : new String[] {"pageable", "pinned", "array"}) {
          Memory a = random(kind, n, 1);
          Memory b = random(kind, n, 2);
          Memory c = allocate(kind, n);
          for (Compute compute : new Compute[] {Compute.EXACT, Compute.TF32})
            measure(kind, compute, n, samples, a, b, c);
        }
      }
    }
  }
}
