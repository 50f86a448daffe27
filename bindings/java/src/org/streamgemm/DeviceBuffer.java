// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import org.streamgemm.internal.Native;

/**
 * Memory of a device. It is freed when it is closed (or garbage) and the jobs submitted before have completed. {@link
 * Matrix#of(DeviceBuffer, long, DType, long, long)} is a matrix in it.
 */
public final class DeviceBuffer extends NativeObject {
  private final long address;
  private final long bytes;

  DeviceBuffer(long handle, long bytes) {
    super(handle, Native::sg_buffer_release);
    this.bytes = bytes;
    this.address = Native.sg_buffer_data(handle);
  }

  /**
   * The size.
   *
   * @return bytes
   */
  public long size() {
    return bytes;
  }

  /**
   * The address on the device, for code that uses the device directly.
   *
   * @return the address, valid until the buffer is closed
   */
  public long address() {
    return address;
  }

  /** One more reference to the memory, for the duration of a submission. */
  long retain() {
    try {
      long handle = handle();
      Native.sg_buffer_retain(handle);
      return handle;
    } finally {
      reachabilityFence(this);
    }
  }
}
