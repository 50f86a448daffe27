// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.streamgemm.internal.RawConstants;

/** Translates the names of arguments, which the library marks in its messages, from C to Java. */
final class Names {
  /** A marked name: a parameter, or a struct, perhaps one of an array, and the path to a field: {@code descs[2]->b.rows}; of a plan {@code operation->desc->b.rows}. */
  private static final Pattern NAME = Pattern.compile("\u0001(?:operation->(?=desc|operation\\b))?(\\w+)(?:\\[(\\d+)\\])?((?:->\\w+(?:\\[\\d+\\])?)*)((?:\\.[a-z_]\\w*)?)");
  private static final Pattern AFTER_UNDERSCORE = Pattern.compile("_([a-z])");
  private static final Map<String, String> PARAMETERS =
      Map.of("NULL", "null", "desc", "the operation", "descs", "products", "dst", "to", "src", "from", "dst_pitch", "to.ld()", "src_pitch", "from.ld()");

  private Names() {}

  /** Refuses a text with a NUL, where C would end it. */
  static void refuseNul(String argument, String text) {
    if (text != null && text.indexOf('\0') >= 0)
      throw new StreamGemmException.InvalidArgument(argument + " holds a NUL: \"" + text.replace("\0", "\\0") + "\"");
  }

  /** Refuses a negative size; returns the size. */
  static long requireSize(String argument, long size) {
    if (size < 0) throw new StreamGemmException.InvalidArgument(argument + " is " + size + "; it must not be negative");
    return size;
  }

  /** What the library keeps of a label, as UTF-8; null: nothing. */
  static byte[] utf8(String argument, String text) {
    refuseNul(argument, text);
    byte[] bytes = text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    int kept = Math.min(bytes.length, RawConstants.SG_LABEL_SIZE - 1);
    while (kept < bytes.length && (bytes[kept] & 0xc0) == 0x80) --kept; // whole characters
    return kept == 0 ? null : Arrays.copyOf(bytes, kept);
  }

  static String text(byte[] utf8) {
    return utf8 == null ? "" : new String(utf8, StandardCharsets.UTF_8);
  }

  /** The message of a call with Java names; a negative call: of no operation. */
  static String inJava(String message, int call) {
    return NAME.matcher(message).replaceAll(found -> Matcher.quoteReplacement(name(found, call)));
  }

  private static String name(MatchResult found, int call) {
    String path = found.group(3).replaceFirst("^->", "").replace("->", ".");
    String component = found.group(4);
    switch (path.isEmpty() ? "" : found.group(1)) {
      case "desc":
      case "descs":
        boolean isGrouped = found.group(1).equals("descs") || call == Structs.CALL_GEMM_GROUPED;
        String product = isGrouped ? "products.get(" + (found.group(2) == null ? "0" : found.group(2)) + ")." : "";
        return product + component(field(path, call), component);
      case "submit":
      case "options":
        return found.group(1) + "." + camel(path.equals("timeout_ns") ? "timeout" : path);
      default:
        String name = PARAMETERS.getOrDefault(found.group(1), camel(found.group(1)));
        return found.group(2) == null ? name : name + ".get(" + found.group(2) + ")";
    }
  }

  /** A field of a descriptor, perhaps an entry of it. */
  private static String field(String path, int call) {
    int end = path.indexOf('[') < 0 ? path.length() : path.indexOf('[');
    String field = path.substring(0, end);
    return ArgumentNames.of(call).getOrDefault(field, camel(field.replaceFirst("_array$", ""))) + path.substring(end);
  }

  private static String component(String name, String component) {
    switch (component) {
      case "":
      case ".data":
      case ".re":
        return name;
      case ".im":
        return name + "Im";
      default:
        return name + camel(component) + "()";
    }
  }

  private static String camel(String name) {
    return AFTER_UNDERSCORE.matcher(name).replaceAll(letter -> letter.group(1).toUpperCase());
  }
}
