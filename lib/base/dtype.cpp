// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

namespace sg {

const char *name_of(sg_dtype type) noexcept {
  switch (type) {
    case SG_DTYPE_F64: return "f64";
    case SG_DTYPE_F32: return "f32";
    case SG_DTYPE_C64: return "c64";
    case SG_DTYPE_C128: return "c128";
    case SG_DTYPE_F16: return "f16";
    case SG_DTYPE_BF16: return "bf16";
    case SG_DTYPE_I8: return "i8";
    case SG_DTYPE_I32: return "i32";
    case SG_DTYPE_F8_E4M3: return "f8_e4m3";
    case SG_DTYPE_F8_E5M2: return "f8_e5m2";
  }
  return "unknown";
}

const char *name_of(sg_transpose op) noexcept {
  switch (op) {
    case SG_TRANSPOSE_N: return "N";
    case SG_TRANSPOSE_T: return "T";
    case SG_TRANSPOSE_C: return "C";
  }
  return "unknown";
}

const char *name_of(sg_layout layout) noexcept {
  switch (layout) {
    case SG_LAYOUT_ROW_MAJOR: return "row-major";
    case SG_LAYOUT_COLUMN_MAJOR: return "column-major";
  }
  return "unknown";
}

const char *name_of(sg_compute compute) noexcept {
  switch (compute) {
    case SG_COMPUTE_EXACT: return "exact";
    case SG_COMPUTE_TF32: return "tf32";
    case SG_COMPUTE_3XTF32: return "3xtf32";
    case SG_COMPUTE_BF16: return "bf16";
    case SG_COMPUTE_BF16X3: return "bf16x3";
    case SG_COMPUTE_F8: return "f8";
  }
  return "unknown";
}

const char *name_of(sg_memory_kind kind) noexcept {
  switch (kind) {
    case SG_MEMORY_AUTO: return "auto";
    case SG_MEMORY_PAGEABLE: return "pageable";
    case SG_MEMORY_PINNED: return "pinned";
    case SG_MEMORY_DEVICE: return "device";
    case SG_MEMORY_PEER: return "peer";
  }
  return "unknown";
}

}  // namespace sg
