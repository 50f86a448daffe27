// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** Closing twice, closing parents first, dropping everything with work in flight: all safe. */
public class LifetimeTest {
  private static final String LATE = "sim:h200?late-copy=1:300000";

  private static Matrix filled(Context context, int n, float value) {
    Matrix made = context.pinnedMatrix(DType.F32, n, n);
    FloatBuffer all = ((PinnedMemory) made.owner()).window(0, 4 * n * n).asFloatBuffer();
    while (all.hasRemaining()) all.put(value);
    return made;
  }

  private static float first(Matrix m) {
    return ((PinnedMemory) m.owner()).window(0, 4).getFloat(0);
  }

  @Test
  public void closingTwice() {
    Context context = Context.open("cpu");
    Stream stream = context.stream();
    Event event = context.event();
    DeviceBuffer buffer = context.allocateDevice(64);
    Matrix shape = Matrix.shape(DType.F32, 2, 2);
    Plan plan = context.plan(Gemm.of(shape, shape, shape));
    Registration registration = context.register(ByteBuffer.allocateDirect(1 << 16));
    for (int twice = 0; twice < 2; ++twice)
      for (NativeObject each : List.of(context, stream, event, buffer, plan, registration)) {
        each.close();
        assertTrue(each.isClosed());
      }
    assertEquals(
        "this Context is closed", assertThrows(StreamGemmException.InvalidHandle.class, context::stream).getMessage());
    assertThrows(StreamGemmException.InvalidHandle.class, context::synchronize);
    assertThrows(StreamGemmException.InvalidHandle.class, stream::synchronize);
    assertThrows(StreamGemmException.InvalidHandle.class, event::await);
    assertThrows(StreamGemmException.InvalidHandle.class, plan::prediction);
    assertThrows(StreamGemmException.InvalidHandle.class, () -> context.allocatePinned(1));
    Matrix one = Matrix.of(new float[1], 1, 1);
    assertThrows(
        StreamGemmException.InvalidHandle.class, () -> context.gemmAsync(one, one, Matrix.of(new float[1], 1, 1)));
  }

  @Test
  public void parentsFirst() {
    Context context = Context.open("sim:h200");
    Stream stream = context.stream();
    Event event = context.event();
    Matrix shape = Matrix.shape(DType.F32, 64, 64);
    Plan plan = context.plan(Gemm.of(shape, shape, shape));
    ByteBuffer pinned = context.allocatePinned(4096);
    context.close();
    event.record(stream);
    event.await();
    stream.synchronize();
    assertTrue(plan.prediction().flops() > 0);
    pinned.putInt(0, 7);
    assertEquals(7, pinned.getInt(0));
    plan.close();
    event.close();
    stream.close();
  }

  @Test
  public void deviceMemoryThatIsClosedCannotBeSubmitted() {
    try (Context context = Context.open("sim:h200")) {
      Matrix a = context.deviceMatrix(DType.F32, 4, 4);
      Matrix c = context.deviceMatrix(DType.F32, 4, 4);
      ((DeviceBuffer) a.owner()).close();
      assertThrows(StreamGemmException.InvalidHandle.class, () -> context.gemmAsync(a, a, c));
    }
  }

  @Test(timeout = 60000)
  public void deviceMemoryIsClosedWithWorkInFlight() throws Exception {
    try (Context context = Context.open(LATE)) {
      Matrix from = filled(context, 64, 3);
      float[] back = new float[64 * 64];
      Matrix device = context.deviceMatrix(DType.F32, 64, 64);
      context.copyAsync(device, from);
      Job<Matrix> out = context.copyAsync(Matrix.of(back, 64, 64), device);
      ((DeviceBuffer) device.owner()).close();
      out.join();
      assertEquals(3, back[4095], 0);
    }
  }

  @Test(timeout = 60000)
  public void contextIsClosedWithWorkInFlight() {
    Context context = Context.open(LATE);
    Matrix c = filled(context, 64, Float.NaN);
    Job<Matrix> job = context.gemmAsync(filled(context, 64, 1), filled(context, 64, 2), c);
    float[] inArray = new float[1];
    Matrix two = Matrix.of(new float[] {2}, 1, 1);
    Job<Matrix> staged = context.gemmAsync(two, two, Matrix.of(inArray, 1, 1));
    context.close();
    job.join();
    staged.join();
    assertEquals(128, first(c), 0);
    assertEquals(4, inArray[0], 0);
  }

  /** Submits and lets go of the operands; only the result's memory is still known. */
  private static Matrix dropOperands(Context context, List<WeakReference<Object>> dropped, List<Job<Matrix>> jobs) {
    Matrix a = filled(context, 64, 1);
    Matrix b = filled(context, 64, 2);
    Matrix c = filled(context, 64, Float.NaN);
    dropped.add(new WeakReference<>(a.owner()));
    dropped.add(new WeakReference<>(b.owner()));
    jobs.add(context.gemmAsync(a, b, c));
    return c;
  }

  @Test(timeout = 60000)
  public void operandsThatAreDroppedLiveUntilTheWorkHasEnded() throws Exception {
    try (Context context = Context.open("sim:h200?late-copy=1:1000000")) {
      List<WeakReference<Object>> dropped = new ArrayList<>();
      List<Job<Matrix>> jobs = new ArrayList<>();
      Matrix c = dropOperands(context, dropped, jobs);
      Job<Matrix> job = jobs.get(0);
      WeakReference<Object> garbage = new WeakReference<>(filled(context, 64, 9).owner());
      Support.collectUntil("garbage is collected", () -> garbage.get() == null);
      assertFalse(job.isDone());
      for (WeakReference<Object> each : dropped) assertTrue("collected while it is read", each.get() != null);
      job.join();
      assertEquals(128, first(c), 0);
      for (WeakReference<Object> each : dropped)
        Support.collectUntil("operands are collected", () -> each.get() == null);
    }
  }

  /** Everything is dropped: the context, the job, the operands. */
  private static WeakReference<Context> dropEverything(String device, boolean[] told) {
    Context context = Context.open(device);
    Matrix c = filled(context, 64, Float.NaN);
    context.gemmAsync(filled(context, 64, 1), filled(context, 64, 2), c).thenAccept(m -> told[0] = first(m) == 128);
    return new WeakReference<>(context);
  }

  @Test(timeout = 60000)
  public void everythingIsDroppedWithWorkInFlight() throws Exception {
    for (String device : List.of("cpu", LATE)) {
      boolean[] told = new boolean[1];
      WeakReference<Context> context = dropEverything(device, told);
      Support.collectUntil("the dropped context is collected", () -> context.get() == null);
      Support.collectUntil("the stage runs", () -> told[0]);
    }
  }

  private static long completionThreads() {
    return Thread.getAllStackTraces()
        .keySet()
        .stream()
        .filter(t -> t.getName().startsWith("streamgemm-completions"))
        .count();
  }

  @Test(timeout = 60000)
  public void threadsEndWithTheirContexts() throws Exception {
    Support.collectUntil("earlier contexts are gone", () -> completionThreads() == 0);
    for (int i = 0; i < 20; ++i) try (Context context = Context.open("cpu")) {
        Matrix one = Matrix.of(new float[] {1}, 1, 1);
        context.gemmAsync(one, one, Matrix.of(new float[1], 1, 1));
      }
    Support.collectUntil("the threads end", () -> completionThreads() == 0);
  }

  @Test(timeout = 120000)
  public void submittingAndClosingAtOnce() throws Exception {
    for (int round = 0; round < 100; ++round) {
      Context context = Context.open("cpu");
      List<Job<Matrix>> jobs = new ArrayList<>();
      Thread submitter = new Thread(() -> {
        Matrix x = Matrix.of(Support.direct(1), 1, 1);
        try {
          for (;;) jobs.add(context.gemmAsync(x, x, Matrix.of(Support.directNan(1), 1, 1)));
        } catch (StreamGemmException.InvalidHandle closed) {
          // as it should be
        }
      });
      submitter.start();
      Thread.sleep(round % 5);
      context.close();
      submitter.join();
      for (Job<Matrix> job : jobs) job.get(20, TimeUnit.SECONDS);
    }
  }
}
