// SPDX-License-Identifier: Apache-2.0
// Options whose values are names of the library's enumerators, and the names used in the output.
#pragma once

#include <streamgemm/streamgemm.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "usage.hpp"

namespace sg::cli {

template <class Enum>
using choices = std::vector<std::pair<std::string, Enum>>;

inline const choices<sg_dtype> input_types = {
    {"f64", SG_DTYPE_F64},   {"f32", SG_DTYPE_F32},         {"c64", SG_DTYPE_C64},
    {"c128", SG_DTYPE_C128}, {"f16", SG_DTYPE_F16},         {"bf16", SG_DTYPE_BF16},
    {"i8", SG_DTYPE_I8},     {"f8_e4m3", SG_DTYPE_F8_E4M3}, {"f8_e5m2", SG_DTYPE_F8_E5M2}};
inline const choices<sg_dtype> output_types = {{"f64", SG_DTYPE_F64},   {"f32", SG_DTYPE_F32}, {"c64", SG_DTYPE_C64},
                                               {"c128", SG_DTYPE_C128}, {"f16", SG_DTYPE_F16}, {"bf16", SG_DTYPE_BF16},
                                               {"i32", SG_DTYPE_I32}};
inline const choices<sg_compute> computes = {{"exact", SG_COMPUTE_EXACT},   {"tf32", SG_COMPUTE_TF32},
                                             {"3xtf32", SG_COMPUTE_3XTF32}, {"bf16", SG_COMPUTE_BF16},
                                             {"bf16x3", SG_COMPUTE_BF16X3}, {"f8", SG_COMPUTE_F8}};
inline const choices<sg_activation> activations = {
    {"none", SG_ACTIVATION_NONE}, {"relu", SG_ACTIVATION_RELU}, {"gelu", SG_ACTIVATION_GELU}};
inline const choices<sg_split> splits = {{"auto", SG_SPLIT_AUTO}, {"none", SG_SPLIT_NONE}, {"m", SG_SPLIT_M},
                                         {"n", SG_SPLIT_N},       {"k", SG_SPLIT_K},       {"batch", SG_SPLIT_BATCH}};
inline const choices<sg_transpose> ops = {{"N", SG_TRANSPOSE_N}, {"T", SG_TRANSPOSE_T}, {"C", SG_TRANSPOSE_C}};
inline const choices<sg_layout> layouts = {{"row", SG_LAYOUT_ROW_MAJOR}, {"column", SG_LAYOUT_COLUMN_MAJOR}};
inline const choices<sg_memory_kind> places = {
    {"pageable", SG_MEMORY_PAGEABLE}, {"pinned", SG_MEMORY_PINNED}, {"device", SG_MEMORY_DEVICE}};

template <class Enum>
std::string name_of(const choices<Enum> &names, Enum value) {
  for (const auto &[name, known] : names)
    if (known == value) return name;
  return "unknown";
}

// An option that takes one of `names` (in any case) and stores its enumerator.
template <class Enum>
CLI::Option *add_choice(CLI::App &app, const std::string &option, Enum &target, const choices<Enum> &names,
                        const std::string &help) {
  std::vector<std::string> allowed;
  for (const auto &[name, value] : names) allowed.push_back(name);
  const auto store = [&target, &names](const std::string &text) {
    for (const auto &[name, value] : names)
      if (name == text) target = value;
  };
  return app.add_option_function<std::string>(option, store, help)
      ->transform(one_of(allowed))
      ->type_name(joined(allowed, "|"));
}

// The default type of a GEMM.
constexpr sg_dtype natural_output(sg_dtype input) {
  if (input == SG_DTYPE_I8) return SG_DTYPE_I32;
  return input == SG_DTYPE_F8_E4M3 || input == SG_DTYPE_F8_E5M2 ? SG_DTYPE_F32 : input;
}

}  // namespace sg::cli
