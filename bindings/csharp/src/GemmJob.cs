// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A submission and its outcome. Awaitable. Disposing or dropping it does not stop the job.</summary>
  public sealed class GemmJob : NativeObject {
    const int LabelSize = 64;  // SG_LABEL_SIZE
    static readonly Func<long, int> release = RawPINVOKE.sg_job_release;

    readonly Pending pending;

    internal GemmJob(long token, Pending pending) : base(token, release) {
      this.pending = pending;
    }

    /// <summary>Completes with the job.</summary>
    public Task Completion => pending.Ask(this);

    /// <summary>For await.</summary>
    public TaskAwaiter GetAwaiter() => Completion.GetAwaiter();

    /// <summary>The job's status now: <see cref="StreamGemm.Status.NotReady"/> until it has completed.</summary>
    public Status Status {
      get {
        int status;
        Errors.Check(RawPINVOKE.sg_job_query(Handle.Token, out status));
        GC.KeepAlive(this);
        return (Status)status;
      }
    }

    /// <summary>Whether the job has completed, successfully or not.</summary>
    public bool IsCompleted => Status != Status.NotReady;

    /// <summary>Waits until the job has completed; throws its failure.</summary>
    public void Wait() => Wait(Timeout.InfiniteTimeSpan);

    /// <summary>Waits until the job has completed; throws its failure.</summary>
    /// <returns>False when the time passed first.</returns>
    public bool Wait(TimeSpan timeout) {
      int status;
      Errors.Check(RawPINVOKE.sg_job_wait(Handle.Token, Time.Nanoseconds(timeout), out status));
      GC.KeepAlive(this);
      return Errors.Check(status) == (int)Status.Ok;
    }

    /// <summary>Cancels the job: queued commands are dropped, a running command completes first.</summary>
    /// <returns>False if it had already completed.</returns>
    public bool Cancel() {
      int status = RawPINVOKE.sg_job_cancel(Handle.Token);
      GC.KeepAlive(this);
      if (status == (int)Status.Busy) return false;
      Errors.Check(status);
      return true;
    }

    /// <summary>The label that it was submitted with (<see cref="SubmitOptions.Label"/>), as the library stores it; "" without one.</summary>
    public unsafe string Label {
      get {
        byte* text = stackalloc byte[LabelSize];
        ulong unused;
        int status = RawPINVOKE.sg_job_label(Handle.Token, (long)text, LabelSize, out unused);
        GC.KeepAlive(this);
        Errors.Check(status);
        return Text.Of((IntPtr)text);
      }
    }

    /// <summary>The fraction of its commands that have completed: 1 exactly if it has succeeded.</summary>
    public double Progress {
      get {
        double fraction;
        Raw.sg_job_progress(Handle.Token, out fraction);
        GC.KeepAlive(this);
        return fraction;
      }
    }

    /// <summary>The job's statistics, once it has completed; null before.</summary>
    public JobStatistics Statistics {
      get {
        var statistics = new JobStatistics();
        int status = Raw.sg_job_get_statistics(Handle.Token, statistics.native);
        GC.KeepAlive(this);
        return status == (int)Status.Ok ? statistics : null;
      }
    }

    /// <summary>The full message of the job's failure; "" if it has not failed.</summary>
    public string Message {
      get {
        string message = Pending.MessageOf(Handle.Token);
        GC.KeepAlive(this);
        return message;
      }
    }

    /// <summary>Waits until all jobs have completed; throws the failure of the first in the list that failed.</summary>
    /// <returns>False when the time passed first.</returns>
    public static unsafe bool WaitAll(IReadOnlyList<GemmJob> jobs, TimeSpan timeout) {
      long[] tokens = Tokens(jobs);
      int status;
      fixed (long* first = tokens) {
        Errors.Check(RawPINVOKE.sg_job_wait_all((long)first, tokens.Length, Time.Nanoseconds(timeout), out status));
      }
      GC.KeepAlive(jobs);
      return Errors.Check(status) == (int)Status.Ok;
    }

    /// <summary>Waits until one of the jobs has completed, successfully or not.</summary>
    /// <returns>Its index, the lowest of those seen; -1 when the time passed first.</returns>
    public static unsafe int WaitAny(IReadOnlyList<GemmJob> jobs, TimeSpan timeout) {
      long[] tokens = Tokens(jobs);
      int index, status;
      fixed (long* first = tokens) {
        Errors.Check(RawPINVOKE.sg_job_wait_any((long)first, tokens.Length, Time.Nanoseconds(timeout), out index, out status));
      }
      GC.KeepAlive(jobs);
      return index;
    }

    static long[] Tokens(IReadOnlyList<GemmJob> jobs) {
      if (jobs == null) throw new ArgumentNullException("jobs");
      var tokens = new long[jobs.Count];
      for (int i = 0; i < tokens.Length; ++i) {
        if (jobs[i] == null) throw new ArgumentException("jobs[" + i + "] is null", "jobs");
        tokens[i] = jobs[i].Handle.Token;
      }
      return tokens;
    }
  }

  internal static class Time {
    /// <summary>A timeout in the library's units; Timeout.InfiniteTimeSpan and values out of range are infinite.</summary>
    internal static long Nanoseconds(TimeSpan timeout) {
      if (timeout == Timeout.InfiniteTimeSpan) return -1;
      if (timeout < TimeSpan.Zero) throw new ArgumentOutOfRangeException("timeout", timeout, "timeout is negative");
      return timeout.Ticks > long.MaxValue / 100 ? -1 : timeout.Ticks * 100;
    }
  }
}
