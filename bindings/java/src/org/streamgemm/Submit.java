// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static java.lang.ref.Reference.reachabilityFence;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import org.streamgemm.internal.Native;
import org.streamgemm.internal.RawConstants;

/**
 * How to submit: order, priority, planning. Read when it is given to a call; not safe to change on one thread while
 * another uses it.
 */
public final class Submit {
  private Stream stream;
  private Job<?>[] after = {};
  private int priority;
  private int flags;
  private PlanOptions plan;
  private boolean statistics;
  /** Nanoseconds; 0: none. */
  private long deadline;
  /** A direct buffer with the text and its NUL; null: none. */
  private ByteBuffer label;
  private String labelText = "";

  /** All defaults: run at once, concurrently with jobs whose memory does not overlap. */
  public Submit() {}

  /**
   * Runs after earlier submissions to a stream.
   *
   * @param stream the stream; null for none
   * @return these options
   */
  public Submit stream(Stream stream) {
    this.stream = stream;
    return this;
  }

  /**
   * Runs after jobs.
   *
   * @param jobs the jobs; if one of them fails, the submission fails with {@link StreamGemmException.DependencyFailed}
   * @return these options
   */
  public Submit after(Job<?>... jobs) {
    for (Job<?> job : jobs) Objects.requireNonNull(job, "jobs");
    this.after = jobs.clone();
    return this;
  }

  /**
   * Runs before or after queued jobs of other priorities.
   *
   * @param priority -1 low, 0 normal (or the stream's), 1 high
   * @return these options
   */
  public Submit priority(int priority) {
    this.priority = priority;
    return this;
  }

  /**
   * Sets flags, in place of those set before.
   *
   * @param flags for instance {@link SubmitFlag#UNTRACKED}: the caller promises that no job in flight conflicts with
   *     this one beyond its stream and {@link #after}
   * @return these options
   */
  public Submit flags(SubmitFlag... flags) {
    this.flags = 0;
    for (SubmitFlag each : flags) this.flags |= each.value;
    return this;
  }

  /**
   * Restricts the planner's choice.
   *
   * @param options the restrictions; null: none
   * @return these options
   */
  public Submit plan(PlanOptions options) {
    this.plan = options;
    return this;
  }

  /**
   * Keeps the statistics of the completed job, for {@link Job#statistics()}.
   *
   * @return these options
   */
  public Submit statistics() {
    this.statistics = true;
    return this;
  }

  /**
   * Time limit from the submission: a job that has not started by then is dropped, a running job is stopped, and the
   * future fails with {@link StreamGemmException.DeadlineExceeded}. Not for recorded submissions.
   *
   * @param fromSubmission above zero; null for none
   * @return these options
   */
  public Submit deadline(Duration fromSubmission) {
    if (fromSubmission != null && (fromSubmission.isNegative() || fromSubmission.isZero()))
      throw new StreamGemmException.InvalidArgument("deadline is " + fromSubmission + ", which is not positive");
    long nanos = fromSubmission == null ? 0 : Times.nanos(fromSubmission);
    this.deadline = nanos == Long.MAX_VALUE ? 0 : nanos;
    return this;
  }

  /**
   * Names the job: in the message of its failure, and in the library's log.
   *
   * @param label the name; at most 63 bytes of UTF-8 are kept, cut between characters; null or "" for none
   * @return these options
   */
  public Submit label(String label) {
    Names.refuseNul("label", label);
    byte[] bytes = label == null ? new byte[0] : label.getBytes(StandardCharsets.UTF_8);
    int kept = Math.min(bytes.length, RawConstants.SG_LABEL_SIZE - 1);
    while (kept < bytes.length && (bytes[kept] & 0xc0) == 0x80) --kept; // the library keeps whole characters too
    this.labelText = new String(bytes, 0, kept, StandardCharsets.UTF_8);
    this.label = kept == 0 ? null : ByteBuffer.allocateDirect(kept + 1).put(bytes, 0, kept).put((byte) 0);
    return this;
  }

  String labelText() {
    return labelText;
  }

  boolean wantsStatistics() {
    return statistics;
  }

  /** A submission that takes the fields of an sg_submit. */
  interface Call {
    long submit(long stream, long after, int afterCount, int priority, int flags, long queue, long tag, long options,
        long deadline, long label);
  }

  /** Makes the call with these options. */
  long apply(Call call, long queue, long tag) {
    if (plan == null) return apply(call, queue, tag, 0);
    return plan.with(options -> apply(call, queue, tag, options));
  }

  private long apply(Call call, long queue, long tag, long options) {
    ByteBuffer handles =
        after.length == 0 ? null : ByteBuffer.allocateDirect(8 * after.length).order(ByteOrder.nativeOrder());
    int count = 0;
    try {
      for (Job<?> job : after) {
        long handle = job.retain();
        if (handle != 0) handles.putLong(8 * count++, handle);
      }
      return call.submit(stream == null ? 0 : stream.handle(), handles == null ? 0 : Native.address(handles), count,
          priority, flags, queue, tag, options, deadline, label == null ? 0 : Native.address(label));
    } finally {
      for (int i = 0; i < count; ++i) Native.sg_job_release(handles.getLong(8 * i));
      reachabilityFence(handles);
      reachabilityFence(stream);
      reachabilityFence(label);
    }
  }
}
