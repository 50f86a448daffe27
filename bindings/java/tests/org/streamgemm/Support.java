// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Shared by the tests. */
final class Support {
  private Support() {}

  /** Milliseconds after which a test counts as hanging: a loaded machine may take minutes for seconds of work. */
  static final int LIMIT = 300_000;

  /** Small integers: their products and sums are exact in every type. */
  static float[] integers(int count, long seed) {
    Random random = new Random(seed);
    float[] made = new float[count];
    for (int i = 0; i < count; ++i) made[i] = random.nextInt(9) - 4;
    return made;
  }

  static FloatBuffer direct(float... values) {
    FloatBuffer made = ByteBuffer.allocateDirect(4 * values.length).order(ByteOrder.nativeOrder()).asFloatBuffer();
    made.put(values).flip();
    return made;
  }

  static DoubleBuffer directDoubles(float... values) {
    DoubleBuffer made = ByteBuffer.allocateDirect(8 * values.length).order(ByteOrder.nativeOrder()).asDoubleBuffer();
    for (float value : values) made.put(value);
    return made.flip();
  }

  static FloatBuffer directNan(int count) {
    float[] poison = new float[count];
    java.util.Arrays.fill(poison, Float.NaN);
    return direct(poison);
  }

  static float[] content(FloatBuffer buffer) {
    float[] values = new float[buffer.remaining()];
    buffer.duplicate().get(values);
    return values;
  }

  /** Row-major A (m x k) times B (k x n). */
  static float[] multiply(float[] a, float[] b, int m, int n, int k) {
    float[] c = new float[m * n];
    for (int i = 0; i < m; ++i)
      for (int l = 0; l < k; ++l)
        for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
  }

  /** Collects garbage until a condition holds, or fails after minutes. */
  static void collectUntil(String what, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT / 2);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > end) throw new AssertionError("never happened: " + what);
      System.gc();
      Thread.sleep(10);
    }
  }

  static long residentBytes() throws java.io.IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status")))
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("\\D+", "")) << 10;
    throw new AssertionError("no VmRSS");
  }

  /** The output of another VM, which must exit with 0, within minutes. */
  static String inOtherVm(Class<?> main, List<String> vmOptions, String... arguments) throws Exception {
    return inOtherVm(System.getProperty("java.class.path"), vmOptions, main.getName(), arguments);
  }

  static String inOtherVm(String classPath, List<String> vmOptions, String main, String... arguments) throws Exception {
    List<String> command =
        new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", classPath));
    command.add("-Djava.library.path=" + System.getProperty("java.library.path"));
    command.addAll(vmOptions);
    command.add(main);
    command.addAll(List.of(arguments));
    Path output = Files.createTempFile("streamgemm-test", ".txt");
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
      if (!process.waitFor(LIMIT / 2, TimeUnit.MILLISECONDS)) {
        process.destroyForcibly();
        throw new AssertionError("hangs: " + command + "\n" + Files.readString(output));
      }
      if (process.exitValue() != 0)
        throw new AssertionError("exit code " + process.exitValue() + ": " + command + "\n" + Files.readString(output));
      return Files.readString(output);
    } finally {
      Files.delete(output);
    }
  }
}
