// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.time.Duration;
import org.streamgemm.internal.Native;

/** A stream: its submissions run in order. Safe for use by several threads. */
public final class Stream extends NativeObject {
  Stream(long handle) {
    super(handle, Native::sg_stream_release);
  }

  /**
   * The priority that it was created with.
   *
   * @return -1 low, 0 normal, 1 high
   */
  public int priority() {
    try {
      return (int) Native.sg_stream_priority(handle());
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * The compute units that its GEMMs may use.
   *
   * @return how many, or 0: all
   */
  public int computeUnits() {
    try {
      return (int) Native.sg_stream_compute_units(handle());
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Whether those compute units are a partition of the GPU, reserved for the stream.
   *
   * @return true if so
   */
  public boolean isPartition() {
    try {
      return (int) Native.sg_stream_is_partition(handle()) == 1;
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Whether everything submitted so far has completed. Never blocks.
   *
   * @return true if so
   */
  public boolean isIdle() {
    try {
      return Native.sg_stream_query(handle()) == Status.OK.value;
    } finally {
      reachabilityFence(this);
    }
  }

  /** Waits until everything submitted so far has completed, successfully or not. */
  public void synchronize() {
    await(-1);
  }

  /**
   * Waits until everything submitted so far has completed, successfully or not.
   *
   * @param timeout how long to wait at most
   * @return false if the time passed
   */
  public boolean synchronize(Duration timeout) {
    return await(Times.nanos(timeout));
  }

  private boolean await(long nanos) {
    try {
      return Native.sg_stream_synchronize(handle(), nanos) == Status.OK.value;
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * Makes later submissions wait for the latest recording of an event.
   *
   * @param event an event of the same context
   */
  public void waitFor(Event event) {
    try {
      Native.sg_stream_wait_event(handle(), event.handle());
    } finally {
      reachabilityFence(this);
      reachabilityFence(event);
    }
  }
}
