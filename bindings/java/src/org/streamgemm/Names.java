// SPDX-License-Identifier: Apache-2.0
package org.streamgemm;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.streamgemm.internal.RawConstants;

/** Translates argument names in the library's messages from C to Java. */
final class Names {
  /** A struct, perhaps one of an array, and the path to a field: {@code descs[2]->b.rows}, {@code submit->plan->parts}. */
  private static final Pattern FIELD =
      Pattern.compile("\\b(descs\\[(\\d+)\\]|desc|submit|options)((?:->[a-z_0-9]+(?:\\[\\d+\\])?)+)(?:\\.([a-z_]+))?");
  private static final Pattern WORD = Pattern.compile("\\b(?:descs|desc|dst_pitch|src_pitch|dst|src|op_w)\\b");
  private static final Pattern AFTER_UNDERSCORE = Pattern.compile("_([a-z])");

  private Names() {}

  /** Refuses a text with a NUL, where C would end it. */
  static void refuseNul(String argument, String text) {
    if (text != null && text.indexOf('\0') >= 0)
      throw new StreamGemmException.InvalidArgument(argument + " holds a NUL: \"" + text.replace("\0", "\\0") + "\"");
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

  /** The message with Java names. */
  static String inJava(String message) {
    if (message == null) return null;
    String fields = FIELD.matcher(message).replaceAll(found -> Matcher.quoteReplacement(field(found)));
    return WORD.matcher(fields).replaceAll(found -> word(found.group()));
  }

  private static String field(MatchResult found) {
    String struct = found.group(1);
    String path = found.group(3).substring(2).replace("->", ".").replace("_array", "");
    String component = found.group(4);
    boolean gemm = struct.startsWith("desc");
    StringBuilder name = new StringBuilder();
    if (found.group(2) != null) name.append("products.get(").append(found.group(2)).append(").");
    else if (!gemm) name.append(struct).append('.');
    name.append(camel(path));
    if (component == null || component.equals("data") || component.equals("re")) return name.toString();
    if (component.equals("im")) return name.append("Im").toString();
    return name.append('.').append(camel(component)).append(gemm ? "()" : "").toString();
  }

  private static String camel(String name) {
    return AFTER_UNDERSCORE.matcher(name).replaceAll(letter -> letter.group(1).toUpperCase());
  }

  private static String word(String name) {
    switch (name) {
      case "descs":
        return "products";
      case "desc":
        return "product";
      case "dst":
        return "to";
      case "src":
        return "from";
      case "op_w":
        return "opW";
      case "dst_pitch":
        return "to.ld()";
      default:
        return "from.ld()";
    }
  }
}
