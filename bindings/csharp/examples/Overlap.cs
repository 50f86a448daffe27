// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>Many GEMMs in flight, a resident weight, pinned memory, streams, a time limit, and statistics.</summary>
static class Overlap {
  const int Batches = 8, Rows = 64, Inner = 256, Cols = 128;

  static async Task Run(string device) {
    using (var context = new GemmContext(device))
    using (DeviceBuffer weights = context.AllocateDevice(Inner * Cols * sizeof(float)))
    using (PinnedMemory<float> input = context.AllocatePinned<float>(Batches * Rows * Inner))
    using (GemmStream stream = context.CreateStream())
    using (GemmEvent start = context.CreateEvent(), end = context.CreateEvent())
    using (var limit = new CancellationTokenSource(TimeSpan.FromMinutes(1))) {
      float[] host = Enumerable.Range(0, Inner * Cols).Select(i => (float)(i % 5)).ToArray();
      Matrix w = weights.Matrix(Inner, Cols, DType.F32);
      await context.CopyAsync(Matrix.Of(host, Inner, Cols), w);  // the weights stay on the device

      input.GetSpan().Fill(1);
      var results = new List<float[,]>();
      var work = new List<Task>();
      start.Record(stream);
      for (int i = 0; i < Batches; ++i) {
        var result = new float[Rows, Cols];
        Matrix x = Matrix.Of(input.Memory.Slice(i * Rows * Inner, Rows * Inner), Rows, Inner);
        work.Add(context.GemmAsync(x, w, result, new GemmOptions { Alpha = i, Stream = stream }, limit.Token));
        results.Add(result);
      }
      end.Record(stream);
      await Task.WhenAll(work);
      end.Wait();

      for (int i = 0; i < Batches; ++i)
        for (int col = 0; col < Cols; ++col) {
          float expected = 0;
          for (int row = 0; row < Inner; ++row) expected += host[row * Cols + col];
          if (results[i][7, col] != i * expected) throw new Exception("batch " + i + ", column " + col + ": " + results[i][7, col]);
        }
      string took = (end.SecondsSince(start) * 1e6).ToString("0");
      Console.WriteLine(Batches + " batches on " + context.Device.Name + " in " + took + " us of the device's clock");
    }
  }

  static void Main(string[] args) => Run(args.Length > 0 ? args[0] : "cpu").GetAwaiter().GetResult();
}
