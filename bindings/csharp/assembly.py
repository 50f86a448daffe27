#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles an assembly with Mono's compiler and makes it one for .NET Standard 2.1, which Mono and .NET both run.

usage: assembly.py [--symbols MONO SYMBOLS.exe FOLDER...] MCS VERSION OUT.dll MCS-ARGUMENT...

--symbols makes OUT.pdb, too, by Symbols.cs; MCS is the first command that is named mcs.
mcs compiles against Mono's own mscorlib. .NET knows that name, but not all types under it (Memory<T>'s manager is missing), so
the references to Mono's class libraries become references to netstandard: the same length of metadata, written in place.
"""
import pathlib
import re
import struct
import subprocess
import sys

MONO_TOKEN = bytes.fromhex("b77a5c561934e089")
NETSTANDARD_TOKEN = bytes.fromhex("cc7b13ffcd2ddd51")
PREAMBLE = """[assembly: System.Reflection.AssemblyVersion("{version}")]
[assembly: System.Reflection.AssemblyFileVersion("{version}")]
[assembly: System.Reflection.AssemblyInformationalVersion("{version}")]
[assembly: System.Runtime.Versioning.TargetFramework(".NETStandard,Version=v2.1", FrameworkDisplayName = "")]
namespace StreamGemm.Internal {{
  /// <summary>Puts its own name among the assembly's, where the references to netstandard find it.</summary>
  internal static class netstandard {{ }}
}}
"""


def streams_of(image):
    """Offset and size of each metadata stream in the file."""
    pe, = struct.unpack_from("<I", image, 0x3c)
    sections, = struct.unpack_from("<H", image, pe + 6)
    optional_size, magic = struct.unpack_from("<H2xH", image, pe + 20)
    directories = pe + 24 + (96 if magic == 0x10b else 112)

    def at(address):
        for i in range(sections):
            size, start, _, data = struct.unpack_from("<IIII", image, pe + 24 + optional_size + 40 * i + 8)
            if start <= address < start + size:
                return address - start + data
        raise ValueError("an address is in no section")

    cli = at(struct.unpack_from("<I", image, directories + 14 * 8)[0])
    root = at(struct.unpack_from("<I", image, cli + 8)[0])
    header = root + 16 + struct.unpack_from("<I", image, root + 12)[0]
    position, streams = header + 4, {}
    for _ in range(struct.unpack_from("<H", image, header + 2)[0]):
        offset, size = struct.unpack_from("<II", image, position)
        name = image[position + 8:image.index(b"\0", position + 8)].decode()
        streams[name] = (root + offset, size)
        position += 8 + (len(name) // 4 + 1) * 4
    return streams


def retarget(image):
    """Rewrites the references to Mono's class libraries; returns how many there were."""
    streams = streams_of(image)
    (tables, tables_size), (strings, strings_size), (blobs, _) = (streams[n] for n in ("#~", "#Strings", "#Blob"))
    heap_sizes = image[tables + 6]
    string_bytes, blob_bytes = 4 if heap_sizes & 1 else 2, 4 if heap_sizes & 4 else 2
    own_name = image.index(b"\0netstandard\0", strings, strings + strings_size) + 1 - strings
    version = struct.pack("<4HI", 4, 0, 0, 0, 0)
    changed = 0
    for found in re.finditer(re.escape(version), bytes(image[tables:tables + tables_size])):
        row = tables + found.start()
        token = int.from_bytes(image[row + 12:row + 12 + blob_bytes], "little")
        name_at = row + 12 + blob_bytes
        name = int.from_bytes(image[name_at:name_at + string_bytes], "little")
        if name >= strings_size or bytes(image[blobs + token:blobs + token + 9]) not in (b"\x08" + MONO_TOKEN, b"\x08" + NETSTANDARD_TOKEN):
            continue
        text = bytes(image[strings + name:image.index(b"\0", strings + name)]).decode(errors="replace")
        if not re.fullmatch(r"mscorlib|System(\.\w+)*", text):
            continue
        image[row:row + 8] = struct.pack("<4H", 2, 1, 0, 0)
        image[name_at:name_at + string_bytes] = own_name.to_bytes(string_bytes, "little")
        image[blobs + token + 1:blobs + token + 9] = NETSTANDARD_TOKEN
        changed += 1
    return changed


def main():
    symbols, arguments = [], sys.argv[1:]
    if arguments[0] == "--symbols":
        at = next(i for i, each in enumerate(arguments) if pathlib.Path(each).name == "mcs")
        symbols, arguments = arguments[1:at], arguments[at:]
    mcs, version, output, *arguments = arguments
    output = pathlib.Path(output)
    preamble = output.with_suffix(".preamble.cs")
    preamble.write_text(PREAMBLE.format(version=version))
    compiled = output.parent / "compiled" / output.name if symbols else output
    compiled.parent.mkdir(exist_ok=True)
    debug = ["-debug+"] if symbols else []
    compile_it = [mcs, "-nologo", "-langversion:latest", "-unsafe", "-optimize+", *debug, f"-out:{compiled}", str(preamble), *arguments]
    if subprocess.run(compile_it).returncode != 0:
        sys.exit(1)
    image = bytearray(compiled.read_bytes())
    if not retarget(image):
        sys.exit(f"{compiled} refers to no class library of Mono's")
    compiled.write_bytes(image)
    if symbols:
        mono, tool, *folders = symbols
        subprocess.run([mono, tool, compiled, output, *folders], check=True)


if __name__ == "__main__":
    main()
