// SPDX-License-Identifier: Apache-2.0
package org.streamgemm.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Finds the native code: in the folder that the property {@code org.streamgemm.native} names; else on the system's
 * path ({@code java.library.path}); else in the jar, under {@code /native/<os>-<arch>/}.
 */
public final class Loader {
  /** The property that names a folder; nothing else is tried when it is set. */
  public static final String PROPERTY = "org.streamgemm.native";

  private static final String WRAPPER = "streamgemm_java";
  private static final String[] FILES = {"libstreamgemm.so." + RawConstants.SG_SOVERSION, "lib" + WRAPPER + ".so"};

  private static String origin;

  private Loader() {}

  /** Loads it, once. Fails with an UnsatisfiedLinkError that names the locations tried. */
  static synchronized void load() {
    if (origin != null) return;
    String folder = System.getProperty(PROPERTY);
    if (folder != null) {
      loadFrom(Path.of(folder).toAbsolutePath());
      origin = folder;
      return;
    }
    List<String> tried = new ArrayList<>();
    try {
      System.loadLibrary(WRAPPER);
      origin = "the system";
      return;
    } catch (UnsatisfiedLinkError e) {
      tried.add("the system: " + e.getMessage());
    }
    String inside = "/native/" + platform() + "/";
    try {
      loadFromJar(inside);
      origin = "the jar";
    } catch (IOException | UnsatisfiedLinkError e) {
      tried.add("the jar's " + inside + ": " + e.getMessage());
      UnsatisfiedLinkError failure = new UnsatisfiedLinkError("StreamGEMM's native code was not found ("
          + String.join("; ", tried) + "); the property " + PROPERTY + " may name its folder");
      failure.initCause(e);
      throw failure;
    }
  }

  /**
   * The source of the native code.
   *
   * @return a folder, "the system" or "the jar"
   */
  public static synchronized String origin() {
    load();
    return origin;
  }

  /** The library first, so that the wrapper finds it loaded, whatever the system's search path is. */
  private static void loadFrom(Path folder) {
    for (String file : FILES) System.load(folder.resolve(file).toString());
  }

  /** Loaded files stay mapped, so the copies are deleted at once, and no exit leaves any behind. */
  private static void loadFromJar(String inside) throws IOException {
    Path folder = Files.createTempDirectory("streamgemm");
    try {
      for (String file : FILES) {
        try (InputStream in = Loader.class.getResourceAsStream(inside + file)) {
          if (in == null) throw new IOException("no " + file);
          Files.copy(in, folder.resolve(file));
        }
      }
      loadFrom(folder);
    } finally {
      for (String file : FILES) Files.deleteIfExists(folder.resolve(file));
      Files.delete(folder);
    }
  }

  private static String platform() {
    String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String arch = System.getProperty("os.arch");
    switch (arch) {
      case "amd64":
      case "x86_64":
        return os + "-x64";
      case "aarch64":
        return os + "-arm64";
      default:
        return os + "-" + arch;
    }
  }
}
