// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "data.hpp"
#include "foreign.hpp"

namespace sg_test::random_tests {

namespace {

using long_long = long long;

// The C type of a component.
const char *c_type(sg_dtype type) {
  switch (component_of(type)) {
    case SG_DTYPE_F64: return "double";
    case SG_DTYPE_F32: return "float";
    case SG_DTYPE_I32: return "int";
    case SG_DTYPE_I8: return "signed char";
    case SG_DTYPE_F16:
    case SG_DTYPE_BF16: return "unsigned short";
    default: return "unsigned char";
  }
}

const char *name_of(sg_dtype type) {
  static const char *const names[] = {"",     "F64", "F32", "C64",     "C128",   "F16",
                                      "BF16", "I8",  "I32", "F8_E4M3", "F8_E5M2"};
  return names[type];
}

// Whether C lacks arithmetic on the type, so that the program stores the bits of its values.
bool held_as_bits(sg_dtype type) { return std::strncmp(c_type(type), "unsigned", 8) == 0; }

std::string value_text(sg_dtype type, long double value) {
  char text[64];
  if (held_as_bits(type)) {
    alignas(16) std::uint8_t bytes[16] = {};
    store(type, bytes, value);
    std::snprintf(text, sizeof text, "0x%x", sg_dtype_size(type) == 2 ? bytes[0] | bytes[1] << 8 : bytes[0]);
  } else {
    std::snprintf(text, sizeof text, "%.17Lg", value);
  }
  return text;
}

class writer {
 public:
  writer(const std::string &device, const test_case &t, const fault &seen) : t_(t), seen_(seen), device_(device) {}

  std::string everything() {
    line("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <streamgemm/streamgemm.h>");
    line(
        "/* N bytes of 0xff, of which `items` times `runs` times `width` components, `stride` and `ld` apart, have "
        "values. */");
    line(
        "#define FILL(p, v, seed, items, stride, runs, ld, width, skip) for (long t = 0; t < items; t++) for (long r = "
        "0; r < runs; r++) \\\n"
        "  for (long i = skip + t * stride + r * ld, e = i + width; i < e; i++) p[i] = v[(((unsigned)i ^ seed) * "
        "2654435761u + (seed >> 7)) >> 28]");
    if (ends_by_guards())
      line(
          "#include <sys/mman.h>\n"
          "static void *guarded(size_t n) { /* n bytes in front of a page that cannot be touched */\n"
          "  size_t pages = (n + 4095) / 4096 * 4096;\n"
          "  char *p = mmap(0, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
          "  mprotect(p + pages, 4096, PROT_NONE);\n"
          "  return p + pages - n;\n}");
    line("static int failed;\nint main(void) {\n  sg_context_options o = SG_CONTEXT_OPTIONS_INIT; o.device = \"%s\";%s",
         device_.c_str(), t_.check_hazards ? " o.flags = SG_CONTEXT_CHECK_HAZARDS;" : "");
    line("  sg_context *x; if (sg_context_create(&o, &x)) return puts(sg_last_error_message()), 2;");
    for (std::size_t i = 0; i < t_.steps.size(); ++i) {
      step_ = static_cast<int>(i);
      if (t_.steps[i].is_copy)
        copy_operands(t_.steps[i].copy);
      else
        gemm_operands(t_.steps[i].gemm);
    }
    if (t_.how == way::graph) line("  sg_graph *g; sg_graph_create(x, &g);");
    submissions();
    verdict();
    line("}");
    return text_;
  }

 private:
  __attribute__((format(printf, 1, 2))) static std::string format(const char *how, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, how);
    std::vsnprintf(text, sizeof text, how, arguments);
    va_end(arguments);
    return text;
  }
  template <class... Arguments>
  void line(const char *how, const Arguments &...arguments) {
    text_ += format(how, arguments...) + '\n';
  }

  // To reproduce a crash, memory may have to be adjacent to an unreadable page.
  bool ends_by_guards() const { return seen_.what.rfind("crashes", 0) == 0; }

  // Memory for an operand: NAME on the host, and d_NAME as passed to the library.
  // `before`: bytes in front of the operand, of one `type` or none.
  std::string allocation(const char *type, const char *name, const operand_case &x, std::int64_t bytes,
                         std::int64_t before = 0) {
    const auto size = static_cast<long_long>(std::max<std::int64_t>(before + bytes, 1));
    std::string text = format("  %s *%s%d", type, name, step_);
    if (ends_by_guards() && x.where == memory::ordinary)
      text += format(" = guarded(%lld);", size);
    else if (x.where == memory::pinned)
      text += format("; sg_host_alloc(x, %lld, (void **)&%s%d);", size, name, step_);
    else
      text += format(" = malloc(%lld);", size);
    if (x.where == memory::registered) text += format(" sg_host_register(x, %s%d, %lld);", name, step_, size);
    text += format(" memset(%s%d, 0xff, %lld);", name, step_, size);
    return before > 0 ? text + format(" %s%d += 1;", name, step_) : text;
  }

  // Device memory is filled from the host's.
  void upload(const char *type, const char *name, const operand_case &x, std::int64_t bytes, std::int64_t before = 0) {
    const auto size = static_cast<long_long>(std::max<std::int64_t>(bytes, 1));
    if (x.where != memory::device) return;
    line(
        "  sg_buffer *u_%s%d; %s *d_%s%d; sg_buffer_create(x, %lld, &(sg_buffer_options){sizeof(sg_buffer_options), "
        "%d, 0}, &u_%s%d); sg_buffer_data(u_%s%d, (void **)&d_%s%d);",
        name, step_, type, name, step_, size + static_cast<long_long>(before), x.device, name, step_, name, step_, name,
        step_);
    if (before > 0) line("  d_%s%d += 1;", name, step_);
    line("  sg_copy(x, d_%s%d, %s%d, %lld, 0);", name, step_, name, step_, size);
  }

  // The name of a table of 16 values, which is emitted when it is new.
  std::string table(const gemm_case &p, sg_dtype type, int which) {
    std::string values;
    for (const long double value : table_of(p, type, which))
      values += (values.empty() ? "" : ", ") + value_text(component_of(type), value);
    const std::string key = std::string(c_type(type)) + values;
    const auto [found, is_new] = tables_.try_emplace(key, format("v%zu", tables_.size()));
    if (is_new) line("  static const %s %s[] = {%s};", c_type(type), found->second.c_str(), values.c_str());
    return found->second;
  }

  void operand(const char *name, int which, const gemm_case &p, const operand_case &x, const extent_of_operand &e,
               sg_dtype type, bool has_values) {
    const std::int64_t size = sg_dtype_size(type), n = is_complex_type(type) ? 2 : 1;
    const std::string values = has_values ? table(p, type, which) : "";
    const std::int64_t before = x.half_an_element_on && is_complex_type(type) ? size / 2 : 0;
    std::string text = allocation(c_type(type), name, x, e.elements * size, before);
    if (has_values) {
      const std::int64_t items = e.form == item_form::shared ? 1 : e.items;
      text += format(" FILL(%s%d, %s, %uu, %lld, %lld, %lld, %lld, %lld, %lld);", name, step_, values.c_str(),
                     seed_of(p, which), long_long{items}, long_long{e.stride * n}, long_long{e.runs},
                     long_long{e.ld * n}, long_long{e.width * n}, long_long{e.offset * n});
      if (p.nan_in == which + 1 && e.rows && e.cols)
        text += format(" memset(%s%d + %lld, 0xff, %lld);", name, step_,
                       long_long{e.at(p.seed % e.items, (p.seed >> 8) % e.rows, (p.seed >> 16) % e.cols) * n},
                       long_long{size});
    }
    line("%s", text.c_str());
    if (which == 3 && p.bias_cancels)
      for (const element_value &each : cancelling_bias(p))
        if (p.nan_in != 4 || p.seed % e.items != 0 || each.at != e.at(0, (p.seed >> 8) % e.rows, 0))
          line("  bias%d[%lld] = %s;", step_, long_long{each.at}, value_text(type, each.value).c_str());
    upload(c_type(type), name, x, e.elements * size, before);
    if (e.form != item_form::pointers) return;
    line("  void *p_%s%d[%lld]; for (int i = 0; i < %lld; i++) p_%s%d[i] = %s%s%d + %lld + (%lld - i) * %lld;", name,
         step_, long_long{e.items}, long_long{e.items}, name, step_, at(x), name, step_, long_long{e.offset * n},
         long_long{e.items - 1}, long_long{e.stride * n});
  }

  // A call with an operand in memory of another context is refused.
  void foreign_call(const gemm_case &p) {
    static const char *const fields[] = {"", "a.data", "b.data", "c.data", "bias"};
    if (!p.reads_foreign()) return;
    line(
        "  { sg_context *y; sg_buffer *u; sg_gemm_desc f = d%d; o.device = \"sim:h200\"; sg_context_create(&o, &y);\n"
        "    sg_buffer_create(y, %zu, 0, &u); sg_buffer_data(u, (void **)&f.%s);\n"
        "    if (sg_gemm_async(x, &f, 0, 0) != SG_STATUS_INVALID_ARGUMENT) return puts(\"foreign memory is used\"), 1; "
        "}",
        step_, foreign_memory::bytes, fields[p.foreign]);
  }

  static const char *at(const operand_case &x) { return x.where == memory::device ? "d_" : ""; }

  void matrix(const char *field, const char *name, int of, const operand_case &x, const extent_of_operand &e,
              sg_dtype type) {
    const bool tight = e.ld == e.width;
    std::string data = format("%s%s%d", at(x), name, of);
    if (e.offset) data += format(" + %lld", long_long{e.offset * (is_complex_type(type) ? 2 : 1)});
    line("  d%d.%s = (sg_matrix){%s, %lld, %lld, %lld, SG_DTYPE_%s, SG_LAYOUT_%s_MAJOR};", step_, field,
         e.form == item_form::pointers ? "0" : data.c_str(), long_long{e.rows}, long_long{e.cols},
         tight && !x.says_ld ? 0 : long_long{e.ld}, name_of(type), x.layout == SG_LAYOUT_ROW_MAJOR ? "ROW" : "COLUMN");
    if (e.form == item_form::pointers) line("  d%d.%s_array = p_%s%d;", step_, field, name, of);
  }

  void gemm_operands(const gemm_case &p) {
    const auto a = extent_of(p.a, p.rows_a(), p.cols_a(), p.batch), b = extent_of(p.b, p.rows_b(), p.cols_b(), p.batch),
               c = extent_of(p.c, p.m, p.n, p.batch), bias = extent_of_bias(p);
    if (p.a_from < 0) operand("a", 0, p, p.a, a, p.in, true);
    if (!p.b_is_a) operand("b", 1, p, p.b, b, p.in, true);
    operand("c", 2, p, p.c, c, p.out, !p.beta_zero());
    if (p.has_bias) operand("bias", 3, p, p.bias, bias, p.out, true);
    line("  sg_gemm_desc d%d = SG_GEMM_DESC_INIT;", step_);
    const char *const name_a = p.a_from < 0 ? "a" : "c";
    const int of_a = p.a_from < 0 ? step_ : p.a_from;
    matrix("a", name_a, of_a, p.a, a, p.in);
    matrix("b", p.b_is_a ? name_a : "b", p.b_is_a ? of_a : step_, p.b_is_a ? p.a : p.b, p.b_is_a ? a : b, p.in);
    matrix("c", "c", step_, p.c, c, p.out);
    std::string more;
    const auto set = [&](bool said, const char *field, long_long value) {
      if (said) more += format(" d%d.%s = %lld;", step_, field, value);
    };
    set(p.op_a, "op_a", p.op_a);
    set(p.op_b, "op_b", p.op_b);
    set(p.compute, "compute", p.compute);
    set(p.batch > 1, "batch", p.batch);
    set(p.batch > 1 && a.given_stride(), "stride_a", a.given_stride());
    set(p.batch > 1 && b.given_stride(), "stride_b", (p.b_is_a ? a : b).given_stride());
    set(p.batch > 1 && c.given_stride(), "stride_c", c.given_stride());
    set(p.activation, "activation", p.activation);
    if (!more.empty()) line(" %s", more.c_str());
    if (p.alpha.re != 1 || p.alpha.im != 0)
      line("  d%d.alpha = (sg_scalar){%.17g, %.17g};", step_, p.alpha.re, p.alpha.im);
    if (p.beta.re != 0 || p.beta.im != 0) line("  d%d.beta = (sg_scalar){%.17g, %.17g};", step_, p.beta.re, p.beta.im);
    if (p.has_bias)
      line("  d%d.bias = %sbias%d + %lld; d%d.bias_shape = %d; d%d.stride_bias = %lld;", step_, at(p.bias), step_,
           long_long{bias.offset * (p.complex() ? 2 : 1)}, step_, p.bias_shape, step_,
           p.batch > 1 ? long_long{bias.given_stride()} : 0);
    foreign_call(p);
  }

  void copy_operands(const copy_case &c) {
    const auto bytes = [&](const operand_case &x, std::int64_t gap) {
      return x.offset + (c.width && c.height ? (c.height - 1) * (c.width + gap) + c.width : 0);
    };
    line("%s", allocation("unsigned char", "src", c.src, bytes(c.src, c.src_gap)).c_str());
    line("  for (unsigned i = 0; i < %lld; i++) src%d[i] = i * 7 + i / 256;", long_long{bytes(c.src, c.src_gap)},
         step_);
    upload("unsigned char", "src", c.src, bytes(c.src, c.src_gap));
    line("%s", allocation("unsigned char", "dst", c.dst, bytes(c.dst, c.dst_gap)).c_str());
    upload("unsigned char", "dst", c.dst, bytes(c.dst, c.dst_gap));
  }

  void options(const step_case &s) {
    sg_plan_options o = s.options;
    if (t_.how == way::grouped) o.place_a = o.place_b = o.place_c = SG_MEMORY_AUTO;  // they would apply to all members
    line("  sg_plan_options o%d = {sizeof o%d, %d, %d, %d, %llu, %lld, %lld, %lld, %d, %d, %d, %llu, %d};", step_,
         step_, o.split, o.parts, o.streams, static_cast<unsigned long long>(o.memory_limit), long_long{o.tile_m},
         long_long{o.tile_n}, long_long{o.tile_k}, o.place_a, o.place_b, o.place_c,
         static_cast<unsigned long long>(o.devices), o.device_count);
    line("  s%d.plan = &o%d;", step_, step_);
  }

  // The tester's streams, by index.
  void streams() {
    static const sg_stream_options of_any[] = {SG_STREAM_OPTIONS_INIT,
                                               SG_STREAM_OPTIONS_INIT,
                                               {sizeof(sg_stream_options), SG_DEVICE_ANY, -1, 0, 0},
                                               {sizeof(sg_stream_options), SG_DEVICE_ANY, 1, 0, 0},
                                               {sizeof(sg_stream_options), SG_DEVICE_ANY, 0, 1, 0}};
    std::set<int> used;
    for (const step_case &s : t_.steps) used.insert(s.stream);
    for (const int i : used) {
      if (i < 0) continue;
      sg_stream_options o = of_any[i < streams_of_any ? i : 0];
      if (i >= streams_of_any) o.device = i - streams_of_any;
      line("  sg_stream_options w%d = {sizeof w%d, %d, %d, %d, 0}; sg_stream *r%d; sg_stream_create(x, &w%d, &r%d);", i,
           i, o.device, o.priority, o.compute_units, i, i, i);
    }
  }

  // A single GEMM.
  bool is_one_call() const {
    const step_case &s = t_.steps[0];
    return t_.steps.size() == 1 && t_.how == way::jobs && t_.runs == 1 && !s.is_copy && s.call == call_form::async &&
           !s.priority && s.stream < 0;
  }

  void submissions() {
    step_ = 0;
    if (is_one_call()) {
      const bool has_options = !(t_.steps[0].options == sg_plan_options(SG_PLAN_OPTIONS_INIT));
      if (has_options) line("  sg_submit s0 = SG_SUBMIT_INIT;");
      if (has_options) options(t_.steps[0]);
      return line("  if (sg_gemm(x, &d0, %s)) puts(sg_last_error_message()), failed = 1;", has_options ? "&s0" : "0");
    }
    streams();
    line("  sg_job *j[%zu] = {0};%s", t_.steps.size(),
         t_.how == way::jobs && !t_.blocking && t_.steps.size() > 1 ? "  /* all in flight together */" : "");
    const bool repeats = t_.how != way::graph && t_.runs > 1;
    if (repeats) line("  for (int run = 0; run < %d; run++) {", t_.runs);
    for (std::size_t i = 0; i < t_.steps.size(); ++i) {
      const step_case &s = t_.steps[i];
      step_ = static_cast<int>(i);
      line("  sg_submit s%d = SG_SUBMIT_INIT;", step_);
      if (t_.how == way::graph) line("  s%d.graph = g;", step_);
      if (t_.is_untracked(i) && i > 0)
        line("  s%d.flags |= SG_SUBMIT_UNTRACKED; s%d.after = j; s%d.after_count = %d;", step_, step_, step_,
             t_.is_ordered_by_stream(i) ? 0 : step_);
      if (t_.blocking && !s.is_copy) line("  s%d.flags |= SG_SUBMIT_WILL_WAIT;", step_);
      if (s.priority) line("  s%d.priority = %d;", step_, s.priority);
      if (s.stream >= 0) line("  s%d.stream = r%d;", step_, s.stream);
      if (!s.is_copy && !(s.options == sg_plan_options(SG_PLAN_OPTIONS_INIT))) options(s);
      if (t_.how == way::grouped) continue;
      const std::string j = format("j[%zu]", i), to = t_.how == way::graph ? "0" : "&" + j;
      const char *const out = to.c_str();
      if (s.is_copy)
        line(
            "  if (sg_copy_2d_async(x, %sdst%d + %lld, %lld, %ssrc%d + %lld, %lld, %lld, %lld, &s%d, %s)) "
            "puts(sg_last_error_message()), failed = 1;",
            at(s.copy.dst), step_, long_long{s.copy.dst.offset}, long_long{s.copy.width + s.copy.dst_gap},
            at(s.copy.src), step_, long_long{s.copy.src.offset}, long_long{s.copy.width + s.copy.src_gap},
            long_long{s.copy.width}, long_long{s.copy.height}, step_, out);
      else if (s.call == call_form::plan)
        line(
            "  sg_operation_desc operation%d = {sizeof operation%d, SG_OPERATION_GEMM, 1, &d%d};\n"
            "  sg_plan *l%d = 0; if (sg_plan_create(x, &operation%d, s%d.plan, &l%d)) puts(sg_last_error_message()), "
            "failed = "
            "1; s%d.plan "
            "= 0;\n"
            "  if (sg_plan_run_async(l%d, &operation%d, &s%d, %s)) puts(sg_last_error_message()), failed = 1;",
            step_, step_, step_, step_, step_, step_, step_, step_, step_, step_, step_, out);
      else
        line("  if (sg_gemm_async(x, &d%d, &s%d, %s)) puts(sg_last_error_message()), failed = 1;", step_, step_, out);
      if (t_.blocking) line("  sg_job_wait(%s, SG_FOREVER, NULL);", j.c_str());
    }
    if (t_.how == way::grouped) {
      std::string all;
      for (std::size_t i = 0; i < t_.steps.size(); ++i) all += (i ? ", d" : "d") + std::to_string(i);
      line(
          "  sg_gemm_desc all[] = {%s};\n  if (sg_gemm_grouped_async(x, all, %zu, &s0, j)) "
          "puts(sg_last_error_message()), failed = 1;",
          all.c_str(), t_.steps.size());
    }
    if (t_.untracked_run) line("  sg_submit s = SG_SUBMIT_INIT; s.flags = SG_SUBMIT_UNTRACKED;");
    for (int run = 0; t_.how == way::graph && run < t_.runs; ++run)
      line(
          "  if (sg_graph_run_async(g, %s, j)) puts(sg_last_error_message()), failed = 1;\n  sg_job_wait(j[0], "
          "SG_FOREVER, NULL);",
          t_.untracked_run ? "&s" : "0");
    line("  sg_context_synchronize(x, SG_FOREVER);%s", repeats ? "\n  }" : "");
  }

  void verdict() {
    const bool element = seen_.step >= 0 && seen_.item >= 0;
    if (!element && !seen_.what.empty() && !is_one_call())
      line("  for (int i = 0; i < %zu; i++) failed |= j[i] && sg_job_wait(j[i], SG_FOREVER, NULL);", t_.steps.size());
    if (!element) return line("  return %s; /* %s */", seen_.what.empty() ? "0" : "failed", seen_.what.c_str());
    const step_case &s = t_.steps[static_cast<std::size_t>(seen_.step)];
    const gemm_case &p = s.gemm;
    const extent_of_operand c = extent_of(p.c, p.m, p.n, p.batch);
    step_ = seen_.step;
    if (p.c.where == memory::device)
      line("  sg_copy(x, c%d, d_c%d, %lld, 0);", step_, step_, long_long{c.elements * sg_dtype_size(p.out)});
    const bool second = is_complex_type(p.out) && seen_.seen.real() == seen_.wanted.real();
    const auto index = long_long{c.at(seen_.item, seen_.i, seen_.j) * (is_complex_type(p.out) ? 2 : 1) + second};
    const double wanted = static_cast<double>(second ? seen_.wanted.imag() : seen_.wanted.real());
    if (held_as_bits(p.out)) return verdict_on_bits(p.out, index, wanted);
    if (std::isnan(wanted))
      line("  printf(\"%%.17g, want NaN\\n\", (double)c%d[%lld]);\n  return c%d[%lld] == c%d[%lld];", step_, index,
           step_, index, step_, index);
    else
      line(
          "  double seen = c%d[%lld], error = seen - %.17g;\n  printf(\"%%.17g, want %.17g\\n\", seen);\n"
          "  return !(error <= %.3Lg && error >= -%.3Lg);",
          step_, index, wanted, wanted, seen_.bound * 1.01L, seen_.bound * 1.01L);  // no less when it is rounded
  }

  // Numbers of 16 bits compare like their magnitudes as integers.
  void verdict_on_bits(sg_dtype type, long_long index, long double wanted) {
    line("  int bits = c%d[%lld], size = bits & 0x7fff, seen = bits == size ? size : -size;", step_, index);
    if (std::isnan(wanted))
      return line("  printf(\"0x%%x, want NaN\\n\", bits);\n  return size <= 0x%x;",
                  magnitude_of(type, std::numeric_limits<long double>::infinity()));
    const int lowest = magnitude_of(type, wanted - seen_.bound), highest = magnitude_of(type, wanted + seen_.bound);
    line("  printf(\"%%d, want %d to %d\\n\", seen);\n  return seen < %d || seen > %d;", lowest, highest, lowest,
         highest);
  }

  static int magnitude_of(sg_dtype type, long double value) {
    alignas(16) std::uint8_t bytes[16] = {};
    store(type, bytes, value);
    const int size = bytes[0] | (bytes[1] & 0x7f) << 8;
    return bytes[1] & 0x80 ? -size : size;
  }

  const test_case &t_;
  const fault &seen_;
  const std::string device_;
  std::string text_;
  std::map<std::string, std::string> tables_;
  int step_ = 0;
};

}  // namespace

std::string program_of(const std::string &device, const test_case &t, const fault &seen) {
  return writer(device, t, seen).everything();
}

}  // namespace sg_test::random_tests
