// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>
  /// Finds the native library before the first call: the file that the variable STREAMGEMM_CSHARP names; else the copy of an
  /// unpacked package (runtimes/linux-x64/native); else the result of the runtime's own search (beside the assembly, the
  /// assets of a NuGet reference, the system's folders).
  /// </summary>
  internal static class NativeLoader {
    const string Name = "libstreamgemm_csharp.so";
    const int Now = 2;  // RTLD_NOW

    [DllImport("libdl.so.2", EntryPoint = "dlopen")]
    static extern IntPtr Open(string path, int flags);

    [DllImport("libdl.so.2", EntryPoint = "dlerror")]
    static extern IntPtr Error();

    /// <summary>Loads the library, once.</summary>
    internal static void Load() { }

    // DllImport finds a library that is already loaded by its name, so it uses the one opened here.
    static NativeLoader() {
      string named = Environment.GetEnvironmentVariable("STREAMGEMM_CSHARP");
      if (!string.IsNullOrEmpty(named)) {
        if (Open(named, Now) == IntPtr.Zero) throw new DllNotFoundException("STREAMGEMM_CSHARP: " + Text.Of(Error()));
        return;
      }
      string folder = Path.GetDirectoryName(typeof(NativeLoader).Assembly.Location);
      if (string.IsNullOrEmpty(folder)) return;
      foreach (string root in new[] { folder, Path.Combine(folder, "..", "..") }) {
        string path = Path.GetFullPath(Path.Combine(root, "runtimes", "linux-x64", "native", Name));
        if (File.Exists(path) && Open(path, Now) != IntPtr.Zero) return;
      }
    }
  }
}
