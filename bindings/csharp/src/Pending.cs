// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A submission from just before the call until its job has completed: the task, and the job's pins.</summary>
  internal sealed class Pending : TaskCompletionSource<bool> {
    const long Ended = -1;
    static readonly Action<object> cancel = state => ((Pending)state).Cancel();

    readonly Completions completions;
    readonly CancellationToken token;
    internal readonly long Tag;
    long job;  // 0 before the submission; its handle, which is a reference of this object's; Ended
    bool task_requested = true;  // the application holds the task: a failure is observed when it reads the task
    int late;                    // status of a failed job whose task the application has not read; 0: none
    string lateText;
    internal GemmPins Gemm;
    Pins more;
    CancellationTokenRegistration registration;

    internal Pending(Completions completions, CancellationToken token) : base(TaskCreationOptions.RunContinuationsAsynchronously) {
      this.completions = completions;
      this.token = token;
      Tag = completions.Enter(this);
    }

    /// <summary>Pins of matrices beyond those of one GEMM.</summary>
    internal Pins More => more ?? (more = new Pins());

    /// <summary>Pins in `call`, submits, and returns the task.</summary>
    internal static unsafe Task Start(Completions completions, CancellationToken token, SubmitOptions options, long on, LayerCall call) {
      if (token.IsCancellationRequested) return System.Threading.Tasks.Task.FromCanceled(token);
      var pending = new Pending(completions, token);
      long job = 0;
      int status;
      try {
        status = call(pending.More, pending.Ordered(options, on, &job));
      } catch (Exception error) {
        return pending.Refused(error, job);
      }
      return pending.Submitted(status, job);
    }

    /// <summary>The same with a handle of the job.</summary>
    internal static unsafe GemmJob StartJob(Completions completions, SubmitOptions options, long on, LayerCall call) {
      var pending = new Pending(completions, CancellationToken.None);
      long job = 0;
      int status;
      try {
        status = call(pending.More, pending.Ordered(options, on, &job));
      } catch {
        pending.Abandon(job);
        throw;
      }
      return pending.Job(status, job);
    }

    internal unsafe Submission Ordered(SubmitOptions options, long on, long* job) =>
      new Submission { Options = options, On = on, Queue = completions.Queue, Tag = Tag, Job = job };

    /// <summary>Takes the outcome of a submission that returns a task: a failure completes the task.</summary>
    /// <param name="status">The submitting call's status.</param>
    /// <param name="handle">The job's handle.</param>
    internal Task Submitted(int status, long handle) {
      if (status < 0) return Refused(Errors.Latest(status), 0);
      Keep(handle);
      if (token.CanBeCanceled) Watch();
      return Task;
    }

    /// <summary>Takes the outcome of a submission that returns the job; throws its failure.</summary>
    internal GemmJob Job(int status, long handle) {
      if (status < 0) {
        Exception error = Errors.Latest(status);
        Abandon(0);
        Completions.StopAtExit();
        throw error;
      }
      try {
        RawPINVOKE.sg_job_retain(handle);
        var made = new GemmJob(handle, this);
        task_requested = false;
        return made;
      } finally {
        Keep(handle);  // also if the thread is aborted: a failed job's completion waits for the handle
      }
    }

    /// <summary>Undoes the preparation of a submission that is not made: throws usage errors; other errors complete the task.</summary>
    internal Task Refused(Exception error, long submitted) {
      Abandon(submitted);
      Completions.StopAtExit();
      if (Errors.IsUsage(error)) throw error;
      TrySetException(error);
      return Task;
    }

    /// <summary>Undoes the preparation of a submission that is not made.</summary>
    /// <param name="submitted">0; or the handle of a job that was submitted before its thread was aborted: it completes as any other.</param>
    internal void Abandon(long submitted) {
      if (submitted != 0) {
        Keep(submitted);
        return;
      }
      Unpin();
      completions.Leave(Tag);
    }

    /// <summary>The job has completed: releases everything held for it, and completes the task, or leaves a failure until the program
    /// asks. A failure at process exit is not told.</summary>
    internal void End(int status, IntPtr message, bool exiting) {
      string text = null;
      bool waits = false;
      if (status != (int)Status.Ok) {
        if (Volatile.Read(ref job) == 0) SpinWait.SpinUntil(() => Volatile.Read(ref job) != 0);  // the submission is about to return
        text = Text.Of(message);
        lock (this) {
          waits = !task_requested;
          if (waits) {
            late = status;
            lateText = text;
          }
        }
        if (!waits) text = MessageOf(job, text);
      }
      Release();
      if (token.CanBeCanceled) Unwatch();
      if (!waits && (!exiting || status == (int)Status.Ok)) Complete(status, text);
    }

    /// <summary>The program asks for the task, and so for the outcome: it observes a failure.</summary>
    internal Task Ask(GemmJob from) {
      int status;
      lock (this) {
        task_requested = true;
        status = late;
        late = 0;
      }
      if (status != 0) Complete(status, MessageOf(from.Handle.Any, lateText));
      return Task;
    }

    /// <summary>The whole message of a failed job, which is observed by that; without one, the text that its completion has.</summary>
    internal static unsafe string MessageOf(long handle, string otherwise = "") {
      const int size = 4096;
      byte* text = stackalloc byte[size];
      ulong unused;
      return RawPINVOKE.sg_job_message(handle, (long)text, size, out unused) == (int)Status.Ok && text[0] != 0 ? Text.Of((IntPtr)text) : otherwise;
    }

    void Release() {
      Unpin();
      long handle = Interlocked.Exchange(ref job, Ended);
      if (handle != 0) RawPINVOKE.sg_job_release(handle);
      completions.Leave(Tag);
    }

    void Complete(int status, string text) {
      if (status == (int)Status.Ok) TrySetResult(true);
      else if (status == (int)Status.Cancelled) TrySetCanceled(token.IsCancellationRequested ? token : CancellationToken.None);
      else TrySetException(Errors.Of((Status)status, text));
    }

    /// <summary>Cancels the job. A handle released meanwhile is a stale token, which the library detects.</summary>
    internal void Cancel() {
      long handle = Volatile.Read(ref job);
      if (handle != 0 && handle != Ended) RawPINVOKE.sg_job_cancel(handle);
    }

    void Unpin() {
      Gemm.Release();
      more?.Release();
      more = null;  // this may live longer, as a task or on the completion thread's stack
    }

    // The job may complete before its handle is known here.
    void Keep(long handle) {
      if (Interlocked.CompareExchange(ref job, handle, 0) == Ended) RawPINVOKE.sg_job_release(handle);
    }

    // Dispose of a registration waits for a cancellation in progress, so neither runs under the lock.
    void Watch() {
      CancellationTokenRegistration made = token.Register(cancel, this);
      bool over;
      lock (this) {
        registration = made;
        over = Volatile.Read(ref job) == Ended;
      }
      if (over) made.Dispose();
    }

    void Unwatch() {
      CancellationTokenRegistration made;
      lock (this) made = registration;
      made.Dispose();
    }
  }
}
