// SPDX-License-Identifier: Apache-2.0
using System;
using System.Buffers;
using System.Runtime.InteropServices;
using System.Threading;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// Page-locked host memory as a Memory&lt;T&gt;: the library's own (GemmContext.AllocatePinned), or an array's
  /// (GemmContext.Register). Disposing it while jobs use it is allowed: it is freed when the last has completed.
  /// A Span of it is valid until then; keep the object alive as long as the Span.
  /// </summary>
  public sealed unsafe class PinnedMemory<T> : MemoryManager<T> where T : struct {
    readonly long context;  // this object's own reference: the memory outlives the GemmContext
    readonly GCHandle array;
    byte* data;
    readonly int length;
    int users = 1;          // this object, and each Pin
    int disposed;

    PinnedMemory(long context, byte* data, int length, GCHandle array) {
      this.context = context;
      this.data = data;
      this.length = length;
      this.array = array;
      if (!array.IsAllocated) GC.AddMemoryPressure(Pressure);
    }

    long Pressure => Math.Max(1, (long)length * Element<T>.Size);

    internal static PinnedMemory<T> Allocate(long context, int length, int? device, object keep) {
      if (length < 0) throw new ArgumentOutOfRangeException("length", length, "length is negative");
      long address;
      Raw.sg_context_retain(context);
      try {
        ulong bytes = (ulong)length * (ulong)Element<T>.Size;
        if (device.HasValue) Raw.sg_host_alloc_near(context, device.Value, bytes, out address);
        else Raw.sg_host_alloc(context, bytes, out address);
      } catch {
        RawPINVOKE.sg_context_release(context);
        throw;
      }
      GC.KeepAlive(keep);
      return new PinnedMemory<T>(context, (byte*)address, length, default(GCHandle));
    }

    internal static PinnedMemory<T> Register(long context, T[] array, object keep) {
      if (array == null) throw new ArgumentNullException("array");
      GCHandle handle = GCHandle.Alloc(array, GCHandleType.Pinned);
      var data = (byte*)handle.AddrOfPinnedObject();
      try {
        Raw.sg_context_retain(context);
        try {
          Raw.sg_host_register(context, (long)data, (ulong)array.Length * (ulong)Element<T>.Size);
        } catch {
          RawPINVOKE.sg_context_release(context);
          throw;
        }
      } catch {
        handle.Free();
        throw;
      }
      GC.KeepAlive(keep);
      return new PinnedMemory<T>(context, data, array.Length, handle);
    }

    /// <summary>The elements.</summary>
    public override Span<T> GetSpan() {
      if (Volatile.Read(ref disposed) != 0) throw new ObjectDisposedException("PinnedMemory");
      return new Span<T>(data, length);
    }

    /// <summary>Keeps the memory until <see cref="Unpin"/>; jobs pin it by themselves.</summary>
    public override MemoryHandle Pin(int elementIndex = 0) {
      if ((uint)elementIndex > (uint)length) throw new ArgumentOutOfRangeException("elementIndex");
      for (;;) {
        int seen = Volatile.Read(ref users);
        if (seen == 0 || Volatile.Read(ref disposed) != 0) throw new ObjectDisposedException("PinnedMemory");
        if (Interlocked.CompareExchange(ref users, seen + 1, seen) == seen)
          return new MemoryHandle(data + (long)elementIndex * Element<T>.Size, default(GCHandle), this);
      }
    }

    /// <summary>Undoes one <see cref="Pin"/>.</summary>
    public override void Unpin() => Leave();

    void Leave() {
      if (Interlocked.Decrement(ref users) != 0) return;
      if (array.IsAllocated) {
        RawPINVOKE.sg_host_unregister(context, (long)data);
        array.Free();
      } else {
        RawPINVOKE.sg_host_free(context, (long)data);
        GC.RemoveMemoryPressure(Pressure);
      }
      RawPINVOKE.sg_context_release(context);
      data = null;
    }

    /// <summary>Frees the memory, or unregisters the array, once no job uses it.</summary>
    public void Dispose() {
      Dispose(true);
      GC.SuppressFinalize(this);
    }

    /// <inheritdoc/>
    protected override void Dispose(bool disposing) {
      if (Interlocked.Exchange(ref disposed, 1) == 0) Leave();
    }

    /// <summary>Frees memory that was dropped without Dispose.</summary>
    ~PinnedMemory() {
      Dispose(false);
    }
  }
}
