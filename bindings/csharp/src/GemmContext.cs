// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm.Internal;

namespace StreamGemm {
  /// <summary>
  /// A device with its streams, memory and jobs. Every method may be called from any thread. Disposing a context with work
  /// in flight is allowed: the jobs and their tasks complete; the context's streams, buffers and plans live on
  /// until they are disposed themselves.
  /// </summary>
  public sealed unsafe partial class GemmContext : IDisposable {
    readonly Handle handle;
    readonly Completions completions;

    /// <summary>Opens a device.</summary>
    /// <param name="device">"cpu", "cuda:0", "sim:h200", "auto"; null is "auto": the variable SG_DEVICE, else the first CUDA
    /// device, else the cpu.</param>
    /// <exception cref="NoDeviceException">The device is not available.</exception>
    /// <exception cref="ArgumentException">The name is malformed.</exception>
    public GemmContext(string device = null) : this(new ContextOptions { Device = device }) { }

    /// <summary>Opens a device.</summary>
    public GemmContext(ContextOptions options) {
      if (options == null) throw new ArgumentNullException("options");
      long token;
      Raw.sg_context_create(options.native, out token);
      Completions made = null;
      try {
        made = new Completions(token);
      } finally {
        if (made == null) RawPINVOKE.sg_context_release(token);
      }
      completions = made;
      handle = new Handle(token, context => {
        made.Retire();
        return RawPINVOKE.sg_context_release(context);
      }, "GemmContext");
    }

    internal long Token => handle.Token;

    /// <summary>Properties of the context's device.</summary>
    public DeviceInfo Device {
      get {
        var info = new DeviceInfo();
        Raw.sg_context_device(handle.Token, info.native);
        GC.KeepAlive(this);
        return info;
      }
    }

    /// <summary>The memory space of a matrix as the device sees it: is it pinned? Pageable for a matrix in an array; on the cpu otherwise always Device.</summary>
    public MemoryKind MemoryKindOf(in Matrix matrix) {
      if (matrix.Address == 0) return MemoryKind.Pageable;
      int kind;
      Raw.sg_context_memory_kind(handle.Token, matrix.Address, (ulong)Math.Max(1, matrix.Rows * matrix.Cols), out kind);
      GC.KeepAlive(this);
      return (MemoryKind)kind;
    }

    /// <summary>Its counters now.</summary>
    public ContextMetrics Metrics {
      get {
        var metrics = new ContextMetrics();
        Raw.sg_context_get_metrics(handle.Token, metrics.native);
        GC.KeepAlive(this);
        return metrics;
      }
    }

    /// <summary>Waits until every job submitted before this call has completed, successfully or not. Their tasks complete soon after.</summary>
    public void Synchronize() {
      Raw.sg_context_synchronize(handle.Token);
      GC.KeepAlive(this);
    }

    /// <summary>Creates a stream.</summary>
    /// <param name="priority">-1 low, 0 normal, 1 high: the default of its submissions.</param>
    /// <param name="computeUnits">Multiprocessors, or cores, that its GEMMs may use; 0: all.</param>
    public GemmStream CreateStream(int priority = 0, int computeUnits = 0) {
      long token;
      Raw.sg_stream_create_limited(handle.Token, priority, computeUnits, out token);
      GC.KeepAlive(this);
      return new GemmStream(this, token);
    }

    /// <summary>The name of <see cref="CreateStream"/> in 0.1.</summary>
    [Obsolete("Call CreateStream.")]
    public GemmStream AcquireStream(int priority = 0, int computeUnits = 0) => CreateStream(priority, computeUnits);

    /// <summary>Wraps a native stream (a cudaStream_t): a submission to the wrapper runs after the caller's earlier work in that
    /// stream, and before work that the caller enqueues there after the call. A submission that is not one command on device
    /// memory returns when it has completed.</summary>
    /// <param name="native">The native stream; it stays the caller's and must outlive the wrapper, whose disposal waits.</param>
    public GemmStream WrapStream(IntPtr native) {
      long token;
      Raw.sg_stream_wrap(handle.Token, (long)native, out token);
      GC.KeepAlive(this);
      return new GemmStream(this, token);
    }

    /// <summary>Creates an event. It counts as complete until it is recorded.</summary>
    public GemmEvent CreateEvent() {
      long token;
      Raw.sg_event_create(handle.Token, out token);
      GC.KeepAlive(this);
      return new GemmEvent(this, token);
    }

    /// <summary>Wraps a native event (a cudaEvent_t). The wrapper refers to its latest recording, by any caller:
    /// <see cref="GemmStream.WaitFor"/> lets the device wait for it, <see cref="GemmEvent.Record"/> records it. Its time is not
    /// known.</summary>
    /// <param name="native">The native event; it stays the caller's and must outlive the wrapper.</param>
    public GemmEvent WrapEvent(IntPtr native) {
      long token;
      Raw.sg_event_wrap(handle.Token, (long)native, out token);
      GC.KeepAlive(this);
      return new GemmEvent(this, token);
    }

    /// <summary>Creates an empty graph, to record submissions in.</summary>
    public GemmGraph CreateGraph() {
      long token;
      Raw.sg_graph_create(handle.Token, out token);
      GC.KeepAlive(this);
      return new GemmGraph(this, completions, token);
    }

    /// <summary>Creates a pipeline without stages.</summary>
    /// <param name="options">Of which InputBytes is needed.</param>
    public GemmPipeline CreatePipeline(PipelineOptions options) {
      long token;
      Raw.sg_pipeline_create(handle.Token, options.native, out token);
      GC.KeepAlive(this);
      return new GemmPipeline(this, completions, token, checked((long)options.InputBytes));
    }

    /// <summary>Allocates device memory, uninitialised.</summary>
    /// <param name="bytes">Size; above 0.</param>
    public DeviceBuffer AllocateDevice(long bytes) {
      if (bytes <= 0) throw new ArgumentOutOfRangeException("bytes", bytes, "bytes is not positive");
      long token;
      Raw.sg_buffer_create(handle.Token, (ulong)bytes, out token);
      GC.KeepAlive(this);
      return new DeviceBuffer(token);
    }

    /// <summary>Allocates pinned host memory, which the device copies from and to at full speed; uninitialised.</summary>
    /// <param name="length">Number of elements.</param>
    public PinnedMemory<T> AllocatePinned<T>(int length) where T : struct => PinnedMemory<T>.Allocate(handle.Token, length, this);

    /// <summary>Pins an array for the device as well as for the garbage collector, until the result is disposed. Jobs on the
    /// result's Memory copy at full speed.</summary>
    public PinnedMemory<T> Register<T>(T[] array) where T : struct => PinnedMemory<T>.Register(handle.Token, array, this);

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
      Task task = Pending.Start(completions, cancellationToken, options, handle.Token, call);
      GC.KeepAlive(this);
      return task;
    }

    // Pins and submits in `call`, and waits for the job.
    void LayerAndWait(SubmitOptions options, LayerCall call) {
      var pins = new Pins();
      long job = 0;
      try {
        Errors.Check(call(pins, new Submission { Options = options, On = handle.Token, Flags = (uint)SubmitFlags.WillWait, Job = &job }));
        Errors.Check(RawPINVOKE.sg_job_wait(job, -1));
      } finally {
        if (job != 0) RawPINVOKE.sg_job_release(job);
        pins.Release();
      }
      GC.KeepAlive(this);
    }

    /// <summary>Releases the context. Allowed at any time, any number of times.</summary>
    public void Dispose() => handle.Dispose();
  }
}
