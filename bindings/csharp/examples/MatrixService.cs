// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using StreamGemm;

/// <summary>
/// An HTTP service that multiplies, for many clients at once; loopback only. No thread waits while a GEMM runs.
///
///   POST /multiply/M/K/N   body: A (M x K), then B (K x N), binary32 in row-major order   answer: C (M x N)
///   GET  /health           one line about the device and the number of requests
///
/// usage: MatrixService.exe [DEVICE [PORT]]     port 0: any; the address is printed. Exits at the end of its standard input.
/// </summary>
sealed class MatrixService : IDisposable {
  const int LargestSide = 4096;
  static readonly TimeSpan limit = TimeSpan.FromSeconds(30);

  readonly GemmContext context;
  readonly HttpListener listener;
  readonly SemaphoreSlim room = new SemaphoreSlim(64);  // requests in memory at once; others wait outside
  int served;

  MatrixService(string device, int port) {
    context = new GemmContext(device);
    for (int attempt = 0;; ++attempt) {
      Address = "http://127.0.0.1:" + (port == 0 ? FreePort() : port) + "/";
      listener = new HttpListener();
      listener.Prefixes.Add(Address);
      try {
        listener.Start();
        return;
      } catch (Exception error) when (port == 0 && attempt < 10 && (error is SocketException || error is HttpListenerException)) {
        listener.Close();  // another process took the port
      }
    }
  }

  string Address { get; }

  static int FreePort() {
    var probe = new TcpListener(IPAddress.Loopback, 0);
    probe.Start();
    int port = ((IPEndPoint)probe.LocalEndpoint).Port;
    probe.Stop();
    return port;
  }

  async Task Serve() {
    while (listener.IsListening) {
      HttpListenerContext request;
      try {
        request = await listener.GetContextAsync().ConfigureAwait(false);
      } catch (Exception error) when (error is HttpListenerException || error is InvalidOperationException) {
        return;  // closed
      }
      _ = Answer(request);  // errors become responses, so no task awaits it
    }
  }

  async Task Answer(HttpListenerContext http) {
    await room.WaitAsync().ConfigureAwait(false);
    try {
      string[] path = http.Request.Url.AbsolutePath.Split(new[] { '/' }, StringSplitOptions.RemoveEmptyEntries);
      if (path.Length == 1 && path[0] == "health") {
        await Say(http, 200, context.Device.Name + ", " + served + " served").ConfigureAwait(false);
        return;
      }
      int m = 0, k = 0, n = 0;
      if (path.Length != 4 || path[0] != "multiply" || http.Request.HttpMethod != "POST")
        throw new RequestException(404, "POST /multiply/M/K/N");
      if (!Side(path[1], out m) || !Side(path[2], out k) || !Side(path[3], out n))
        throw new RequestException(400, "M, K and N are numbers from 1 to " + LargestSide);
      var a = new float[m * k];
      var b = new float[k * n];
      var c = new float[m * n];
      await Receive(http.Request, a, b).ConfigureAwait(false);
      using (var time = new CancellationTokenSource(limit))
        await context.GemmAsync(Matrix.Of(a, m, k), Matrix.Of(b, k, n), Matrix.Of(c, m, n), null, time.Token).ConfigureAwait(false);
      var bytes = new byte[4 * c.Length];
      Buffer.BlockCopy(c, 0, bytes, 0, bytes.Length);
      Interlocked.Increment(ref served);
      await Send(http, 200, "application/octet-stream", bytes).ConfigureAwait(false);
    } catch (Exception error) {
      bool busy = error is OperationCanceledException || error is OutOfMemoryException;
      int status = (error as RequestException)?.Status ?? (busy ? 503 : 500);
      try {
        await Say(http, status, error.Message).ConfigureAwait(false);
      } catch (Exception) {
        http.Response.Abort();  // the client has gone
      }
    } finally {
      room.Release();
    }
  }

  static bool Side(string text, out int side) => int.TryParse(text, out side) && side >= 1 && side <= LargestSide;

  static async Task Receive(HttpListenerRequest request, float[] a, float[] b) {
    var bytes = new byte[4 * (a.Length + b.Length)];
    if (request.ContentLength64 != bytes.Length)
      throw new RequestException(400, "the body has " + request.ContentLength64 + " bytes, not " + bytes.Length);
    for (int filled = 0; filled < bytes.Length;) {
      int more = await request.InputStream.ReadAsync(bytes, filled, bytes.Length - filled).ConfigureAwait(false);
      if (more == 0) throw new RequestException(400, "the body ends early");
      filled += more;
    }
    Buffer.BlockCopy(bytes, 0, a, 0, 4 * a.Length);
    Buffer.BlockCopy(bytes, 4 * a.Length, b, 0, 4 * b.Length);
  }

  static Task Say(HttpListenerContext http, int status, string text) =>
    Send(http, status, "text/plain", Encoding.UTF8.GetBytes(text + "\n"));

  static async Task Send(HttpListenerContext http, int status, string type, byte[] body) {
    http.Response.StatusCode = status;
    http.Response.ContentType = type;
    http.Response.ContentLength64 = body.Length;
    await http.Response.OutputStream.WriteAsync(body, 0, body.Length).ConfigureAwait(false);
    http.Response.Close();
  }

  public void Dispose() {
    listener.Close();
    context.Dispose();
  }

  sealed class RequestException : Exception {
    internal readonly int Status;

    internal RequestException(int status, string message) : base(message) {
      Status = status;
    }
  }

  static void Main(string[] args) {
    using (var service = new MatrixService(args.Length > 0 ? args[0] : null, args.Length > 1 ? int.Parse(args[1]) : 0)) {
      Task serving = service.Serve();
      Console.WriteLine("listening on " + service.Address);
      Console.Out.Flush();
      while (Console.In.Read() >= 0 && !serving.IsFaulted) { }
    }
  }
}
