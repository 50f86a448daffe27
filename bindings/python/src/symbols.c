/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as products of symbols. */

#include "operation.h"

int64_t *symbol_of(const operation *o, const char *name) {
  for (int i = 0; i < o->of->symbol_count; ++i)
    if (strcmp(o->of->symbols[i].name, name) == 0) return (int64_t *)&o->symbols[i];
  return NULL;
}

int operand_of(const operation *o, const char *name) {
  for (int i = 0; i < o->of->operand_count; ++i)
    if (strcmp(o->of->operands[i].name, name) == 0) return i;
  return -1;
}

/* A product or quotient, from the left; -1: a symbol is unknown. */
static bool value_of(const operation *o, const char *text, int64_t *to) {
  const char *const whole = text;
  int64_t value = 1;
  bool divides = false;
  for (; *text; ++text) {
    if (*text == '*' || *text == '/') {
      divides = *text == '/';
      continue;
    }
    const int64_t factor = *text >= 'a' ? o->symbols[*text - 'a'] : *text - '0';
    if (factor < 0) return *to = -1, true;
    if (divides ? factor == 0 : __builtin_mul_overflow(value, factor, &value))
      return raise_argument(divides ? "groups is 0" : "a result has too many elements");
    if (divides && value % factor != 0)
      return raise_argument("%s is %lld, which does not divide the %lld %s", o->of->symbols[*text - 'a'].name,
                            (long long)factor, (long long)value, o->of->symbols[whole[0] - 'a'].name);
    if (divides) value /= factor;
  }
  return *to = value, true;
}

/* Determines the one symbol of a dimension that is unknown. */
void bind_size(operation *o, const char *text, int64_t size) {
  int64_t known = 1, *unknown = NULL;
  bool divides = false, unknown_is_divided = false;
  for (const char *at = text; *at; ++at) {
    if (*at == '*' || *at == '/') {
      divides = *at == '/';
      unknown_is_divided = unknown_is_divided || (divides && unknown);
      continue;
    }
    int64_t *const symbol = *at >= 'a' ? &o->symbols[*at - 'a'] : NULL;
    if (symbol && *symbol < 0) {
      if (unknown || divides) return;
      unknown = symbol;
    } else {
      known *= symbol ? *symbol : *at - '0';
    }
  }
  if (!unknown) return;
  if (unknown_is_divided)
    *unknown = size * known;
  else if (known > 0 && size % known == 0)
    *unknown = size / known;
}

bool wanted_sizes(const operation *o, int at, int64_t *sizes, int *unknown) {
  const operand_rule *const rule = &o->of->operands[at];
  *unknown = -1;
  for (int i = 0; i < 4 && rule->dims[i]; ++i) {
    if (!value_of(o, rule->dims[i], &sizes[i])) return false;
    if (sizes[i] < 0 && *unknown < 0) *unknown = i;
  }
  return true;
}

static int64_t windows_in(int64_t size, int64_t pads, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t room = size + pads - dilation * (kernel - 1) - 1;
  return stride <= 0 || size == 0 || room < 0 ? 0 : room / stride + 1;
}

/* The numbers of windows. Without the sizes of images, where only the sums of a result's gradient are wanted, the
 * windows are pixels. */
void count_windows(operation *o) {
  sg_windows *const w = &FIELD(o, o->of->windows_offset, sg_windows);
  int64_t *const height = symbol_of(o, "height"), *const width = symbol_of(o, "width");
  int64_t *const kernel_h = symbol_of(o, "kernel_h"), *const kernel_w = symbol_of(o, "kernel_w");
  int64_t *const out_h = symbol_of(o, "out_h"), *const out_w = symbol_of(o, "out_w");
  if (*height < 0 && *kernel_h < 0) {
    int64_t *const channels = symbol_of(o, "channels"), *const groups = symbol_of(o, "groups");
    *w = (sg_windows)SG_WINDOWS_INIT;
    *height = *out_h, *width = *out_w, *kernel_h = *kernel_w = 1, *channels = 0, *groups = 1;
  }
  w->kernel_h = *kernel_h, w->kernel_w = *kernel_w;
  if (*height < 0 || *kernel_h < 0) return;
  *out_h = windows_in(*height, w->pad_top + w->pad_bottom, *kernel_h, w->stride_h, w->dilation_h);
  *out_w = windows_in(*width, w->pad_left + w->pad_right, *kernel_w, w->stride_w, w->dilation_w);
}
