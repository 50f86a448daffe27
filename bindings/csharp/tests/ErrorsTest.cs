// SPDX-License-Identifier: Apache-2.0
using System;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Wrong operands and options: the exception names the argument. Failures of jobs reach their tasks.</summary>
static class ErrorsTest {
  static readonly GemmContext context = new GemmContext(Harness.Device);
  static readonly float[,] square = new float[4, 4], other = new float[4, 4], result = new float[4, 4];

  static void Refuses<E>(Matrix a, Matrix b, Matrix c, params string[] words) where E : Exception {
    Expect.Throws<E>(() => { context.GemmAsync(a, b, c); }, words);
    Expect.Throws<E>(() => context.SubmitGemm(a, b, c), words);
    Expect.Throws<E>(() => context.Gemm(a, b, c), words);
  }

  public static void ReadOnlyResult() {
    Refuses<ArgumentException>(square, other, Matrix.Of(new ReadOnlyMemory<float>(new float[16]), 4, 4), "c is read-only");
  }

  public static void ShapesThatDisagree() {
    Refuses<ArgumentException>(square, new float[5, 4], result, "op(b)", "5 x 4");
    Refuses<ArgumentException>(square, other, new float[4, 3], "c", "4 x 3");
  }

  public static void TypesThatDisagree() {
    Refuses<ArgumentException>(square, new double[4, 4], result, "b", "f64");
    Refuses<ArgumentException>(new sbyte[4, 4], new sbyte[4, 4], result, "c", "f32");
  }

  public static void OverlappingOperands() {
    Refuses<ArgumentException>(square, other, square, "overlap", "c");
    Matrix block = square;
    Refuses<ArgumentException>(block.Block(0, 0, 2, 2), other.AsBlock(2), block.Block(1, 1, 2, 2), "overlap");
  }

  static Matrix AsBlock(this float[,] array, int size) => ((Matrix)array).Block(0, 0, size, size);

  public static void UnsetMatrix() {
    Refuses<ArgumentException>(default(Matrix), other, result, "a is no matrix");
    Refuses<ArgumentException>(square, other, default(Matrix), "c is no matrix");
  }

  public static void MemoryTooSmall() {
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], 3, 4), "needs 12", "has 11");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], 2, 4, ld: 8), "needs 12", "has 11");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], long.MaxValue / 2, 4), "has 11");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], 2, 4, ld: 3), "ld is below cols");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], -1, 4), "rows is negative");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new float[11], 1, 1, offset: 12), "offset");
    Expect.Throws<ArgumentException>(() => ((Matrix)square).Block(3, 0, 2, 1), "outside");
    Expect.Throws<ArgumentException>(() => {
      context.GemmAsync(Matrix.Of(new float[31], 4, 4), square, result, new GemmOptions { Batch = 2, StrideA = 16 });
    }, "a", "need 32", "has 31");
    Expect.Throws<ArgumentException>(() => context.Gemm<float>(new float[16], new float[16], new float[15], 4, 4, 4), "c has 15", "needs 16");
    Expect.Throws<ArgumentException>(() => context.Gemm<float>(new float[16], new float[16], new float[16], 4, 4, -4), "negative");
  }

  public static void UnsupportedElementTypes() {
    Expect.Throws<ArgumentException>(() => Matrix.Of(new long[4], 2, 2), "Int64", "no element type");
    Expect.Throws<ArgumentException>(() => Matrix.Of(new long[4], 2, 2, dtype: DType.F32), "F32", "8 bytes");
    Expect.Throws<ArgumentNullException>(() => Matrix.Of((float[])null, 2, 2), "array");
  }

  public static void OptionsOutOfRange() {
    Expect.Throws<ArgumentException>(() => { context.GemmAsync(square, other, result, new GemmOptions { Priority = 5 }); }, "options.Priority is 5");
    Expect.Throws<ArgumentException>(() => { context.GemmAsync(square, other, result, new GemmOptions { OpA = (Transpose)9 }); }, "options.OpA is 9");
    Expect.Throws<ArgumentException>(() => { context.GemmAsync(square, other, result, new GemmOptions { After = new GemmJob[] { null } }); }, "After[0]");
    Expect.Throws<ArgumentException>(() => { context.GemmBatchAsync(new Matrix[] { square }, new Matrix[] { other, other }, new Matrix[] { result }); },
                                     "b has 2 items");
    Expect.Throws<ArgumentException>(() => { context.GemmBatchAsync(new Matrix[0], new Matrix[0], new Matrix[0]); }, "c has no items");
    Expect.Throws<ArgumentException>(() => {
      context.GemmBatchAsync(new Matrix[] { square, new float[4, 3] }, new Matrix[] { other, other }, new Matrix[] { result, result });
    }, "a[1]");
    Expect.Throws<ArgumentException>(() => { context.GemmGroupAsync(new GemmItem[0]); }, "items is empty");
  }

  public static void MessagesUseTheNamesOfCSharp() {
    Refuses<ArgumentException>(square, new float[5, 4], result, "(b.Rows)");
    Refuses<ArgumentException>(square, new double[4, 4], result, "a.DType is f32 and b.DType is f64");
    Expect.Throws<ArgumentException>(() => {
      context.GemmGroupAsync(new[] { new GemmItem(square, other, result), new GemmItem(square, new float[5, 4], new float[4, 4]) });
    }, "(items[1].B.Rows)");
    Expect.Throws<ArgumentException>(() => {
      context.GemmAsync(square, other, result, new GemmOptions { Plan = new PlanOptions { TileM = -1 } });
    }, "options.Plan.TileM is -1");
    Expect.Throws<ArgumentException>(() => context.Plan(square, other, result, new GemmOptions { Plan = new PlanOptions { Parts = -1 } }),
                                     "options.Plan.Parts is -1");
    Expect.Throws<ArgumentException>(() => new GemmContext(new ContextOptions { Device = "cpu", ComputeLanes = -1 }), "options.ComputeLanes is -1");
    MethodInfo inCSharp = typeof(GemmContext).Assembly.GetType("StreamGemm.Names").GetMethod("InCSharp", BindingFlags.NonPublic | BindingFlags.Static);
    FieldInfo number = typeof(GemmContext).Assembly.GetType("StreamGemm.Internal.Call").GetField("Attention", BindingFlags.NonPublic | BindingFlags.Static);
    int gemm = -1, attention = (int)number.GetRawConstantValue();
    object[,] forms = {
      { gemm, "\u0001desc->c_array[3] is \u0001NULL", "c[3] is null" },
      { gemm, "items of \u0001desc->c_array overlap", "items of c overlap" },
      { gemm, "\u0001descs[12]->stride_c is 1", "items[12].Options.StrideC is 1" },
      { gemm, "\u0001descs[2]->a.data is 0x1", "items[2].A is 0x1" },
      { gemm, "\u0001desc->alpha.re is 0.5", "options.Alpha.Real is 0.5" },
      { gemm, "\u0001desc->bias overlaps", "options.Bias overlaps" },
      { attention, "\u0001desc->kv_heads is 3; \u0001desc->k.token_stride is 2", "k.Count is 3; k.TokenStride is 2" },
      { gemm, "\u0001submit->after[2] is 0x7", "options.After[2] is 0x7" },
      { gemm, "\u0001submit->plan->memory_limit", "options.Plan.MemoryLimit" },
      { gemm, "\u0001submit->timeout_ns", "options.Timeout" },
      { gemm, "\u0001dst (0x1) and \u0001src (0x2) overlap", "destination (0x1) and source (0x2) overlap" },
      { gemm, "\u0001path is \"/data/src/dst/desc->a_array\"", "path is \"/data/src/dst/desc->a_array\"" },
    };
    for (int i = 0; i < forms.GetLength(0); ++i)
      Expect.Equal((string)forms[i, 2], (string)inCSharp.Invoke(null, new[] { forms[i, 1], forms[i, 0] }), (string)forms[i, 1]);
  }

  public static void AbsentDevices() {
    IStreamGemmError error = Expect.Throws<NoDeviceException>(() => new GemmContext("sim:/nonexistent/model.json"), "nonexistent");
    Expect.Equal(Status.NoDevice, error.Status, "status");
    Expect.Throws<NoDeviceException>(() => new GemmContext("no such thing"), "no such thing");
    Expect.Throws<ArgumentException>(() => new GemmContext("cpu\0z"), "device holds a NUL: \"cpu\\0z\"");
    Expect.Throws<ArgumentException>(() => new SubmitOptions { Label = "a\0b" }, "Label holds a NUL");
    using (GemmPipeline pipeline = context.CreatePipeline(new PipelineOptions { InputBytes = 4 }))
      Expect.Throws<ArgumentException>(() => pipeline.AddStage(4, name: "a\0b"), "name holds a NUL");
    using (GemmTrace trace = new GemmTrace()) Expect.Throws<ArgumentException>(() => trace.Write("x\0y.json"), "path holds a NUL");
    Expect.Throws<StreamGemmException>(() => new GemmContext("cuda:77"));
  }

  public static void OutOfMemory() {
    Expect.Throws<OutOfMemoryException>(() => context.AllocateDevice(1L << 60));
    Expect.Throws<ArgumentException>(() => context.AllocateDevice(0), "bytes");
    Expect.Throws<ArgumentException>(() => context.AllocatePinned<float>(-1), "length");
  }

  public static void EveryStatusHasItsException() {
    MethodInfo of = typeof(GemmContext).Assembly.GetType("StreamGemm.Errors").GetMethod("Of", BindingFlags.NonPublic | BindingFlags.Static);
    foreach (Status status in Enum.GetValues(typeof(Status))) {
      if (status >= 0) continue;
      var error = (Exception)of.Invoke(null, new object[] { status, "text" });
      Expect.Equal(status, ((IStreamGemmError)error).Status, "status of " + error.GetType());
      Expect.Equal("text", error.Message, "message");
      Expect.True(error.GetType() != typeof(StreamGemmException), status + " has an exception of its own");
    }
  }

  public static async Task FailureOfAJobReachesItsTask() {
    using (var failing = new GemmContext("sim:h200?fail-launch=1")) {
      GemmJob job = failing.SubmitGemm(square, other, result);
      Task failed = job.Completion;
      Task after = failing.GemmAsync(square, other, new float[4, 4], new GemmOptions { After = new[] { job } });
      try {
        await failed;
        throw new Exception("the job did not fail");
      } catch (BackendFailureException error) {
        Expect.True(error.Message.Length > 10, "a message: " + error.Message);
        Expect.True(job.Message.StartsWith(error.Message), "the job says the same: " + job.Message);
      }
      Expect.Equal(Status.BackendFailure, job.Status, "status");
      Expect.Throws<BackendFailureException>(() => job.Wait());
      Expect.Throws<BackendFailureException>(() => GemmJob.WaitAll(new[] { job }, Timeout.InfiniteTimeSpan));
      Expect.Equal(0, GemmJob.WaitAny(new[] { job }, Timeout.InfiniteTimeSpan), "any");
      Expect.Throws<DependencyFailedException>(() => after.Wait());
      await failing.GemmAsync(square, other, new float[4, 4]);  // the context still works
    }
  }
}
