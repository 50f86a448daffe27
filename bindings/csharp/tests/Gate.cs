// SPDX-License-Identifier: Apache-2.0
using System;
using System.Runtime.InteropServices;
using StreamGemm;

/// <summary>Memory that blocks the library thread that first accesses it, until the test opens it: a job with an operand there
/// stays in flight for as long as the test wants, however slow the machine is (tests/api/support/gate.h).</summary>
sealed class Gate : IDisposable {
  [DllImport("sg_test_gate")] static extern IntPtr gate_new(UIntPtr bytes);
  [DllImport("sg_test_gate")] static extern IntPtr gate_memory(IntPtr gate);
  [DllImport("sg_test_gate")] static extern IntPtr gate_content(IntPtr gate);
  [DllImport("sg_test_gate")] static extern void gate_open(IntPtr gate);

  readonly IntPtr gate;

  /// <summary>A closed gate before one element.</summary>
  internal Gate(float value) {
    gate = gate_new((UIntPtr)sizeof(float));
    if (gate == IntPtr.Zero) throw new SkippedException("userfaultfd is not available here");
    Marshal.Copy(new[] { value }, 0, gate_content(gate), 1);
  }

  /// <summary>The element, 1 x 1.</summary>
  internal Matrix Matrix => Matrix.At(gate_memory(gate), 1, 1, DType.F32, keepAlive: this);

  /// <summary>A job that completes once the gate is open.</summary>
  internal GemmJob Job(GemmContext context, GemmStream stream) {
    var one = new float[1, 1];
    return context.SubmitGemm(Matrix, one, new float[1, 1], new GemmOptions { Stream = stream });
  }

  /// <summary>Unblocks the job; may be called again. The memory stays, since jobs may still use it.</summary>
  internal void Open() => gate_open(gate);

  public void Dispose() => Open();
}
