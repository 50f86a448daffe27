// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.*;
import java.net.http.*;
import java.util.*;
import java.util.stream.*;
import org.streamgemm.*;

public final class Service {
  private static final int INPUTS = 64, OUTPUTS = 8, REQUESTS = 200;

  public static void main(String[] args) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), REQUESTS);
    double[] weights = DoubleStream.iterate(0, i -> (i + 1) % OUTPUTS).limit(INPUTS * OUTPUTS).toArray();
    try (Context context = Context.open()) {
      Matrix model = context.onDevice(Matrix.of(weights, INPUTS, OUTPUTS));
      server.createContext("/", http -> {
        var x = Arrays.stream(http.getRequestURI().getQuery().split(",")).mapToDouble(Double::parseDouble).toArray();
        var y = new double[OUTPUTS];
        context.gemmAsync(Matrix.of(x, 1, INPUTS), model, Matrix.of(y, 1, OUTPUTS)).whenComplete((job, failure) -> {
          byte[] answer = (failure == null ? Arrays.toString(y) : failure.getMessage()).getBytes();
          try (var out = http.getResponseBody()) {
            http.sendResponseHeaders(failure == null ? 200 : 500, answer.length);
            out.write(answer);
          } catch (IOException clientHasGone) {
            http.close();
          }
        });
      });
      server.start();
      URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
      HttpClient client = HttpClient.newHttpClient();
      IntStream.range(0, REQUESTS).parallel().forEach(i -> {
        var request = HttpRequest.newBuilder(uri.resolve("?" + (i + ",").repeat(INPUTS))).build();
        String answer = client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).join().body();
        double[] known = IntStream.range(0, OUTPUTS).mapToDouble(j -> 1.0 * INPUTS * i * j).toArray();
        if (!answer.equals(Arrays.toString(known))) throw new AssertionError(answer);
      });
      server.stop(0);
    }
  }
}
