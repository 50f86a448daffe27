// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Plans and graphs of every operation, by a loop over Operations: a new operation is tested by itself, or fails for want of a shape here.</summary>
static class PlansTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);

  /// <summary>Arguments that are not those of their type: rows, columns and type of a matrix, or a value. Matrices are 8 x 8.</summary>
  static readonly Dictionary<string, object> own = new Dictionary<string, object> {
    { "Elementwise.function", Function.Add }, { "Gather.y", new[] { 8, 8 } }, { "CrossEntropy.y", new[] { 8, 1 } }, { "RowDot.y", new[] { 8, 1 } }, { "RowReduce.y", new[] { 8, 1 } },
    { "Dequantize.quantization", Quantization.I8 }, { "Dequantize.blockSize", 4L }, { "Dequantize.x", DType.I8 }, { "Dequantize.scales", new[] { 8, 2 } }, { "Dequantize.zeroPoints", null },
    { "Conv2d.w", new[] { 2, 2 } }, { "Conv2dBackward.w", new[] { 2, 2 } }, { "Conv2dBackward.dw", new[] { 2, 2 } }, { "Conv2dBackward.dbias", new[] { 1, 2 } },
    { "Im2Col.matrix", new[] { 32, 2 } }, { "Col2Im.matrix", new[] { 32, 2 } },
    { "Recurrent.wIh", new[] { 32, 8 } }, { "Recurrent.wHh", new[] { 32, 8 } }, { "RecurrentBackward.wIh", new[] { 32, 8 } }, { "RecurrentBackward.wHh", new[] { 32, 8 } },
  };
  static readonly string[] rows = { "gamma", "beta", "dgamma", "dbeta", "dbias" };

  /// <summary>One set of arguments, of the same values each time.</summary>
  sealed class Arguments {
    readonly List<Array> memory = new List<Array>();
    readonly bool areShapes;

    internal Arguments(bool areShapes) {
      this.areShapes = areShapes;
    }

    Matrix M(int height, int width, DType type = DType.F32) {
      if (areShapes) return Matrix.Shape(height, width, type);
      var random = new Random(100 + memory.Count);
      if (type == DType.I8) {
        var bytes = new sbyte[height, width];
        for (int i = 0; i < height * width; ++i) bytes[i / width, i % width] = (sbyte)random.Next(-9, 9);
        memory.Add(bytes);
        return bytes;
      }
      var floats = new float[height, width];
      for (int i = 0; i < height * width; ++i) floats[i / width, i % width] = (float)(0.1 + random.NextDouble());
      memory.Add(floats);
      return floats;
    }

    internal OperationDesc Of(MethodInfo method) {
      return (OperationDesc)method.Invoke(null, method.GetParameters().Select(p => Argument(method.Name, p)).ToArray());
    }

    object Argument(string method, ParameterInfo parameter) {
      Type type = parameter.ParameterType.IsByRef ? parameter.ParameterType.GetElementType() : parameter.ParameterType;
      object given;
      if (own.TryGetValue(method + "." + parameter.Name, out given) && !(given is int[]) && !(given is DType)) return given ?? Activator.CreateInstance(type);
      int[] shape = given as int[] ?? (rows.Contains(parameter.Name) ? new[] { 1, 8 } : new[] { 8, 8 });
      if (type == typeof(Matrix)) return M(shape[0], shape[1], given is DType ? (DType)given : DType.F32);
      if (type == typeof(IReadOnlyList<Matrix>)) return new[] { M(8, 8) };
      if (type == typeof(IReadOnlyList<GemmItem>)) return new[] { new GemmItem(M(8, 8), M(8, 8), M(8, 8)), new GemmItem(M(4, 8), M(8, 2), M(4, 2), new GemmOptions { Alpha = 3 }) };
      if (type == typeof(Heads)) return Heads.InColumns(M(8, 8), 2);
      if (type == typeof(Images)) return Images.Nchw(M(8, 8), 2, 2, 2);
      if (type == typeof(Sequence)) return Sequence.ByStep(M(8, 8), 4);
      if (type == typeof(Indices)) return areShapes ? Indices.Of(Matrix.Shape(1, 8, DType.I32)) : Indices.Of(new[] { 3, 1, 4, 0, 5, 2, 6, 7 });
      if (type == typeof(Windows)) return new Windows(1, 1);
      if (type == typeof(RecurrentGradients)) return new RecurrentGradients { Dy = Sequence.ByStep(M(8, 8), 4), Dx = Sequence.ByStep(M(8, 8), 4), DwIh = M(32, 8), DwHh = M(32, 8) };
      if (type == typeof(RecurrentOptions) && method == "RecurrentBackward") return new RecurrentOptions { Reserve = M(8, 40) };
      return parameter.HasDefaultValue ? parameter.DefaultValue : Activator.CreateInstance(type);
    }

    /// <summary>All values, which two sets have in common after the same operation.</summary>
    internal string Values => string.Join(" ", memory.Select(m => string.Join(",", m.Cast<object>())));
  }

  /// <summary>But those whose operands have to be in pinned or device memory.</summary>
  static IEnumerable<MethodInfo> All => typeof(Operations).GetMethods(BindingFlags.Static | BindingFlags.Public).Where(m => m.Name != "Custom" && m.Name != "AllReduce");

  static readonly PlanOptions place =
    new PlanOptions { Place = MemoryKind.Pageable, PlaceA = MemoryKind.Pageable, PlaceB = MemoryKind.Pageable, PlaceC = MemoryKind.Pageable };

  static string Computed(MethodInfo method) {
    var arguments = new Arguments(false);
    string before = arguments.Values;
    OperationDesc operation = arguments.Of(method);
    context.RunAsync(operation).Wait();
    Expect.True(arguments.Values != before, method.Name + " writes");
    return arguments.Values;
  }

  public static async Task EveryOperationIsPlannedByItsShapes() {
    foreach (MethodInfo method in All) {
      OperationDesc shapes = new Arguments(method.Name != "GemmBatch").Of(method);
      Expect.True(context.Supports(shapes), method.Name + " is supported");
      using (GemmPlan plan = context.Plan(shapes, place)) {
        Expect.True(plan.Prediction.PredictedSeconds > 0 && plan.Describe(PlanFormat.Text).Length > 0, "the prediction of " + method.Name);
        string computed = Computed(method);
        for (int run = 0; run < 2; ++run) {
          var arguments = new Arguments(false);
          await plan.RunAsync(arguments.Of(method));
          Expect.Equal(computed, arguments.Values, method.Name + " by its plan");
        }
        var others = new Arguments(false);
        OperationDesc other = others.Of(All.First(m => m.Name != method.Name && m.Name != "Linear" && !m.Name.StartsWith("Gemm")));
        Expect.Throws<ArgumentException>(() => plan.RunAsync(other).Wait(), "operation");
      }
    }
  }

  public static async Task EveryRecordedOperationIsUpdated() {
    foreach (MethodInfo method in All) {
      Arguments first = new Arguments(false), second = new Arguments(false);
      string computed = Computed(method), before;
      using (GemmGraph graph = context.CreateGraph()) {
        Expect.Equal(0, graph.Record(first.Of(method)), "index");
        OperationDesc other = second.Of(method);
        before = second.Values;
        await graph.RunAsync();
        Expect.Equal(computed, first.Values, method.Name + " in a graph");
        Expect.Equal(before, second.Values, "not yet");
        graph.Update(0, other);
        await graph.RunAsync();
        Expect.Equal(computed, second.Values, method.Name + " updated");
      }
    }
  }

  public static void MistakesNameTheArguments() {
    Matrix x = Matrix.Shape(8, 8, DType.F32), y = Matrix.Shape(8, 7, DType.F32);
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.Softmax(x, y)), "x is 8 x 8", "y of 8 x 7");
    const string weights = "w is 8 x 7; with this x, y and op of w it must be 8 x 8";
    Expect.Throws<ArgumentException>(() => context.Linear(x, y, x), weights);
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.Linear(x, y, x)), weights);
    Expect.Throws<ArgumentException>(() => context.Supports(Operations.Linear(x, y, x)), weights);
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.Linear(x, x, Matrix.Shape(9, 8, DType.F32))), "y is 9 x 8; with this x it must be 8 x 8");
    using (GemmGraph graph = context.CreateGraph()) {
      graph.Record(Operations.Linear(new float[8, 8], new float[8, 8], new float[8, 8]));
      Expect.Throws<ArgumentException>(() => graph.Update(0, Operations.Linear(new float[8, 8], new float[8, 7], new float[8, 8])), weights);
    }
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.Linear(x, x, x, new LinearOptions { OpW = Transpose.C })), "options.OpW is 2; it must be 0 (N) or 1 (T)");
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.Linear(x, x, x, new LinearOptions { OpW = (Transpose)77 })), "options.OpW is 77");
    Expect.Throws<ArgumentException>(() => context.Supports(Operations.Gemm(x, y, x)), "c is 8 x 8");
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.GemmGroup(new[] { new GemmItem(x, x, x), new GemmItem(x, x, y) })), "items[1].C is 8 x 7");
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.GemmGroup(new[] { new GemmItem(x, x, x, new GemmOptions { OpA = (Transpose)7 }) })), "items[0].Options.OpA is 7");
    Expect.Throws<ArgumentException>(() => context.Plan(Operations.GemmBatch(new[] { x }, new[] { x }, new[] { x })), "a[0] is 8 x 8 F32", "without memory");
    Expect.Throws<ArgumentException>(() => context.RunAsync(null), "operation");
    using (GemmPlan plan = context.Plan(Operations.Softmax(x, x), place)) {
      Expect.Throws<ArgumentException>(() => plan.RunAsync(Operations.Softmax(new float[8, 7], new float[8, 7])).Wait(), "the operation differs");
      Expect.Throws<ArgumentNullException>(() => plan.RunAsync(null).Wait(), "operation");
    }
  }

  static float[] Filled(float value, int count) => Enumerable.Repeat(value, count).ToArray();

  /// <summary>What is described keeps the options that were checked, whatever becomes of the caller's.</summary>
  public static async Task DescriptionsAreImmutable() {
    float[] x = Filled(1, 64), c = new float[64], kept = Filled(-1, 64);
    Matrix a = Matrix.Of(x, 4, 4), four = Matrix.Of(new Memory<float>(kept, 0, 16), 4, 4), y = Matrix.Of(c, 8, 8);
    var gemm = new GemmOptions();
    OperationDesc operation = Operations.Gemm(a, a, four, gemm);
    gemm.Batch = 4;
    gemm.StrideC = 16;
    gemm.Alpha = 7;
    await context.RunAsync(operation);
    Expect.Equal(4f, kept[15], "in the view");
    Expect.Equal(string.Join(",", Filled(-1, 48)), string.Join(",", kept.Skip(16)), "beyond the view");
    var items = new[] { new GemmItem(a, a, four, new GemmOptions { Alpha = 3 }) };
    var list = new List<Matrix> { four };
    OperationDesc group = Operations.GemmGroup(items), batch = Operations.GemmBatch(new[] { a }, new[] { a }, list);
    items[0].Options.Alpha = 9;
    items[0] = default(GemmItem);
    list[0] = y;
    await context.RunAsync(group);
    Expect.Equal(12f, kept[15], "by the group");
    await context.RunAsync(batch);
    Expect.Equal(4f, kept[15], "by the batch");
    var axpby = new AxpbyOptions { Alpha = 2 };
    operation = Operations.Axpby(Matrix.Of(x, 8, 8), y, axpby);
    axpby.Alpha = 5;
    await context.RunAsync(operation);
    Expect.Equal(2f, c[63], "alpha");
    var windows = new Windows(1, 1);
    operation = Operations.Im2Col(Images.Nchw(Matrix.Of(x, 8, 8), 2, 2, 2), Matrix.Of(new float[64], 32, 2), windows);
    windows.KernelH = 2;
    windows.PadTop = 100;
    await context.RunAsync(operation);
    Sequence steps = Sequence.ByStep(Matrix.Of(x, 8, 8), 4);
    float[,] w = new float[32, 8], dw = new float[32, 8], reserve = new float[8, 40];
    var options = new RecurrentOptions { Reserve = reserve };
    var gradients = new RecurrentGradients { Dy = steps, DwIh = dw };
    operation = Operations.RecurrentBackward(steps, w, w, steps, gradients, options);
    options.Reserve = new float[1, 1];
    options.BiasIh = new float[1, 1];
    gradients.DwIh = new float[1, 1];
    await context.RunAsync(operation);
    int calls = 0;
    using (PinnedMemory<float> memory = context.AllocatePinned<float>(16)) {
      Matrix[] writes = { Matrix.Of(memory.Memory, 4, 4) };
      var custom = new CustomOptions();
      operation = Operations.Custom(call => calls += call.Span<float>(0).Length, writes: writes, options: custom);
      custom.Seconds = -1;
      writes[0] = default(Matrix);
      await context.RunAsync(operation);
    }
    Expect.Equal(16, calls, "elements of the operand");
  }

  public static async Task AFunctionStaysThatOfThePlan() {
    int calls = 0;
    using (PinnedMemory<float> one = context.AllocatePinned<float>(16), other = context.AllocatePinned<float>(16)) {
      Action<CustomCall> function = call => {
        Span<float> to = call.Span<float>(0);
        to[3] = ++calls;
      };
      Matrix[] at = { Matrix.Of(one.Memory, 4, 4) }, there = { Matrix.Of(other.Memory, 4, 4) };
      using (GemmPlan plan = context.Plan(Operations.Custom(function, writes: at)))
      using (GemmGraph graph = context.CreateGraph()) {
        await plan.RunAsync(Operations.Custom(function, writes: there));
        Expect.Equal(1f, other.Memory.Span[3], "in the other memory");
        Expect.Throws<ArgumentException>(() => plan.RunAsync(Operations.Custom(call => { }, writes: there)).Wait(), "function");
        graph.Record(Operations.Custom(function, writes: at));
        graph.Update(0, Operations.Custom(function, writes: there));
        graph.Update(0, Operations.Custom(function, writes: at));
        Memory.Collect();
        await graph.RunAsync();
        Expect.Equal(2f, one.Memory.Span[3], "by the graph");
        Expect.Throws<ArgumentException>(() => graph.Update(0, Operations.Custom(call => { }, writes: there)), "function");
      }
    }
  }
}
