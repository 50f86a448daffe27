// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/** The search for the native code, each in a VM of its own. */
public class LoaderTest {
  private static final String NATIVE = "META-INF/native/";
  private static final String PATH = System.getProperty("java.class.path");

  /** A folder with the native code, a jar without it, and an empty folder. */
  private Path natives, classes, empty;

  @Before
  public void unpack() throws Exception {
    natives = Files.createTempDirectory("streamgemm-test");
    empty = Files.createTempDirectory("streamgemm-test");
    classes = Files.createTempFile("streamgemm-test", ".jar");
    try (ZipFile jar = new ZipFile(PATH.split(":")[0]);
         ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(classes))) {
      for (ZipEntry entry : (Iterable<ZipEntry>) jar.stream().map(e -> (ZipEntry) e)::iterator)
        try (InputStream in = jar.getInputStream(entry)) {
          String name = entry.getName();
          if (name.startsWith(NATIVE)) {
            Files.copy(in, natives.resolve(name.substring(name.lastIndexOf('/') + 1)));
          } else {
            out.putNextEntry(new ZipEntry(name));
            in.transferTo(out);
          }
        }
    }
  }

  @After
  public void delete() throws Exception {
    for (Path folder : List.of(natives, empty)) {
      for (String file : folder.toFile().list()) Files.delete(folder.resolve(file));
      Files.delete(folder);
    }
    Files.delete(classes);
  }

  /** Prints the source of the native code. */
  public static final class Origin {
    public static void main(String[] arguments) {
      try (Context context = Context.open("cpu")) {
        System.out.println(context.isClosed() ? "closed" : StreamGemm.origin());
      }
    }
  }

  private String withoutNatives() {
    return PATH.replaceFirst("[^:]*", classes.toString());
  }

  /** What a VM prints, whether it fails or not. */
  private static String origin(Map<String, String> environment, String before, String classPath, String... options)
      throws Exception {
    List<String> command = new ArrayList<>(
        before.isEmpty() ? List.of() : List.of("unshare", "--mount", "sh", "-c", before + " && exec \"$@\"", "sh"));
    command.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", classPath));
    command.addAll(List.of(options));
    if (Runtime.version().feature() >= 22) command.add("--enable-native-access=ALL-UNNAMED"); // else the VM warns
    command.add(Origin.class.getName());
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().putAll(environment);
    Process process = builder.start();
    String printed = new String(process.getInputStream().readAllBytes()).trim();
    process.waitFor();
    return printed;
  }

  private static void assertContains(String text, String... parts) {
    for (String part : parts) assertTrue(text, text.contains(part));
  }

  @Test
  public void theNamedFolderComesFirst() throws Exception {
    assertEquals(natives.toString(), origin(Map.of(), "", PATH, "-Dorg.streamgemm.native=" + natives));
    String nothing = origin(Map.of(), "", PATH, "-Dorg.streamgemm.native=" + empty);
    assertContains(nothing, "UnsatisfiedLinkError", empty.toString());
  }

  @Test
  public void theJarComesBeforeTheSystem() throws Exception {
    Map<String, String> loader = Map.of("LD_LIBRARY_PATH", natives.toString());
    String path = "-Djava.library.path=" + natives;
    assertEquals("the jar", origin(loader, "", PATH, path, "-Djava.io.tmpdir=" + empty));
    assertEquals("nothing is left behind", 0, empty.toFile().list().length);
    assertEquals("the system", origin(loader, "", withoutNatives(), path));
    String nothing = origin(Map.of(), "", withoutNatives(), "-Djava.library.path=" + empty);
    assertContains(nothing, "StreamGEMM's native code was not found", "the jar's " + NATIVE, "no libstreamgemm.so.",
        "the system: ", "org.streamgemm.native");
  }

  @Test
  public void anotherVersionIsRefused() throws Exception {
    Path other = Path.of(System.getProperty("java.library.path"), "libsg_test_other_version.so");
    Map<String, String> preloaded = Map.of("LD_PRELOAD", other.toString(), "LD_LIBRARY_PATH", natives.toString());
    String here = StreamGemm.version();
    assertContains(origin(preloaded, "", PATH),
        "the native code of the jar is StreamGEMM 8.7.6, and these classes are " + here, "org.streamgemm.native");
    assertContains(origin(preloaded, "", PATH, "-Dorg.streamgemm.native=" + natives),
        "the native code of " + natives + " is StreamGEMM 8.7.6");
    assertContains(origin(preloaded, "", withoutNatives(), "-Djava.library.path=" + natives),
        "the native code of the system is StreamGEMM 8.7.6");
  }

  @Test
  public void theFolderOfCopiesIsNamed() throws Exception {
    String noSystem = "-Djava.library.path=" + empty;
    assertEquals("the jar", origin(Map.of(), "", PATH, noSystem, "-Dorg.streamgemm.cachedir=" + empty));
    assertEquals("nothing is left behind", 0, empty.toFile().list().length);
    String absent = origin(Map.of(), "", PATH, noSystem, "-Dorg.streamgemm.cachedir=" + empty + "/absent");
    assertContains(absent, "its copies in " + empty + "/absent cannot be loaded", "org.streamgemm.cachedir");
  }

  @Test
  public void aFolderWithoutExecution() throws Exception {
    String mount = "mount -t tmpfs -o noexec tmpfs " + empty;
    assumeTrue("needs root", new ProcessBuilder("unshare", "--mount", "sh", "-c", mount).start().waitFor() == 0);
    String noSystem = "-Djava.library.path=" + natives + "/absent";
    String refused = origin(Map.of(), mount, PATH, noSystem, "-Djava.io.tmpdir=" + empty);
    assertContains(refused, "its copies in " + empty + " cannot be loaded", "org.streamgemm.cachedir");
    assertEquals("the jar",
        origin(Map.of(), mount, PATH, noSystem, "-Djava.io.tmpdir=" + empty, "-Dorg.streamgemm.cachedir=" + natives));
  }
}
