// SPDX-License-Identifier: Apache-2.0
using System.Threading;

namespace StreamGemm {
  /// <summary>What one recorded submission needs, pinned as long as the graph has it, or a run with it is in flight; or what a plan needs.</summary>
  internal sealed class Recorded {
    internal readonly Pins Pins;
    int holders = 1;  // the graph or plan, and each run in flight

    internal Recorded(bool areShapes = false) {
      Pins = new Pins(areShapes);
    }

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
