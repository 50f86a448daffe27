// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A stream: its submissions run in order. Streams are cheap.</summary>
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

    /// <summary>The compute units that its GEMMs may use; 0: all.</summary>
    public int ComputeUnits {
      get {
        int units;
        Raw.sg_stream_compute_units(Handle.Token, out units);
        GC.KeepAlive(this);
        return units;
      }
    }

    /// <summary>Whether those compute units are a partition of the GPU, reserved for the stream.</summary>
    public bool IsPartition {
      get {
        int isPartition;
        Raw.sg_stream_is_partition(Handle.Token, out isPartition);
        GC.KeepAlive(this);
        return isPartition == 1;
      }
    }

    /// <summary>Whether everything submitted to the stream has completed.</summary>
    public bool IsIdle {
      get {
        int status = Raw.sg_stream_query(Handle.Token);
        GC.KeepAlive(this);
        return status == (int)Status.Ok;
      }
    }

    /// <summary>Waits until everything submitted to the stream before this call has completed, successfully or not.</summary>
    public void Synchronize() => Synchronize(Timeout.InfiniteTimeSpan);

    /// <summary>Waits until everything submitted to the stream before this call has completed, successfully or not.</summary>
    /// <returns>False when the time passed first.</returns>
    public bool Synchronize(TimeSpan timeout) {
      int status = Raw.sg_stream_synchronize(Handle.Token, Time.Nanoseconds(timeout));
      GC.KeepAlive(this);
      return status == (int)Status.Ok;
    }

    /// <summary>A task that completes when everything submitted to the stream before this call has completed, successfully or not.</summary>
    /// <param name="cancellationToken">Cancels the waiting, not the work.</param>
    public Task SynchronizeAsync(CancellationToken cancellationToken = default(CancellationToken)) =>
      context.BarrierAsync(onThis, cancellationToken);

    /// <summary>Makes later submissions to the stream wait for the latest recording of the event.</summary>
    public void WaitFor(GemmEvent happened) {
      if (happened == null) throw new ArgumentNullException("happened");
      Raw.sg_stream_wait_event(Handle.Token, happened.Handle.Token);
      GC.KeepAlive(this);
      GC.KeepAlive(happened);
    }

    /// <summary>Returns the stream to the context's pool. Its work in flight continues.</summary>
    public void Dispose() => Handle.Dispose();
  }
}
