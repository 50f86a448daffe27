// SPDX-License-Identifier: Apache-2.0
#include "api/problem_of.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "api/conflict.hpp"
#include "api/entry.hpp"
#include "base/checked.hpp"

namespace sg {

namespace {

using long_long = long long;

// One operand as the caller describes it.
struct given_operand {
  const char *desc;  // the descriptor's name in messages
  const char *name;  // "a", "b" or "c"
  const sg_matrix &view;
  void *const *array;
  std::int64_t stride;
};

void check_view(const given_operand &x) {
  const sg_matrix &v = x.view;
  if (!is_dtype(v.dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.dtype is %d, which is no type", x.desc, x.name, int{v.dtype});
  if (v.layout != SG_LAYOUT_ROW_MAJOR && v.layout != SG_LAYOUT_COLUMN_MAJOR)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.layout is %d, which is no layout", x.desc, x.name, int{v.layout});
  if (v.rows < 0 || v.cols < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s is %lld x %lld; sizes are not negative", x.desc, x.name,
                long_long{v.rows}, long_long{v.cols});
  const std::int64_t least = v.layout == SG_LAYOUT_ROW_MAJOR ? v.cols : v.rows;
  if (v.ld != 0 && v.ld < least)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.ld is %lld; a %s matrix of %lld x %lld needs at least %lld", x.desc,
                x.name, long_long{v.ld}, name_of(v.layout), long_long{v.rows}, long_long{v.cols}, long_long{least});
}

// As stored, column major: a row-major matrix is its transpose.
operand stored(const given_operand &x, std::int64_t batch) {
  const sg_matrix &v = x.view;
  const bool by_rows = v.layout == SG_LAYOUT_ROW_MAJOR;
  operand o;
  o.rows = by_rows ? v.cols : v.rows;
  o.cols = by_rows ? v.rows : v.cols;
  o.ld = v.ld != 0 ? v.ld : std::max<std::int64_t>(1, o.rows);
  o.type = v.dtype;
  o.pointer_array = x.array != nullptr;
  o.item_stride = batch > 1 && !x.array ? x.stride : 0;
  return o;
}

// Bytes from an item's first element to behind its last; 0 when it is empty. Throws on overflow.
std::int64_t span_bytes(const operand &o, const char *what) {
  if (o.rows == 0 || o.cols == 0) return 0;
  const std::int64_t elements = checked_add(checked_mul(o.cols - 1, o.ld, what), o.rows, what);
  return checked_mul(elements, size_of(o.type), what);
}

std::int64_t total_bytes(const operand &o, std::int64_t batch, const char *what) {
  const std::int64_t one = span_bytes(o, what);
  if (one == 0 || o.pointer_array || batch == 1) return one;
  const std::int64_t stride = checked_mul(o.item_stride, size_of(o.type), what);
  return checked_add(checked_mul(batch - 1, stride, what), one, what);
}

void check_stride(const given_operand &x, const operand &o, std::int64_t batch, bool written) {
  if (batch == 1 || x.array) return;
  if (x.stride < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->stride_%s is %lld; strides are not negative", x.desc, x.name,
                long_long{x.stride});
  if (!written || o.rows == 0 || o.cols == 0) return;
  // Items of C are apart if each ends before the next begins, or if they are blocks of one larger matrix.
  const std::int64_t span = span_bytes(o, x.name) / size_of(o.type);
  const bool one_behind_the_other = x.stride >= span;
  const bool side_by_side = x.stride >= o.rows && batch <= o.ld / std::max<std::int64_t>(x.stride, 1);
  if (!one_behind_the_other && !side_by_side)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->stride_c is %lld; items of C that span %lld elements would overlap",
                x.desc, long_long{x.stride}, long_long{span});
}

// What a message calls an operand's pointer. `item` < 0: the view's own; otherwise that of the pointer array.
struct pointer_name {
  char text[64];
  pointer_name(const given_operand &x, std::int64_t item) {
    if (item < 0)
      std::snprintf(text, sizeof text, "%s->%s.data", x.desc, x.name);
    else
      std::snprintf(text, sizeof text, "%s->%s_array[%lld]", x.desc, x.name, long_long{item});
  }
};

void check_pointer(const void *pointer, const given_operand &x, sg_dtype type, std::int64_t item) {
  if (!pointer) throw error(SG_STATUS_INVALID_ARGUMENT, "%s is NULL", pointer_name(x, item).text);
  const std::int64_t component = is_complex(type) ? size_of(type) / 2 : size_of(type);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if ((address & static_cast<std::uintptr_t>(component - 1)) != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s is %p, which is not aligned to %lld bytes", pointer_name(x, item).text,
                pointer, long_long{component});
}

footprint footprint_of(const operand &o, std::int64_t batch, const operand_address &where, std::int64_t item) {
  const std::int64_t element = size_of(o.type);
  if (o.pointer_array) return footprint::rectangle(where.items[item], o.rows * element, o.cols, o.ld * element);
  if (batch == 1 || o.item_stride == 0)
    return footprint::rectangle(where.base, o.rows * element, o.cols, o.ld * element);
  const std::int64_t item_bytes = o.rows * o.cols * element, stride_bytes = o.item_stride * element;
  if (o.ld == o.rows && stride_bytes >= item_bytes)  // each item is one run, and between them others' may lie
    return footprint::rectangle(where.base, item_bytes, batch, stride_bytes);
  const std::int64_t bytes = total_bytes(o, batch, "an operand");
  return footprint::rectangle(where.base, bytes, 1, bytes);
}

std::int64_t pieces_of(const operand &o, std::int64_t batch) { return o.pointer_array ? batch : 1; }

// Places of an operand: by its pointers, unless the caller says.
sg_memory_kind place_of(const context &on, const given_operand &x, const operand &o, std::int64_t batch,
                        const operand_address &where, sg_memory_kind known, bool pointers_given) {
  if (on.on().unified()) return SG_MEMORY_DEVICE;
  if (!pointers_given) return known == SG_MEMORY_AUTO ? SG_MEMORY_DEVICE : known;
  sg_memory_kind seen = SG_MEMORY_DEVICE;
  for (std::int64_t i = 0; i < pieces_of(o, batch); ++i) {
    const char *start = o.pointer_array ? where.items[i] : where.base;
    const std::int64_t bytes = o.pointer_array ? span_bytes(o, x.name) : total_bytes(o, batch, x.name);
    const sg_memory_kind kind = on.memory_kind(start, static_cast<std::uint64_t>(bytes));
    if (i > 0 && (kind == SG_MEMORY_DEVICE) != (seen == SG_MEMORY_DEVICE))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s_array mixes device memory and host memory (item %lld is %p)",
                  x.desc, x.name, long_long{i}, static_cast<const void *>(start));
    if (i == 0 || kind == SG_MEMORY_PAGEABLE) seen = kind;
  }
  if (known == SG_MEMORY_AUTO) return seen;
  if ((known == SG_MEMORY_DEVICE) != (seen == SG_MEMORY_DEVICE))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s.data lies in %s memory, but the plan has it in %s memory", x.desc,
                x.name, name_of(seen), name_of(known));
  return known;
}

// The op on the stored operand that has the effect of `op` on the caller's matrix, given that C is column major.
sg_op op_on_stored(const given_operand &x, sg_op op, sg_layout c_layout) {
  if (op < SG_OP_N || op > SG_OP_C)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->op_%s is %d, which is no op", x.desc, x.name, int{op});
  const bool complex = is_complex(x.view.dtype);
  if (op == SG_OP_C && !complex) op = SG_OP_T;
  if (x.view.layout == c_layout) return op;
  if (op == SG_OP_C)
    throw error(SG_STATUS_UNSUPPORTED, "%s->op_%s is C on a complex %s matrix while C is %s; give both one layout",
                x.desc, x.name, name_of(x.view.layout), name_of(c_layout));
  return op == SG_OP_N ? SG_OP_T : SG_OP_N;
}

bool is_zero(const sg_scalar &s, bool complex) { return s.re == 0 && (!complex || s.im == 0); }
bool is_one(const sg_scalar &s, bool complex) { return s.re == 1 && (!complex || s.im == 0); }

void check_scalar(const char *desc, const char *name, const sg_scalar &s, sg_dtype out) {
  if (out != SG_DTYPE_I32) return;
  if (!(std::abs(s.re) <= 2147483648.0) || s.re != std::floor(s.re))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->%s is %g; an i32 result needs an integer of 32 bits", desc, name, s.re);
}

void bind_operand(const given_operand &x, const operand &o, std::int64_t batch, bool touched, operand_address &where,
          std::vector<std::vector<char *>> &storage) {
  if (x.array) {
    std::vector<char *> items(static_cast<std::size_t>(batch));
    for (std::int64_t i = 0; i < batch; ++i) {
      if (touched) check_pointer(x.array[i], x, o.type, i);
      items[static_cast<std::size_t>(i)] = static_cast<char *>(x.array[i]);
    }
    storage.push_back(std::move(items));
    where.items = storage.back().data();
    return;
  }
  if (touched) check_pointer(x.view.data, x, o.type, -1);
  where.base = static_cast<char *>(x.view.data);
}

[[noreturn]] void refuse_overlap(const char *name, char input, const footprint &read, const footprint &written) {
  throw error(SG_STATUS_INVALID_ARGUMENT, "%s->c overlaps %s->%c in memory (%p and %p)", name, name, input,
              reinterpret_cast<void *>(written.lo), reinterpret_cast<void *>(read.lo));
}

// C may not overlap an input, whichever item of either it is.
void check_overlap(const checked_gemm &g, const char *name, bool by_rows) {
  const problem &p = g.shape;
  if (p.no_product) return;
  const char first = by_rows ? 'b' : 'a', second = by_rows ? 'a' : 'b';  // what the caller calls them
  const auto where = [&](const operand &o, std::size_t which, std::int64_t item) {
    return footprint_of(o, p.batch, g.where.operands[which], item);
  };
  if (!p.a.pointer_array && !p.b.pointer_array && !p.c.pointer_array) {
    const footprint written = where(p.c, 2, 0), read_a = where(p.a, 0, 0), read_b = where(p.b, 1, 0);
    if (overlap(read_a, written)) refuse_overlap(name, first, read_a, written);
    if (overlap(read_b, written)) refuse_overlap(name, second, read_b, written);
    return;
  }
  std::vector<owned_bytes> all;
  const operand *const operands[] = {&p.a, &p.b, &p.c};
  for (std::size_t which = 0; which < 3; ++which)
    for (std::int64_t i = 0; i < pieces_of(*operands[which], p.batch); ++i)
      all.push_back({where(*operands[which], which, i), which, which == 2});
  if (const auto found = find_conflict(std::move(all))) {
    const bool first_reads = !found->first.writes;
    const owned_bytes &read = first_reads ? found->first : found->second;
    const owned_bytes &written = first_reads ? found->second : found->first;
    refuse_overlap(name, read.owner == 1 ? second : first, read.bytes, written.bytes);
  }
}

}  // namespace

checked_gemm check_gemm(const context &on, const sg_gemm_desc &d, const places &known, bool pointers_given,
                        const char *name) {
  given_operand a{name, "a", d.a, d.a_array, d.stride_a};
  given_operand b{name, "b", d.b, d.b_array, d.stride_b};
  const given_operand c{name, "c", d.c, d.c_array, d.stride_c};
  check_view(a);
  check_view(b);
  check_view(c);
  require_reserved(d.reserved, "desc->reserved");
  if (d.batch < 0) throw error(SG_STATUS_INVALID_ARGUMENT, "%s->batch is %lld", name, long_long{d.batch});
  if (d.a.dtype != d.b.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->a.dtype is %s and %s->b.dtype is %s; they must be equal", name,
                name_of(d.a.dtype), name, name_of(d.b.dtype));
  if (!is_product_type(d.a.dtype, d.c.dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->c.dtype is %s, which is no result type of %s operands", name,
                name_of(d.c.dtype), name_of(d.a.dtype));
  if (d.compute < SG_COMPUTE_EXACT || d.compute > SG_COMPUTE_BF16X3)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->compute is %d, which is no compute", name, int{d.compute});
  if (d.compute != SG_COMPUTE_EXACT && d.a.dtype != SG_DTYPE_F32)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->compute is %s, which is for f32 operands; these are %s", name,
                name_of(d.compute), name_of(d.a.dtype));
  check_scalar(name, "alpha", d.alpha, d.c.dtype);
  check_scalar(name, "beta", d.beta, d.c.dtype);

  checked_gemm g;
  problem &p = g.shape;
  p.batch = d.batch == 0 ? 1 : d.batch;
  p.compute = d.compute;
  const auto op_rows = [](const given_operand &x, sg_op op) { return op == SG_OP_N ? x.view.rows : x.view.cols; };
  const auto op_cols = [](const given_operand &x, sg_op op) { return op == SG_OP_N ? x.view.cols : x.view.rows; };
  sg_op op_a = op_on_stored(a, d.op_a, d.c.layout), op_b = op_on_stored(b, d.op_b, d.c.layout);
  const std::int64_t m = op_rows(a, d.op_a), k = op_cols(a, d.op_a), n = op_cols(b, d.op_b);
  if (op_rows(b, d.op_b) != k)
    throw error(SG_STATUS_INVALID_ARGUMENT, "op(a) is %lld x %lld and op(b) is %lld x %lld; k does not agree (%s->b.%s)",
                long_long{m}, long_long{k}, long_long{op_rows(b, d.op_b)}, long_long{n}, name,
                d.op_b == SG_OP_N ? "rows" : "cols");
  if (d.c.rows != m || d.c.cols != n)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->c is %lld x %lld; op(a) * op(b) is %lld x %lld", name,
                long_long{d.c.rows}, long_long{d.c.cols}, long_long{m}, long_long{n});
  p.a = stored(a, p.batch);
  p.b = stored(b, p.batch);
  p.c = stored(c, p.batch);
  check_stride(a, p.a, p.batch, false);
  check_stride(b, p.b, p.batch, false);
  check_stride(c, p.c, p.batch, true);
  total_bytes(p.a, p.batch, "the size of desc->a");
  total_bytes(p.b, p.batch, "the size of desc->b");
  total_bytes(p.c, p.batch, "the size of desc->c");
  // Column by column a row-major C is its transpose, op(B)^T * op(A)^T: the operands change places.
  const bool by_rows = d.c.layout == SG_LAYOUT_ROW_MAJOR;
  if (by_rows) {
    std::swap(p.a, p.b);
    std::swap(op_a, op_b);
  }
  p.op_a = op_a;
  p.op_b = op_b;
  p.m = by_rows ? n : m;
  p.n = by_rows ? m : n;
  p.k = k;
  const bool complex = is_complex(d.c.dtype);
  p.no_product = k == 0 || is_zero(d.alpha, complex);
  p.beta_zero = is_zero(d.beta, complex);
  g.nothing_to_do = m == 0 || n == 0 || (p.no_product && is_one(d.beta, complex));
  g.where.alpha = d.alpha;
  g.where.beta = d.beta;
  if (!complex) g.where.alpha.im = g.where.beta.im = 0;

  const given_operand &first = by_rows ? b : a, &second = by_rows ? a : b;
  if (pointers_given) {
    if (d.a_array || d.b_array || d.c_array) g.pointers.reserve(3);
    if (!g.nothing_to_do) {
      bind_operand(first, p.a, p.batch, !p.no_product, g.where.operands[0], g.pointers);
      bind_operand(second, p.b, p.batch, !p.no_product, g.where.operands[1], g.pointers);
      bind_operand(c, p.c, p.batch, true, g.where.operands[2], g.pointers);
      check_overlap(g, name, by_rows);
    }
  }
  if (!g.nothing_to_do) {
    const auto place = [&](const given_operand &x, const operand &o, const operand_address &where, sg_memory_kind said) {
      const bool unread = &x != &c && p.no_product;
      return unread ? SG_MEMORY_DEVICE : place_of(on, x, o, p.batch, where, said, pointers_given);
    };
    p.a.place = place(first, p.a, g.where.operands[0], by_rows ? known.b : known.a);
    p.b.place = place(second, p.b, g.where.operands[1], by_rows ? known.a : known.b);
    p.c.place = place(c, p.c, g.where.operands[2], known.c);
  }
  return g;
}

namespace {

template <class Add>
void for_each_access(const checked_gemm &g, Add &&add) {
  const problem &p = g.shape;
  const auto list = [&](const operand &o, int which, bool writes, bool reads) {
    for (std::int64_t i = 0; i < pieces_of(o, p.batch); ++i)
      add(access{footprint_of(o, p.batch, g.where.operands[which], i), writes, reads});
  };
  if (!p.no_product) {
    list(p.a, 0, false, true);
    list(p.b, 1, false, true);
  }
  list(p.c, 2, true, !p.beta_zero);
}

}  // namespace

void list_accesses(const checked_gemm &g, std::vector<access> &out) {
  for_each_access(g, [&](const access &a) { out.push_back(a); });
}

std::size_t list_accesses(const checked_gemm &g, access *out) {
  std::size_t count = 0;
  for_each_access(g, [&](const access &a) { out[count++] = a; });
  return count;
}

namespace {

void require_apart(std::vector<owned_bytes> all, const char *what) {
  if (const auto found = find_conflict(std::move(all)))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s overlap in memory (%p and %p)", what,
                reinterpret_cast<void *>(found->first.bytes.lo), reinterpret_cast<void *>(found->second.bytes.lo));
}

}  // namespace

void check_items_apart(const checked_gemm &g, const char *what) {
  std::vector<owned_bytes> written;
  for_each_access(g, [&](const access &a) {
    if (a.writes) written.push_back({a.bytes, written.size(), true});
  });
  require_apart(std::move(written), what);
}

void check_products_apart(const std::vector<checked_gemm> &products) {
  std::vector<owned_bytes> all;
  for (std::size_t i = 0; i < products.size(); ++i)
    for_each_access(products[i], [&](const access &a) { all.push_back({a.bytes, i, a.writes}); });
  require_apart(std::move(all), "an operand that one of descs writes and an operand of another");
}

plan_request request_for(const sg_gemm_desc &desc, const problem &shape, plan_request r) {
  if (shape.no_product) r.split = split_kind::automatic;  // whatever alpha is, the call is legal; there is nothing to cut
  if (desc.c.layout == SG_LAYOUT_COLUMN_MAJOR) return r;
  std::swap(r.tile_m, r.tile_n);
  if (r.split == split_kind::m)
    r.split = split_kind::n;
  else if (r.split == split_kind::n)
    r.split = split_kind::m;
  return r;
}

plan_request check_plan_options(const sg_plan_options *given, const char *name, places &out_places) {
  plan_request r;
  if (!given) return r;
  const sg_plan_options o = options_of(given, SG_PLAN_OPTIONS_INIT, name);
  char field[96];
  const auto in = [&](const char *what) {
    std::snprintf(field, sizeof field, "%s->%s", name, what);
    return field;
  };
  require_range(o.split, SG_SPLIT_AUTO, SG_SPLIT_BATCH, in("split"));
  require_range(o.parts, 0, 4096, in("parts"));
  require_range(o.streams, 0, 4096, in("streams"));
  require_range(o.tile_m, 0, INT64_MAX, in("tile_m"));
  require_range(o.tile_n, 0, INT64_MAX, in("tile_n"));
  require_range(o.tile_k, 0, INT64_MAX, in("tile_k"));
  require_range(static_cast<std::int64_t>(std::min<std::uint64_t>(o.memory_limit, INT64_MAX)), 0, INT64_MAX - 1,
                in("memory_limit"));
  require_range(o.place_a, SG_MEMORY_AUTO, SG_MEMORY_DEVICE, in("place_a"));
  require_range(o.place_b, SG_MEMORY_AUTO, SG_MEMORY_DEVICE, in("place_b"));
  require_range(o.place_c, SG_MEMORY_AUTO, SG_MEMORY_DEVICE, in("place_c"));
  r.split = static_cast<split_kind>(o.split);
  r.parts = o.parts;
  r.streams = o.streams;
  r.memory_limit = static_cast<std::int64_t>(o.memory_limit);
  r.tile_m = o.tile_m;
  r.tile_n = o.tile_n;
  r.tile_k = o.tile_k;
  out_places = {o.place_a, o.place_b, o.place_c};
  return r;
}

}  // namespace sg
