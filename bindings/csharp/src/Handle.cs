// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>
  /// One reference to an object of the library, released once, by Dispose or by the finalizer. A handle is a token that
  /// the library checks, so a call that races with Dispose returns an error; GC.KeepAlive on the owner keeps the finalizer
  /// from running during a call.
  /// </summary>
  internal sealed class Handle : SafeHandle {
    readonly Func<long, int> release;
    readonly string type;

    internal Handle(long token, Func<long, int> release, string type) : base(IntPtr.Zero, true) {
      this.release = release;
      this.type = type;
      SetHandle((IntPtr)token);
    }

    public override bool IsInvalid => handle == IntPtr.Zero;

    /// <summary>The token for a call.</summary>
    internal long Token {
      get {
        if (IsClosed) throw new ObjectDisposedException(type);
        return (long)handle;
      }
    }

    /// <summary>The token, released or not.</summary>
    internal long Any => (long)handle;

    protected override bool ReleaseHandle() {
      return release((long)handle) >= 0;
    }
  }
}
