// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// The completion queue of a context, and the one background thread that blocks on it and completes the tasks. A table
  /// holds each Pending, with everything that it pins, until its job has completed; the tag of a submission is its index there.
  /// The thread exits when the context is closed and its last job has completed.
  /// </summary>
  internal sealed class Completions {
    const int Capacity = 256;
    static readonly HashSet<Completions> all = new HashSet<Completions>();
    static volatile bool exiting;

    internal readonly long Context;
    internal readonly long Queue;
    readonly object gate = new object();
    Pending[] table = new Pending[64];
    readonly Stack<int> free = new Stack<int>();
    int used;      // entries of the table that have ever been used
    int inFlight;
    bool retired;

    static Completions() {
      AppDomain.CurrentDomain.ProcessExit += (sender, arguments) => Drain();
      AppDomain.CurrentDomain.DomainUnload += (sender, arguments) => Drain();  // Mono's, where a program has several
    }

    internal Completions(long context) {
      Context = context;
      Raw.sg_call_queue_create(context, out Queue);
      var thread = new Thread(Run) { IsBackground = true, Name = "StreamGemm" };
      try {
        lock (all) {
          if (exiting) throw new ShutdownException("the process is exiting");
          all.Add(this);
        }
        thread.Start();
      } catch {
        End();
        StopAtExit();
        throw;
      }
    }

    /// <summary>Reserves an entry of the table for the next submission.</summary>
    /// <returns>Its tag.</returns>
    internal long Enter(Pending pending) {
      StopAtExit();
      lock (gate) {
        if (retired && !exiting) throw new ObjectDisposedException("GemmContext");
        if (retired) throw new ShutdownException("the process is exiting");
        if (free.Count == 0 && used == table.Length) Array.Resize(ref table, 2 * used);
        int place = free.Count > 0 ? free.Pop() : used++;
        table[place] = pending;
        ++inFlight;
        return place;
      }
    }

    /// <summary>Releases an entry: the submission failed, or its job has completed and pins nothing any more.</summary>
    internal void Leave(long tag) {
      bool last;
      lock (gate) {
        table[tag] = null;
        free.Push((int)tag);
        last = --inFlight == 0 && retired;
        if (last) Monitor.PulseAll(gate);
      }
      if (last) RawPINVOKE.sg_queue_close(Queue);
    }

    /// <summary>No submission will follow: the thread exits once the last job has completed.</summary>
    internal void Retire() {
      bool last;
      lock (gate) {
        retired = true;
        last = inFlight == 0;
      }
      if (last) RawPINVOKE.sg_queue_close(Queue);
    }

    /// <summary>At process exit. Mono frees the garbage-collected memory while native threads still run, so queued jobs are
    /// cancelled and running jobs are waited for. Their tasks are not completed: no waiting thread gets an exception
    /// because of the exit.</summary>
    static void Drain() {
      Completions[] open;
      lock (all) {
        exiting = true;
        open = new Completions[all.Count];
        all.CopyTo(open);
      }
      foreach (Completions one in open) one.Retire();
      foreach (Completions one in open) one.CancelAll();
      Stopwatch time = Stopwatch.StartNew();
      foreach (Completions one in open) {
        lock (one.gate)
          while (one.inFlight > 0 && CustomCalls.MayComplete(time)) Monitor.Wait(one.gate, 20);
      }
      CustomCalls.End(time);
    }

    /// <summary>A background thread that uses the library while the process exits stops here: it would get an exception because of
    /// the exit, and end the process by that. The runtime ends it. A function of a custom operation goes on, as its end is waited for.</summary>
    internal static void StopAtExit() {
      if (exiting && Thread.CurrentThread.IsBackground && !CustomCalls.OnThread) Thread.Sleep(Timeout.Infinite);
    }

    void CancelAll() {
      lock (gate) {
        for (int i = used - 1; i >= 0; --i) table[i]?.Cancel();
      }
    }

    unsafe void Run() {
      var batch = (sg_completion*)Marshal.AllocHGlobal(Capacity * sizeof(sg_completion));
      int count;
      while (RawPINVOKE.sg_call_next_batch(Queue, (long)batch, Capacity, -1, out count) == (int)Status.Ok) {
        for (sg_completion* one = batch; count > 0; --count, ++one) {
          Pending pending;
          lock (gate) pending = table[one->tag];
          pending.End((int)one->status, (IntPtr)one->message, exiting);
        }
      }
      Marshal.FreeHGlobal((IntPtr)batch);
      End();
    }

    void End() {
      lock (all) all.Remove(this);
      RawPINVOKE.sg_queue_release(Queue);
    }
  }
}
