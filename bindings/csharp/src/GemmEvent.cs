// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A marker in a stream: other streams and the host can wait for it, and measure the time between two.</summary>
  public sealed class GemmEvent : IDisposable {
    static readonly Func<long, int> release = RawPINVOKE.sg_event_release;

    readonly GemmContext context;

    internal GemmEvent(GemmContext context, long token) {
      this.context = context;
      Handle = new Handle(token, release, "GemmEvent");
    }

    internal Handle Handle { get; }

    /// <summary>Records the event: it completes after everything submitted to the stream before this call. Recording again
    /// moves the event; waits that have started keep to the earlier recording.</summary>
    public void Record(GemmStream stream) {
      if (stream == null) throw new ArgumentNullException("stream");
      Raw.sg_event_record(Handle.Token, stream.Handle.Token);
      GC.KeepAlive(this);
      GC.KeepAlive(stream);
    }

    /// <summary>The native event under it (a cudaEvent_t), which other libraries' streams may wait for. It lives as long as this
    /// event and moves with it from now on; <see cref="Record"/> then returns once it is enqueued on the device.</summary>
    public IntPtr GetNative() {
      long native;
      Raw.sg_event_native(Handle.Token, out native);
      GC.KeepAlive(this);
      return (IntPtr)native;
    }

    /// <summary>Whether the event is complete. An unrecorded event is.</summary>
    public bool HasHappened {
      get {
        int status = Raw.sg_event_query(Handle.Token);
        GC.KeepAlive(this);
        return status == (int)Status.Ok;
      }
    }

    /// <summary>Waits until the latest recording of the event is complete.</summary>
    public void Wait() => Wait(Timeout.InfiniteTimeSpan);

    /// <summary>Waits until the latest recording of the event is complete.</summary>
    /// <returns>False when the time passed first.</returns>
    public bool Wait(TimeSpan timeout) {
      int status = Raw.sg_event_wait(Handle.Token, Time.Nanoseconds(timeout));
      GC.KeepAlive(this);
      return status == (int)Status.Ok;
    }

    /// <summary>A task that completes with the latest recording of the event.</summary>
    /// <param name="cancellationToken">Cancels the waiting, not the work.</param>
    public Task WaitAsync(CancellationToken cancellationToken = default(CancellationToken)) {
      using (GemmStream stream = context.CreateStream()) {
        stream.WaitFor(this);
        return stream.SynchronizeAsync(cancellationToken);
      }
    }

    /// <summary>Time from another event to this one, both complete, on the device's clock (virtual on sim devices).</summary>
    public TimeSpan Since(GemmEvent start) => TimeSpan.FromTicks((long)Math.Round(SecondsSince(start) * TimeSpan.TicksPerSecond));

    /// <summary>Like <see cref="Since"/>, in seconds with the full resolution of the device's clock.</summary>
    public double SecondsSince(GemmEvent start) {
      if (start == null) throw new ArgumentNullException("start");
      double seconds;
      if (Raw.sg_event_elapsed(start.Handle.Token, Handle.Token, out seconds) != (int)Status.Ok)
        throw new InvalidOperationException("an event has not happened yet");
      GC.KeepAlive(this);
      GC.KeepAlive(start);
      return seconds;
    }

    /// <summary>Releases the event. Waits in progress continue.</summary>
    public void Dispose() => Handle.Dispose();
  }
}
