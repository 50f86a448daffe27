// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>An order of submissions: what is submitted to one stream runs in that order. Streams are cheap.</summary>
  public sealed class GemmStream : IDisposable {
    static readonly Func<long, int> release = RawPINVOKE.sg_stream_release;
    readonly GemmContext context;
    readonly SubmitOptions onThis;

    internal GemmStream(GemmContext context, long token) {
      this.context = context;
      Handle = new Handle(token, release, "GemmStream");
      onThis = new SubmitOptions { Stream = this };
    }

    internal Handle Handle { get; }

    /// <summary>The priority that the stream was created with.</summary>
    public int Priority {
      get {
        int priority;
        Raw.sg_stream_priority(Handle.Token, out priority);
        GC.KeepAlive(this);
        return priority;
      }
    }

    /// <summary>The compute units that its products may use; 0: all.</summary>
    public int ComputeUnits {
      get {
        int units;
        Raw.sg_stream_compute_units(Handle.Token, out units);
        GC.KeepAlive(this);
        return units;
      }
    }

    /// <summary>Whether those compute units are a partition of the GPU, set aside for the stream.</summary>
    public bool IsPartition {
      get {
        int isPartition;
        Raw.sg_stream_is_partition(Handle.Token, out isPartition);
        GC.KeepAlive(this);
        return isPartition == 1;
      }
    }

    /// <summary>Whether everything submitted to the stream has ended.</summary>
    public bool IsIdle {
      get {
        int status = Raw.sg_stream_query(Handle.Token);
        GC.KeepAlive(this);
        return status == (int)Status.Ok;
      }
    }

    /// <summary>Waits until everything submitted to the stream before this call has ended, well or badly.</summary>
    public void Synchronize() => Synchronize(Timeout.InfiniteTimeSpan);

    /// <summary>Waits until everything submitted to the stream before this call has ended, well or badly.</summary>
    /// <returns>False when the time passed first.</returns>
    public bool Synchronize(TimeSpan timeout) {
      int status = Raw.sg_stream_synchronize(Handle.Token, Time.Nanoseconds(timeout));
      GC.KeepAlive(this);
      return status == (int)Status.Ok;
    }

    /// <summary>A task that completes when everything submitted to the stream before this call has ended, well or badly.</summary>
    /// <param name="cancellationToken">Ends the waiting, not the work.</param>
    public Task SynchronizeAsync(CancellationToken cancellationToken = default(CancellationToken)) =>
      context.BarrierAsync(onThis, cancellationToken);

    /// <summary>Lets what is submitted to the stream after this call run only after the event as it was last recorded.</summary>
    public void WaitFor(GemmEvent happened) {
      if (happened == null) throw new ArgumentNullException("happened");
      Raw.sg_stream_wait_event(Handle.Token, happened.Handle.Token);
      GC.KeepAlive(this);
      GC.KeepAlive(happened);
    }

    /// <summary>Gives the stream back to the context's pool. Its work in flight goes on.</summary>
    public void Dispose() => Handle.Dispose();
  }
}
