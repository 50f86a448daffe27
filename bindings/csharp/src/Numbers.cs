// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;

namespace StreamGemm {
  /// <summary>An IEEE binary16 number. On .NET 5 and later arrays of System.Half work as well.</summary>
  public readonly struct Float16 : IEquatable<Float16> {
    /// <summary>The number's 16 bits.</summary>
    public readonly ushort Bits;

    /// <summary>The number with these bits.</summary>
    public Float16(ushort bits) {
      Bits = bits;
    }

    /// <summary>Rounds to nearest, ties to even; too large values become infinite.</summary>
    public static explicit operator Float16(float value) {
      uint x = (uint)BitConverter.SingleToInt32Bits(value);
      uint sign = (x >> 16) & 0x8000;
      uint magnitude = x & 0x7fffffff;
      if (magnitude > 0x7f800000) return new Float16((ushort)(sign | 0x7e00));
      if (magnitude >= 0x47800000) return new Float16((ushort)(sign | 0x7c00));  // 65536 and more
      if (magnitude < 0x38800000) {  // below 2^-14: the result is a multiple of 2^-24
        double steps = Math.Round(Math.Abs((double)value) * 16777216.0, MidpointRounding.ToEven);
        return new Float16((ushort)(sign | (uint)steps));
      }
      uint rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
      return new Float16((ushort)(sign | (rounded >> 13)));
    }

    /// <summary>Exact.</summary>
    public static implicit operator float(Float16 value) {
      int exponent = (value.Bits >> 10) & 31, fraction = value.Bits & 1023;
      double magnitude = exponent == 31 ? (fraction == 0 ? double.PositiveInfinity : double.NaN)
        : exponent == 0 ? fraction / 16777216.0
        : (1024 + fraction) * Math.Pow(2, exponent - 25);
      return (float)(value.Bits < 0x8000 ? magnitude : -magnitude);
    }

    /// <summary>Equal numbers; a NaN equals itself here, as in float.Equals.</summary>
    public bool Equals(Float16 other) => ((float)this).Equals((float)other);

    /// <inheritdoc/>
    public override bool Equals(object other) => other is Float16 && Equals((Float16)other);

    /// <inheritdoc/>
    public override int GetHashCode() => ((float)this).GetHashCode();

    /// <inheritdoc/>
    public override string ToString() => ((float)this).ToString();
  }

  /// <summary>A bfloat16 number: the upper half of a float.</summary>
  public readonly struct BFloat16 : IEquatable<BFloat16> {
    /// <summary>The number's 16 bits.</summary>
    public readonly ushort Bits;

    /// <summary>The number with these bits.</summary>
    public BFloat16(ushort bits) {
      Bits = bits;
    }

    /// <summary>Rounds to nearest, ties to even.</summary>
    public static explicit operator BFloat16(float value) {
      uint x = (uint)BitConverter.SingleToInt32Bits(value);
      if (float.IsNaN(value)) return new BFloat16((ushort)((x >> 16) | 0x40));
      return new BFloat16((ushort)((x + 0x7fff + ((x >> 16) & 1)) >> 16));
    }

    /// <summary>Exact.</summary>
    public static implicit operator float(BFloat16 value) => BitConverter.Int32BitsToSingle(value.Bits << 16);

    /// <summary>Equal numbers; a NaN equals itself here, as in float.Equals.</summary>
    public bool Equals(BFloat16 other) => ((float)this).Equals((float)other);

    /// <inheritdoc/>
    public override bool Equals(object other) => other is BFloat16 && Equals((BFloat16)other);

    /// <inheritdoc/>
    public override int GetHashCode() => ((float)this).GetHashCode();

    /// <inheritdoc/>
    public override string ToString() => ((float)this).ToString();
  }

  /// <summary>A complex number of two floats (System.Numerics.Complex has two doubles).</summary>
  public readonly struct ComplexFloat : IEquatable<ComplexFloat> {
    /// <summary>Real part.</summary>
    public readonly float Real;
    /// <summary>Imaginary part.</summary>
    public readonly float Imaginary;

    /// <summary>A number of two parts.</summary>
    public ComplexFloat(float real, float imaginary) {
      Real = real;
      Imaginary = imaginary;
    }

    /// <summary>Exact.</summary>
    public static implicit operator System.Numerics.Complex(ComplexFloat z) => new System.Numerics.Complex(z.Real, z.Imaginary);

    /// <summary>Rounds both parts.</summary>
    public static explicit operator ComplexFloat(System.Numerics.Complex z) => new ComplexFloat((float)z.Real, (float)z.Imaginary);

    /// <inheritdoc/>
    public bool Equals(ComplexFloat other) => Real.Equals(other.Real) && Imaginary.Equals(other.Imaginary);

    /// <inheritdoc/>
    public override bool Equals(object other) => other is ComplexFloat && Equals((ComplexFloat)other);

    /// <inheritdoc/>
    public override int GetHashCode() => Real.GetHashCode() * 31 ^ Imaginary.GetHashCode();

    /// <inheritdoc/>
    public override string ToString() => "(" + Real + ", " + Imaginary + ")";
  }

  /// <summary>The library's element type for a C# type.</summary>
  internal static class Element<T> where T : struct {
    internal static readonly DType Type = Find();

    /// <summary>Bytes of a T, which holds no references.</summary>
    internal static readonly int Size = MemoryMarshal.AsBytes(new Span<T>(new T[1])).Length;

    static DType Find() {
      Type t = typeof(T);
      if (t == typeof(float)) return DType.F32;
      if (t == typeof(double)) return DType.F64;
      if (t == typeof(System.Numerics.Complex)) return DType.C128;
      if (t == typeof(ComplexFloat)) return DType.C64;
      if (t == typeof(Float16) || t.FullName == "System.Half") return DType.F16;
      if (t == typeof(BFloat16)) return DType.Bf16;
      if (t == typeof(sbyte)) return DType.I8;
      if (t == typeof(int)) return DType.I32;
      return 0;
    }

    /// <summary>The requested element type, or T's own if none was.</summary>
    internal static DType Check(DType asked) {
      if (asked == 0 && Type != 0) return Type;
      if (asked == 0)
        throw new ArgumentException(typeof(T) + " is no element type of a matrix; say by dtype which one it stands for", "dtype");
      if (Element.Size(asked) != Size)
        throw new ArgumentException("dtype is " + asked + ", but an element of " + typeof(T) + " has " + Size + " bytes", "dtype");
      return asked;
    }
  }

  internal static class Element {
    static readonly int[] sizes = Sizes();

    /// <summary>Bytes of an element; 0 for other types.</summary>
    internal static int Size(DType type) => (uint)type < (uint)sizes.Length ? sizes[(int)type] : Internal.Raw.sg_dtype_size((int)type);

    static int[] Sizes() {
      var all = new int[32];
      for (int type = 0; type < all.Length; ++type) all[type] = Internal.Raw.sg_dtype_size(type);
      return all;
    }
  }
}
