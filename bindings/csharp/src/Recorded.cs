// SPDX-License-Identifier: Apache-2.0
using System.Threading;

namespace StreamGemm {
  /// <summary>The operands of one recorded submission: pinned as long as the graph has them, or a run with them is in flight.</summary>
  internal sealed class Recorded {
    internal readonly bool IsCopy;
    internal readonly Matrix A, B, C;  // of a copy: A is the source, C the destination
    internal readonly Native.Addresses At;
    Pin pinA, pinB, pinC, pinBias;
    readonly Pins more;
    int holders = 1;  // the graph, and each run in flight

    internal Recorded(in Matrix a, in Matrix b, in Matrix c, in Matrix bias) {
      A = a;
      B = b;
      C = c;
      At.A = pinA.Take(a);
      At.B = pinB.Take(b);
      At.C = pinC.Take(c);
      At.Bias = pinBias.Take(bias);
    }

    internal Recorded(in Matrix source, in Matrix destination) {
      IsCopy = true;
      A = source;
      C = destination;
      At.A = pinA.Take(source);
      At.C = pinC.Take(destination);
    }

    /// <summary>Of a layer.</summary>
    internal Recorded(Pins pins) {
      more = pins;
    }

    internal void Hold() {
      Interlocked.Increment(ref holders);
    }

    internal void Release() {
      if (Interlocked.Decrement(ref holders) == 0) Unpin();
    }

    void Unpin() {
      pinA.Release();
      pinB.Release();
      pinC.Release();
      pinBias.Release();
      more?.Release();
    }

    /// <summary>For a dropped graph, when none of its runs is in flight.</summary>
    ~Recorded() {
      Unpin();
    }
  }
}
