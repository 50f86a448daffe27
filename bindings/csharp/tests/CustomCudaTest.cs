// SPDX-License-Identifier: Apache-2.0
using System;
using StreamGemm;

/// <summary>Custom operations on the emulated GPU.</summary>
static class CustomCudaTest {
  public static void TheCallHasAStream() {
    using (var context = new GemmContext("cuda:0")) {
      DeviceBuffer buffer = context.AllocateDevice(64);
      Matrix x = buffer.Matrix(2, 4, DType.F64);
      string found = null;
      context.Custom(call => {
        Expect.Throws<NotSupportedException>(() => call.Span<double>(0).Clear(), "operand 0 is accessed by the native stream");
        found = (call.NativeStream != IntPtr.Zero) + " " + (call.Address(0) == buffer.Address) + " " + call.Size(0);
      }, updates: new[] { x });
      Expect.Equal("True True 64", found, "the call");
      Expect.Throws<BackendFailureException>(() => context.Custom(call => { throw new Exception("on purpose"); }, writes: new[] { x }),
                                             "System.Exception: on purpose");
    }
  }
}
