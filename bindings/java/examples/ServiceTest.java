// SPDX-License-Identifier: Apache-2.0
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Many clients use the service at once; each response is checked.
 *
 * <p>usage: ServiceTest REQUESTS AT-ONCE [DEVICE]
 */
public final class ServiceTest {
  private ServiceTest() {}

  private static float[] integers(Random random, int count) {
    float[] made = new float[count];
    for (int i = 0; i < count; ++i) made[i] = random.nextInt(9) - 4;
    return made;
  }

  private static void check(byte[] body, float[] a, float[] b, int m, int n, int k) {
    ByteBuffer c = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
    if (c.remaining() != 4 * m * n) throw new AssertionError(c.remaining() + " bytes");
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
        float got = c.getFloat(4 * (i * n + j));
        if (got != sum) throw new AssertionError("(" + i + ", " + j + ") is " + got + ", not " + sum);
      }
  }

  private static HttpRequest request(String address, byte[] body) {
    return HttpRequest.newBuilder(URI.create(address)).POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
  }

  private static CompletableFuture<Void> ask(HttpClient client, String service, Random random) {
    int m = 1 + random.nextInt(60);
    int n = 1 + random.nextInt(60);
    int k = 1 + random.nextInt(60);
    float[] a = integers(random, m * k);
    float[] b = integers(random, k * n);
    ByteBuffer body = ByteBuffer.allocate(4 * (a.length + b.length)).order(ByteOrder.LITTLE_ENDIAN);
    for (float x : a) body.putFloat(x);
    for (float x : b) body.putFloat(x);
    return client
        .sendAsync(
            request(service + "?m=" + m + "&n=" + n + "&k=" + k, body.array()), HttpResponse.BodyHandlers.ofByteArray())
        .thenAccept(response -> {
          if (response.statusCode() != 200) throw new AssertionError(new String(response.body()));
          check(response.body(), a, b, m, n, k);
        });
  }

  private static void refused(HttpClient client, String address, byte[] body, String word) throws Exception {
    HttpResponse<String> response = client.send(request(address, body), HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() != 400 || !response.body().contains(word))
      throw new AssertionError(response.statusCode() + " " + response.body());
  }

  /** Runs it, or fails. */
  public static void main(String[] arguments) throws Exception {
    int requests = Integer.parseInt(arguments[0]);
    int atOnce = Integer.parseInt(arguments[1]);
    try (Service service = new Service(0, arguments.length > 2 ? arguments[2] : "cpu")) {
      String address = "http://127.0.0.1:" + service.port() + "/multiply";
      HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
      Random random = new Random(1);
      Semaphore places = new Semaphore(atOnce);
      List<CompletableFuture<Void>> all = new ArrayList<>();
      long start = System.nanoTime();
      for (int i = 0; i < requests; ++i) {
        places.acquire();
        all.add(ask(client, address, random).whenComplete((done, failure) -> places.release()));
      }
      for (CompletableFuture<Void> each : all) each.get(60, TimeUnit.SECONDS);
      double seconds = (System.nanoTime() - start) * 1e-9;
      System.out.printf("%d GEMMs, %d at once: %.0f a second%n", requests, atOnce, requests / seconds);
      refused(client, address, new byte[8], "missing");
      refused(client, address + "?m=1&n=1&k=1", new byte[4], "needed");
      refused(client, address + "?m=0&n=1&k=1", new byte[8], "m is 0");
      refused(client, address + "?m=x&n=1&k=1", new byte[8], "x");
      refused(client, address + "?m=16777216&n=1&k=16777216", new byte[8], "too many");
    }
    System.exit(0); // the client's threads would linger
  }
}
