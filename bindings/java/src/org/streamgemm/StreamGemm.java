// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.streamgemm.internal.Loader;
import org.streamgemm.internal.Native;

/** The library as a whole: its version, backends and devices. */
public final class StreamGemm {
  private StreamGemm() {}

  /**
   * The library's version.
   *
   * @return for instance "0.1.0"
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
    List<BackendInfo> all = new ArrayList<>();
    int count = (int) Native.sg_backend_count();
    for (int i = 0; i < count; ++i) {
      int index = i;
      all.add(BackendInfo.from(struct -> Native.sg_backend_describe(index, struct)));
    }
    return Collections.unmodifiableList(all);
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
    List<DeviceInfo> all = new ArrayList<>();
    int count = (int) Native.sg_device_count();
    for (int i = 0; i < count; ++i) {
      int index = i;
      all.add(DeviceInfo.from(struct -> Native.sg_device_describe(index, struct)));
    }
    return Collections.unmodifiableList(all);
  }
}
