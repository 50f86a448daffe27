// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.List;
import org.junit.Test;

/** Pinned memory, device memory, and no copies. */
public class MemoryTest {
  @Test
  public void pinnedBuffers() {
    try (Context context = Context.open("sim:h200")) {
      ByteBuffer pinned = context.allocatePinned(10000);
      assertTrue(pinned.isDirect());
      assertFalse(pinned.isReadOnly());
      assertEquals(ByteOrder.nativeOrder(), pinned.order());
      assertEquals(10000, pinned.remaining());
      assertEquals(0, Matrix.of(pinned, DType.I8, 1, 1).address() % 4096);
      assertEquals(0, context.allocatePinned(0).remaining());
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.allocatePinned(-1));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.pinnedMatrix(DType.F32, -1, 1));
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.pinnedMatrix(DType.F32, Long.MAX_VALUE, 2));
      assertThrows(StreamGemmException.OutOfMemory.class, () -> context.allocateDevice(1L << 60));
      for (int device = -1; device <= 0; ++device) {
        Matrix near = context.pinnedMatrix(DType.F32, 8, 8, device);
        assertEquals(0, near.address() % 4096);
        context.gemm(near, near, context.pinnedMatrix(DType.F32, 8, 8));
      }
      assertThrows(StreamGemmException.InvalidArgument.class, () -> context.pinnedMatrix(DType.F32, 8, 8, 1));
      PinnedMemory memory = (PinnedMemory) context.pinnedMatrix(DType.F64, 10, 10).owner();
      assertEquals(800, memory.size());
      assertThrows(IndexOutOfBoundsException.class, () -> memory.window(1, 800));
    }
  }

  /** Only a view refers to the memory. */
  private static FloatBuffer viewOfDropped(Context context) {
    ByteBuffer whole = context.allocatePinned(1 << 20);
    FloatBuffer view = whole.duplicate().position(4096).slice().order(ByteOrder.nativeOrder()).asFloatBuffer();
    view.put(0, 5);
    return view;
  }

  @Test
  public void viewsKeepPinnedMemory() throws Exception {
    try (Context context = Context.open("cpu")) {
      FloatBuffer view = viewOfDropped(context);
      for (int i = 0; i < 5; ++i) {
        System.gc();
        Thread.sleep(20);
        context.allocatePinned(1 << 20).asFloatBuffer().put(1024, 9);
      }
      assertEquals(5, view.get(0), 0);
    }
  }

  @Test
  public void pinnedMemoryIsFreedWithItsBuffers() throws Exception {
    try (Context context = Context.open("cpu")) {
      long before = Support.residentBytes();
      for (int i = 0; i < 64; ++i) { // 4 GiB in all
        ByteBuffer pinned = context.allocatePinned(64 << 20);
        for (int at = 0; at < pinned.capacity(); at += 4096) pinned.put(at, (byte) 1);
        if (i % 16 == 15) Support.collectUntil("pinned memory is freed", MemoryTest::below1GiB);
      }
      assertTrue(Support.residentBytes() - before < 3L << 29);
    }
  }

  private static boolean below1GiB() {
    try {
      return Support.residentBytes() < 1L << 30;
    } catch (java.io.IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  public void pooledMemoryCanBeFreed() throws Exception {
    try (Context context = Context.open("cpu")) {
      int n = 3000;
      float[] a = new float[n * n];
      long before = Support.residentBytes();
      context.copyAsync(Matrix.of(new float[n * n], n, n), Matrix.of(a, n, n)).join();
      assertTrue("no copy was made", Support.residentBytes() - before > 8L * n * n);
      context.trim();
      assertTrue("resident memory is more by " + (Support.residentBytes() - before),
          Support.residentBytes() - before < 8L * n * n); // the new array is in it
    }
  }

  @Test
  public void registeredBuffers() {
    for (String device : List.of("cpu", "sim:h200")) try (Context context = Context.open(device)) {
        int n = 128;
        ByteBuffer own = ByteBuffer.allocateDirect(4 * n * n).order(ByteOrder.nativeOrder());
        own.asFloatBuffer().put(Support.integers(n * n, 1));
        Matrix a = Matrix.of(own, DType.F32, n, n);
        try (Registration registration = context.register(own)) {
          assertFalse(registration.isClosed());
          assertThrows(StreamGemmException.InvalidArgument.class, () -> context.register(own));
          context.gemmAsync(a, a, context.pinnedMatrix(DType.F32, n, n)); // closing waits for it
        }
        context.register(own).close();
        assertThrows(StreamGemmException.InvalidArgument.class, () -> context.register(FloatBuffer.allocate(1)));
      }
  }

  @Test
  public void stagingMemoryIsReused() throws Exception {
    try (Context context = Context.open("cpu")) {
      int n = 512;
      float[] a = new float[n * n];
      float[] c = new float[n * n];
      context.gemm(Matrix.of(a, n, n), Matrix.of(a, n, n), Matrix.of(c, n, n));
      long before = Support.residentBytes();
      for (int i = 0; i < 100; ++i)
        context.gemmAsync(Matrix.of(a, n, n), Matrix.of(a, n, n), Matrix.of(c, n, n)).join();
      assertTrue(
          "resident memory grew by " + (Support.residentBytes() - before), Support.residentBytes() - before < 64 << 20);
    }
  }

  /** A direct buffer of 1 GiB times a small one: the VM's memory before and after. */
  public static final class OneGiB {
    public static void main(String[] arguments) throws Exception {
      int rows = 1 << 20;
      int k = 256;
      int n = 8;
      FloatBuffer a = ByteBuffer.allocateDirect(4 * rows * k - 4).order(ByteOrder.nativeOrder()).asFloatBuffer();
      for (int i = 0; i < a.capacity(); ++i) a.put(i, i & 3);
      FloatBuffer b = Support.direct(Support.integers(k * n, 1));
      FloatBuffer c = Support.directNan(rows * n);
      try (Context context = Context.open("cpu")) {
        context
            .gemmAsync(Matrix.of(Support.direct(1), 1, 1), Matrix.of(Support.direct(1), 1, 1),
                Matrix.of(Support.directNan(1), 1, 1))
            .join();
        long before = Support.residentBytes();
        context.gemmAsync(Matrix.of(a, rows - 1, k), Matrix.of(b, k, n), Matrix.of(c, rows - 1, n)).join();
        long after = Support.residentBytes();
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += (((long) 12345 * k + l) & 3) * b.get(l * n + 5);
        if (c.get(12345 * n + 5) != sum) throw new AssertionError(c.get(12345 * n + 5) + " for " + sum);
        System.out.println(before + " " + after);
      }
    }
  }

  @Test
  public void aBufferOf1GiBIsMultipliedWithoutACopy() throws Exception {
    String[] bytes =
        Support.inOtherVm(OneGiB.class, List.of("-Xmx256m", "-XX:MaxDirectMemorySize=1200m")).trim().split(" ");
    long grown = Long.parseLong(bytes[1]) - Long.parseLong(bytes[0]);
    System.out.println("1 GiB direct buffer: resident memory grew by " + (grown >> 10) + " KiB (" + bytes[0] + " to "
        + bytes[1] + " bytes)");
    assertTrue("grew by " + grown, grown < (1L << 30) / 20);
  }
}
