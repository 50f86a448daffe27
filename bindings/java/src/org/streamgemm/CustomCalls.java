// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.streamgemm.internal.Native;

/**
 * The functions of custom operations, and the daemon threads that call them: of the relay (relay.h) to which the library's threads
 * hand their calls. One thread more waits for a call than functions run.
 */
final class CustomCalls implements Runnable {
  /** The address of the native function of every operation. */
  static final long FUNCTION = Native.sg_relay_function();

  private static final long RELAY = Native.sg_relay_new();
  private static final Set<String> DEVICES = ConcurrentHashMap.newKeySet();
  private static final Map<Long, WeakReference<Bound>> FUNCTIONS = new ConcurrentHashMap<>();
  private static final AtomicLong KEYS = new AtomicLong();
  /** Threads that wait for a call, or are about to. */
  private static final AtomicInteger WAITING = new AtomicInteger();

  /** Started by the first operation. */
  private static final class Threads {
    static {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Native.sg_relay_end(RELAY, 0)));
      } catch (IllegalStateException exiting) {
        Native.sg_relay_end(RELAY, 0);
      }
      addThread();
    }

    static void ready() {}
  }

  private CustomCalls() {}

  /** A context was opened: the library waits for its calls at exit, unless they have ended before. */
  static void opened(String device) {
    if (DEVICES.add(device)) Native.endAtExit(RELAY);
  }

  /** The function of one submission. It is called only while this is reachable. */
  static final class Bound implements LayerCall.Kept {
    private final CustomOperation.Function function;
    private final long[] sizes;
    private final int readOnly;
    /** What the native function gets. */
    final long operation;

    @Override
    public void requireLike(LayerCall.Kept planned) {
      if (function != ((Bound) planned).function)
        throw new StreamGemmException.InvalidArgument("function is not the one that was planned or recorded");
    }

    Bound(CustomOperation.Function function, long[] sizes, int readOnly) {
      Threads.ready();
      this.function = function;
      this.sizes = sizes;
      this.readOnly = readOnly;
      long key = KEYS.incrementAndGet();
      long made = Native.sg_relay_operation_new(RELAY, key);
      if (made == 0) throw new StreamGemmException.OutOfMemory("no memory for a custom operation");
      operation = made;
      FUNCTIONS.put(key, new WeakReference<>(this));
      NativeObject.CLEANER.register(this, () -> {
        FUNCTIONS.remove(key);
        Native.sg_relay_operation_free(made);
      });
    }
  }

  private static void addThread() {
    Thread made = new Thread(null, new CustomCalls(), "streamgemm-custom");
    made.setDaemon(true);
    WAITING.incrementAndGet();
    try {
      made.start();
    } catch (Throwable none) {
      WAITING.decrementAndGet();
      throw none;
    }
  }

  private static void addThreadIfPossible() {
    try {
      addThread();
    } catch (OutOfMemoryError none) {
      // Calls wait for a thread that runs a function.
    }
  }

  @Override
  public void run() {
    ByteBuffer call = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
    long at = Native.address(call);
    while (Native.sg_relay_take(RELAY, at) != 0) {
      long id = call.getLong(0);
      Status status = Status.BACKEND_FAILURE;
      ByteBuffer message = null;
      try {
        if (WAITING.decrementAndGet() == 0) addThreadIfPossible();
        Thread.interrupted(); // of the function before
        run(FUNCTIONS.get(call.getLong(8)).get(), call);
        status = Status.OK;
      } catch (Throwable t) {
        if (t instanceof OutOfMemoryError) status = Status.OUT_OF_MEMORY;
        message = textOf(t);
      } finally {
        Native.sg_relay_done(RELAY, id, status.value, message == null ? 0 : Native.address(message));
        WAITING.incrementAndGet();
      }
    }
  }

  private static void run(Bound bound, ByteBuffer call) throws Exception {
    long[] addresses = new long[bound.sizes.length];
    for (int i = 0; i < addresses.length; ++i) addresses[i] = call.getLong(32 + 8 * i);
    bound.function.run(new CustomCall(call.getLong(16), addresses, bound.sizes, bound.readOnly));
  }

  /** The class and the message of an exception, or its class alone where its own code throws. */
  private static String describe(Throwable t) {
    try {
      return t.toString();
    } catch (Throwable mute) {
      return t.getClass().getName();
    }
  }

  /** The class and the message of an exception, as UTF-8 with a NUL; null without memory. */
  private static ByteBuffer textOf(Throwable t) {
    try {
      byte[] text = describe(t).getBytes(StandardCharsets.UTF_8);
      return ByteBuffer.allocateDirect(text.length + 1).put(text).put((byte) 0);
    } catch (Throwable none) {
      return null;
    }
  }
}
