// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>What the function of a custom operation gets: its operands, numbered in the order reads, writes, updates. Valid until
  /// the function returns.</summary>
  public sealed unsafe class CustomCall {
    readonly long[] addresses, sizes;

    internal CustomCall(long stream, long[] addresses, long[] sizes) {
      NativeStream = new IntPtr(stream);
      this.addresses = addresses;
      this.sizes = sizes;
    }

    /// <summary>On a CUDA device the cudaStream_t to enqueue on; otherwise zero: the work is done when the function returns.</summary>
    public IntPtr NativeStream { get; }

    /// <summary>Number of operands.</summary>
    public int Count => sizes.Length;

    /// <summary>The address of an operand in this run, on the device or on the host: in a pipeline that of the batch's buffer.</summary>
    public IntPtr Address(int index) => new IntPtr(addresses[index]);

    /// <summary>Bytes of an operand, from its first element to the end of its last.</summary>
    public long Size(int index) => sizes[index];

    /// <summary>The memory of an operand, of less than 2 GiB, on a device without a native stream.</summary>
    /// <exception cref="NotSupportedException">A CUDA device, whose stream accesses the operand.</exception>
    public Span<T> Span<T>(int index) where T : struct {
      if (NativeStream != IntPtr.Zero)
        throw new NotSupportedException("operand " + index + " is accessed by the native stream, not by the host");
      if (sizes[index] > int.MaxValue)
        throw new ArgumentException("operand " + index + " has " + sizes[index] + " bytes, and a Span at most " + int.MaxValue, "index");
      return MemoryMarshal.Cast<byte, T>(new Span<byte>((void*)addresses[index], (int)sizes[index]));
    }
  }
}
