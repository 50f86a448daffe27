// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

/** GEMMs in all forms, on both kinds of device. */
@RunWith(Parameterized.class)
public class GemmTest {
  private static final int M = 7;
  private static final int N = 5;
  private static final int K = 9;

  @Parameterized.Parameters(name = "{0}")
  public static Collection<Object[]> devices() {
    return Arrays.asList(new Object[][] {{"cpu"}, {"sim:h200"}});
  }

  @Parameterized.Parameter public String device;

  private Context context;
  private final float[] a = Support.integers(M * K, 1);
  private final float[] b = Support.integers(K * N, 2);
  private final float[] wanted = Support.multiply(a, b, M, N, K);

  @Before
  public void open() {
    context = Context.open(device);
  }

  @After
  public void close() {
    context.close();
  }

  @Test
  public void directBuffers() {
    FloatBuffer c = Support.directNan(M * N);
    Matrix result = Matrix.of(c, M, N);
    assertSame(result,
        context.gemmAsync(Matrix.of(Support.direct(a), M, K), Matrix.of(Support.direct(b), K, N), result).join());
    assertArrayEquals(wanted, Support.content(c), 0);
  }

  @Test
  public void doubles() {
    DoubleBuffer c = ByteBuffer.allocateDirect(8 * M * N).order(ByteOrder.nativeOrder()).asDoubleBuffer();
    context.gemm(
        Matrix.of(Support.directDoubles(a), M, K), Matrix.of(Support.directDoubles(b), K, N), Matrix.of(c, M, N));
    for (int i = 0; i < M * N; ++i) assertEquals(wanted[i], c.get(i), 0);
  }

  @Test
  public void arrays() {
    float[] c = new float[M * N];
    Arrays.fill(c, Float.NaN);
    context.gemmAsync(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(c, M, N)).join();
    assertArrayEquals(wanted, c, 0);
    Arrays.fill(c, Float.NaN);
    context.gemm(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(c, M, N));
    assertArrayEquals(wanted, c, 0);
  }

  @Test
  public void arraysOfDoubles() {
    double[] da = new double[M * K];
    double[] db = new double[K * N];
    for (int i = 0; i < da.length; ++i) da[i] = a[i];
    for (int i = 0; i < db.length; ++i) db[i] = b[i];
    double[] c = new double[M * N];
    context.gemmAsync(Matrix.of(da, M, K), Matrix.of(db, K, N), Matrix.of(c, M, N)).join();
    for (int i = 0; i < c.length; ++i) assertEquals(wanted[i], c[i], 0);
  }

  /** The expected result with a bias of each column, or of each row, and ReLU. */
  private float[] ended(float[] bias, boolean perColumn, boolean relu) {
    float[] made = wanted.clone();
    for (int i = 0; i < M * N; ++i) {
      made[i] += bias[perColumn ? i % N : i / N];
      if (relu && made[i] < 0) made[i] = 0;
    }
    return made;
  }

  @Test
  public void biasAndActivation() {
    float[] row = Support.integers(N, 3);
    float[] column = Support.integers(M, 4);
    FloatBuffer c = Support.directNan(M * N);
    Gemm gemm = Gemm.of(Matrix.of(Support.direct(a), M, K), Matrix.of(Support.direct(b), K, N), Matrix.of(c, M, N));
    context.gemm(gemm.withBias(Matrix.of(Support.direct(row), 1, N)));
    assertArrayEquals(ended(row, true, false), Support.content(c), 0);
    context.gemmAsync(gemm.withBias(Matrix.of(Support.direct(column), M, 1)).with(Activation.RELU)).join();
    assertArrayEquals(ended(column, false, true), Support.content(c), 0);
    context.gemmAsync(gemm.withBias(Matrix.of(row, 1, N)).with(Activation.RELU)).join(); // an array is copied
    assertArrayEquals(ended(row, true, true), Support.content(c), 0);
    context.gemmAsync(List.of(gemm.withBias(Matrix.of(column, M, 1))), new Submit()).join();
    assertArrayEquals(ended(column, false, false), Support.content(c), 0);
    context.gemm(gemm.with(Activation.GELU));
    for (int i = 0; i < M * N; ++i) {
      double x = wanted[i];
      assertEquals(x / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))), c.get(i), 1e-5);
    }
    Gemm planned = gemm.withBias(Matrix.of(Support.direct(row), 1, N)).with(Activation.RELU);
    try (Plan plan = context.plan(planned)) {
      plan.runAsync(planned).join();
      assertArrayEquals(ended(row, true, true), Support.content(c), 0);
    }
    try (Graph graph = context.graph()) {
      FloatBuffer bias = Support.direct(row);
      graph.record(gemm.withBias(Matrix.of(bias, 1, N)));
      bias.put(0, bias.get(0) + 1);
      graph.runAsync().join();
      row[0] += 1;
      assertArrayEquals(ended(row, true, false), Support.content(c), 0);
    }
  }

  @Test
  public void aBiasOfEachItem() {
    float[] biases = Support.integers(2 * (N + 3), 5);
    float[] c = new float[2 * M * N];
    context.gemm(Gemm.of(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(c, M, N)).withBatch(2, 0, 0, M * N)
        .withBias(Matrix.of(biases, 1, N), N + 3));
    for (int i = 0; i < 2 * M * N; ++i)
      assertEquals(wanted[i % (M * N)] + biases[i / (M * N) * (N + 3) + i % N], c[i], 0);
  }

  @Test
  public void wrongBiases() {
    Gemm gemm = Gemm.of(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(new float[M * N], M, N));
    for (Matrix wrong : List.of(Matrix.of(new float[M], 1, M), Matrix.of(new double[N], 1, N),
             Matrix.of(new float[2 * M], 0, M, 1, 2, Layout.ROW_MAJOR)))
      assertThrows(StreamGemmException.InvalidArgument.class, () -> gemm.withBias(wrong));
  }

  @Test
  public void deviceMemory() {
    Matrix da = context.deviceMatrix(DType.F32, M, K);
    Matrix db = context.deviceMatrix(DType.F32, K, N);
    Matrix dc = context.deviceMatrix(DType.F32, M, N);
    float[] c = new float[M * N];
    context.copyAsync(da, Matrix.of(a, M, K)); // ordered by the memory that the jobs share
    context.copyAsync(db, Matrix.of(Support.direct(b), K, N));
    context.gemmAsync(da, db, dc);
    context.copyAsync(Matrix.of(c, M, N), dc).join();
    assertArrayEquals(wanted, c, 0);
  }

  @Test
  public void matricesOnTheDevice() {
    Matrix da = context.onDevice(Matrix.of(a, M, K));
    Matrix db = context.onDevice(Matrix.of(Support.direct(b), K, N));
    Matrix dc = context.deviceMatrix(DType.F32, M, N);
    context.gemmAsync(da, db, dc);
    assertArrayEquals(wanted, context.toFloats(dc), 0); // after the product
    assertArrayEquals(a, context.toFloats(context.onDevice(da)), 0);
    double[] values = {1, 2, 3, 4, 5, 6};
    Matrix columns = Matrix.of(values, 0, 3, 2, 0, Layout.COLUMN_MAJOR);
    assertArrayEquals(values, context.toDoubles(context.onDevice(columns)), 0);
    assertArrayEquals(new double[] {2, 3}, context.toDoubles(context.onDevice(columns).block(1, 0, 2, 1)), 0);
    assertEquals(0, context.toFloats(context.onDevice(Matrix.of(new float[0], 0, 5))).length);
    StreamGemmException.InvalidArgument refused =
        assertThrows(StreamGemmException.InvalidArgument.class, () -> context.toFloats(columns));
    assertTrue(refused.getMessage(), refused.getMessage().contains("its elements must be F32"));
  }

  /** A short copy may complete before its submission has returned. */
  @Test
  public void workThatCompletesDuringItsSubmission() {
    Matrix from = context.deviceMatrix(DType.F32, 1, 1);
    Matrix to = context.deviceMatrix(DType.F32, 1, 1);
    float[] one = {7};
    context.copyAsync(from, Matrix.of(one, 1, 1)).join();
    for (int i = 0; i < 20_000; ++i) context.copyAsync(to, from).join();
    one[0] = 0;
    context.copyAsync(Matrix.of(one, 1, 1), to).join();
    assertEquals("the memory is there still", 7, one[0], 0);
  }

  @Test
  public void arraysThatAreCopiedInPieces() {
    int rows = 1700; // with their columns, slightly more than two chunks
    int cols = 1300;
    float[] from = Support.integers(rows * cols, 8);
    float[] to = new float[rows * cols];
    context.copyAsync(Matrix.of(to, rows, cols), Matrix.of(from, rows, cols)).join();
    assertArrayEquals(from, to, 0);
    double[] exact = new double[rows * cols];
    double[] back = new double[rows * cols];
    for (int i = 0; i < exact.length; ++i) exact[i] = i;
    context.copyAsync(Matrix.of(back, rows, cols), Matrix.of(exact, rows, cols)).join();
    assertArrayEquals(exact, back, 0);
  }

  @Test
  public void scalarsAndTransposes() {
    // C^T = B^T A^T, by columns, which is C by rows.
    float[] c = wanted.clone();
    Matrix aT = Matrix.of(a, 0, K, M, 0, Layout.COLUMN_MAJOR); // K x M: the transpose of A
    Matrix bT = Matrix.of(b, 0, N, K, 0, Layout.COLUMN_MAJOR);
    context.gemmAsync(Gemm.of(aT, bT, Matrix.of(c, M, N)).with(Transpose.T, Transpose.T).with(2, -1)).join();
    assertArrayEquals(wanted, c, 0);
  }

  @Test
  public void gapsBetweenRowsAreNotTouched() {
    int ld = N + 3;
    float[] c = new float[2 + M * ld];
    Arrays.fill(c, 77);
    context.gemmAsync(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(c, 2, M, N, ld, Layout.ROW_MAJOR)).join();
    for (int i = 0; i < c.length; ++i) {
      int row = (i - 2) / ld;
      int col = (i - 2) % ld;
      float expected = i < 2 || col >= N ? 77 : wanted[row * N + col];
      assertEquals("element " + i, expected, c[i], 0);
    }
  }

  @Test
  public void blocks() {
    FloatBuffer whole = Support.direct(Support.integers(20 * 20, 3));
    Matrix all = Matrix.of(whole, 20, 20);
    FloatBuffer c = Support.directNan(3 * 4);
    context.gemm(all.block(2, 3, 3, 6), all.block(8, 9, 6, 4), Matrix.of(c, 3, 4));
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) {
        float sum = 0;
        for (int l = 0; l < 6; ++l) sum += whole.get((2 + i) * 20 + 3 + l) * whole.get((8 + l) * 20 + 9 + j);
        assertEquals(sum, c.get(i * 4 + j), 0);
      }
  }

  @Test
  public void stridedBatch() {
    int items = 6;
    float[] as = Support.integers(items * M * K, 4);
    float[] c = new float[items * M * N];
    context
        .gemmAsync(
            Gemm.of(Matrix.of(as, M, K), Matrix.of(b, K, N), Matrix.of(c, M, N)).withBatch(items, M * K, 0, M * N))
        .join();
    for (int i = 0; i < items; ++i)
      assertArrayEquals(Support.multiply(Arrays.copyOfRange(as, i * M * K, (i + 1) * M * K), b, M, N, K),
          Arrays.copyOfRange(c, i * M * N, (i + 1) * M * N), 0);
  }

  @Test
  public void scatteredBatch() {
    List<Matrix> as = new ArrayList<>();
    List<Matrix> bs = new ArrayList<>();
    List<Matrix> cs = new ArrayList<>();
    List<FloatBuffer> results = new ArrayList<>();
    for (int i = 0; i < 4; ++i) {
      as.add(Matrix.of(Support.direct(Support.integers(M * K, 10 + i)), M, K));
      bs.add(Matrix.of(Support.direct(b), K, N));
      results.add(Support.directNan(M * N));
      cs.add(Matrix.of(results.get(i), M, N));
    }
    context.gemmAsync(Gemm.batched(as, bs, cs)).join();
    context.gemm(Gemm.batched(as, bs, cs).with(1, 1));
    for (int i = 0; i < 4; ++i) {
      float[] once = Support.multiply(Support.integers(M * K, 10 + i), b, M, N, K);
      for (int e = 0; e < once.length; ++e) assertEquals(2 * once[e], results.get(i).get(e), 0);
    }
  }

  @Test
  public void group() {
    float[] c = new float[M * N];
    float[] d = new float[M * M];
    float[] square = Support.integers(M * M, 5);
    List<Gemm> group = List.of(Gemm.of(Matrix.of(a, M, K), Matrix.of(b, K, N), Matrix.of(c, M, N)),
        Gemm.of(Matrix.of(square, M, M), Matrix.of(square, M, M), Matrix.of(d, M, M)).with(3, 0));
    assertEquals(group, context.gemmAsync(group, new Submit()).join());
    assertArrayEquals(wanted, c, 0);
    float[] cube = Support.multiply(square, square, M, M, M);
    for (int i = 0; i < d.length; ++i) assertEquals(3 * cube[i], d[i], 0);
  }

  @Test
  public void complex() {
    // (1 + 2i) * (3 - i) * i = (5 + 5i) * i = -5 + 5i
    FloatBuffer c = Support.directNan(2);
    context.gemm(Gemm.of(Matrix.of(Support.direct(1, 2), DType.C64, 1, 1),
                         Matrix.of(Support.direct(3, -1), DType.C64, 1, 1), Matrix.of(c, DType.C64, 1, 1))
                     .with(0, 1, 0, 0));
    assertArrayEquals(new float[] {-5, 5}, Support.content(c), 0);
  }

  @Test
  public void bytes() {
    ByteBuffer x = ByteBuffer.allocateDirect(4).put(new byte[] {1, -2, 3, 127}); // a byte has no order
    x.flip();
    IntBuffer c = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder()).asIntBuffer();
    context.gemm(Matrix.of(x, DType.I8, 1, 4), Matrix.of(x, DType.I8, 4, 1), Matrix.of(c, DType.I32, 1, 1));
    assertEquals(1 + 4 + 9 + 127 * 127, c.get(0));
  }

  @Test
  public void shortFloats() {
    byte[] e4m3 = {0x38, (byte) 0xc0, 0x44, 0x01}, e5m2 = {0x3c, (byte) 0xc0, 0x42, 0x01}; // 1, -2, 3, the least
    for (DType type : new DType[] {DType.F8_E4M3, DType.F8_E5M2}) {
      ByteBuffer x = ByteBuffer.allocateDirect(4).put(type == DType.F8_E4M3 ? e4m3 : e5m2);
      x.flip();
      FloatBuffer c = Support.directNan(1);
      context.gemm(Gemm.of(Matrix.of(x, type, 1, 4), Matrix.of(x, type, 4, 1), Matrix.of(c, 1, 1)).with(Compute.F8));
      float least = type == DType.F8_E4M3 ? 0x1p-9f : 0x1p-16f;
      assertEquals(14 + least * least, c.get(0), 0);
    }
  }

  @Test
  public void empty() {
    assertEquals(0,
        context.gemmAsync(Matrix.of(new float[0], 0, K), Matrix.of(b, K, N), Matrix.of(new float[0], 0, N))
            .join()
            .rows());
  }

  @Test
  public void jobsThatShareMemoryRunInOrder() {
    int n = 40;
    float[] x = Support.integers(n * n, 6);
    float[] identity = new float[n * n];
    for (int i = 0; i < n; ++i) identity[i * n + i] = 1;
    Matrix one = Matrix.of(Support.direct(identity), n, n);
    Matrix from = Matrix.of(Support.direct(x), n, n);
    Job<Matrix> last = null;
    for (int i = 0; i < 50; ++i) {
      Matrix to = context.pinnedMatrix(DType.F32, n, n);
      last = context.gemmAsync(Gemm.of(one, from, to).with(i % 2 == 0 ? 2 : 0.5, 0));
      from = to;
    }
    float[] result = new float[n * n];
    context.copyAsync(Matrix.of(result, n, n), last.join()).join();
    assertArrayEquals(x, result, 0);
  }
}
