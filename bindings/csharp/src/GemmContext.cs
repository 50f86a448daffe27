// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// A device with its streams, memory and jobs. Every method may be called from any thread. Disposing a context with work
  /// in flight is allowed: the jobs and their tasks complete; the context's streams, buffers and plans live on
  /// until they are disposed themselves.
  /// </summary>
  public sealed unsafe partial class GemmContext {
    internal Completions Completions { get; }

    /// <summary>Opens a device.</summary>
    /// <param name="device">"cpu", "cuda:0", "sim:h200", "auto"; null is "auto": the variable SG_DEVICE, else the first CUDA
    /// device, else the cpu.</param>
    /// <exception cref="NoDeviceException">The device is not available.</exception>
    /// <exception cref="ArgumentException">The name is malformed.</exception>
    public GemmContext(string device = null) : this(new ContextOptions { Device = device }) { }

    /// <summary>Opens a device.</summary>
    public GemmContext(ContextOptions options) : this(Open(options)) { }

    GemmContext(Completions completions) : base(completions.Context, context => {
      completions.Retire();
      return RawPINVOKE.sg_context_release(context);
    }) {
      Completions = completions;
    }

    static Completions Open(ContextOptions options) {
      if (options == null) throw new ArgumentNullException("options");
      long token;
      string unusable = CudaPlugin.Load();
      try {
        Raw.sg_context_create(options.native, out token);
      } catch (NoDeviceException) when (unusable != null && (options.Device ?? "").StartsWith("cuda", StringComparison.Ordinal)) {
        throw new NoDeviceException(unusable);
      }
      Completions made = null;
      try {
        made = new Completions(token);
      } finally {
        if (made == null) RawPINVOKE.sg_context_release(token);
      }
      return made;
    }

    /// <summary>The properties of its device, the first of several.</summary>
    public DeviceInfo Device => GetDeviceInfo(0);

    /// <summary>The properties of each of its devices, in order.</summary>
    public IReadOnlyList<DeviceInfo> Devices => Enumerable.Range(0, DeviceCount).Select(GetDeviceInfo).ToList().AsReadOnly();

    /// <summary>Creates a stream, on one of several devices for instance.</summary>
    /// <param name="options">Its priority, its compute units, the number of the device that its work runs on.</param>
    public GemmStream CreateStream(StreamOptions options = null) {
      long token;
      Raw.sg_stream_create(Handle.Token, options?.native, out token);
      GC.KeepAlive(this);
      return new GemmStream(this, token);
    }

    /// <summary>Creates a pipeline without stages.</summary>
    /// <param name="options">Of which InputBytes is needed.</param>
    public GemmPipeline CreatePipeline(PipelineOptions options) {
      long token;
      Raw.sg_pipeline_create(Handle.Token, options.native, out token);
      GC.KeepAlive(this);
      return new GemmPipeline(this, token, checked((long)options.InputBytes));
    }

    /// <summary>Allocates device memory, uninitialised.</summary>
    /// <param name="bytes">Size; above 0.</param>
    /// <param name="options">The number of the context's device; without them the first.</param>
    public DeviceBuffer AllocateDevice(long bytes, BufferOptions options = null) {
      if (bytes <= 0) throw new ArgumentOutOfRangeException("bytes", bytes, "bytes is not positive");
      long token;
      Raw.sg_buffer_create(Handle.Token, (ulong)bytes, options?.native, out token);
      GC.KeepAlive(this);
      return new DeviceBuffer(token);
    }

    /// <summary>Allocates pinned host memory, which the device copies from and to at full speed; uninitialised.</summary>
    /// <param name="length">Number of elements.</param>
    public PinnedMemory<T> AllocatePinned<T>(int length) where T : struct => PinnedMemory<T>.Allocate(Handle.Token, length, null, this);

    /// <summary>Allocates pinned host memory on the NUMA node of a device; uninitialised.</summary>
    /// <param name="length">Number of elements.</param>
    /// <param name="device">The index of the device; -1: interleaved over all nodes.</param>
    public PinnedMemory<T> AllocatePinned<T>(int length, int device) where T : struct =>
        PinnedMemory<T>.Allocate(Handle.Token, length, device, this);

    /// <summary>Pins an array for the device as well as for the garbage collector, until the result is disposed. Jobs on the
    /// result's Memory copy at full speed.</summary>
    public PinnedMemory<T> Register<T>(T[] array) where T : struct => PinnedMemory<T>.Register(Handle.Token, array, this);

    /// <summary>Memory for what the gradients of a recurrent layer need: <see cref="RecurrentOptions.Reserve"/>.</summary>
    /// <param name="y">The layer's result.</param>
    /// <returns>A matrix in device memory of its own.</returns>
    public Matrix AllocateReserve(in Sequence y) {
      DType type = Shapes.Wide(y.DType);
      long width = 5 * y.Values;
      return AllocateDevice(Math.Max(1, y.Memory.Rows * width * Element.Size(type))).Matrix(y.Memory.Rows, width, type);
    }

    // Pins and submits in `call`; the task completes with the job.
    Task Layer(SubmitOptions options, CancellationToken cancellationToken, LayerCall call) {
      Task task = Pending.Start(Completions, cancellationToken, options, Handle.Token, call);
      GC.KeepAlive(this);
      return task;
    }

    // Pins and submits in `call`, and waits for the job: also if its thread is aborted meanwhile, as the process's exit aborts
    // background threads, for the job uses what is pinned.
    void LayerAndWait(SubmitOptions options, LayerCall call) {
      var pins = new Pins();
      long job = 0;
      try {
        Errors.Check(call(pins, new Submission { Options = options, On = Handle.Token, Flags = (uint)SubmitFlags.WillWait, Job = &job }));
        int status;
        Errors.Check(RawPINVOKE.sg_job_wait(job, -1, out status));
        Errors.Check(status);
      } finally {
        if (job != 0) {
          int unused;
          RawPINVOKE.sg_job_wait(job, -1, out unused);
          RawPINVOKE.sg_job_release(job);
        }
        pins.Release();
      }
      GC.KeepAlive(this);
    }
  }
}
