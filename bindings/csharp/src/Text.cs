// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace StreamGemm {
  /// <summary>A string as UTF-8 with its NUL, for the duration of a call.</summary>
  internal struct Text : IDisposable {
    internal readonly IntPtr Address;

    internal Text(string value) {
      Address = IntPtr.Zero;
      if (value == null) return;
      if (value.IndexOf('\0') >= 0) throw new ArgumentException("the text holds a NUL: \"" + value.Replace("\0", "\\0") + "\"");
      byte[] bytes = Encoding.UTF8.GetBytes(value);
      Address = Marshal.AllocHGlobal(bytes.Length + 1);
      Marshal.Copy(bytes, 0, Address, bytes.Length);
      Marshal.WriteByte(Address, bytes.Length, 0);
    }

    public void Dispose() {
      Marshal.FreeHGlobal(Address);
    }

    internal static unsafe string Of(IntPtr address) {
      if (address == IntPtr.Zero) return null;
      byte* text = (byte*)address;
      int length = 0;
      while (text[length] != 0) ++length;
      return Encoding.UTF8.GetString(text, length);
    }
  }
}
