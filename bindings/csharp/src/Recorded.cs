// SPDX-License-Identifier: Apache-2.0
using System.Threading;

namespace StreamGemm {
  /// <summary>The operands of one recorded submission: pinned as long as the graph has them, or a run with them is in flight.</summary>
  internal sealed class Recorded {
    internal readonly Pins Pins = new Pins();
    internal readonly Matrix Source, Destination;  // of a copy
    int holders = 1;                               // the graph, and each run in flight

    internal Recorded(Matrix source = default(Matrix), Matrix destination = default(Matrix)) {
      Source = source;
      Destination = destination;
    }

    internal bool IsCopy => Source.DType != 0;

    internal void Hold() {
      Interlocked.Increment(ref holders);
    }

    internal void Release() {
      if (Interlocked.Decrement(ref holders) == 0) Pins.Release();
    }

    /// <summary>For a dropped graph, when none of its runs is in flight.</summary>
    ~Recorded() {
      Pins.Release();
    }
  }
}
