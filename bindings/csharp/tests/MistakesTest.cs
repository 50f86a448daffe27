// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Text.RegularExpressions;
using StreamGemm;

/// <summary>Mistakes: each message names the argument as C# spells it, the value that was given and the rule. Some are written here,
/// others are drawn from the options, which are written from the model of the headers.</summary>
static class MistakesTest {
  static readonly GemmContext context = new GemmContext("cpu");
  static readonly Regex cNames = new Regex("desc|->|[abc]_array|struct|NULL|sg_|stride_|\u0001|184467");
  static readonly Regex rule = new Regex("must|which|cannot|; |none|overlap|agree|is given|needs|need |negative|has no|outside|is empty|read-only|type is|below|holds|is null|divide|has \\d|from \\d|positive|is no |whose|differs|null");
  static readonly List<string> faults = new List<string>();
  static int seen;

  static Matrix M(int rows, int cols) => new float[rows, cols];

  static Matrix D(int rows, int cols) => new double[rows, cols];

  static string MessageOf(Action call) {
    try {
      call();
    } catch (TargetInvocationException error) {
      return error.InnerException.Message;
    } catch (AggregateException error) {
      return error.InnerException.Message;
    } catch (Exception error) {
      return error.Message;
    }
    return null;
  }

  // The message of a call that must be refused has the words, in this order, and a rule.
  static void Look(Action call, params string[] words) {
    string message = MessageOf(call);
    ++seen;
    int at = 0;
    foreach (string word in words) at = message == null || at < 0 ? -1 : message.IndexOf(word, at, StringComparison.Ordinal);
    if (at < 0 || !rule.IsMatch(message) || cNames.IsMatch(message) || Regex.Matches(message, "Parameter").Count > 1)
      faults.Add(string.Join(", ", words) + ": " + message);
  }

  static void Report(int least) {
    string all = string.Join("\n", faults);
    faults.Clear();
    int count = seen;
    seen = 0;
    Expect.Equal("", all, "no fault");
    Expect.True(count >= least, count + " mistakes");
  }

  static void LookAtGemms() {
    Matrix a = M(4, 4), b = M(4, 4), c = M(4, 4);
    float[] s16 = new float[16];
    Look(() => context.Gemm(a, M(5, 4), c), "4 x 4", "5 x 4", "agree", "b.Rows");
    Look(() => context.Gemm(a, b, M(4, 3)), "c is 4 x 3", "4 x 4");
    Look(() => context.Gemm(a, D(4, 4), c), "a.DType is f32", "b.DType is f64", "equal");
    Look(() => context.Gemm(a, b, D(4, 4)), "c.DType is f64", "no result type");
    Look(() => context.Gemm(a, b, a), "c overlaps a", "memory");
    Look(() => context.Gemm(default(Matrix), b, c), "a is no matrix");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Batch = -2 }), "options.Batch is -2", "negative");
    Look(() => context.Gemm(a, b, c, new GemmOptions { OpA = (Transpose)77 }), "options.OpA is 77", "no op");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Compute = (Compute)77 }), "options.Compute is 77", "no compute");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Activation = (Activation)77 }), "options.Activation is 77", "no activation");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Priority = 9 }), "options.Priority is 9", "from -1 to 1");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Deadline = TimeSpan.FromSeconds(-1) }), "Deadline is -00:00:01", "positive");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Bias = M(1, 3) }), "Bias is", "1 x 3", "needs");
    Look(() => context.Gemm(a, b, c, new GemmOptions { Plan = new PlanOptions { TileM = -3 } }), "options.Plan.TileM is -3", "from 0");
    Look(() => context.Plan(a, b, c, new GemmOptions { Plan = new PlanOptions { Parts = -3 } }), "options.Plan.Parts is -3", "from 0");
    Look(() => new SubmitOptions { Label = "a\0b" }, "Label holds a NUL", "a\\0b");
    Look(() => context.Gemm<float>(Layout.RowMajor, 4, 4, 4, s16, 3, s16, 4, s16, 4), "lda is 3", "at least 4");
    Look(() => context.Gemm<float>(Layout.RowMajor, 4, 4, 4, s16, 4, s16, 3, s16, 4), "ldb is 3", "at least 4");
    Look(() => context.GemmAsync<float>(Layout.RowMajor, 4, 4, 4, s16, 4, s16, 4, s16, 3), "ldc is 3", "at least 4");
    Look(() => context.Gemm<float>(Layout.RowMajor, 4, 4, 4, new float[15], 4, s16, 4, s16, 4), "a has 15", "needs 16");
    Look(() => context.Gemm<float>(s16, s16, s16, 4, 4, -4), "k is -4", "negative");
    Look(() => context.GemmGroupAsync(new GemmItem[0]), "items is empty");
    Look(() => context.GemmGroupAsync(new[] { new GemmItem(a, b, c), new GemmItem(a, M(5, 4), M(4, 4)) }), "items[1].B.Rows");
    Look(() => context.GemmGroupAsync(new[] { new GemmItem(a, b, c), new GemmItem(a, b, c) }), "items[1].C overlaps items[0].C", "memory");
    Look(() => context.GemmGroupAsync(new[] { new GemmItem(a, b, c), new GemmItem(c, b, M(4, 4)) }), "items[0].C overlaps what items[1] reads");
    Look(() => context.GemmGroupAsync(new[] { new GemmItem(a, b, c), new GemmItem(a, D(4, 4), M(4, 4)) }), "items[1].A.DType is f32", "items[1].B.DType is f64");
    Look(() => context.GemmBatchAsync(new[] { a }, new[] { b, b }, new[] { c }), "b has 2 items", "c has 1");
    Look(() => context.Copy(a, M(4, 3)), "destination", "4 x 3", "4 x 4");
    Look(() => context.Copy(a, a), "destination", "source", "overlap");
  }

  static void LookAtLayers() {
    Matrix x = M(4, 4), y = M(4, 4);
    Images images = Images.Nchw(M(1, 72), 2, 6, 6), result = Images.Nchw(M(1, 48), 3, 4, 4);
    Heads q = Heads.InColumns(M(5, 8), heads: 2), k = Heads.InColumns(M(5, 12), heads: 3), o = Heads.InColumns(M(5, 8), heads: 2);
    Look(() => context.Softmax(x, M(4, 3)), "x is 4 x 4", "y of 4 x 3", "must be");
    Look(() => context.Softmax(x, y, new SoftmaxOptions { MaskRows = 3, Mask = Mask.Causal }), "options.MaskRows is 3", "divide", "x.Rows");
    Look(() => context.Softmax(x, y, new SoftmaxOptions { Mask = (Mask)77 }), "options.Mask is 77", "no mask");
    Look(() => context.LayerNorm(x, default(Matrix), default(Matrix), y, new NormOptions { Epsilon = -1 }), "options.Epsilon is -1", "not negative");
    Look(() => context.Rotary(x, y, new RotaryOptions { Theta = -1 }), "options.Theta is -1", "positive");
    Look(() => context.Rotary(x, y, new RotaryOptions { HeadSize = 3 }), "options.HeadSize is 3", "divisor", "x");
    Look(() => context.Rotary(x, y, new RotaryOptions { Cos = M(4, 2) }), "options.Cos is given", "options.Sin is not", "both");
    Look(() => context.Rotary(x, y, new RotaryOptions { Pairs = (RotaryPairs)77 }), "options.Pairs is 77", "no kind");
    Look(() => context.Attention(q, k, k, o), "3", "divide");
    Look(() => context.Attention(q, q, q, o, new AttentionOptions { Scale = double.NaN }), "options.Scale is", "finite");
    Look(() => context.Attention(q, q, q, o, new AttentionOptions { Workspace = -5 }), "options.Workspace is -5", "negative");
    Look(() => context.Conv2d(images, M(3, 18), result, new Windows(3, 3, stride: 0)), "tride", "0");
    Look(() => context.Conv2d(images, M(3, 98), result, new Windows(7, 7)), "kernelH is 7", "padded image has 6");
    Look(() => context.Conv2d(images, M(3, 18), result, new Windows(3, 3), new Conv2dOptions { Groups = 3 }), "options.Groups is 3", "divide");
    Look(() => context.Linear(x, M(3, 4), y), "w is 3 x 4", "must be 4 x 4");
    Look(() => context.Linear(x, M(4, 4), y, new LinearOptions { OpW = (Transpose)77 }), "options.OpW is 77", "must be");
    Look(() => context.Clamp(x, y, new ClampOptions { Low = double.NaN }), "options.Low is NaN");
    Look(() => context.Axpby(x, M(4, 3)), "a is 4 x 4", "c is 4 x 3", "equal");
    Look(() => context.RowDot(x, M(4, 3), M(4, 1)), "b is 4 x 3", "4 x 4");
    Look(() => context.Elementwise(Function.Relu, x, y, M(4, 4)), "b is", "one operand");
  }

  static void LookAtObjects() {
    Look(() => context.AllocateDevice(-1), "bytes", "positive", "-1");
    Look(() => context.AllocatePinned<float>(-1), "length", "negative", "-1");
    Look(() => context.CreateStream(5), "priority is 5", "from -1 to 1");
    Look(() => new GemmContext("no-such"), "no-such");
    Look(() => new GemmContext("cpu\0x"), "device holds a NUL", "cpu\\0x");
    Look(() => new GemmContext(new ContextOptions { MemoryLimit = -5 }), "MemoryLimit is -5", "negative");
    Look(() => new GemmContext(new ContextOptions { Device = "cpu", ComputeLanes = -1 }), "options.ComputeLanes is -1", "from 0");
    Look(() => context.CreatePipeline(new PipelineOptions { InputBytes = -64 }), "InputBytes is -64", "negative");
    Look(() => context.CreatePipeline(new PipelineOptions { InputBytes = 0 }), "options.InputBytes is 0", "from 1");
    Look(() => Matrix.Of(new float[11], 3, 4), "needs 12", "has 11");
    Look(() => Matrix.Of(new float[11], 2, 4, ld: 3), "ld is below", "4");
    Look(() => Heads.InColumns(M(4, 4), heads: 3), "heads is 3", "divide", "4");
    using (var trace = new GemmTrace()) {
      trace.Stop();
      Look(() => trace.Write("/data/src/dst/x.html"), "path is \"/data/src/dst/x.html\"", "written");
      Look(() => trace.Write("run.htm"), "path is \"run.htm\"", "whose format is unknown", ".html");
    }
  }

  public static void Written() {
    LookAtGemms();
    LookAtLayers();
    LookAtObjects();
    Report(60);
  }

  // Sets each number and each enumerator of an options class to one that it cannot be, and uses it.
  static void Draw<T>(Func<T> made, Action<T> use) {
    foreach (PropertyInfo property in typeof(T).GetProperties()) {
      Type kind = property.PropertyType;
      bool isFlags = kind.IsDefined(typeof(FlagsAttribute), false);
      object value = kind == typeof(int) ? -5 : kind == typeof(long) ? -5L : kind == typeof(double) ? double.NaN
                     : kind.IsEnum && !isFlags ? Enum.ToObject(kind, 77) : (object)null;
      if (value == null || !property.CanWrite) continue;
      string message = MessageOf(() => {
        T options = made();
        property.SetValue(options, value);
        use(options);
      });
      if (message == null) continue;  // any number is allowed
      ++seen;
      bool says = Regex.IsMatch(message, "\\b" + property.Name + "\\b") && Regex.IsMatch(message, "-5|NaN|nan|77");
      if (!says || !rule.IsMatch(message) || cNames.IsMatch(message)) faults.Add(typeof(T).Name + "." + property.Name + ": " + message);
    }
  }

  public static void DrawnFromTheModel() {
    Matrix a = M(4, 4), b = M(4, 4), c = M(4, 4);
    Heads heads = Heads.InColumns(M(5, 8), heads: 2);
    Images images = Images.Nchw(M(1, 72), 2, 6, 6);
    Draw(() => new PlanOptions(), o => context.Plan(a, b, c, new GemmOptions { Plan = o }).Dispose());
    Draw(() => new ContextOptions { Device = "cpu" }, o => new GemmContext(o).Dispose());
    Draw(() => new PipelineOptions { InputBytes = 64 }, o => context.CreatePipeline(o).Dispose());
    Draw(() => new GemmOptions(), o => context.Gemm(a, b, c, o));
    Draw(() => new SoftmaxOptions(), o => context.Softmax(a, c, o));
    Draw(() => new NormOptions(), o => context.LayerNorm(a, default(Matrix), default(Matrix), c, o));
    Draw(() => new RotaryOptions(), o => context.Rotary(a, c, o));
    Draw(() => new LinearOptions(), o => context.Linear(a, b, c, o));
    Draw(() => new AttentionOptions(), o => context.Attention(heads, heads, heads, Heads.InColumns(M(5, 8), heads: 2), o));
    Draw(() => new Conv2dOptions(), o => context.Conv2d(images, M(3, 18), Images.Nchw(M(1, 48), 3, 4, 4), new Windows(3, 3), o));
    Report(40);
  }
}
