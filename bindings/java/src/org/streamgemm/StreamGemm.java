// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.file.Path;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.streamgemm.internal.Loader;
import org.streamgemm.internal.Native;

/** The library as a whole: its version, backends and devices. */
public final class StreamGemm {
  private StreamGemm() {}

  /**
   * The library's version.
   *
   * @return for instance "0.9.0"
   */
  public static String version() {
    return Native.sg_version_string();
  }

  /**
   * The source of the native code.
   *
   * @return a folder, "the system" or "the jar"
   */
  public static String origin() {
    return Loader.origin();
  }

  /**
   * The families of devices, usable or not.
   *
   * @return one for each, with the reason why it cannot be used
   */
  public static List<BackendInfo> backends() {
    return each(Native.sg_backend_count(), index -> BackendInfo.from(struct -> Native.sg_backend_get_info(index, struct)));
  }

  /**
   * Loads a plugin (libstreamgemm-*.so), whose devices can be opened then. It stays loaded.
   *
   * @param path the file
   * @throws StreamGemmException.NoDevice it cannot be used; the message says why
   */
  public static void loadBackend(Path path) {
    Native.sg_backend_load(path.toAbsolutePath().toString());
  }

  /**
   * Logs messages of a level and above, of all areas, to standard error; the variable SG_LOG has no effect then.
   *
   * @param level the least important level; OFF: none
   */
  public static void setLog(LogLevel level) {
    Native.sg_call_log_set(level.value);
  }

  /**
   * The counters of all contexts of the process as OpenMetrics text: what an HTTP server answers a scraper with.
   *
   * @return the text
   */
  public static String metricsText() {
    return NativeObject.text(NativeObject.bytes(Native::sg_metrics_text));
  }

  /**
   * The devices of all usable backends; at least the cpu.
   *
   * @return one for each
   */
  public static List<DeviceInfo> devices() {
    return each(Native.sg_device_count(), index -> DeviceInfo.from(struct -> Native.sg_device_get_info(index, struct)));
  }

  private static <T> List<T> each(long count, IntFunction<T> describe) {
    return IntStream.range(0, (int) count).mapToObj(describe).collect(Collectors.toUnmodifiableList());
  }
}
