// SPDX-License-Identifier: Apache-2.0
using System;
using System.Diagnostics;
using System.Linq;
using System.Net;
using System.Text;
using System.Threading.Tasks;
using StreamGemm;

static class Service {
  const int Inputs = 64, Outputs = 8, Requests = 200;
  static readonly int Port = 10000 + Process.GetCurrentProcess().Id % 20000;

  static async Task Answer(GemmContext context, Matrix model, HttpListenerContext http) {
    string answer;
    try {
      var x = http.Request.Url.Query.Substring(1).Split(',').Select(double.Parse).ToArray();
      var y = new double[Outputs];
      await context.GemmAsync(Matrix.Of(x, 1, Inputs), model, Matrix.Of(y, 1, Outputs));
      answer = string.Join(" ", y);
    } catch (StreamGemmException failure) {
      http.Response.StatusCode = 500;
      answer = failure.Message;
    }
    http.Response.Close(Encoding.UTF8.GetBytes(answer), true);
  }

  static async Task Ask(int i) {
    using (var client = new WebClient()) {
      var query = string.Join(",", Enumerable.Repeat(i, Inputs));
      string answer = await client.DownloadStringTaskAsync($"http://127.0.0.1:{Port}/?{query}");
      if (answer != string.Join(" ", Enumerable.Range(0, Outputs).Select(j => Inputs * i * j)))
        throw new Exception($"request {i}: {answer}");
    }
  }

  static void Main() => Serve().Wait();

  static async Task Serve() {
    var weights = new double[Inputs, Outputs];
    for (int i = 0; i < weights.Length; ++i) weights[i / Outputs, i % Outputs] = i % Outputs;
    using (var context = new GemmContext())
    using (var listener = new HttpListener { Prefixes = { $"http://127.0.0.1:{Port}/" } }) {
      Matrix model = context.OnDevice(weights);
      listener.Start();
      var asking = Task.WhenAll(Enumerable.Range(0, Requests).Select(Ask));
      for (int i = 0; i < Requests; ++i) _ = Answer(context, model, await listener.GetContextAsync());
      await asking;
    }
  }
}
