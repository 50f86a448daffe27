// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.junit.Assume;

/**
 * Memory that blocks the library thread that first accesses it, until the test opens it: a job with an operand there
 * stays in flight for as long as the test wants, however slow the machine is (tests/api/support/gate.h).
 */
final class Gate implements AutoCloseable {
  static {
    System.loadLibrary("sg_test_gate_java");
  }

  private final long gate;
  private final FloatBuffer memory;

  /** A closed gate; the values are there once it is open. */
  Gate(float... values) {
    long bytes = 4L * values.length;
    gate = make(bytes);
    Assume.assumeTrue("userfaultfd is not available here", gate != 0);
    floats(content(gate, bytes)).put(values);
    memory = floats(memory(gate, bytes));
  }

  private static FloatBuffer floats(ByteBuffer bytes) {
    return bytes.order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  /** The memory, row by row. The test itself may read it only when the gate is open. */
  Matrix matrix(int rows, int cols) {
    return Matrix.of(memory, rows, cols);
  }

  /** A job that waits for this gate: its first element times one. */
  Job<Matrix> job(Context context, Submit submit) {
    Matrix one = Matrix.of(Support.direct(1), 1, 1);
    return context.gemmAsync(Gemm.of(matrix(1, 1), one, Matrix.of(Support.directNan(1), 1, 1)), submit);
  }

  /**
   * Unblocks the job; may be called again. The memory stays until the process exits, since jobs may still use it.
   */
  void open() {
    open(gate);
  }

  @Override
  public void close() {
    open();
  }

  private static native long make(long bytes);
  private static native ByteBuffer memory(long gate, long bytes);
  private static native ByteBuffer content(long gate, long bytes);
  private static native void open(long gate);
}
