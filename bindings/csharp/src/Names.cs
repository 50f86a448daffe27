// SPDX-License-Identifier: Apache-2.0
using System.Text;
using System.Text.RegularExpressions;

namespace StreamGemm {
  /// <summary>Translates argument names in the library's messages from C to C#.</summary>
  internal static partial class Names {
    // A struct, perhaps one of an array, and the path to a field: descs[2]->b.rows, submit->plan->parts.
    static readonly Regex field =
      new Regex(@"\b(?:descs\[(\d+)\]|(desc|submit|options))((?:->[a-z_0-9]+(?:\[\d+\])?)+)(?:\.([a-z_]+))?", RegexOptions.CultureInvariant);
    static readonly Regex word = new Regex(@"\b(?:descs|desc|dst_pitch|src_pitch|dst|src|op_w)\b", RegexOptions.CultureInvariant);
    static readonly Regex operand = new Regex(@"^[abc]\[\d+\]$|^operands\[\d+\]$", RegexOptions.CultureInvariant);
    // Fields of an sg_plan_options, which is SubmitOptions.Plan wherever a call takes one.
    static readonly Regex plan = new Regex("^(Split|Parts|Streams|Tile[MNK]|Place[ABC])$", RegexOptions.CultureInvariant);

    /// <summary>The message with C# names.</summary>
    internal static string InCSharp(string message) {
      return message == null ? null : word.Replace(field.Replace(message, Field), Word);
    }

    static string Field(Match found) {
      bool grouped = found.Groups[1].Success;
      string path = found.Groups[3].Value.Substring(2).Replace("->", ".").Replace("_array", "");
      string item = grouped ? "items[" + found.Groups[1].Value + "]." : "";
      bool gemm = grouped || found.Groups[2].Value == "desc";
      string name;
      if (gemm && (Parameters.Contains(path) || operand.IsMatch(path))) {
        name = grouped ? item + Pascal(path) : char.ToLowerInvariant(path[0]) + Pascal(path).Substring(1);
      } else {
        name = Pascal(path == "bias_shape" ? "bias" : path == "flags" && gemm ? "gather_flags" : path);
        name = (grouped ? item + "Options." : Gradients.Contains(path) ? "gradients." : plan.IsMatch(name) ? "options.Plan." : "options.") + name;
      }
      string component = found.Groups[4].Value;
      if (component == "" || component == "data") return name;
      if (component == "re") return name + ".Real";
      if (component == "im") return name + ".Imaginary";
      return name + "." + (component == "dtype" ? "DType" : Pascal(component));
    }

    static string Pascal(string name) {
      var made = new StringBuilder();
      bool upper = true;
      foreach (char c in name) {
        if (c != '_') made.Append(upper ? char.ToUpperInvariant(c) : c);
        upper = c == '_' || c == '.';
      }
      return made.ToString();
    }

    static string Word(Match found) {
      switch (found.Value) {
        case "descs": return "items";
        case "desc": return "the GEMM";
        case "dst": return "destination";
        case "src": return "source";
        case "op_w": return "options.OpW";
        case "dst_pitch": return "destination.Ld";
        default: return "source.Ld";
      }
    }
  }
}
