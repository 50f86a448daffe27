// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// A recording of all contexts of the process: what ran when, what overlapped, and why a device was idle. A process records
  /// one trace at a time. Disposing it ends its recording.
  /// </summary>
  public sealed partial class GemmTrace {
    /// <summary>Starts recording.</summary>
    /// <param name="maxEvents">Events to keep at most, 64 bytes each; 0: 1,000,000. Later ones are dropped and counted.</param>
    /// <exception cref="BusyException">A trace is being recorded.</exception>
    /// <param name="deviceTimes">A GPU times each command itself, which then takes some us longer.</param>
    public GemmTrace(ulong maxEvents = 0, bool deviceTimes = false) : base(Start(maxEvents, deviceTimes), release) { }

    static long Start(ulong maxEvents, bool deviceTimes) {
      long token;
      using (var options = new sg_trace_options()) {
        options.max_events = maxEvents;
        options.flags = deviceTimes ? 1u : 0u;  // SG_TRACE_DEVICE_TIMES
        Raw.sg_trace_start(options, out token);
      }
      return token;
    }

    /// <summary>Ends the recording; work in flight goes on. Once is enough.</summary>
    public void Stop() {
      Raw.sg_trace_stop(Handle.Token);
      GC.KeepAlive(this);
    }
  }
}
