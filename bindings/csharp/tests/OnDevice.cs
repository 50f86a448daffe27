// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>A context on the tests' device, and operands of f64 in the device's memory.</summary>
static class OnDevice {
  internal static readonly GemmContext Context = new GemmContext(Harness.Device);
  static readonly Random random = new Random(1);

  internal static Matrix Place(double[,] values) {
    DeviceBuffer buffer = Context.AllocateDevice(Math.Max(1, values.Length) * 8);
    Matrix made = buffer.Matrix(values.GetLength(0), values.GetLength(1), DType.F64);
    Context.Copy(values, made);
    return made;
  }

  /// <summary>A matrix whose content must be overwritten.</summary>
  internal static Matrix Poisoned(int rows, int cols) => Place(Made(rows, cols, (i, j) => double.NaN));

  /// <summary>Values between -1 and 1.</summary>
  internal static double[,] Numbers(int rows, int cols) => Made(rows, cols, (i, j) => 2 * random.NextDouble() - 1);

  internal static double[,] Made(int rows, int cols, Func<int, int, double> value) {
    var made = new double[rows, cols];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) made[i, j] = value(i, j);
    return made;
  }

  internal static double[,] Sum(double[,] a, double[,] b) => Made(a.GetLength(0), a.GetLength(1), (i, j) => a[i, j] + b[i, j]);

  internal static double[,] Transposed(double[,] a) => Made(a.GetLength(1), a.GetLength(0), (i, j) => a[j, i]);

  internal static double[,] Product(double[,] a, double[,] b) => Made(a.GetLength(0), b.GetLength(1), (i, j) => {
    double sum = 0;
    for (int l = 0; l < a.GetLength(1); ++l) sum += a[i, l] * b[l, j];
    return sum;
  });

  /// <summary>A copy in another type.</summary>
  internal static Matrix Cast(Matrix from, DType dtype) {
    Matrix made = Context.AllocateDevice(8 * from.Rows * from.Cols).Matrix(from.Rows, from.Cols, dtype);
    Context.Convert(from, Transpose.N, made);
    return made;
  }

  /// <summary>Values that every type holds exactly, and small sums of their products, too.</summary>
  internal static double[,] Integers(int rows, int cols) => Made(rows, cols, (i, j) => (i * cols + j) * 5 % 7 - 3);

  internal static void Holds(double[,] expected, Matrix got, string what) {
    var values = new double[expected.GetLength(0), expected.GetLength(1)];
    Context.Copy(got, values);
    Same(expected, values, what);
  }

  internal static void Same(double[,] expected, double[,] values, string what) {
    for (int i = 0; i < values.GetLength(0); ++i)
      for (int j = 0; j < values.GetLength(1); ++j)
        if (!(Math.Abs(values[i, j] - expected[i, j]) <= 1e-12))
          throw new Exception(what + ": " + values[i, j] + " instead of " + expected[i, j] + " at " + i + ", " + j);
  }

  /// <summary>A wrong call names its argument.</summary>
  internal static void Refused(string part, Action call) {
    var error = Expect.Throws<ArgumentException>(call, part);
    Expect.True(!error.Message.Contains("desc"), error.Message);
  }

  /// <summary>The failure of a job reaches its task.</summary>
  internal static void Fails(Func<TimeSpan, Task> call) {
    Expect.Throws<DeadlineExceededException>(() => call(TimeSpan.FromTicks(1)).GetAwaiter().GetResult(), "deadline");
  }
}
