// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>A function of one submission. Its job, graph or pipeline keeps it until it is released.</summary>
  internal sealed class CustomFunction {
    internal readonly Action<CustomCall> Function;
    internal readonly long[] Sizes;
    GCHandle key;  // weak: a function may refer to the graph that keeps it
    long operation;
    int holders = 1;

    internal CustomFunction(Action<CustomCall> function, long[] sizes) {
      Function = function;
      Sizes = sizes;
      key = GCHandle.Alloc(this, GCHandleType.Weak);
      operation = CustomCalls.Operation((long)GCHandle.ToIntPtr(key));
      if (operation == 0) {
        key.Free();
        throw new OutOfMemoryException("no memory for a custom operation");
      }
    }

    /// <summary>What the native function gets.</summary>
    internal long Operation => operation;

    /// <summary>For one more submission, or a graph.</summary>
    internal CustomFunction Held() {
      Interlocked.Increment(ref holders);
      return this;
    }

    internal void Release() {
      if (Interlocked.Decrement(ref holders) > 0) return;
      long released = Interlocked.Exchange(ref operation, 0);
      if (released == 0) return;
      RawPINVOKE.sg_relay_operation_free(released);
      key.Free();
    }
  }

  /// <summary>The background threads that call functions: of the relay (relay.h) to which the library's threads hand their calls.
  /// One thread more waits for a call than functions run.</summary>
  internal static unsafe class CustomCalls {
    static readonly object gate = new object();
    static long relay;   // 0 before the first operation
    static bool started;
    static int waiting;  // threads that wait for a call, or are about to
    static int functions;  // that run
    static readonly bool isMono = Type.GetType("Mono.Runtime") != null;
    [ThreadStatic] static bool running;

    /// <summary>An operation of the relay, whose calls carry a key; 0: no memory.</summary>
    internal static long Operation(long key) {
      lock (gate) {
        if (relay == 0) {
          relay = RawPINVOKE.sg_relay_new();
          if (relay == 0) return 0;
        }
        if (!started) AddThread();
        started = true;
      }
      return RawPINVOKE.sg_relay_operation_new(relay, key);
    }

    /// <summary>Whether the calling thread runs a function.</summary>
    internal static bool OnThread => running;

    /// <summary>Whether to wait for the functions that run, at process exit. One of them may be what exits the process, and never
    /// returns: Mono tells of the exit on its thread. .NET Core tells on another one, and functions have a second there; it frees no
    /// memory that they use.</summary>
    internal static bool MayComplete(Stopwatch time) => Volatile.Read(ref functions) == 0 || (!running && (isMono || time.Elapsed.TotalSeconds < 1));

    /// <summary>At process exit: later functions fail with <see cref="Status.Shutdown"/>. Those that run are waited for, or given up.</summary>
    internal static void End(Stopwatch time) {
      if (relay == 0) return;
      while (Volatile.Read(ref functions) > 0 && MayComplete(time)) Thread.Sleep(1);
      RawPINVOKE.sg_relay_end(relay, isMono && !running ? 1 : 0);
    }

    static void AddThread() {
      Interlocked.Increment(ref waiting);
      try {
        new Thread(Run) { IsBackground = true, Name = "StreamGemm custom" }.Start();
      } catch {
        Interlocked.Decrement(ref waiting);
        throw;
      }
    }

    static void AddThreadIfPossible() {
      try {
        AddThread();
      } catch (OutOfMemoryException) {
        // Calls wait for a thread that runs a function.
      }
    }

    static void Run() {
      long* call = stackalloc long[8];
      while (RawPINVOKE.sg_relay_take(relay, (long)call) != 0) {
        long id = call[0];
        var status = Status.BackendFailure;
        byte[] message = null;
        try {
          if (Interlocked.Decrement(ref waiting) == 0) AddThreadIfPossible();
          running = true;
          Interlocked.Increment(ref functions);
          Call(call);
          status = Status.Ok;
        } catch (Exception error) {
          if (error is OutOfMemoryException) status = Status.OutOfMemory;
          message = Encoding.UTF8.GetBytes(Describe(error) + "\0");
        } finally {
          if (running) Interlocked.Decrement(ref functions);
          running = false;
          fixed (byte* text = message) RawPINVOKE.sg_relay_done(relay, id, (int)status, (long)text);
          Interlocked.Increment(ref waiting);
        }
      }
    }

    /// <summary>The type and the message of an exception, or its type alone where its own code throws.</summary>
    static string Describe(Exception error) {
      try {
        return error.GetType().FullName + ": " + error.Message;
      } catch (Exception) {
        return error.GetType().FullName;
      }
    }

    // Not inlined: the frame of a thread that waits would keep its last function.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Call(long* call) {
      var called = (CustomFunction)GCHandle.FromIntPtr((IntPtr)call[1]).Target;
      var addresses = new long[called.Sizes.Length];
      for (int i = 0; i < addresses.Length; ++i) addresses[i] = call[4 + i];
      called.Function(new CustomCall(call[2], addresses, called.Sizes));
    }
  }
}
