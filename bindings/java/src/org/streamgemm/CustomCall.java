// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.streamgemm.internal.Native;

/** What the function of a {@link CustomOperation} gets. Valid until the function returns. */
public final class CustomCall {
  /** The native stream: on a CUDA device the cudaStream_t to enqueue on; otherwise 0: the work is done when the function returns. [get] */
  private final long nativeStream;
  private final long[] addresses;
  private final long[] sizes;
  private final int readOnly;

  CustomCall(long nativeStream, long[] addresses, long[] sizes, int readOnly) {
    this.nativeStream = nativeStream;
    this.addresses = addresses;
    this.sizes = sizes;
    this.readOnly = readOnly;
  }

  /**
   * The address of an operand in this run: in a pipeline that of the batch's buffer.
   *
   * @param index its place among the operands, in the order in which they were named
   * @return the address, on the device or on the host
   */
  public long address(int index) {
    return addresses[index];
  }

  /**
   * The size of an operand.
   *
   * @param index its place among the operands
   * @return bytes from its first element to the end of its last
   */
  public long size(int index) {
    return sizes[index];
  }

  /**
   * The memory of an operand, of less than 2 GiB, on a device without a native stream.
   *
   * @param index its place among the operands
   * @return a direct buffer in native order, read-only for one that is only read
   * @throws StreamGemmException.Unsupported on a CUDA device, whose stream accesses the operand
   * @throws StreamGemmException.InvalidArgument if it is larger
   */
  public ByteBuffer buffer(int index) {
    if (nativeStream != 0)
      throw new StreamGemmException.Unsupported("operand " + index + " is accessed by the native stream, not by the host");
    if (sizes[index] > Integer.MAX_VALUE)
      throw new StreamGemmException.InvalidArgument(
          "operand " + index + " has " + sizes[index] + " bytes, and a buffer at most " + Integer.MAX_VALUE);
    ByteBuffer window = Native.window(addresses[index], sizes[index]);
    if ((readOnly >> index & 1) != 0) window = window.asReadOnlyBuffer();
    return window.order(ByteOrder.nativeOrder());
  }
}
