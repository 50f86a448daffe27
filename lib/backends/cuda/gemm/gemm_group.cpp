// SPDX-License-Identifier: Apache-2.0
// Many small GEMMs as few cuBLAS calls. Measured on an H200, microseconds for 512 GEMMs in f32:
//
//                      one strided call   pointers on the device   pointers in pinned memory   copied first   grouped
//   64 x 64 x 1024            118                  118                      123                    130           349
//   32^3                        7                    8                       10                     17            24
//   128^3                      66                   67                      105                     75            61
//   16 shapes, 32 of each       -        124 (16 calls)                       -                      -            67
//
// So: strided if the addresses allow it; otherwise pointers, which a kernel writes from its parameters if they are few;
// the grouped call only for many shapes.
#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

// With fewer GEMMs of one shape a call for them costs more than their share of a grouped call.
constexpr std::size_t own_call_pays = 48;

bool same_shape(const sg_backend_gemm &x, const sg_backend_gemm &y) noexcept {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.op_a == y.op_a && x.op_b == y.op_b && x.lda == y.lda &&
         x.ldb == y.ldb && x.ldc == y.ldc && x.alpha.re == y.alpha.re && x.alpha.im == y.alpha.im &&
         x.beta.re == y.beta.re && x.beta.im == y.beta.im;
}

// Indices into the caller's array.
using indices = std::vector<std::size_t>;

// The items of some GEMMs, concatenated.
struct item_list {
  std::vector<const void *> a, b;
  std::vector<void *> c;

  void add(const sg_backend_gemm &g) {
    for (std::int64_t i = 0; i < g.batch; ++i) {
      const item_bases bases = bases_of(g, i);
      a.push_back(bases.of[0]);
      b.push_back(bases.of[1]);
      c.push_back(const_cast<char *>(bases.of[2]));
    }
  }
  // All of them as one batched GEMM.
  sg_backend_gemm as(const sg_backend_gemm &form) const {
    sg_backend_gemm one = form;
    one.batch = static_cast<std::int64_t>(a.size());
    one.a_array = a.data();
    one.b_array = b.data();
    one.c_array = c.data();
    return one;
  }
};

// GEMMs of one shape as one call.
sg_status run_class(gemm_resources &in, const gemm_list &items, const indices &members) {
  const sg_backend_gemm &first = items[members.front()];
  if (members.size() == 1) return run_blas(in, first);
  item_list all;
  for (const std::size_t index : members) all.add(items[index]);
  return run_blas(in, all.as(first));
}

// GEMMs of several shapes as one call.
sg_status run_grouped(gemm_resources &in, const gemm_list &items, const std::vector<indices> &classes) {
  std::vector<cublasOperation_t> op_a, op_b;
  std::vector<std::int64_t> m, n, k, lda, ldb, ldc, sizes;
  // The scalars' arrays have the compute type of the GEMMs.
  std::vector<double> alpha_f64, beta_f64;
  std::vector<float> alpha_f32, beta_f32;
  item_list all;
  for (const indices &members : classes) {
    const sg_backend_gemm &g = items[members.front()];
    op_a.push_back(blas_op_of(g.op_a));
    op_b.push_back(blas_op_of(g.op_b));
    m.push_back(g.m);
    n.push_back(g.n);
    k.push_back(g.k);
    lda.push_back(g.lda);
    ldb.push_back(g.ldb);
    ldc.push_back(g.ldc);
    alpha_f64.push_back(g.alpha.re);
    beta_f64.push_back(g.beta.re);
    alpha_f32.push_back(static_cast<float>(g.alpha.re));
    beta_f32.push_back(static_cast<float>(g.beta.re));
    const std::size_t before = all.a.size();
    for (const std::size_t index : members) all.add(items[index]);
    sizes.push_back(static_cast<std::int64_t>(all.a.size() - before));
  }
  sg_backend_gemm one = all.as(items[classes.front().front()]);
  if (!takes_pointers(one)) return SG_STATUS_UNSUPPORTED;
  if (const sg_status status = upload_pointers(in, one)) return status;
  blas_types types;
  if (!blas_types_of(one, types)) return SG_STATUS_UNSUPPORTED;
  cublasHandle_t handle = nullptr;
  if (const sg_status status = in.blas_handle(one.compute_units, handle)) return status;
  const bool is_f64 = one.in_type == SG_DTYPE_F64;
  const void *alpha = is_f64 ? static_cast<const void *>(alpha_f64.data()) : alpha_f32.data();
  const void *beta = is_f64 ? static_cast<const void *>(beta_f64.data()) : beta_f32.data();
  return blas_failure(blas().gemm_grouped(handle, op_a.data(), op_b.data(), m.data(), n.data(), k.data(), alpha,
                                          one.a_array, types.in, lda.data(), one.b_array, types.in, ldb.data(), beta,
                                          one.c_array, types.out, ldc.data(), static_cast<std::int64_t>(sizes.size()),
                                          sizes.data(), types.compute));
}

// Whether cuBLAS's grouped call supports the GEMM.
bool can_be_grouped(const sg_backend_gemm &g) noexcept {
  if (blas().gemm_grouped == nullptr) return false;
  switch (g.in_type) {
    case SG_DTYPE_F64: return true;
    case SG_DTYPE_F32: return g.compute != SG_COMPUTE_BF16;
    case SG_DTYPE_F16:
    case SG_DTYPE_BF16: return g.out_type == g.in_type;
    default: return false;
  }
}

sg_status run_plain_group(gemm_resources &in, const gemm_list &items, sg_status *statuses) {
  std::vector<indices> classes;
  std::size_t latest = 0;  // shapes alternate or repeat, so the same or the next one is tried first
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto fits = [&](const indices &x) { return same_shape(items[x.front()], items[i]); };
    if (latest + 1 < classes.size() && fits(classes[latest + 1]))
      ++latest;
    else if (latest >= classes.size() || !fits(classes[latest]))
      latest = static_cast<std::size_t>(std::find_if(classes.begin(), classes.end(), fits) - classes.begin());
    if (latest == classes.size()) classes.emplace_back();
    classes[latest].push_back(i);
  }
  if (classes.size() > 1 && items.size() < own_call_pays * classes.size() && can_be_grouped(items[0]) &&
      run_grouped(in, items, classes) == SG_STATUS_OK)
    return SG_STATUS_OK;
  for (const indices &members : classes) {
    sg_status status = SG_STATUS_OK;
    try {
      status = run_class(in, items, members);
    } catch (const std::bad_alloc &) {  // the other calls are already enqueued
      status = fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a group's pointers");
    }
    for (const std::size_t index : members) statuses[index] = status;
  }
  return SG_STATUS_OK;
}

sg_status run_widened_group(gemm_resources &in, const gemm_list &items, sg_status *statuses) noexcept {
  try {
    std::vector<sg_backend_gemm> wide(items.size());
    widened_f8 operands(in);
    if (const sg_status status = operands.convert(items, wide.data())) return status;
    std::vector<const sg_backend_command *> commands;
    commands.reserve(wide.size());
    for (const sg_backend_gemm &each : wide) commands.push_back(&each.header);
    return run_group(in, {commands.data(), commands.size()}, statuses);
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a group's operands");
  }
}

template <class Condition>
bool all_of(const gemm_list &items, Condition &&condition) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!condition(items[i])) return false;
  return true;
}

}  // namespace

sg_status run_group(gemm_resources &in, const gemm_list &items, sg_status *statuses) noexcept {
  const auto not_on_chip = [&](const sg_backend_gemm &g) { return !multiplies_f8(in, g, false); };
  if (is_f8(items[0].in_type) && all_of(items, not_on_chip)) return run_widened_group(in, items, statuses);
  if (!all_of(items, [&](const sg_backend_gemm &g) { return is_plain_blas(in, g); })) {
    for (std::size_t i = 0; i < items.size(); ++i) statuses[i] = run_gemm(in, items[i]);
    return SG_STATUS_OK;
  }
  try {
    if (const sg_status status = run_plain_group(in, items, statuses)) return status;
    const sg_status epilogue_status = add_epilogues(in, items, statuses);
    for (std::size_t i = 0; i < items.size() && epilogue_status != SG_STATUS_OK; ++i)
      if (has_separate_epilogue(items[i]) && statuses[i] == SG_STATUS_OK) statuses[i] = epilogue_status;
    return SG_STATUS_OK;
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a group's pointers");
  }
}

}  // namespace sg::cuda
