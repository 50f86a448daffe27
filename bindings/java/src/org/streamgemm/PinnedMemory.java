// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.streamgemm.internal.Native;

/**
 * The memory of a {@link Context#pinnedMatrix}, of any size; it is freed when neither this nor a window nor a matrix
 * is reachable.
 */
public final class PinnedMemory {
  private final long address;
  /** The size in bytes. [get] */
  private final long size;

  PinnedMemory(long address, long size) {
    this.address = address;
    this.size = size;
  }

  /**
   * A part of the memory as a direct buffer, at most 2 GiB.
   *
   * @param offset size before it
   * @param length its size
   * @return a buffer of native order, which keeps the memory
   */
  public ByteBuffer window(long offset, int length) {
    if (offset < 0 || length < 0 || offset > size - length)
      throw new IndexOutOfBoundsException("bytes " + offset + " to " + (offset + length) + " of " + size);
    ByteBuffer window = Native.window(address + offset, length).order(ByteOrder.nativeOrder());
    NativeObject.CLEANER.register(window, () -> Reference.reachabilityFence(this)); // the window keeps this
    return window;
  }
}
