#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ source that carries device models in the library: embed_models.py OUTPUT MODEL.json..."""
import json
import pathlib
import sys

output, *models = map(pathlib.Path, sys.argv[1:])
entries = []
for model in models:
    text = json.dumps(json.loads(model.read_text()), indent=1, ensure_ascii=True)
    entries.append('    {"%s", R"json(%s)json"},\n' % (model.stem, text))
output.write_text(
    '#include "models.hpp"\n\nnamespace sg::sim {\n\n'
    'static constexpr built_in_model models[] = {\n' + ''.join(entries) + '};\n\n'
    'std::span<const built_in_model> built_in_models() { return models; }\n\n}  // namespace sg::sim\n')
