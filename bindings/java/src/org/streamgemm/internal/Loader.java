// SPDX-License-Identifier: Apache-2.0
package org.streamgemm.internal;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Finds the native code: in the folder that the property {@code org.streamgemm.native} names; else in a jar, under
 * {@code META-INF/native/<os>-<arch>/}; else on the system's path ({@code java.library.path}). Beside a jar's native code comes the CUDA
 * plugin of another jar.
 */
public final class Loader {
  /** The property that names a folder; nothing else is tried when it is set. */
  public static final String PROPERTY = "org.streamgemm.native";

  /** The property that names the folder into which a jar's native code is copied; without it java.io.tmpdir. */
  public static final String CACHE_PROPERTY = "org.streamgemm.cachedir";

  private static final String WRAPPER = "streamgemm_java";
  private static final String[] FILES = {"libstreamgemm.so." + RawConstants.SG_SOVERSION, "lib" + WRAPPER + ".so"};

  private static final String PLUGIN = "libstreamgemm-cuda.so";

  private static String origin;

  private Loader() {}

  /** Loads it, once. Fails with an UnsatisfiedLinkError that names the locations tried. */
  static synchronized void load() {
    if (origin != null) return;
    String found = find();
    check(found);
    origin = found;
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

  /** Of the loaded library: a number as RawConstants.SG_VERSION. */
  private static native int version();

  private static native int backendVersion();

  private static native void loadPlugins();

  private static String find() {
    String folder = System.getProperty(PROPERTY);
    if (folder != null) {
      loadFrom(Path.of(folder).toAbsolutePath());
      return folder;
    }
    List<String> tried = new ArrayList<>();
    String inside = "META-INF/native/" + platform() + "/";
    try {
      loadFromJar(inside);
      return "the jar";
    } catch (IOException | UnsatisfiedLinkError e) {
      tried.add("the jar's " + inside + ": " + e.getMessage());
    }
    try {
      System.loadLibrary(WRAPPER);
      return "the system";
    } catch (UnsatisfiedLinkError e) {
      tried.add("the system: " + e.getMessage());
      UnsatisfiedLinkError failure = new UnsatisfiedLinkError("StreamGEMM's native code was not found ("
          + String.join("; ", tried) + "); the property " + PROPERTY + " may name its folder");
      failure.initCause(e);
      throw failure;
    }
  }

  /** The wrapper's functions change from version to version, so that only the classes' own fits. */
  private static void check(String found) {
    int version = loadedVersion();
    if (version == RawConstants.SG_VERSION) return;
    throw new UnsatisfiedLinkError("the native code of " + found + " is StreamGEMM "
        + (version == 0 ? "of an unknown version" : text(version)) + ", and these classes are "
        + text(RawConstants.SG_VERSION) + "; the property " + PROPERTY + " may name a folder with that version");
  }

  /** 0: unknown. */
  private static int loadedVersion() {
    try {
      return version();
    } catch (UnsatisfiedLinkError e) {
      return 0;
    }
  }

  private static String text(int version) {
    return version / 1000000 + "." + version / 1000 % 1000 + "." + version % 1000;
  }

  /** The library first, so that the wrapper finds it loaded, whatever the system's search path is. */
  private static void loadFrom(Path folder) {
    for (String file : FILES) System.load(folder.resolve(file).toString());
  }

  /** Loaded files stay mapped, so the copies are deleted at once, and no exit leaves any behind. */
  private static void loadFromJar(String inside) throws IOException {
    String named = System.getProperty(CACHE_PROPERTY);
    Path cache = Path.of(named != null ? named : System.getProperty("java.io.tmpdir")).toAbsolutePath();
    for (String file : FILES) // before a folder is made
      if (resource(inside + file) == null) throw new IOException("no " + file);
    Path folder;
    try {
      folder = Files.createTempDirectory(cache, "streamgemm");
    } catch (IOException e) {
      throw notUsable(cache, e);
    }
    try {
      for (String file : FILES) copy(inside + file, folder.resolve(file));
      loadFrom(folder);
      boolean hasPlugin = resource(inside + PLUGIN) != null && loadedVersion() == RawConstants.SG_VERSION;
      if (hasPlugin) loadPlugin(inside + PLUGIN, folder);
    } catch (IOException | UnsatisfiedLinkError e) {
      throw notUsable(cache, e);
    } finally {
      delete(folder);
    }
  }

  /** Beside the library, where it looks for plugins. A plugin that cannot be copied is one that is not there. */
  private static void loadPlugin(String inside, Path folder) {
    try {
      copy(inside, folder.resolve("streamgemm/backend-" + backendVersion()).resolve(PLUGIN));
    } catch (IOException e) {
      return;
    }
    loadPlugins();
  }

  private static void copy(String inside, Path to) throws IOException {
    Files.createDirectories(to.getParent());
    try (InputStream in = resource(inside).openStream()) {
      Files.copy(in, to);
    }
    Files.setPosixFilePermissions(to, PosixFilePermissions.fromString("rw-------")); // whatever the umask is
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path each : all.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) Files.delete(each);
    }
  }

  /** The class loader's, not the class's: the native code may be in a jar of its own. */
  private static URL resource(String name) {
    ClassLoader loader = Loader.class.getClassLoader();
    return loader != null ? loader.getResource(name) : ClassLoader.getSystemResource(name);
  }

  private static IOException notUsable(Path cache, Throwable cause) {
    return new IOException("its copies in " + cache + " cannot be loaded (" + cause + "); the property "
            + CACHE_PROPERTY + " may name a folder whose files may be executed",
        cause);
  }

  /** As Maven's classifiers name it. */
  private static String platform() {
    String arch = System.getProperty("os.arch");
    switch (arch) {
      case "amd64":
        arch = "x86_64";
        break;
      case "aarch64":
        arch = "aarch_64";
        break;
      default:
    }
    return System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-" + arch;
  }
}
