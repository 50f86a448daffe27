// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Linq;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// The CUDA plugin of the package StreamGemm.Cuda. The library finds it in its plugin folder, which a build keeps, and a program that is
  /// published for one platform does not; there, and among the native files of packages that .NET names, it is found here.
  /// </summary>
  internal static class CudaPlugin {
    const string Name = "libstreamgemm-cuda.so";
    static readonly Lazy<string> loaded = new Lazy<string>(Find);

    /// <summary>Loads the plugin, once. Returns why it cannot be used; null: it can, or there is none.</summary>
    internal static string Load() => loaded.Value;

    static string Find() {
      string[] named = ((string)AppContext.GetData("NATIVE_DLL_SEARCH_DIRECTORIES") ?? "").Split(':');
      string path = new[] { NativeLoader.Folder }.Concat(named).Where(f => !string.IsNullOrEmpty(f)).Select(f => Path.Combine(f, Name)).FirstOrDefault(File.Exists);
      if (path == null || Library.BackendsSoFar().Any(b => b.Name == "cuda" && b.Available)) return null;
      try {
        Raw.sg_backend_load(path);
        return null;
      } catch (NoDeviceException failure) {
        return failure.Message;
      }
    }
  }
}
