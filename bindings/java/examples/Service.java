// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.streamgemm.Context;
import org.streamgemm.DType;
import org.streamgemm.Job;
import org.streamgemm.Layout;
import org.streamgemm.Matrix;
import org.streamgemm.StreamGemmException;

/**
 * Matrix products over HTTP, on the loopback interface only. POST /multiply?m=M&n=N&k=K with the f32 elements of A (M x
 * K) and B (K x N) by rows, little endian, answers the elements of C (M x N). No thread waits for a GEMM: the
 * exchange continues when the job completes.
 *
 * <p>usage: Service [PORT [DEVICE]]
 */
public final class Service implements AutoCloseable {
  private static final int MOST_ELEMENTS = 1 << 24;

  private final Context context;
  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final AtomicLong served = new AtomicLong();

  Service(int port, String device) throws IOException {
    context = Context.open(device);
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 256);
    server.setExecutor(threads);
    server.createContext("/multiply", this::multiply);
    server.createContext(
        "/status", exchange -> answer(exchange, 200, (context.device().name() + ", " + served + " served\n")));
    server.start();
  }

  int port() {
    return server.getAddress().getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdown();
    context.close();
  }

  private void multiply(HttpExchange exchange) throws IOException {
    if (!exchange.getRequestMethod().equals("POST")) {
      answer(exchange, 405, "POST the elements of A and B\n");
      return;
    }
    Matrix c;
    Job<Matrix> job;
    ByteBuffer result;
    try {
      int m = size(exchange, "m");
      int n = size(exchange, "n");
      int k = size(exchange, "k");
      if ((long) m * n > MOST_ELEMENTS)
        throw new IllegalArgumentException("a result of " + m + " x " + n + " is too large");
      ByteBuffer operands = read(exchange.getRequestBody(), 4L * k * ((long) m + n));
      result = context.allocatePinned(4 * m * n);
      c = Matrix.of(result, DType.F32, m, n);
      job = context.gemmAsync(Matrix.of(operands, DType.F32, m, k),
          Matrix.of(operands.position(4 * m * k), DType.F32, k, n, 0, Layout.ROW_MAJOR), c);
    } catch (IllegalArgumentException | EOFException | StreamGemmException e) {
      answer(exchange, 400, e.getMessage() + "\n");
      return;
    }
    job.whenComplete((ended, failure) -> {
      try {
        if (failure == null) {
          served.incrementAndGet();
          answer(exchange, 200, result);
        } else {
          answer(exchange, 500, failure.getMessage() + "\n");
        }
      } catch (IOException clientIsGone) {
        exchange.close();
      }
    });
  }

  private static int size(HttpExchange exchange, String name) {
    String query = exchange.getRequestURI().getQuery();
    for (String part : query == null ? new String[0] : query.split("&"))
      if (part.startsWith(name + "=")) {
        int value = Integer.parseInt(part.substring(name.length() + 1));
        if (value < 1 || value > MOST_ELEMENTS) throw new IllegalArgumentException(name + " is " + value);
        return value;
      }
    throw new IllegalArgumentException(name + " is missing");
  }

  /** The body, straight into pinned memory, where the GEMM reads it. */
  private ByteBuffer read(InputStream body, long bytes) throws IOException {
    if (bytes > 4L * MOST_ELEMENTS) throw new IllegalArgumentException(bytes + " bytes are too many");
    ByteBuffer memory = context.allocatePinned((int) bytes);
    byte[] piece = new byte[(int) Math.min(bytes, 1 << 16)];
    try (DataInputStream in = new DataInputStream(body)) {
      while (memory.hasRemaining()) {
        int length = Math.min(piece.length, memory.remaining());
        in.readFully(piece, 0, length);
        memory.put(piece, 0, length);
      }
    } catch (EOFException e) {
      throw new EOFException("the body has " + memory.position() + " bytes, and " + bytes + " are needed");
    }
    if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) throw new IOException("this machine is not little endian");
    return memory.flip();
  }

  private static void answer(HttpExchange exchange, int code, String text) throws IOException {
    answer(exchange, code, ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
  }

  private static void answer(HttpExchange exchange, int code, ByteBuffer content) throws IOException {
    exchange.sendResponseHeaders(code, content.remaining());
    byte[] piece = new byte[Math.min(content.remaining(), 1 << 16)];
    try (OutputStream out = exchange.getResponseBody()) {
      while (content.hasRemaining()) {
        int length = Math.min(piece.length, content.remaining());
        content.get(piece, 0, length);
        out.write(piece, 0, length);
      }
    }
  }

  /** Runs until it is killed. */
  public static void main(String[] arguments) throws IOException {
    Service service = new Service(
        arguments.length > 0 ? Integer.parseInt(arguments[0]) : 8080, arguments.length > 1 ? arguments[1] : "auto");
    System.out.println(
        "http://" + InetAddress.getLoopbackAddress().getHostAddress() + ":" + service.port() + "/multiply?m=M&n=N&k=K");
  }
}
