// SPDX-License-Identifier: Apache-2.0
using System.Collections.Generic;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>The library in use: its version, backends and devices.</summary>
  public static class Library {
    /// <summary>Version of the native library, for instance "0.9.0".</summary>
    public static string Version => Raw.sg_version_string();

    /// <summary>All backends, usable or not; an unusable one says why.</summary>
    public static IReadOnlyList<BackendInfo> Backends {
      get {
        CudaPlugin.Load();
        return BackendsSoFar();
      }
    }

    internal static BackendInfo[] BackendsSoFar() {
      int count;
      Raw.sg_backend_count(out count);
      var all = new BackendInfo[count];
      for (int i = 0; i < count; ++i) {
        all[i] = new BackendInfo();
        Raw.sg_backend_get_info(i, all[i].native);
      }
      return all;
    }

    /// <summary>Loads a plugin (libstreamgemm-*.so), whose devices can be opened then. It stays loaded.</summary>
    /// <param name="path">The file.</param>
    /// <exception cref="NoDeviceException">It cannot be used; the message says why.</exception>
    public static void LoadBackend(string path) => Raw.sg_backend_load(System.IO.Path.GetFullPath(path));

    /// <summary>Logs messages of a level and above, of all areas, to standard error; the variable SG_LOG has no effect then.</summary>
    /// <param name="level">The least important level; Off: none.</param>
    public static void SetLog(LogLevel level) => Raw.sg_call_log_set((int)level);

    /// <summary>The counters of all contexts of the process as OpenMetrics text: what an HTTP server answers a scraper with.</summary>
    public static string MetricsText() => Text.Of(NativeObject.Content(Raw.sg_metrics_text));

    /// <summary>The devices of all usable backends; the cpu is always among them. Each is opened for the query.</summary>
    public static IReadOnlyList<DeviceInfo> Devices {
      get {
        CudaPlugin.Load();
        int count;
        Raw.sg_device_count(out count);
        var all = new DeviceInfo[count];
        for (int i = 0; i < count; ++i) {
          all[i] = new DeviceInfo();
          Raw.sg_device_get_info(i, all[i].native);
        }
        return all;
      }
    }
  }
}
