#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ source that carries models of devices and of machines: embed_models.py OUTPUT COUNT MODEL.json...
The first COUNT are the backend's devices; the others are known by name."""
import json
import pathlib
import sys

output, count, *models = sys.argv[1:]
entries = []
for model in map(pathlib.Path, models):
    text = json.dumps(json.loads(model.read_text()), indent=1, ensure_ascii=True)
    entries.append('    {"%s", R"json(%s)json"},\n' % (model.stem, text))
pathlib.Path(output).write_text(
    '#include "models.hpp"\n\nnamespace sg::sim {\n\n'
    'static constexpr built_in_model models[] = {\n' + ''.join(entries[:int(count)]) + '};\n'
    'static constexpr built_in_model others[] = {\n' + ''.join(entries[int(count):]) + '};\n\n'
    'std::span<const built_in_model> built_in_models() { return models; }\n'
    'std::span<const built_in_model> other_models() { return others; }\n\n}  // namespace sg::sim\n')
