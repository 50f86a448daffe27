// SPDX-License-Identifier: Apache-2.0
using System;
using System.Text;
using System.Text.RegularExpressions;

namespace StreamGemm {
  /// <summary>Translates the names of arguments, which the library marks in its messages, from C to C#.</summary>
  internal static partial class Names {
    // A marked name: a parameter, or a struct, perhaps one of an array, and the path to a field: descs[2]->b.rows.
    // The descriptor of a plan's operation is the call's.
    static readonly Regex marked =
      new Regex("\u0001(?:operation->(?=desc|operation\\b))?(\\w+)(?:\\[(\\d+)\\])?((?:->\\w+(?:\\[\\d+\\])?)*)((?:\\.[a-z_]\\w*)?)", RegexOptions.CultureInvariant);
    static readonly Regex operand = new Regex(@"^[abc]$|^operands$", RegexOptions.CultureInvariant);
    static readonly Table parameters = new Table {
      { "NULL", "null" }, { "desc", "the operation" }, { "descs", "items" }, { "dst", "destination" }, { "src", "source" },
      { "dst_pitch", "destination.Ld" }, { "src_pitch", "source.Ld" },
    };

    // Fields of a stage's descriptor, which are parameters.
    static readonly Table stage = new Table {
      { "output_bytes", "output" }, { "workspace_bytes", "workspace" }, { "weights", "weights" }, { "device", "device" },
    };

    /// <summary>The message of a call with C# names; a negative call: of no operation.</summary>
    internal static string InCSharp(string message, int call) {
      return message == null ? null : marked.Replace(message, found => Name(found, call));
    }

    static string Name(Match found, int call) {
      string root = found.Groups[1].Value, index = found.Groups[2].Value, path = found.Groups[3].Value, component = found.Groups[4].Value;
      path = path == "" ? "" : path.Substring(2).Replace("->", ".");
      if (path == "") {
        string name;
        if (!parameters.TryGetValue(root, out name)) name = char.ToLowerInvariant(root[0]) + Pascal(root).Substring(1);
        return index == "" ? name : name + "[" + index + "]";
      }
      if (root == "desc" || root == "descs") {
        bool grouped = root == "descs" || call == Internal.Call.GemmGrouped;
        return (grouped ? "items[" + (index == "" ? "0" : index) + "]." : "") + Component(Field(path, call, grouped), component);
      }
      if (path == "timeout_ns") path = "timeout";
      return (plan.IsMatch(path) ? "options.Plan." : "options.") + Pascal(path) + component;
    }

    // Fields of an sg_plan_options, which is SubmitOptions.Plan wherever a call takes one.
    static readonly Regex plan = new Regex("^(split|parts|streams|tile_[mnk]|place|place_[abc])$", RegexOptions.CultureInvariant);

    // A field of a descriptor, perhaps an entry of it; those of a GEMM are operands and options.
    static string Field(string path, int call, bool grouped) {
      int end = path.IndexOf('[') < 0 ? path.Length : path.IndexOf('[');
      string field = path.Substring(0, end), name;
      Table table = (call < 0 ? null : tables[call]) ?? stage;
      if (table.TryGetValue(field, out name)) return name + path.Substring(end);
      field = field.EndsWith("_array", StringComparison.Ordinal) ? field.Substring(0, field.Length - 6) : field;
      if (operand.IsMatch(field)) return (grouped ? Pascal(field) : field) + path.Substring(end);
      return (grouped ? "Options." : "options.") + Pascal(field == "bias_shape" ? "bias" : field) + path.Substring(end);
    }

    static string Component(string name, string component) {
      switch (component) {
        case "":
        case ".data": return name;
        case ".re": return name + ".Real";
        case ".im": return name + ".Imaginary";
        case ".dtype": return name + ".DType";
        default: return name + "." + Pascal(component.Substring(1));
      }
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
  }
}
