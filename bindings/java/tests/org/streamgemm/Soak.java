// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Many jobs from many threads while the collector is forced again and again; operands are dropped as soon as they are
 * submitted. Every result is checked. Prints resident memory at the start, in between and at the end.
 *
 * <p>usage: Soak [JOBS [THREADS [DEVICE]]]; a million jobs from 8 threads with SG_SOAK=1 in the environment, else some
 */
public final class Soak {
  private static final int WINDOW = 64;

  private Soak() {}

  /** A job and its expected result. */
  private static final class Expected {
    final Job<Matrix> job;
    final float[] wanted;
    final float[] array;
    final FloatBuffer buffer;

    Expected(Job<Matrix> job, float[] wanted, float[] array, FloatBuffer buffer) {
      this.job = job;
      this.wanted = wanted;
      this.array = array;
      this.buffer = buffer;
    }

    void check() {
      job.join();
      for (int i = 0; i < wanted.length; ++i) {
        float got = array != null ? array[i] : buffer.get(i);
        if (got != wanted[i]) throw new AssertionError("element " + i + " is " + got + ", not " + wanted[i]);
      }
    }
  }

  private static Expected submit(Context context, Random random, long number) {
    int n = 2 + random.nextInt(7);
    float[] a = new float[n * n];
    float[] b = new float[n * n];
    for (int i = 0; i < n * n; ++i) {
      a[i] = random.nextInt(9) - 4;
      b[i] = random.nextInt(9) - 4;
    }
    float[] wanted = Support.multiply(a, b, n, n, n);
    switch ((int) (number % 16)) {
      case 0:
      case 4:
      case 8:
      case 12: { // arrays
        float[] c = new float[n * n];
        return new Expected(
            context.gemmAsync(Matrix.of(a, n, n), Matrix.of(b, n, n), Matrix.of(c, n, n)), wanted, c, null);
      }
      case 1: { // pinned memory of the library's
        FloatBuffer c = context.allocatePinned(4 * n * n).asFloatBuffer();
        FloatBuffer pinned = context.allocatePinned(4 * n * n).asFloatBuffer();
        pinned.put(a).flip();
        return new Expected(
            context.gemmAsync(Matrix.of(pinned, n, n), Matrix.of(Support.direct(b), n, n), Matrix.of(c, n, n)), wanted,
            null, c);
      }
      default: { // Java's direct buffers
        FloatBuffer c = ByteBuffer.allocateDirect(4 * n * n).order(ByteOrder.nativeOrder()).asFloatBuffer();
        return new Expected(context.gemmAsync(Matrix.of(Support.direct(a), n, n), Matrix.of(Support.direct(b), n, n),
                                Matrix.of(c, n, n)),
            wanted, null, c);
      }
    }
  }

  private static void work(Context context, long jobs, long seed, AtomicLong done) {
    Random random = new Random(seed);
    ArrayDeque<Expected> open = new ArrayDeque<>();
    for (long i = 0; i < jobs; ++i) {
      open.add(submit(context, random, i));
      if (open.size() == WINDOW) open.remove().check();
      done.incrementAndGet();
    }
    while (!open.isEmpty()) open.remove().check();
  }

  private static long settled() throws Exception {
    for (int i = 0; i < 3; ++i) {
      System.gc();
      Thread.sleep(50);
    }
    return Support.residentBytes();
  }

  /** Runs `jobs` jobs on threads of their own. */
  private static void run(Context context, long jobs, int threads, AtomicLong done) throws Exception {
    List<Throwable> failures = new ArrayList<>();
    List<Thread> workers = new ArrayList<>();
    for (int t = 0; t < threads; ++t) {
      long seed = done.get() + t;
      Thread worker = new Thread(() -> {
        try {
          work(context, jobs / threads, seed, done);
        } catch (Throwable failure) {
          synchronized (failures) {
            failures.add(failure);
          }
        }
      });
      workers.add(worker);
      worker.start();
    }
    for (Thread worker : workers) worker.join();
    if (!failures.isEmpty()) throw new AssertionError(failures.size() + " threads failed", failures.get(0));
  }

  private static long report(Context context, AtomicLong done) throws Exception {
    long resident = settled();
    System.out.printf(
        "%8d jobs, resident %6.1f MiB, in flight %d%n", done.get(), resident / 1048576.0, context.inFlight());
    if (context.inFlight() != 0) throw new AssertionError("jobs were lost");
    return resident;
  }

  /** Runs it, or fails. */
  public static void main(String[] arguments) throws Exception {
    long usual = "1".equals(System.getenv("SG_SOAK")) ? 1_000_000 : 30_000;
    long jobs = arguments.length > 0 ? Long.parseLong(arguments[0]) : usual;
    int threads = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 8;
    AtomicLong done = new AtomicLong();
    AtomicBoolean over = new AtomicBoolean();
    try (Context context = Context.open(arguments.length > 2 ? arguments[2] : "cpu")) {
      Thread collector = new Thread(() -> {
        while (!over.get()) System.gc();
      });
      collector.setDaemon(true);
      collector.start();
      run(context, jobs * 2 / 5, threads, done); // one-time loading, compiling and pooling
      long start = report(context, done);
      for (int part = 0; part < 4; ++part) {
        run(context, jobs / 4, threads, done);
        long now = report(context, done);
        if (now - start > (64L << 20) + 32 * jobs) // the VM itself grows in steps; a leak continues
          throw new AssertionError("resident memory grew by " + (now - start) + " bytes");
      }
      over.set(true);
      collector.join();
    }
  }
}
