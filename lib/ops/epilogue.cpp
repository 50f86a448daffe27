// SPDX-License-Identifier: Apache-2.0
#include "ops/epilogue.hpp"

#include <utility>

#include "ops/command.hpp"

namespace sg {

const ops::epilogue &epilogue_of(const command &c) {
  if (const auto *gemm = c.as<ops::gemm>()) return *gemm;
  return std::get<ops::reduce>(c.what);
}

ops::epilogue &epilogue_of(command &c) { return const_cast<ops::epilogue &>(epilogue_of(std::as_const(c))); }

const char *defect_of_bias(const buffer_list &buffers, const view &bias, const view &result) {
  if (!(bias.rows == result.rows && bias.cols == 1) && !(bias.rows == 1 && bias.cols == result.cols))
    return "the bias has neither a value for each row nor one for each column";
  if (bias.rows == 1 && bias.cols > 1 && bias.ld != 1) return "the values of a bias are not contiguous";
  if (bias.items != 1 && bias.items != result.items) return "the items of a bias do not fit";
  if (type_of(buffers, bias) != type_of(buffers, result)) return "the bias has another type";
  return nullptr;
}

bool is_per_row(const view &bias, const view &result) noexcept { return bias.cols == 1 && bias.rows == result.rows; }

}  // namespace sg
