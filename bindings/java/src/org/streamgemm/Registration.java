// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.streamgemm.internal.Native;

/**
 * Memory of a direct buffer that is pinned until this is closed. It keeps the buffer. Closing waits for the context's
 * work in flight.
 */
public final class Registration extends NativeObject {
  private Registration(long address, long context, Buffer buffer) {
    super(address, pinned -> {
      Native.sg_context_synchronize(context, -1);
      Native.sg_host_unregister(context, pinned);
      Native.sg_context_release(context);
      Reference.reachabilityFence(buffer);
    });
  }

  static Registration make(long context, Buffer buffer) {
    if (!buffer.isDirect())
      throw new StreamGemmException.InvalidArgument(
          "the buffer is on the Java heap; only a direct one can be pinned");
    int unit = Matrix.unitOf(buffer);
    long address = Native.address(buffer) + (long) buffer.position() * unit;
    Native.sg_host_register(context, address, (long) buffer.remaining() * unit);
    Native.sg_context_retain(context);
    return new Registration(address, context, buffer);
  }
}
