// SPDX-License-Identifier: Apache-2.0
#include "draw.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "support/numbers.hpp"

namespace sg_test::random_tests {

namespace {

constexpr std::int64_t most_elements = std::int64_t(1) << 18;  // of an operand with its gaps

class drawing {
 public:
  drawing(std::uint64_t seed, int devices) : random_(seed), devices_(devices) {}

  test_case everything() {
    test_case t;
    t.check_hazards = chance(50);
    t.how = chance(70) ? way::jobs : chance(60) ? way::graph : way::grouped;
    t.runs = chance(80) ? 1 : 2 + below(2);
    t.untracked_run = t.how == way::graph && chance(40);
    t.blocking = t.how == way::jobs && chance(20);
    const int count = t.how == way::jobs && chance(60) ? 1 : 1 + below(chance(90) ? 4 : 12);
    budget_ = count > 1 ? 100000 : chance(85) ? 400000 : chance(93) ? 4000000 : 20000000;
    for (int i = 0; i < count; ++i) t.steps.push_back(one_step(t, i));
    for (const step_case &s : t.steps)  // the first one's options are the group's
      if (t.how == way::grouped) enlarge_tiles(t.steps[0].options, s.gemm);
    if (devices_ > 1) choose_devices(t);
    return t;
  }

 private:
  int below(int bound) { return random_.below(bound); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<int>(of.size()))];
  }

  std::int64_t size() {
    const int what = below(100);
    if (what < 3) return 0;
    if (what < 25) return 1;
    if (what < 50) return 2 + below(7);
    if (what < 75) return 9 + below(32);
    if (what < 90) {
      const std::int64_t edge = one_of<std::int64_t>({16, 24, 32, 48, 64, 96, 128, 256});
      return edge - 1 + below(3);
    }
    return 1 + below(chance(80) ? 500 : 3000);
  }

  std::int64_t padding(std::int64_t width) {
    const int what = below(100);
    if (what < 40) return 0;
    if (what < 60) return 1 + below(3);
    if (what < 80) return 1 + below(static_cast<int>(std::max<std::int64_t>(1, width / 8)));
    if (what < 97) return 1 + below(40);
    return width + below(300);
  }

  memory place() {
    const int what = below(100);
    return what < 38 ? memory::ordinary : what < 66 ? memory::pinned : what < 68 ? memory::registered : memory::device;
  }

  // One operand; the padding of the leading dimension depends on its run length.
  operand_case operand(std::int64_t rows, std::int64_t cols, bool written) {
    operand_case x;
    x.layout = one_of({SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR});
    x.pad = padding(x.layout == SG_LAYOUT_ROW_MAJOR ? cols : rows);
    x.says_ld = chance(50);
    x.where = place();
    const int what = below(100);
    x.items = what < 50   ? item_form::strided
              : what < 70 ? item_form::pointers
              : what < 85 ? item_form::interleaved
              : written   ? item_form::strided
              : what < 95 ? item_form::shared
                          : item_form::overlapping;
    x.gap = chance(40) ? 0 : below(chance(70) ? 12 : 200);
    x.offset = chance(50) ? 0 : below(20);
    x.half_an_element_on = chance(30);
    x.at_start = chance(30);
    return x;
  }

  sg_scalar scalar(const gemm_case &p, bool is_beta) {
    const int what = below(100);
    if (what < (is_beta ? 45 : 5)) return {0, chance(10) && !p.complex() ? 1.0 : 0.0};
    if (what < (is_beta ? 65 : 60)) return {1, 0};
    if (p.in == SG_DTYPE_I8) return {one_of({-1.0, 2.0, 3.0, -7.0, 1000.0, 65536.0, -2147483648.0, 2147483647.0}), 0};
    const auto part = [&] {
      if (p.data == values::integers) return one_of({-1.0, 2.0, 0.5, -0.25, 3.0});
      if (chance(70)) return random_.real() * 2;
      return one_of({1e-20, 1e20, -1e10, 1e-10, 1e-42, 1e-300, 1.0 + 1e-9});
    };
    return {part(), p.complex() && chance(70) ? part() : 0.0};
  }

  void types(gemm_case &p) {
    static constexpr struct {
      sg_dtype in, out;
    } pairs[] = {{SG_DTYPE_F32, SG_DTYPE_F32},      {SG_DTYPE_F32, SG_DTYPE_F32},     {SG_DTYPE_F32, SG_DTYPE_F32},
                 {SG_DTYPE_F64, SG_DTYPE_F64},      {SG_DTYPE_F64, SG_DTYPE_F64},     {SG_DTYPE_C64, SG_DTYPE_C64},
                 {SG_DTYPE_C128, SG_DTYPE_C128},    {SG_DTYPE_F16, SG_DTYPE_F16},     {SG_DTYPE_F16, SG_DTYPE_F32},
                 {SG_DTYPE_BF16, SG_DTYPE_BF16},    {SG_DTYPE_BF16, SG_DTYPE_F32},    {SG_DTYPE_I8, SG_DTYPE_I32},
                 {SG_DTYPE_I8, SG_DTYPE_I32},       {SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, {SG_DTYPE_F8_E4M3, SG_DTYPE_F16},
                 {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F16},
                 {SG_DTYPE_F8_E5M2, SG_DTYPE_BF16}};
    const auto &pair = pairs[below(static_cast<int>(std::size(pairs)))];
    p.in = pair.in;
    p.out = pair.out;
    if (p.in == SG_DTYPE_F32 && chance(40))
      p.compute = static_cast<sg_compute>(1 + below(4));
    else if ((p.in == SG_DTYPE_F8_E4M3 || p.in == SG_DTYPE_F8_E5M2) && chance(40))
      p.compute = SG_COMPUTE_F8;
  }

  void epilogue(gemm_case &p) {
    p.has_bias = chance(25);
    p.bias_shape = one_of({SG_BIAS_PER_COLUMN, SG_BIAS_PER_ROW});
    p.bias = operand(1, 1, false);
    p.bias.pad = 0;
    // There is no pointer array of biases.
    if (p.bias.items != item_form::strided && p.bias.items != item_form::overlapping) p.bias.items = item_form::shared;
    p.bias_cancels = p.has_bias && !p.complex() && p.out != SG_DTYPE_I32 && chance(40);
    if (p.complex() || chance(80)) return;
    p.activation = p.out == SG_DTYPE_I32 || chance(60) ? SG_ACTIVATION_RELU : SG_ACTIVATION_GELU;
  }

  bool fits(const gemm_case &p) const {
    return p.m * p.n * std::max<std::int64_t>(p.k, 1) * p.batch <= budget_ &&
           extent_of(p.a, p.rows_a(), p.cols_a(), p.batch).elements <= most_elements &&
           extent_of(p.b, p.rows_b(), p.cols_b(), p.batch).elements <= most_elements &&
           extent_of(p.c, p.m, p.n, p.batch).elements <= most_elements;
  }

  gemm_case gemm(const test_case &t, int index) {
    gemm_case p;
    types(p);
    p.data = chance(50) ? values::integers : values::reals;
    p.op_a = static_cast<sg_transpose>(below(3));
    p.op_b = static_cast<sg_transpose>(below(3));
    p.batch = chance(60) ? 1 : 1 + below(chance(80) ? 8 : 100);
    p.m = size();
    p.n = size();
    p.k = size();
    p.a = operand(p.rows_a(), p.cols_a(), false);
    p.b = operand(p.rows_b(), p.cols_b(), false);
    p.c = operand(p.m, p.n, true);
    p.alpha = scalar(p, false);
    p.beta = scalar(p, true);
    epilogue(p);
    p.seed = static_cast<std::uint32_t>(random_.next());
    if (p.in != SG_DTYPE_I8 && chance(6)) p.nan_in = 1 + below(4);
    if (chance(3)) alias_b(p);
    if (t.how != way::grouped && chance(4)) p.foreign = 1 + below(4);
    if (t.how != way::grouped && chance(t.untracked_run ? 75 : 40)) chain(t, index, p);
    // A conjugate transpose of a complex matrix needs the layout of C.
    if (p.complex() && p.op_a == SG_TRANSPOSE_C) p.a.layout = p.c.layout;
    if (p.complex() && p.op_b == SG_TRANSPOSE_C) p.b.layout = p.c.layout;
    if (p.a_from >= 0 && p.a.layout != p.c.layout && p.op_a == SG_TRANSPOSE_C) p.op_a = SG_TRANSPOSE_N;
    while (!fits(p)) {
      if (p.batch > 1 && p.a_from < 0)
        p.batch /= 2;
      else if (p.a_from >= 0)
        p.n = p.n / 2;
      else if (p.k >= p.m && p.k >= p.n)
        p.k /= 2;
      else if (p.b_is_a)
        p.m = p.n = p.m / 2;
      else
        (p.m >= p.n ? p.m : p.n) /= 2;
      if (p.a_from >= 0 && p.n == 0) break;
    }
    return p;
  }

  // C = A * op(A), as a square of a matrix and its transpose.
  void alias_b(gemm_case &p) {
    p.b_is_a = true;
    p.op_b = p.op_a == SG_TRANSPOSE_N ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
    if (p.op_a == SG_TRANSPOSE_C) p.op_a = SG_TRANSPOSE_T;
    p.n = p.m;
    p.b = p.a;
  }

  // A is the result of an earlier step.
  void chain(const test_case &t, int index, gemm_case &p) {
    if (p.b_is_a) return;
    for (int i = index - 1; i >= 0; --i) {
      const step_case &before = t.steps[static_cast<std::size_t>(i)];
      const gemm_case &q = before.gemm;
      if (before.is_copy || q.out != p.in) continue;
      p.a_from = i;
      p.batch = q.batch;
      p.op_a = SG_TRANSPOSE_N;
      p.m = q.m;
      p.k = q.n;
      p.a = q.c;
      p.bias_cancels = false;  // A's values are not known
      return;
    }
  }

  copy_case copy() {
    copy_case c;
    c.flat = chance(30);
    c.width = chance(60) ? below(200) : below(20000);
    c.height = c.flat ? 1 : chance(30) ? 1 : below(60);
    if (!c.flat) {
      c.src_gap = chance(40) ? 0 : below(64);
      c.dst_gap = chance(40) ? 0 : below(64);
    }
    for (operand_case *x : {&c.src, &c.dst}) {
      x->where = place();
      x->offset = below(40);
      x->at_start = chance(30);
    }
    c.seed = static_cast<std::uint32_t>(random_.next());
    return c;
  }

  std::int64_t tile() { return chance(50) ? 0 : 1 + below(chance(50) ? 8 : 150); }

  // The hazard check takes time quadratic in the number of commands.
  static void enlarge_tiles(sg_plan_options &o, const gemm_case &p) {
    const auto count = [](std::int64_t extent, std::int64_t tile) { return tile > 0 ? (extent + tile - 1) / tile : 1; };
    while (count(p.m, o.tile_m) * count(p.n, o.tile_n) * count(p.k, o.tile_k) * p.batch > 500 + p.batch)
      o.tile_m *= 2, o.tile_n *= 2, o.tile_k *= 2;
  }

  sg_plan_options options(const gemm_case &p) {
    sg_plan_options o = SG_PLAN_OPTIONS_INIT;
    if (chance(55)) return o;
    if (chance(60)) o.split = static_cast<sg_split>(below(6));
    if (chance(40) && o.split != SG_SPLIT_NONE) o.parts = 1 + below(5);
    if (chance(30)) o.streams = 1 + below(4);
    if (chance(40)) o.memory_limit = (std::uint64_t(1) << (9 + below(14))) + static_cast<std::uint64_t>(below(500));
    if (chance(40)) {
      o.tile_m = tile();
      o.tile_n = tile();
      o.tile_k = tile();
    }
    enlarge_tiles(o, p);
    const auto kind = [&](const operand_case &x) {
      if (chance(60)) return SG_MEMORY_AUTO;
      return x.where == memory::ordinary ? SG_MEMORY_PAGEABLE
             : x.where == memory::device ? SG_MEMORY_DEVICE
                                         : SG_MEMORY_PINNED;
    };
    o.place_a = kind(p.a);
    o.place_b = kind(p.b);
    o.place_c = kind(p.c);
    return o;
  }

  static bool may_be_blas(const gemm_case &p) {
    return (p.in == SG_DTYPE_F32 || p.in == SG_DTYPE_F64) && p.compute == SG_COMPUTE_EXACT && p.batch == 1 &&
           p.plain() && p.a.layout == p.c.layout && p.b.layout == p.c.layout;
  }

  step_case one_step(const test_case &t, int index) {
    step_case s;
    if (t.how != way::grouped && chance(15)) {
      s.is_copy = true;
      s.copy = copy();
    } else {
      s.gemm = gemm(t, index);
      s.options = options(s.gemm);
      if (t.how == way::jobs && !s.gemm.nothing_to_do() && chance(20)) {
        s.call = call_form::plan;
        s.plan_without_pointers = chance(50);
      } else if (t.how != way::grouped && may_be_blas(s.gemm) && chance(50)) {
        s.call = call_form::blas;
      }
    }
    if (chance(40)) s.stream = below(5);
    s.priority = chance(80) ? 0 : below(3) - 1;
    s.after_all = t.how == way::jobs && chance(10);
    return s;
  }

  // Most operands are on one device, so that the devices' work overlaps, and some on others.
  void choose_devices(test_case &t) {
    const int home = below(devices_);
    const bool by_step = chance(50), mixes = chance(50);
    for (step_case &s : t.steps) {
      const int here = by_step ? below(devices_) : home;
      const auto device = [&] { return mixes && chance(30) ? below(devices_) : here; };
      for (operand_case *x : {&s.copy.src, &s.copy.dst, &s.gemm.a, &s.gemm.b, &s.gemm.c, &s.gemm.bias})
        x->device = device();
      if (chance(40)) s.stream = streams_of_any + (chance(70) ? here : below(devices_));
      if (s.is_copy) continue;
      if (t.how != way::grouped && chance(50)) share_out(s);
      if (s.gemm.a_from >= 0) {
        s.gemm.a = t.steps[static_cast<std::size_t>(s.gemm.a_from)].gemm.c;
        s.options.place_a = SG_MEMORY_AUTO;
      }
      if (s.gemm.b_is_a) s.gemm.b = s.gemm.a;
      for (const operand_case *x : {&s.gemm.a, &s.gemm.b, &s.gemm.c})  // device memory of no address is device 0's
        if (x->where == memory::device && x->device != 0) s.plan_without_pointers = false;
    }
  }

  // For several devices together, which takes operands on the host.
  void share_out(step_case &s) {
    for (operand_case *x : {&s.gemm.a, &s.gemm.b, &s.gemm.c, &s.gemm.bias})
      if (x->where == memory::device && chance(90)) x->where = memory::pinned;
    s.options.place_a = s.options.place_b = s.options.place_c = SG_MEMORY_AUTO;
    if (chance(40)) s.options.devices = 1 + static_cast<std::uint64_t>(below((1 << devices_) - 1));
    const bool is_enough = std::max({s.gemm.m, s.gemm.n, s.gemm.batch}) >= devices_;
    if (chance(is_enough ? 80 : 5)) s.options.device_count = 2 + below(devices_ - 1);
    // Of few tiles at a time, whose memory is filled again.
    const gemm_case &p = s.gemm;
    if (std::min({p.m, p.n, p.k}) >= 24 && chance(60)) {
      const std::int64_t tile = 8 + below(16);
      s.options.split = SG_SPLIT_AUTO, s.options.parts = 0;
      s.options.tile_m = s.options.tile_n = s.options.tile_k = tile;
      enlarge_tiles(s.options, p);
      const std::int64_t bytes = tile * tile * (2 * sg_dtype_size(p.in) + sg_dtype_size(p.out));
      s.options.memory_limit = static_cast<std::uint64_t>((2 + below(4)) * std::max<std::int64_t>(bytes, 1024));
    }
    if (std::popcount(s.options.devices) < s.options.device_count) s.options.devices = 0;
    if (chance(80)) s.stream = -1;
  }

  random_source random_;
  const int devices_;
  std::int64_t budget_ = 0;
};

}  // namespace

test_case draw(std::uint64_t seed, int devices) { return drawing(random_source(seed).next(), devices).everything(); }

}  // namespace sg_test::random_tests
