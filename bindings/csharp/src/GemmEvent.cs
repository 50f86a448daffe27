// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;

namespace StreamGemm {
  public sealed partial class GemmEvent {
    readonly GemmContext context;

    internal GemmEvent(GemmContext context, long token) : base(token, release) {
      this.context = context;
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
  }
}
