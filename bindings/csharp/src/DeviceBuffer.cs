// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>Device memory. It is freed when the buffer was disposed or collected and the jobs submitted before that have completed.</summary>
  public sealed class DeviceBuffer : NativeObject {
    static readonly Func<long, int> release = RawPINVOKE.sg_buffer_release;
    readonly long address;

    internal DeviceBuffer(long token) : base(token, release) {
      ulong bytes;
      Raw.sg_buffer_data(token, out address);
      Raw.sg_buffer_size(token, out bytes);
      Bytes = (long)bytes;
    }

    /// <summary>Size in bytes.</summary>
    public long Bytes { get; }

    /// <summary>The buffer's device address, valid as long as the buffer.</summary>
    public IntPtr Address {
      get {
        if (Handle.IsClosed) throw new ObjectDisposedException("DeviceBuffer");
        return (IntPtr)address;
      }
    }

    /// <summary>A matrix in the buffer. Jobs on it keep the buffer alive.</summary>
    /// <param name="rows">Rows.</param>
    /// <param name="cols">Columns.</param>
    /// <param name="dtype">Element type.</param>
    /// <param name="ld">Leading dimension in elements; 0 means tight.</param>
    /// <param name="layout">Row or column major.</param>
    /// <param name="offset">Element of the buffer where the matrix begins.</param>
    public Matrix Matrix(long rows, long cols, DType dtype, long ld = 0, Layout layout = Layout.RowMajor, long offset = 0) {
      int size = Element.Size(dtype);
      if (size == 0) throw new ArgumentException("dtype is " + dtype, "dtype");
      if (offset < 0 || offset > Bytes / size) throw new ArgumentOutOfRangeException("offset", offset, "offset is outside the buffer");
      return new Matrix(this, (long)Address, offset, Bytes / size - offset, false, rows, cols, ld, dtype, layout);
    }
  }
}
