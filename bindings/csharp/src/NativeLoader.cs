// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>
  /// Finds the native library before the first call: the file that the variable STREAMGEMM_CSHARP names; else the copy of an
  /// unpacked package (runtimes/linux-x64/native, or linux-arm64); else the result of the runtime's own search (beside the assembly, the
  /// assets of a NuGet reference, the system's folders). A copy that cannot be loaded, as without libstreamgemm.so, is an error
  /// with the system's text.
  /// </summary>
  internal static class NativeLoader {
    const string Name = "libstreamgemm_csharp.so";
    const int Now = 2;  // RTLD_NOW

    [DllImport("libdl.so.2", EntryPoint = "dlopen")]
    static extern IntPtr Open(string path, int flags);

    [DllImport("libdl.so.2", EntryPoint = "dlerror")]
    static extern IntPtr Error();

    /// <summary>The text of the latest failure. .NET searches for a function at its first call from a place, which forgets the text: so there is
    /// one place, which the constructor has called before.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Reason() => Text.Of(Error());

    /// <summary>That of the library; null: the runtime has found it.</summary>
    internal static readonly string Folder;

    /// <summary>Loads the library, once.</summary>
    internal static void Load() { }

    // DllImport finds a library that is already loaded by its name, so it uses the one opened here.
    static NativeLoader() {
      Reason();  // the first call
      string named = Environment.GetEnvironmentVariable("STREAMGEMM_CSHARP");
      if (!string.IsNullOrEmpty(named)) {
        if (Open(named, Now) == IntPtr.Zero) throw new DllNotFoundException("STREAMGEMM_CSHARP: " + Reason());
        Folder = Path.GetDirectoryName(Path.GetFullPath(named));
        return;
      }
      string location = typeof(NativeLoader).Assembly.Location;  // empty where the program is a single file
      string folder = string.IsNullOrEmpty(location) ? AppContext.BaseDirectory : Path.GetDirectoryName(location);
      string packaged = Path.Combine("runtimes", "linux-" + RuntimeInformation.ProcessArchitecture.ToString().ToLowerInvariant(), "native", Name);
      string[] beside = { packaged, Path.Combine("..", "..", packaged), Name };
      foreach (string each in beside) {
        string path = Path.GetFullPath(Path.Combine(folder, each));
        if (!File.Exists(path)) continue;
        if (Open(path, Now) == IntPtr.Zero) throw new DllNotFoundException(path + " cannot be loaded: " + Reason());
        Folder = Path.GetDirectoryName(path);
        return;
      }
      if (Open(Name, Now) != IntPtr.Zero) return;
      string reason = Reason();
      if (!reason.StartsWith(Name + ":", StringComparison.Ordinal)) throw new DllNotFoundException(Name + " cannot be loaded: " + reason);
    }
  }
}
