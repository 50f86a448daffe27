// SPDX-License-Identifier: Apache-2.0
using System.Runtime.InteropServices;

/// <summary>CLOCK_MONOTONIC: Stopwatch has steps of 100 ns on Mono.</summary>
static class MonotonicClock {
  struct Time {
    internal long Seconds, Nanoseconds;
  }

  [DllImport("libc", EntryPoint = "clock_gettime")]
  static extern int Read(int clock, out Time time);

  internal static double Microseconds() {
    Time time;
    Read(1, out time);
    return time.Seconds * 1e6 + time.Nanoseconds * 1e-3;
  }
}
