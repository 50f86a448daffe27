// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Security.Cryptography;
using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.CompilerServices.SymbolWriter;

/// <summary>
/// Gives an assembly of mcs, beside which is its .mdb, a portable .pdb, which debuggers of .NET read. The sources are in it, under names that do not depend on
/// the machine: /_/ stands for a folder of the build. The same input gives the same bytes.
/// usage: Symbols.exe IN.dll OUT.dll FOLDER...     OUT.pdb is beside it
/// </summary>
static class Symbols {
  static int Main(string[] args) {
    string[] folders = args.Skip(2).Select(f => Path.GetFullPath(f).TrimEnd('/') + "/").ToArray();
    var documents = new Dictionary<string, Document>();
    using (ModuleDefinition module = ModuleDefinition.ReadModule(args[0], new ReaderParameters { InMemory = true })) {
      MonoSymbolFile symbols = MonoSymbolFile.ReadSymbolFile(args[0] + ".mdb");
      foreach (MethodEntry entry in symbols.Methods) {
        var method = (MethodDefinition)module.LookupToken(entry.Token);
        if (!method.HasBody) continue;
        AddLines(method, entry, file => Of(documents, file, folders));
        AddLocals(method, entry);
      }
      using (var pdb = new Pdb(Path.ChangeExtension(args[1], ".pdb")))
        module.Write(args[1], new WriterParameters { SymbolStream = pdb, SymbolWriterProvider = new PortablePdbWriterProvider(), WriteSymbols = true, DeterministicMvid = true, Timestamp = 0 });
    }
    return 0;
  }

  /// <summary>A file that is named in the assembly without the folder of the build.</summary>
  sealed class Pdb : FileStream {
    internal Pdb(string path) : base(path, FileMode.Create, FileAccess.ReadWrite) { }

    public override string Name => "/_/" + Path.GetFileName(base.Name);
  }

  static Document Of(Dictionary<string, Document> documents, string file, string[] folders) {
    Document found;
    if (documents.TryGetValue(file, out found)) return found;
    string path = Path.GetFullPath(file), folder = folders.FirstOrDefault(path.StartsWith) ?? Path.GetDirectoryName(path) + "/";
    byte[] source = File.ReadAllBytes(path);
    found = new Document("/_/" + path.Substring(folder.Length)) {
      Language = DocumentLanguage.CSharp, LanguageVendor = DocumentLanguageVendor.Microsoft, Type = DocumentType.Text, HashAlgorithm = DocumentHashAlgorithm.SHA1
    };
    using (SHA1 hash = SHA1.Create()) found.Hash = hash.ComputeHash(source);
    found.CustomDebugInformations.Add(new EmbeddedSourceDebugInformation(source, true));
    return documents[file] = found;
  }

  static void AddLines(MethodDefinition method, MethodEntry entry, Func<string, Document> documentOf) {
    Dictionary<int, Instruction> instructions = method.Body.Instructions.ToDictionary(i => i.Offset);
    Dictionary<int, string> files = entry.CompileUnit.SourceFile == null ? null : entry.CompileUnit.IncludeFiles.Concat(new[] { entry.CompileUnit.SourceFile }).GroupBy(f => f.Index).ToDictionary(g => g.Key, g => g.First().FileName);
    int previous = -1;
    foreach (LineNumberEntry line in entry.GetLineNumberTable().LineNumbers) {
      Instruction at;
      string file;
      if (line.Offset == previous || !instructions.TryGetValue(line.Offset, out at) || files == null || !files.TryGetValue(line.File, out file)) continue;
      previous = line.Offset;
      int endLine = Math.Max(line.Row, line.EndRow), column = Math.Max(1, line.Column);
      method.DebugInformation.SequencePoints.Add(new SequencePoint(at, documentOf(file)) {
        StartLine = line.IsHidden ? 0xfeefee : line.Row, EndLine = line.IsHidden ? 0xfeefee : endLine,
        StartColumn = line.IsHidden ? 0 : column, EndColumn = line.IsHidden ? 0 : endLine == line.Row ? Math.Max(column + 1, line.EndColumn) : Math.Max(1, line.EndColumn)
      });
    }
  }

  /// <summary>Names of the locals, in scopes as long as the blocks that declare them.</summary>
  static void AddLocals(MethodDefinition method, MethodEntry entry) {
    Func<int, Instruction> at = offset => method.Body.Instructions.FirstOrDefault(i => i.Offset >= offset);
    var whole = new ScopeDebugInformation(method.Body.Instructions[0], null);
    method.DebugInformation.Scope = whole;
    CodeBlockEntry[] blocks = entry.GetCodeBlocks() ?? new CodeBlockEntry[0];
    var scopes = new Dictionary<int, ScopeDebugInformation>();
    foreach (IGrouping<int, LocalVariableEntry> locals in (entry.GetLocals() ?? new LocalVariableEntry[0]).GroupBy(l => l.BlockIndex)) {
      ScopeDebugInformation scope = whole;
      CodeBlockEntry block = blocks.FirstOrDefault(b => b.Index == locals.Key);
      Instruction start = block == null ? null : at(block.StartOffset);
      if (start != null) {
        scope = new ScopeDebugInformation(start, at(block.EndOffset));
        scopes[locals.Key] = scope;
      }
      foreach (LocalVariableEntry local in locals.Where(l => l.Index < method.Body.Variables.Count)) scope.Variables.Add(new VariableDebugInformation(method.Body.Variables[local.Index], local.Name));
    }
    foreach (CodeBlockEntry block in blocks.Where(b => scopes.ContainsKey(b.Index))) {
      int parent = block.Parent;
      while (parent > 0 && !scopes.ContainsKey(parent)) parent = blocks.FirstOrDefault(b => b.Index == parent)?.Parent ?? 0;
      (scopes.ContainsKey(parent) ? scopes[parent] : whole).Scopes.Add(scopes[block.Index]);
    }
  }
}
