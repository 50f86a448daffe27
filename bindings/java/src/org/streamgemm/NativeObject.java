// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongBinaryOperator;
import java.util.function.LongConsumer;
import org.streamgemm.internal.Native;

/**
 * An object of the library. Closing it releases it; closing twice does nothing; an object that was not closed is released
 * once it is garbage. Objects may be closed in any order, with work in flight too: the work completes first.
 */
public abstract class NativeObject implements AutoCloseable {
  static final Cleaner CLEANER = Cleaner.create();

  private final Handle handle;
  private final Cleaner.Cleanable cleanable;

  /** The reference to a native object. It must not refer to the Java object, which would then never be garbage. */
  private static final class Handle extends AtomicLong implements Runnable {
    private static final long serialVersionUID = 1;
    private final transient LongConsumer release;

    Handle(long value, LongConsumer release) {
      super(value);
      this.release = release;
    }

    @Override
    public void run() {
      long value = getAndSet(0);
      if (value != 0) release.accept(value);
    }
  }

  /** Takes over a handle, which `release` releases; `release` must not refer to this object. */
  NativeObject(long value, LongConsumer release) {
    handle = new Handle(value, release);
    cleanable = CLEANER.register(this, handle);
  }

  /** The handle, for one call, after which the caller names this object in a reachabilityFence. */
  final long handle() {
    long value = handle.get();
    if (value == 0) throw new StreamGemmException.InvalidHandle("this " + getClass().getSimpleName() + " is closed");
    return value;
  }

  /**
   * Whether it was closed.
   *
   * @return true once {@link #close} was called
   */
  public final boolean isClosed() {
    return handle.get() == 0;
  }

  /** Releases it. Does not wait for work in flight. */
  @Override
  public final void close() {
    cleanable.clean();
  }

  /** What a call writes to an address with room, and whose size it tells; the next content may be larger. */
  static byte[] bytes(LongBinaryOperator call) {
    ByteBuffer content = ByteBuffer.allocateDirect(0);
    long needed = call.applyAsLong(0, 0);
    while (needed > content.capacity()) {
      content = ByteBuffer.allocateDirect(Math.toIntExact(needed));
      needed = call.applyAsLong(Native.address(content), content.capacity());
    }
    byte[] bytes = new byte[(int) needed];
    content.get(bytes);
    return bytes;
  }

  /** A text with a NUL behind it. */
  static String text(byte[] utf8) {
    return new String(utf8, 0, utf8.length - 1, StandardCharsets.UTF_8);
  }
}
