// SPDX-License-Identifier: Apache-2.0
#include "run/lower.hpp"

#include <utility>

namespace sg {

namespace {

const buffer &buffer_of(const schedule &s, const view &v) { return s.buffers[static_cast<std::size_t>(v.buffer)]; }

sg_scalar scalar_of(scalar_role role, const sg_scalar &own) {
  switch (role) {
    case scalar_role::zero: return {0, 0};
    case scalar_role::one: return {1, 0};
    case scalar_role::job: break;
  }
  return own;
}

// Points `array` to the items' addresses where they lie anywhere; otherwise gives the first and the stride.
template <class Pointer, class Array>
void lower_operand(const schedule &s, const view &v, const binding &where, std::vector<void *> &scratch, Pointer &first,
                   Array &array, std::int64_t &stride) {
  const buffer &b = buffer_of(s, v);
  first = address_of(s, v, where, v.item);
  array = nullptr;
  stride = v.items == 1 ? 0 : b.item_stride / size_of(b.type);  // one item for a whole batch is shared
  if (!b.pointer_array || v.items == 1) return;
  scratch.resize(static_cast<std::size_t>(v.items));
  for (std::int64_t i = 0; i < v.items; ++i) scratch[static_cast<std::size_t>(i)] = address_of(s, v, where, v.item + i);
  array = scratch.data();
}

// Of a product or a reduction that has one.
template <class Command>
void lower_bias(const schedule &s, const command &c, const binding &where, Command &to) {
  if (c.bias.buffer < 0) return;
  to.bias = address_of(s, c.bias, where, c.bias.item);
  to.bias_per_row = c.bias.cols == 1 && c.bias.rows == c.out.rows;
}

}  // namespace

char *address_of(const schedule &s, const view &v, const binding &where, std::int64_t item) {
  const buffer &b = buffer_of(s, v);
  switch (b.kind) {
    case buffer_kind::operand: {
      const operand_address &operand =
          where.problem(v.buffer / operands_of_problem).operands[v.buffer % operands_of_problem];
      char *start = b.pointer_array ? operand.items[item] : operand.base + item * b.item_stride;
      return start + v.offset;
    }
    case buffer_kind::device: return where.device_arena + b.offset + item * b.item_stride + v.offset;
    case buffer_kind::staging: return where.staging_arena + b.offset + item * b.item_stride + v.offset;
  }
  return nullptr;
}

sg_backend_gemm lower_gemm(const schedule &s, const command &c, const binding &where, pointer_scratch &scratch) {
  const problem_binding &own = where.problem(c.group);
  sg_backend_gemm g{};
  g.m = c.m;
  g.n = c.n;
  g.k = c.k;
  g.batch = c.out.items;
  g.op_a = c.op_a;
  g.op_b = c.op_b;
  g.in_type = buffer_of(s, c.in0).type;
  g.out_type = buffer_of(s, c.out).type;
  g.compute = c.compute;
  g.alpha = scalar_of(c.alpha, own.alpha);
  g.beta = scalar_of(c.beta, own.beta);
  g.lda = c.in0.ld;
  g.ldb = c.in1.ld;
  g.ldc = c.out.ld;
  lower_operand(s, c.in0, where, scratch.a, g.a, g.a_array, g.stride_a);
  lower_operand(s, c.in1, where, scratch.b, g.b, g.b_array, g.stride_b);
  lower_operand(s, c.out, where, scratch.c, g.c, g.c_array, g.stride_c);
  g.activation = c.activation;
  lower_bias(s, c, where, g);
  if (c.bias.items > 1) g.stride_bias = buffer_of(s, c.bias).item_stride / size_of(g.out_type);
  return g;
}

void lower_reduce(const schedule &s, const command &c, const binding &where, std::vector<sg_backend_reduce> &out) {
  out.clear();
  sg_backend_reduce r{};
  r.m = c.out.rows;
  r.n = c.out.cols;
  r.out_type = buffer_of(s, c.out).type;
  r.part_type = accumulator_of(r.out_type);
  r.beta = scalar_of(c.beta, where.problem(c.group).beta);
  r.ldc = c.out.ld;
  if (c.in0.buffer >= 0) {
    const buffer &parts = buffer_of(s, c.in0);
    r.part_type = parts.type;
    r.parts = address_of(s, c.in0, where, c.in0.item);
    r.parts_count = c.in0.items;
    r.part_ld = c.in0.ld;
    r.part_stride = parts.item_stride / size_of(parts.type);
  }
  r.activation = c.activation;
  lower_bias(s, c, where, r);
  for (std::int64_t i = 0; i < c.out.items; ++i) {
    r.c = address_of(s, c.out, where, c.out.item + i);
    out.push_back(r);
  }
}

std::optional<narrowing> lower_narrowing(const schedule &s, const command &c, const binding &where) {
  if (buffer_of(s, c.in0).type == buffer_of(s, c.out).type) return std::nullopt;
  narrowing n;
  n.to = reinterpret_cast<std::uint16_t *>(address_of(s, c.out, where, c.out.item));
  n.from = address_of(s, c.in0, where, c.in0.item);
  n.count = c.in0.rows;
  n.columns = c.in0.cols;
  n.pitch = c.in0.ld * size_of(buffer_of(s, c.in0).type);
  if (c.in0.ld == c.in0.rows) n.count *= std::exchange(n.columns, 1);
  return n;
}

void lower_copy(const schedule &s, const command &c, const binding &where, std::vector<sg_backend_copy> &out) {
  const std::int64_t element = size_of(buffer_of(s, c.out).type);
  sg_backend_copy copy{};
  copy.to_device = c.kind == command_kind::copy_in;
  copy.from_device = c.kind == command_kind::copy_out;
  copy.width = c.out.rows * element;
  copy.height = c.out.cols;
  copy.dst_pitch = c.out.ld * element;
  copy.src_pitch = c.in0.ld * element;
  out.clear();
  for (std::int64_t i = 0; i < c.out.items; ++i) {
    copy.dst = address_of(s, c.out, where, c.out.item + i);
    copy.src = address_of(s, c.in0, where, c.in0.item + i);
    if (copy.width == copy.dst_pitch && copy.width == copy.src_pitch) {
      // Tight on both sides: one run, joined to the previous item's when it lies right behind it.
      sg_backend_copy run = copy;
      run.width = copy.width * copy.height;
      run.dst_pitch = run.src_pitch = run.width;
      run.height = 1;
      if (!out.empty() && static_cast<char *>(out.back().dst) + out.back().width == run.dst &&
          static_cast<const char *>(out.back().src) + out.back().width == run.src) {
        out.back().width += run.width;
        out.back().dst_pitch = out.back().src_pitch = out.back().width;
      } else {
        out.push_back(run);
      }
    } else {
      out.push_back(copy);
    }
  }
}

}  // namespace sg
