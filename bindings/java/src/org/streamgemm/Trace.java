// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.lang.ref.WeakReference;
import org.streamgemm.internal.Native;

/**
 * A recording of all contexts of the process: what ran when, what overlapped, and why a device was idle. A process
 * records one trace at a time. Closing a trace ends its recording. Safe for use by several threads.
 */
public final class Trace extends NativeObject {
  /** The trace that is recorded, if it was started from Java: a process records one at a time. */
  private static volatile WeakReference<Trace> current = new WeakReference<>(null);

  private volatile boolean stopped;

  private Trace(long handle) {
    super(handle, Native::sg_trace_release);
    current = new WeakReference<>(this);
  }

  /** Whether jobs that complete now may be asked for in a trace. */
  static boolean isRecorded() {
    Trace latest = current.get();
    return latest != null && !latest.stopped && !latest.isClosed();
  }

  /**
   * Starts recording.
   *
   * @param options how much to keep [= new TraceOptions()]
   * @return the trace
   * @throws StreamGemmException.Busy if a trace is being recorded
   */
  public static Trace start(TraceOptions options) {
    return new Trace(options.with(Native::sg_trace_start));
  }

  /** Ends the recording; work in flight goes on. Once is enough. */
  public void stop() {
    try {
      Native.sg_trace_stop(handle());
      stopped = true;
    } finally {
      reachabilityFence(this);
    }
  }

  /**
   * For how long two jobs ran side by side.
   *
   * @param first a job
   * @param second another
   * @return seconds; 0 if the trace saw none of them
   */
  public double overlap(Job<?> first, Job<?> second) {
    long one = first.traced();
    long other = second.traced();
    try {
      if (one == 0 || other == 0) return 0;
      return Double.longBitsToDouble(Native.sg_trace_overlap_jobs(handle(), one, other));
    } finally {
      if (one != 0) Native.sg_job_release(one);
      if (other != 0) Native.sg_job_release(other);
      reachabilityFence(this);
    }
  }
}
