// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// A recording of all contexts of the process: what ran when, what overlapped, and why a device was idle. A process records
  /// one trace at a time. Disposing it ends its recording.
  /// </summary>
  public sealed unsafe class GemmTrace : IDisposable {
    static readonly Func<long, int> release = RawPINVOKE.sg_trace_release;
    readonly Handle handle;

    /// <summary>Starts recording.</summary>
    /// <param name="maxEvents">Events to keep at most, 64 bytes each; 0: 1,000,000. Later ones are dropped and counted.</param>
    /// <exception cref="BusyException">A trace is being recorded.</exception>
    /// <param name="deviceTimes">A GPU times each command itself, which then takes some us longer.</param>
    public GemmTrace(ulong maxEvents = 0, bool deviceTimes = false) {
      long token;
      using (var options = new sg_trace_options()) {
        options.max_events = maxEvents;
        options.flags = deviceTimes ? 1u : 0u;  // SG_TRACE_DEVICE_TIMES
        Raw.sg_trace_start(options, out token);
      }
      handle = new Handle(token, release, "GemmTrace");
    }

    /// <summary>Ends the recording; work in flight goes on. Once is enough.</summary>
    public void Stop() {
      Raw.sg_trace_stop(handle.Token);
      GC.KeepAlive(this);
    }

    /// <summary>Writes the trace to a file, which is replaced.</summary>
    /// <param name="path">The file.</param>
    /// <param name="format">Its format; Auto: by the file's name (.json, .pftrace, .html, .svg, .txt).</param>
    public void Write(string path, TraceFormat format = TraceFormat.Auto) {
      Raw.sg_trace_write(handle.Token, path, (int)format);
      GC.KeepAlive(this);
    }

    /// <summary>The trace in memory, in any format but Auto.</summary>
    public byte[] Export(TraceFormat format) {
      ulong size;
      Raw.sg_trace_export(handle.Token, (int)format, 0, 0, out size);
      var content = new byte[size];
      fixed (byte* first = content) {
        Raw.sg_trace_export(handle.Token, (int)format, (long)first, size, out size);
      }
      GC.KeepAlive(this);
      return content;
    }

    /// <summary>Figures of one context.</summary>
    public TraceMetrics Metrics(GemmContext context) {
      var metrics = new TraceMetrics();
      Raw.sg_trace_get_metrics(handle.Token, context.Token, metrics.native);
      GC.KeepAlive(context);
      GC.KeepAlive(this);
      return metrics;
    }

    /// <summary>Figures of the jobs of one stream.</summary>
    public TraceMetrics Metrics(GemmStream stream) {
      var metrics = new TraceMetrics();
      Raw.sg_trace_get_stream_metrics(handle.Token, stream.Handle.Token, metrics.native);
      GC.KeepAlive(stream);
      GC.KeepAlive(this);
      return metrics;
    }

    /// <summary>For how many seconds two jobs ran side by side.</summary>
    public double Overlap(GemmJob first, GemmJob second) {
      double seconds;
      Raw.sg_trace_overlap_jobs(handle.Token, first.Handle.Token, second.Handle.Token, out seconds);
      GC.KeepAlive(first);
      GC.KeepAlive(second);
      GC.KeepAlive(this);
      return seconds;
    }

    /// <summary>For how many seconds jobs of two streams ran side by side.</summary>
    public double Overlap(GemmStream first, GemmStream second) {
      double seconds;
      Raw.sg_trace_overlap_streams(handle.Token, first.Handle.Token, second.Handle.Token, out seconds);
      GC.KeepAlive(first);
      GC.KeepAlive(second);
      GC.KeepAlive(this);
      return seconds;
    }

    /// <summary>Ends the recording, and forgets what was recorded.</summary>
    public void Dispose() => handle.Dispose();
  }
}
