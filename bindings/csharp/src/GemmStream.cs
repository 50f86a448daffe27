// SPDX-License-Identifier: Apache-2.0
using System.Threading;
using System.Threading.Tasks;

namespace StreamGemm {
  public sealed partial class GemmStream {
    readonly GemmContext context;
    readonly SubmitOptions onThis;

    internal GemmStream(GemmContext context, long token) : base(token, release) {
      this.context = context;
      onThis = new SubmitOptions { Stream = this };
    }

    /// <summary>A task that completes when everything submitted to the stream before this call has completed, successfully or not.</summary>
    /// <param name="cancellationToken">Cancels the waiting, not the work.</param>
    public Task SynchronizeAsync(CancellationToken cancellationToken = default(CancellationToken)) =>
      context.BarrierAsync(onThis, cancellationToken);
  }
}
