#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ source that carries models of devices and of machines: embed_models.py OUTPUT MODEL.json..."""
import json
import pathlib
import sys

output, *models = map(pathlib.Path, sys.argv[1:])
entries = {False: [], True: []}  # of machines: whether the model is one
for model in models:
    read = json.loads(model.read_text())
    text = json.dumps(read, indent=1, ensure_ascii=True)
    entries["devices" in read].append('    {"%s", R"json(%s)json"},\n' % (model.stem, text))
output.write_text(
    '#include "models.hpp"\n\nnamespace sg::sim {\n\n'
    'static constexpr built_in_model models[] = {\n' + ''.join(entries[False]) + '};\n'
    'static constexpr built_in_model machines[] = {\n' + ''.join(entries[True]) + '};\n\n'
    'std::span<const built_in_model> built_in_models() { return models; }\n'
    'std::span<const built_in_model> built_in_machines() { return machines; }\n\n}  // namespace sg::sim\n')
