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
    readonly Type owner;

    internal Handle(long token, Func<long, int> release, Type owner) : base(IntPtr.Zero, true) {
      this.release = release;
      this.owner = owner;
      SetHandle((IntPtr)token);
    }

    public override bool IsInvalid => handle == IntPtr.Zero;

    /// <summary>The token for a call.</summary>
    internal long Token {
      get {
        if (IsClosed) throw new ObjectDisposedException(owner.Name);
        return (long)handle;
      }
    }

    /// <summary>The token, released or not.</summary>
    internal long Any => (long)handle;

    protected override bool ReleaseHandle() {
      return release((long)handle) >= 0;
    }
  }

  /// <summary>An object of the library. Disposing it releases it, at any time and any number of times; work in flight continues.</summary>
  public abstract class NativeObject : IDisposable {
    internal NativeObject(long token, Func<long, int> release) {
      Handle = new Handle(token, release, GetType());
    }

    internal Handle Handle { get; }

    /// <summary>Releases the object. Its work in flight continues.</summary>
    public virtual void Dispose() => Handle.Dispose();

    /// <summary>Writes to an address with room, and tells the size of the whole.</summary>
    internal delegate int Writing(long data, ulong room, out ulong size);

    /// <summary>What a call writes; the next content may be larger or smaller.</summary>
    internal static unsafe byte[] Content(Writing call) {
      var content = new byte[0];
      for (;;) {
        ulong size;
        fixed (byte* first = content) call((long)first, (ulong)content.Length, out size);
        bool isWhole = size <= (ulong)content.Length;
        if (size != (ulong)content.Length) Array.Resize(ref content, (int)size);
        if (isWhole) return content;
      }
    }
  }
}
