// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.List;
import org.junit.AfterClass;
import org.junit.BeforeClass;
import org.junit.Test;
import org.junit.function.ThrowingRunnable;

/** Wrong operands are refused, by name, before anything is touched; slices start where they should. */
public class MatrixTest {
  private static Context context;

  @BeforeClass
  public static void open() {
    context = Context.open("cpu");
  }

  @AfterClass
  public static void close() {
    context.close();
  }

  private static void refused(String words, ThrowingRunnable call) {
    StreamGemmException.InvalidArgument e = assertThrows(StreamGemmException.InvalidArgument.class, call);
    assertEquals(Status.INVALID_ARGUMENT, e.status());
    for (String word : words.split(" "))
      assertTrue("\"" + word + "\" in: " + e.getMessage(), e.getMessage().contains(word));
  }

  private static Matrix matrix(int rows, int cols) {
    return Matrix.of(Support.direct(new float[rows * cols]), rows, cols);
  }

  @Test
  public void buffersOfTheHeap() {
    refused("heap direct", () -> Matrix.of(FloatBuffer.allocate(4), 2, 2));
    refused("heap direct", () -> Matrix.of(FloatBuffer.wrap(new float[4]), 2, 2));
  }

  @Test
  public void buffersOfTheOtherOrder() {
    assertEquals(ByteOrder.LITTLE_ENDIAN, ByteOrder.nativeOrder());
    refused("order BIG_ENDIAN", () -> Matrix.of(ByteBuffer.allocateDirect(16).asFloatBuffer(), 2, 2));
    refused("order BIG_ENDIAN", () -> Matrix.of(ByteBuffer.allocateDirect(16), DType.F32, 2, 2));
  }

  @Test
  public void buffersThatAreTooSmall() {
    refused("2 x 2 4 3", () -> Matrix.of(Support.direct(1, 2, 3), 2, 2));
    refused("ld 5", () -> Matrix.of(Support.direct(1, 2, 3, 4), DType.F32, 2, 2, 5, Layout.ROW_MAJOR));
    refused("4 3", () -> Matrix.of(Support.direct(1, 2, 3, 4).position(1), 2, 2));
    refused("4 3", () -> Matrix.of(Support.direct(1, 2, 3, 4).limit(3), 2, 2));
    refused("4 3", () -> Matrix.of(new float[3], 2, 2));
    refused("4 3", () -> Matrix.of(new float[4], 1, 2, 2, 0, Layout.ROW_MAJOR));
    refused("needs", () -> Matrix.of(new float[4], Long.MAX_VALUE, Long.MAX_VALUE));
    refused("-1", () -> Matrix.of(new float[4], -1, 2));
    refused("ld 1", () -> Matrix.of(new float[4], 0, 2, 2, 1, Layout.ROW_MAJOR));
    assertThrows(IndexOutOfBoundsException.class, () -> Matrix.of(new float[4], 5, 0, 0, 0, Layout.ROW_MAJOR));
    refused("offset 17", () -> Matrix.of(context.allocateDevice(16), 17, DType.F32, 1, 1));
    refused("4 there", () -> Matrix.of(context.allocateDevice(16), 4, DType.F32, 2, 2));
  }

  @Test
  public void batchesThatAreTooLong() {
    Gemm one = Gemm.of(matrix(2, 2), matrix(2, 2), matrix(2, 2));
    refused("a 3 items", () -> one.withBatch(3, 4, 0, 0));
    refused("c 2 items", () -> one.withBatch(2, 0, 0, 4));
    refused("b -4", () -> one.withBatch(2, 0, -4, 0));
    refused("items 0", () -> one.withBatch(0, 0, 0, 0));
    refused("items", () -> Gemm.batched(List.of(matrix(2, 2)), List.of(), List.of()));
    refused("b[1] b[0]",
        ()
            -> Gemm.batched(List.of(matrix(2, 2), matrix(2, 2)), List.of(matrix(2, 2), matrix(2, 3)),
                List.of(matrix(2, 2), matrix(2, 2))));
  }

  @Test
  public void readOnly() {
    FloatBuffer locked = Support.direct(1, 2, 3, 4).asReadOnlyBuffer();
    Matrix input = Matrix.of(locked, 2, 2);
    refused("c read-only", () -> Gemm.of(input, input, input));
    refused("c[0] read-only", () -> Gemm.batched(List.of(input), List.of(input), List.of(input)));
    refused("read-only", () -> context.copyAsync(input, matrix(2, 2)));
    FloatBuffer c = Support.directNan(4);
    context.gemm(input, input, Matrix.of(c, 2, 2));
    assertArrayEquals(new float[] {7, 10, 15, 22}, Support.content(c), 0);
  }

  @Test
  public void nulls() {
    assertThrows(NullPointerException.class, () -> Gemm.of(null, matrix(1, 1), matrix(1, 1)));
    assertThrows(NullPointerException.class, () -> Gemm.of(matrix(1, 1), matrix(1, 1), null));
    assertThrows(NullPointerException.class, () -> Matrix.of((float[]) null, 1, 1));
    assertThrows(NullPointerException.class, () -> context.gemmAsync((Gemm) null));
    assertThrows(
        NullPointerException.class, () -> context.gemm(Gemm.of(matrix(1, 1), matrix(1, 1), matrix(1, 1)), null));
  }

  @Test
  public void shapesAndTypesThatDoNotAgree() {
    refused("b 2 3", () -> context.gemmAsync(matrix(2, 3), matrix(2, 2), matrix(2, 2)));
    refused("c 3", () -> context.gemm(matrix(2, 3), matrix(3, 2), matrix(2, 3)));
    Matrix doubles = Matrix.of(new double[4], 2, 2);
    refused("b f64", () -> context.gemmAsync(matrix(2, 2), doubles, matrix(2, 2)));
    refused("to from", () -> context.copyAsync(matrix(2, 2), matrix(2, 3)));
  }

  @Test
  public void overlap() {
    Matrix whole = matrix(4, 4);
    refused("c a", () -> context.gemmAsync(whole, matrix(4, 4), whole));
    refused("c overlaps", () -> context.gemmAsync(whole.block(0, 0, 2, 2), matrix(2, 2), whole.block(1, 1, 2, 2)));
    float[] array = new float[8];
    refused("c overlaps",
        () -> context.gemmAsync(Matrix.of(array, 2, 2), matrix(2, 2), Matrix.of(array, 3, 2, 2, 0, Layout.ROW_MAJOR)));
    // Adjacent ranges are allowed.
    array[0] = 3;
    context.gemm(Matrix.of(array, 1, 1), Matrix.of(array, 1, 1), Matrix.of(array, 1, 1, 1, 0, Layout.ROW_MAJOR));
    assertEquals(9, array[1], 0);
  }

  @Test
  public void arraysOfPendingResults() {
    float[] c = new float[1];
    try (Stream stream = context.stream(); Gate gate = new Gate(1)) {
      Job<Matrix> before = gate.job(context, new Submit().stream(stream));
      Job<Matrix> job = context.gemmAsync(
          Gemm.of(Matrix.of(new float[] {2}, 1, 1), Matrix.of(new float[] {3}, 1, 1), Matrix.of(c, 1, 1)),
          new Submit().stream(stream));
      refused("b in flight", () -> context.gemmAsync(matrix(1, 1), Matrix.of(c, 1, 1), matrix(1, 1)));
      refused("c in flight", () -> context.gemmAsync(matrix(1, 1), matrix(1, 1), Matrix.of(c, 1, 1)));
      gate.open();
      job.join();
      before.join();
      context.gemmAsync(Matrix.of(c, 1, 1), matrix(1, 1), matrix(1, 1)).join();
      assertEquals(6, c[0], 0);
    }
  }

  @Test
  public void partsOfAnArrayAreResultsOfSeveralJobs() {
    float[] all = new float[8];
    Matrix[] parts = new Matrix[8];
    for (int i = 0; i < 8; ++i) parts[i] = Matrix.of(all, i, 1, 1, 0, Layout.ROW_MAJOR);
    Matrix two = Matrix.of(new float[] {2}, 1, 1);
    try (Stream stream = context.stream(); Gate gate = new Gate(1)) {
      Submit inOrder = new Submit().stream(stream);
      Job<Matrix> before = gate.job(context, inOrder);
      List<Job<Matrix>> jobs = new java.util.ArrayList<>();
      for (int i = 0; i < 4; ++i) jobs.add(context.gemmAsync(Gemm.of(two, two, parts[i]).with(i + 1, 0), inOrder));
      refused("c in flight",
          () -> context.gemmAsync(two, two, Matrix.of(all, 3, 1, 2, 0, Layout.ROW_MAJOR).block(0, 0, 1, 1)));
      Job<List<Gemm>> group = context.gemmAsync(
          List.of(Gemm.of(two, two, parts[4]), Gemm.of(parts[6], two, parts[5]), Gemm.of(two, parts[6], parts[7])),
          inOrder);
      gate.open();
      before.join();
      for (Job<Matrix> job : jobs) job.join();
      group.join();
    }
    assertArrayEquals(new float[] {4, 8, 12, 16, 4, 0, 0, 0}, all, 0);
    refused("c[1] overlaps",
        () -> context.gemm(Gemm.batched(List.of(two, two), List.of(two, two), List.of(parts[0], parts[0]))));
    context.gemm(Gemm.batched(List.of(two, two), List.of(two, two), List.of(parts[6], parts[5])));
    assertArrayEquals(new float[] {4, 8, 12, 16, 4, 4, 4, 0}, all, 0);
  }

  @Test
  public void slicesStartWhereTheyShould() {
    ByteBuffer bytes = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
    for (int i = 0; i < 16; ++i) bytes.putFloat(4 * i, i);
    FloatBuffer floats = bytes.asFloatBuffer();
    Matrix unit = Matrix.of(new float[] {1}, 1, 1);
    FloatBuffer[] views = {floats.duplicate().position(5), (floats.duplicate().position(5)).slice(),
        (floats.duplicate().position(2)).slice().position(3),
        (bytes.duplicate().order(ByteOrder.nativeOrder()).position(20))
            .slice()
            .order(ByteOrder.nativeOrder())
            .asFloatBuffer()};
    for (FloatBuffer view : views) {
      float[] c = new float[1];
      context.gemm(Matrix.of(view, 1, 1), unit, Matrix.of(c, 1, 1));
      assertEquals(5, c[0], 0);
    }
    float[] c = new float[1];
    context.gemm(Matrix.of(bytes.position(24), DType.F32, 1, 1), unit, Matrix.of(c, 1, 1));
    assertEquals(6, c[0], 0);
    assertEquals(Matrix.of(floats, 4, 4).address() + 4 * 6, Matrix.of(floats, 4, 4).block(1, 2, 3, 2).address());
    refused("block", () -> Matrix.of(floats, 4, 4).block(2, 2, 3, 1));
  }

  @Test
  public void unsupportedCombinations() {
    Matrix f16 = Matrix.of(ByteBuffer.allocateDirect(2).order(ByteOrder.nativeOrder()), DType.F16, 1, 1);
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, () -> context.gemm(f16, f16, Matrix.of(new double[1], 1, 1)));
    assertTrue(e.getMessage(), e.getMessage().contains("c"));
  }
}
