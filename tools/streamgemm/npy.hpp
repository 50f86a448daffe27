// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: one matrix each, format versions 1 to 3 (numpy.lib.format). Files that cannot be multiplied are
// refused with a message that names the file and the reason: object, structured, big-endian and unknown types, other
// than two dimensions, shapes that do not fit, files shorter than their header says.
#pragma once

#include <iosfwd>
#include <string>

#include "matrix.hpp"

namespace sg::cli {

// Reads the matrix at the stream's position; the stream must be seekable. `name` goes into messages. Nothing is
// allocated before the stream is known to hold it. Throws failure.
matrix read_npy(std::istream &in, const std::string &name);
matrix load_npy(const std::string &path);
// The same; one dimension is a row.
matrix load_npy_vector(const std::string &path);

// Writes version 1.0. bf16 has no .npy type. Throws failure.
void write_npy(std::ostream &out, const matrix &from);
void save_npy(const std::string &path, const matrix &from);

}  // namespace sg::cli
