// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

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
}
