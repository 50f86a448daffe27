// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.time.Duration;
import org.streamgemm.internal.Native;

/**
 * A marker in a stream: other streams and the host can wait for it, and measure the time between two. It counts as
 * complete until it is recorded.
 */
public final class Event extends NativeObject {
  Event(long handle) {
    super(handle, Native::sg_event_release);
  }

  /**
   * Records the event: it completes after everything submitted to the stream so far. Recording again moves it.
   *
   * @param stream a stream of the same context
   * @return this event
   */
  public Event record(Stream stream) {
    try {
      Native.sg_event_record(handle(), stream.handle());
      return this;
    } finally {
      reachabilityFence(this);
      reachabilityFence(stream);
    }
  }

  /**
   * The native event under it (a cudaEvent_t), which other libraries' streams may wait for. It lives as long as this event
   * and moves with it from now on; {@link #record} then returns once it is enqueued on the device.
   *
   * @return its address
   * @throws StreamGemmException.Unsupported if the device has no native events
   */
  public long address() {
    try {
      return Native.sg_event_native(handle());
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Whether it is complete. Never blocks.
   *
   * @return true if so
   */
  public boolean hasHappened() {
    try {
      return Native.sg_event_query(handle()) == Status.OK.value;
    } finally {
      reachabilityFence(this);
    }
  }

  /** Waits until its latest recording is complete. */
  public void await() {
    await(-1);
  }

  /**
   * Waits until its latest recording is complete.
   *
   * @param timeout how long to wait at most
   * @return false if the time passed
   */
  public boolean await(Duration timeout) {
    return await(Times.nanos(timeout));
  }

  private boolean await(long nanos) {
    try {
      return Native.sg_event_wait(handle(), nanos) == Status.OK.value;
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Time from this event to a later one, both complete, on the device's clock (virtual on simulated devices).
   *
   * @param end the later event
   * @return seconds
   * @throws StreamGemmException if one was never recorded, or they are of different contexts
   * @throws IllegalStateException if one is not complete yet
   */
  public double secondsUntil(Event end) {
    if (!hasHappened() || !end.hasHappened()) throw new IllegalStateException("an event has not happened yet");
    try {
      return Double.longBitsToDouble(Native.sg_event_elapsed(handle(), end.handle()));
    } finally {
      reachabilityFence(this);
      reachabilityFence(end);
    }
  }
}
