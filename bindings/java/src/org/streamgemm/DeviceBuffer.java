// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import org.streamgemm.internal.Native;

/**
 * Memory of a device. It is freed when it is closed (or garbage) and the jobs submitted before have completed. {@link
 * Matrix#of(DeviceBuffer, long, DType, long, long)} is a matrix in it.
 */
public final class DeviceBuffer extends NativeObject {
  /** The address on the device, for code that uses the device directly, valid until the buffer is closed. [get] */
  private final long address;
  /** The size in bytes. [get] */
  private final long size;

  DeviceBuffer(long handle, long size) {
    super(handle, Native::sg_buffer_release);
    this.size = size;
    this.address = Native.sg_buffer_data(handle);
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
