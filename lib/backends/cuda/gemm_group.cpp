// SPDX-License-Identifier: Apache-2.0
// Many small products as few cuBLAS calls. Measured on an H200, microseconds for 512 products in f32:
//
//                      one strided call   pointers on the device   pointers in pinned memory   copied first   grouped
//   64 x 64 x 1024            118                  118                      123                    130           349
//   32^3                        7                    8                       10                     17            24
//   128^3                      66                   67                      105                     75            61
//   16 shapes, 32 of each       -        124 (16 calls)                       -                      -            67
//
// So: strided where the addresses allow it; pointers otherwise, written by a kernel from its parameters where they are
// few; the grouped call only for many shapes.
#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "blas.hpp"
#include "failure.hpp"
#include "gemm.hpp"
#include "kernels.hpp"

namespace sg::cuda {
namespace {

// Products of one shape below which a call for them costs more than their part of a grouped call.
constexpr std::size_t own_call_pays = 48;

bool same_shape(const sg_backend_gemm &x, const sg_backend_gemm &y) noexcept {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.op_a == y.op_a && x.op_b == y.op_b && x.lda == y.lda &&
         x.ldb == y.ldb && x.ldc == y.ldc && x.alpha.re == y.alpha.re && x.alpha.im == y.alpha.im &&
         x.beta.re == y.beta.re && x.beta.im == y.beta.im;
}
bool same_batch(const sg_backend_gemm &x, const sg_backend_gemm &y) noexcept {
  return x.batch == y.batch &&
         (x.batch == 1 || (x.stride_a == y.stride_a && x.stride_b == y.stride_b && x.stride_c == y.stride_c));
}

// Products of one shape, and their places in the caller's arrays.
struct shape_class {
  std::vector<std::int32_t> members;
};

struct group {
  stream &in;
  const sg_backend_gemm *items;
  std::int64_t in_bytes, out_bytes;

  const sg_backend_gemm &at(std::int32_t index) const noexcept { return items[index]; }
  member_bases bases_of(std::int32_t index) const noexcept {
    const sg_backend_gemm &g = at(index);
    return {{static_cast<const char *>(g.a), static_cast<const char *>(g.b), static_cast<const char *>(g.c)}};
  }
  std::int64_t stride_bytes(const sg_backend_gemm &g, int operand) const noexcept {
    return operand == 0 ? g.stride_a * in_bytes : operand == 1 ? g.stride_b * in_bytes : g.stride_c * out_bytes;
  }
};

// The class as one strided batch, if its addresses are as far from each other as it takes.
bool as_strided(const group &all, const std::vector<std::int32_t> &members, sg_backend_gemm &out) noexcept {
  out = all.at(members.front());
  const auto first = all.bases_of(members.front()), second = all.bases_of(members[1]);
  std::ptrdiff_t steps[3];
  for (int o = 0; o < 3; ++o) {
    const std::int64_t size = o < 2 ? all.in_bytes : all.out_bytes;
    steps[o] = second.of[o] - first.of[o];
    if (steps[o] < 0 || steps[o] % size != 0) return false;
    if (out.batch > 1 && steps[o] != out.batch * all.stride_bytes(out, o)) return false;
  }
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (!same_batch(all.at(members[i]), out)) return false;
    const auto before = all.bases_of(members[i - 1]), now = all.bases_of(members[i]);
    for (int o = 0; o < 3; ++o)
      if (now.of[o] - before.of[o] != steps[o]) return false;
  }
  if (out.batch == 1) {
    out.stride_a = steps[0] / all.in_bytes;
    out.stride_b = steps[1] / all.in_bytes;
    out.stride_c = steps[2] / all.out_bytes;
  }
  out.batch *= static_cast<std::int64_t>(members.size());
  return true;
}

std::int64_t items_of(const group &all, const std::vector<std::int32_t> &members) noexcept {
  std::int64_t count = 0;
  for (const std::int32_t index : members) count += all.at(index).batch;
  return count;
}

// The pointers to the members' items, on the device until the stream's next product: A's, then B's, then C's.
sg_status bring_pointers(const group &all, const std::vector<std::int32_t> &members, std::int64_t count,
                         const void **&out) {
  void *memory = nullptr;
  if (const sg_status status = all.in.pointer_memory(3 * count, &memory)) return status;
  out = static_cast<const void **>(memory);
  const sg_backend_gemm &first = all.at(members.front());
  const bool alike =
      std::all_of(members.begin(), members.end(), [&](std::int32_t index) { return same_batch(all.at(index), first); });
  // Of more, a copy takes less time; but a graph would copy anew at each launch.
  if (alike && (members.size() <= most_parameter_members || all.in.is_captured())) {
    pointer_fill what{nullptr, 0, 0, count, first.batch, {}, out};
    for (int o = 0; o < 3; ++o) what.stride_bytes[o] = all.stride_bytes(first, o);
    member_bases bases[most_parameter_members];
    what.members = bases;
    for (std::size_t begin = 0; begin < members.size(); begin += most_parameter_members) {
      what.member_count = static_cast<int>(std::min<std::size_t>(most_parameter_members, members.size() - begin));
      for (int i = 0; i < what.member_count; ++i) bases[i] = all.bases_of(members[begin + static_cast<std::size_t>(i)]);
      what.first = static_cast<std::int64_t>(begin) * first.batch;
      if (const sg_status status =
              all.in.owner().check(launch_pointer_fill(what, all.in.native()), "writing a batch's pointers"))
        return status;
    }
    return SG_STATUS_OK;
  }
  return all.in.upload(3 * count, memory, [&](const void **to) {
    for (const std::int32_t index : members) {
      const sg_backend_gemm &g = all.at(index);
      const auto bases = all.bases_of(index);
      for (std::int64_t i = 0; i < g.batch; ++i, ++to)
        for (int o = 0; o < 3; ++o) to[o * count] = bases.of[o] + i * all.stride_bytes(g, o);
    }
  });
}

// Products of one shape as one call.
sg_status run_class(const group &all, const std::vector<std::int32_t> &members) {
  if (members.size() == 1) return run_blas(all.in, all.at(members.front()));
  sg_backend_gemm one;
  if (as_strided(all, members, one)) return run_blas(all.in, one);
  one = all.at(members.front());
  one.batch = items_of(all, members);
  const void **pointers = nullptr;
  if (const sg_status status = bring_pointers(all, members, one.batch, pointers)) return status;
  one.a_array = pointers;
  one.b_array = pointers + one.batch;
  one.c_array = const_cast<void *const *>(reinterpret_cast<const void *const *>(pointers + 2 * one.batch));
  return run_blas_there(all.in, one);
}

// Products of several shapes as one call.
sg_status run_grouped(const group &all, const std::vector<shape_class> &classes) {
  const std::size_t shapes = classes.size();
  std::vector<cublasOperation_t> op_a, op_b;
  std::vector<std::int64_t> m, n, k, lda, ldb, ldc, sizes;
  std::vector<blas_scalar> alphas, betas;
  std::vector<std::int32_t> order;
  for (const shape_class &each : classes) {
    const sg_backend_gemm &g = all.at(each.members.front());
    op_a.push_back(blas_op_of(g.op_a));
    op_b.push_back(blas_op_of(g.op_b));
    m.push_back(g.m);
    n.push_back(g.n);
    k.push_back(g.k);
    lda.push_back(g.lda);
    ldb.push_back(g.ldb);
    ldc.push_back(g.ldc);
    sizes.push_back(items_of(all, each.members));
    alphas.emplace_back(g.alpha, g.in_type);
    betas.emplace_back(g.beta, g.in_type);
    order.insert(order.end(), each.members.begin(), each.members.end());
  }
  const sg_backend_gemm &any = all.at(order.front());
  const std::int64_t count = items_of(all, order);
  const void **pointers = nullptr;
  if (const sg_status status = bring_pointers(all, order, count, pointers)) return status;
  blas_types types;
  if (!blas_types_of(any, types)) return SG_STATUS_UNSUPPORTED;
  cublasHandle_t handle = nullptr;
  if (const sg_status status = all.in.blas_handle(any.compute_units, handle)) return status;
  // The scalars' arrays have the type that the products are computed in.
  std::vector<double> alpha_f64, beta_f64;
  std::vector<float> alpha_f32, beta_f32;
  const bool is_f64 = any.in_type == SG_DTYPE_F64;
  for (std::size_t i = 0; i < shapes; ++i) {
    if (is_f64) {
      alpha_f64.push_back(alphas[i].f64[0]);
      beta_f64.push_back(betas[i].f64[0]);
    } else {
      alpha_f32.push_back(alphas[i].f32[0]);
      beta_f32.push_back(betas[i].f32[0]);
    }
  }
  const void *alpha = is_f64 ? static_cast<const void *>(alpha_f64.data()) : alpha_f32.data();
  const void *beta = is_f64 ? static_cast<const void *>(beta_f64.data()) : beta_f32.data();
  return blas_failure(
      blas().gemm_grouped(handle, op_a.data(), op_b.data(), m.data(), n.data(), k.data(), alpha, pointers, types.in,
                          lda.data(), pointers + count, types.in, ldb.data(), beta,
                          const_cast<void *const *>(reinterpret_cast<const void *const *>(pointers + 2 * count)),
                          types.out, ldc.data(), static_cast<std::int64_t>(shapes), sizes.data(), types.compute));
}

// What cuBLAS's grouped call takes.
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

sg_status run_plain_group(const group &all, std::int32_t count, sg_status *statuses) {
  std::vector<shape_class> classes;
  std::size_t latest = 0;  // shapes come in turn or in runs, so the next one's or the same is looked at first
  for (std::int32_t i = 0; i < count; ++i) {
    const auto fits = [&](const shape_class &x) { return same_shape(all.at(x.members.front()), all.at(i)); };
    if (latest + 1 < classes.size() && fits(classes[latest + 1]))
      ++latest;
    else if (latest >= classes.size() || !fits(classes[latest]))
      latest = static_cast<std::size_t>(std::find_if(classes.begin(), classes.end(), fits) - classes.begin());
    if (latest == classes.size()) classes.emplace_back();
    classes[latest].members.push_back(i);
  }
  if (classes.size() > 1 && static_cast<std::size_t>(count) < own_call_pays * classes.size() &&
      can_be_grouped(all.at(0)) && run_grouped(all, classes) == SG_STATUS_OK)
    return SG_STATUS_OK;
  for (const shape_class &each : classes) {
    const sg_status status = run_class(all, each.members);
    for (const std::int32_t index : each.members) statuses[index] = status;
  }
  return SG_STATUS_OK;
}

}  // namespace

namespace {
sg_status run_widened_group(stream &in, const sg_backend_gemm *items, std::int32_t count, sg_status *statuses) noexcept {
  try {
    std::vector<sg_backend_gemm> wide(static_cast<std::size_t>(count));
    widened_f8 operands(in);
    if (const sg_status status = operands.bring(items, count, wide.data())) return status;
    return run_group(in, wide.data(), count, statuses);
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a group's operands");
  }
}
}  // namespace

sg_status run_group(stream &in, const sg_backend_gemm *items, std::int32_t count, sg_status *statuses) noexcept {
  const auto on_chip = [&](const sg_backend_gemm &g) { return multiplies_f8(in, g, false); };
  if (is_f8(items[0].in_type) && std::none_of(items, items + count, on_chip))
    return run_widened_group(in, items, count, statuses);
  if (!std::all_of(items, items + count, is_plain_blas)) {
    for (std::int32_t i = 0; i < count; ++i) statuses[i] = run_gemm(in, items[i]);
    return SG_STATUS_OK;
  }
  try {
    const group all{in, items, element_size(items[0].in_type), element_size(items[0].out_type)};
    const sg_status status = run_plain_group(all, count, statuses);
    return status == SG_STATUS_OK ? end_products(in, items, count, statuses) : status;
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a group's pointers");
  }
}

}  // namespace sg::cuda
