// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: either a matrix of the size in its header, or a failure with a message. A matrix that was
// read must survive being written and read again.
#include <cstdlib>
#include <sstream>
#include <string>

#include "npy.hpp"
#include "outcome.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace sg::cli;
  std::istringstream in(std::string(reinterpret_cast<const char *>(data), size));
  try {
    const matrix read = read_npy(in, "input");
    if (static_cast<std::int64_t>(read.bytes.size()) != read.rows * read.cols * sg_dtype_size(read.dtype)) std::abort();
    if (read.bytes.size() > size) std::abort();
    std::stringstream out;
    write_npy(out, read);
    const matrix again = read_npy(out, "output");
    if (again.rows != read.rows || again.cols != read.cols || again.dtype != read.dtype ||
        again.layout != read.layout || again.bytes != read.bytes)
      std::abort();
  } catch (const failure &refused) {
    if (refused.code() != exit_code::usage || std::string(refused.what()).size() < 8) std::abort();
  }
  return 0;
}
