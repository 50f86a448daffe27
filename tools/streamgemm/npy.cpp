// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "outcome.hpp"

namespace sg::cli {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint32_t longest_header = 65536;  // NumPy itself refuses more than 10,000 by default

constexpr std::pair<std::string_view, sg_dtype> types[] = {
    {"<f8", SG_DTYPE_F64}, {"<f4", SG_DTYPE_F32}, {"<c8", SG_DTYPE_C64}, {"<c16", SG_DTYPE_C128},
    {"<f2", SG_DTYPE_F16}, {"|i1", SG_DTYPE_I8},  {"<i4", SG_DTYPE_I32}};

[[noreturn]] void refuse(const std::string &name, const std::string &reason) {
  throw failure(exit_code::usage, name + ": " + reason);
}

// A byte of the file in a message: printable, and no escape sequence for the terminal.
std::string printable(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char &c : result)
    if (c < ' ' || c > '~') c = '?';
  return result + (text.size() > 40 ? "..." : "");
}

// The header is a Python dictionary of three entries, in any order.
class header_parser {
 public:
  header_parser(std::string_view text, const std::string &name) : rest_(text), name_(name) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr)
        descr = type();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = tuple();
      else
        refuse(name_, "the header has an unknown or repeated key '" + printable(key) + "'");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty()) refuse(name_, "the header goes on behind its dictionary");
    if (!descr || !fortran_order || !shape) refuse(name_, "the header lacks 'descr', 'fortran_order' or 'shape'");
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  bool accept(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool accept(char c) { return accept(std::string_view(&c, 1)); }

  void expect(char c) {
    if (!accept(c))
      refuse(name_, std::string("the header is malformed: expected '") + c + "' at '" + printable(rest_) + "'");
  }

  std::string string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse(name_, "the header is malformed: a string does not end");
    std::string result(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return result;
  }

  std::string type() {
    skip_blanks();
    if (rest_.starts_with('[')) refuse(name_, "a structured dtype; a matrix of numbers is needed");
    return string();
  }

  bool boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    refuse(name_, "'fortran_order' is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      std::int64_t value = 0;
      const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (fault == std::errc::result_out_of_range) refuse(name_, "a dimension of the shape does not fit 64 bits");
      if (fault != std::errc() || value < 0) refuse(name_, "the shape is malformed at '" + printable(rest_) + "'");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      result.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view rest_;
  const std::string &name_;
};

sg_dtype dtype_of(const std::string &descr, const std::string &name) {
  for (const auto &[text, dtype] : types)
    if (descr == text) return dtype;
  if (descr.starts_with('>')) refuse(name, "big-endian elements (" + printable(descr) + "); save it as little-endian");
  if (descr.starts_with("|O")) refuse(name, "Python objects, not numbers");
  refuse(name, "element type '" + printable(descr) + "' is not supported (f2, f4, f8, c8, c16, i1 are)");
}

void read_exactly(std::istream &in, void *out, std::size_t size, const std::string &name, const char *part) {
  in.read(static_cast<char *>(out), static_cast<std::streamsize>(size));
  if (in.gcount() != static_cast<std::streamsize>(size)) refuse(name, std::string("the file ends within its ") + part);
}

std::string read_header(std::istream &in, const std::string &name) {
  unsigned char start[8];
  in.read(reinterpret_cast<char *>(start), sizeof start);
  if (in.gcount() != sizeof start || std::memcmp(start, magic.data(), magic.size()) != 0)
    refuse(name, "not a .npy file");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    refuse(name, ".npy format version " + std::to_string(version) + "." + std::to_string(start[7]) + " is unknown");
  unsigned char size[4] = {0, 0, 0, 0};
  read_exactly(in, size, version == 1 ? 2 : 4, name, "header");
  const std::uint32_t length = size[0] | size[1] << 8 | size[2] << 16 | std::uint32_t{size[3]} << 24;
  if (length > longest_header) refuse(name, "a header of " + std::to_string(length) + " bytes is too long");
  std::string header(length, '\0');
  read_exactly(in, header.data(), length, name, "header");
  return header;
}

std::int64_t bytes_left(std::istream &in, const std::string &name) {
  const auto here = in.tellg();
  in.seekg(0, std::ios::end);
  const auto end = in.tellg();
  in.seekg(here);
  if (here < 0 || end < 0 || !in) refuse(name, "not a regular file");
  return end - here;
}

}  // namespace

namespace {

matrix read_shaped(std::istream &in, const std::string &name, bool takes_vectors) {
  const std::string text = read_header(in, name);
  header_parser header(text, name);
  header.parse();
  const sg_dtype dtype = dtype_of(*header.descr, name);
  auto &shape = *header.shape;
  if (takes_vectors && shape.size() == 1) shape.insert(shape.begin(), 1);
  if (shape.size() != 2) refuse(name, "an array of " + std::to_string(shape.size()) + " dimensions; a matrix has 2");
  std::int64_t size;
  if (__builtin_mul_overflow(shape[0], shape[1], &size) || __builtin_mul_overflow(size, sg_dtype_size(dtype), &size))
    refuse(name, "its shape does not fit the address space");
  if (const std::int64_t left = bytes_left(in, name); left < size)
    refuse(name,
           "truncated: " + std::to_string(size) + " bytes of elements announced, " + std::to_string(left) + " there");
  matrix result =
      make_matrix(dtype, *header.fortran_order ? SG_LAYOUT_COLUMN_MAJOR : SG_LAYOUT_ROW_MAJOR, shape[0], shape[1]);
  read_exactly(in, result.bytes.data(), result.bytes.size(), name, "elements");
  return result;
}

matrix load_shaped(const std::string &path, bool takes_vectors) {
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, std::strerror(errno));
  return read_shaped(in, path, takes_vectors);
}

}  // namespace

matrix read_npy(std::istream &in, const std::string &name) { return read_shaped(in, name, false); }
matrix load_npy(const std::string &path) { return load_shaped(path, false); }
matrix load_npy_vector(const std::string &path) { return load_shaped(path, true); }

void write_npy(std::ostream &out, const matrix &from) {
  std::string_view descr;
  for (const auto &[text, dtype] : types)
    if (dtype == from.dtype) descr = text;
  if (descr.empty()) throw failure(exit_code::usage, std::string(sg_dtype_name(from.dtype)) + " has no .npy type");
  std::string header = "{'descr': '" + std::string(descr) +
                       "', 'fortran_order': " + (from.layout == SG_LAYOUT_COLUMN_MAJOR ? "True" : "False") +
                       ", 'shape': (" + std::to_string(from.rows) + ", " + std::to_string(from.cols) + "), }";
  constexpr std::size_t before = 10, alignment = 64;  // magic, version and length; NumPy aligns the elements
  header.append(alignment - 1 - (before + header.size()) % alignment, ' ');
  header += '\n';
  const char start[4] = {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  out.write(magic.data(), magic.size()).write(start, sizeof start).write(header.data(), header.size());
  out.write(reinterpret_cast<const char *>(from.bytes.data()), static_cast<std::streamsize>(from.bytes.size())).flush();
}

void save_npy(const std::string &path, const matrix &from) {
  std::ofstream out(path, std::ios::binary);
  if (out) write_npy(out, from);
  if (!out) throw failure(exit_code::failed, path + ": " + std::strerror(errno));
}

}  // namespace sg::cli
