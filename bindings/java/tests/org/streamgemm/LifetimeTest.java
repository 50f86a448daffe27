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
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.Test;

/** Closing twice, closing parents first, dropping everything with work in flight: all safe. */
public class LifetimeTest {
  private static final List<String> DEVICES = List.of("cpu", "sim:h200");

  private static Matrix filled(Context context, int n, float value) {
    Matrix made = context.pinnedMatrix(DType.F32, n, n);
    FloatBuffer all = ((PinnedMemory) made.owner()).window(0, 4 * n * n).asFloatBuffer();
    while (all.hasRemaining()) all.put(value);
    return made;
  }

  /** A matrix of ones that holds the work which reads it. */
  private static Gate gatedOnes(int n) {
    float[] ones = new float[n * n];
    Arrays.fill(ones, 1);
    return new Gate(ones);
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
  public void closedDeviceMemoryCannotBeSubmitted() {
    try (Context context = Context.open("sim:h200")) {
      Matrix a = context.deviceMatrix(DType.F32, 4, 4);
      Matrix c = context.deviceMatrix(DType.F32, 4, 4);
      ((DeviceBuffer) a.owner()).close();
      assertThrows(StreamGemmException.InvalidHandle.class, () -> context.gemmAsync(a, a, c));
    }
  }

  @Test(timeout = Support.LIMIT)
  public void deviceMemoryIsClosedWithWorkInFlight() {
    for (String name : DEVICES) try (Context context = Context.open(name); Gate gate = gatedOnes(64)) {
        float[] back = new float[64 * 64];
        Matrix device = context.deviceMatrix(DType.F32, 64, 64);
        context.copyAsync(device, gate.matrix(64, 64));
        Job<Matrix> out = context.copyAsync(Matrix.of(back, 64, 64), device);
        ((DeviceBuffer) device.owner()).close();
        assertEquals(2, context.inFlight());
        gate.open();
        out.join();
        assertEquals(1, back[4095], 0);
      }
  }

  @Test(timeout = Support.LIMIT)
  public void contextIsClosedWithWorkInFlight() {
    for (String name : DEVICES) try (Gate gate = gatedOnes(64)) {
        Context context = Context.open(name);
        Matrix c = filled(context, 64, Float.NaN);
        Job<Matrix> job = context.gemmAsync(gate.matrix(64, 64), filled(context, 64, 2), c);
        float[] inArray = new float[1];
        Matrix two = Matrix.of(new float[] {2}, 1, 1);
        Job<Matrix> staged = context.gemmAsync(Gemm.of(two, two, Matrix.of(inArray, 1, 1)), new Submit().after(job));
        context.close();
        assertFalse(job.isDone() || staged.isDone());
        gate.open();
        job.join();
        staged.join();
        assertEquals(128, first(c), 0);
        assertEquals(4, inArray[0], 0);
      }
  }

  /** Submits and drops an operand; the gate blocks the job. */
  private static Job<Matrix> dropOperand(Context context, Gate gate, Matrix c, List<WeakReference<Object>> dropped) {
    Matrix b = filled(context, 64, 2);
    dropped.add(new WeakReference<>(b.owner()));
    return context.gemmAsync(gate.matrix(64, 64), b, c);
  }

  @Test(timeout = Support.LIMIT)
  public void droppedOperandsLiveUntilTheJobHasCompleted() throws Exception {
    for (String name : DEVICES) try (Context context = Context.open(name); Gate gate = gatedOnes(64)) {
        List<WeakReference<Object>> dropped = new ArrayList<>();
        Matrix c = filled(context, 64, Float.NaN);
        Job<Matrix> job = dropOperand(context, gate, c, dropped);
        WeakReference<Object> garbage = new WeakReference<>(filled(context, 64, 9).owner());
        Support.collectUntil("garbage is collected", () -> garbage.get() == null);
        assertTrue("collected while it is read", dropped.get(0).get() != null);
        assertFalse(job.isDone());
        gate.open();
        job.join();
        assertEquals(128, first(c), 0);
        Support.collectUntil("operands are collected", () -> dropped.get(0).get() == null);
      }
  }

  /** Everything is dropped: the context, the job, the operands. */
  private static WeakReference<Context> dropEverything(String device, Gate gate, AtomicBoolean completed) {
    Context context = Context.open(device);
    Matrix c = filled(context, 64, Float.NaN);
    context.gemmAsync(gate.matrix(64, 64), filled(context, 64, 2), c).thenAccept(m -> completed.set(first(m) == 128));
    return new WeakReference<>(context);
  }

  @Test(timeout = Support.LIMIT)
  public void everythingIsDroppedWithWorkInFlight() throws Exception {
    for (String name : DEVICES) try (Gate gate = gatedOnes(64)) {
        AtomicBoolean completed = new AtomicBoolean();
        WeakReference<Context> context = dropEverything(name, gate, completed);
        Support.collectUntil("the dropped context is collected", () -> context.get() == null);
        assertFalse(completed.get());
        gate.open();
        Support.collectUntil("the stage runs", completed::get);
      }
  }

  private static long completionThreads() {
    return Thread.getAllStackTraces()
        .keySet()
        .stream()
        .filter(t -> t.getName().startsWith("streamgemm-completions"))
        .count();
  }

  @Test(timeout = Support.LIMIT)
  public void threadsEndWithTheirContexts() throws Exception {
    Support.collectUntil("earlier contexts are gone", () -> completionThreads() == 0);
    // Often enough that a context is sometimes closed at the moment in which its last job completes.
    for (int i = 0; i < 300; ++i) try (Context context = Context.open("cpu")) {
        Matrix one = Matrix.of(new float[] {1}, 1, 1);
        context.gemmAsync(one, one, Matrix.of(new float[1], 1, 1));
      }
    Support.collectUntil("the threads end", () -> completionThreads() == 0);
  }

  @Test(timeout = Support.LIMIT)
  public void submittingAndClosingAtOnce() throws Exception {
    for (int round = 0; round < 100; ++round) {
      Context context = Context.open("cpu");
      List<Job<Matrix>> jobs = new ArrayList<>();
      AtomicInteger submitted = new AtomicInteger();
      Throwable[] end = new Throwable[1];
      Thread submitter = new Thread(() -> {
        Matrix x = Matrix.of(Support.direct(1), 1, 1);
        try {
          for (;; submitted.incrementAndGet()) jobs.add(context.gemmAsync(x, x, Matrix.of(Support.directNan(1), 1, 1)));
        } catch (Throwable closed) {
          end[0] = closed;
        }
      });
      submitter.start();
      while (submitted.get() < round && submitter.isAlive()) Thread.onSpinWait();
      context.close();
      submitter.join();
      assertEquals(StreamGemmException.InvalidHandle.class, end[0].getClass());
      for (Job<Matrix> job : jobs) job.join();
    }
  }
}
