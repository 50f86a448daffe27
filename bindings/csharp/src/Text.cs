// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace StreamGemm {
  /// <summary>A string as UTF-8 with its NUL, for the duration of a call.</summary>
  internal struct Text : IDisposable {
    internal readonly IntPtr Address;

    /// <param name="value">May be null.</param>
    /// <param name="name">Of the argument, in errors; by default that of the property.</param>
    internal Text(string value, [CallerMemberName] string name = null) {
      Address = IntPtr.Zero;
      if (value == null) return;
      if (value.IndexOf('\0') >= 0)  // where C would end it
        throw new ArgumentException(name + " holds a NUL: \"" + value.Replace("\0", "\\0") + "\"", name);
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

    /// <summary>The text of bytes with its NUL.</summary>
    internal static string Of(byte[] utf8) => Encoding.UTF8.GetString(utf8, 0, utf8.Length - 1);
  }
}
