/* SPDX-License-Identifier: Apache-2.0 */
/* What shapes alone do not say. */
#include "operation.h"

/* Values of i4 are two in a byte; the scales of a row divide its values into blocks. */
bool rule_dequantize(operation *o) {
  sg_dequantize_desc *const d = (sg_dequantize_desc *)o->desc;
  const int64_t values = *symbol_of(o, "stored") * (d->quantization == SG_QUANTIZATION_I4 ? 2 : 1);
  const int64_t blocks = *symbol_of(o, "blocks");
  if (blocks > 0 ? values % blocks != 0 : values > 0)
    return raise_argument("scales has %lld blocks in a row; the %lld values of a row of x do not divide into them",
                          (long long)blocks, (long long)values);
  if (blocks > 0 && values > 0) d->block_size = values / blocks;
  *symbol_of(o, "cols") = values;
  if (!o->made) o->made = o->seen[operand_of(o, "scales")].dtype;
  return true;
}

/* The channels that a matrix of windows has, which are all if it is not said. */
bool rule_windows(operation *o) {
  const sg_im2col_desc *const d = (const sg_im2col_desc *)o->desc;
  const bool sums = o->of->accumulate_offset != 0;
  const int64_t channels = *symbol_of(o, "channels");
  const int64_t first = sums ? ((const sg_col2im_desc *)d)->first_channel : d->first_channel;
  const int64_t used = sums ? ((const sg_col2im_desc *)d)->used_channels : d->used_channels;
  if (sums && used != 0 && !o->given[operand_of(o, "out")])
    return raise_argument("out is None; of a range of channels it must be given");
  if (channels < 0) return raise_argument("shape is None; without out it must be that of the images");
  if (first < 0 || used < 0 || first > channels - used)
    return raise_argument("channels is (%lld, %lld) and x has %lld channels", (long long)first, (long long)used,
                          (long long)channels);
  *symbol_of(o, "used") = used != 0 ? used : channels;
  return true;
}

bool rule_size(operation *o) {
  return *symbol_of(o, "height") >= 0 ||
         raise_argument("size is None; without x and dx it must be the height and width of dx");
}

bool rule_pool_gradient(operation *o) {
  const sg_pool2d_backward_desc *const d = (const sg_pool2d_backward_desc *)o->desc;
  if (d->pooling == SG_POOLING_MAX && !o->given[operand_of(o, "x")])
    return raise_argument("x is None; the gradient of a maximum reads it");
  return rule_size(o);
}

bool rule_scatter(operation *o) {
  const int table = operand_of(o, "table"), x = operand_of(o, "x");
  if (!o->given[table] || o->seen[table].ndim != 2) return true; /* the checks of operands say so */
  const Py_ssize_t columns = o->seen[table].shape[1], given = o->seen[x].shape[o->seen[x].ndim - 1];
  return columns == given || raise_argument("x has rows of %zd elements; those of table have %zd", given, columns);
}

bool rule_momentum(operation *o) {
  const sg_sgd_desc *const d = (const sg_sgd_desc *)o->desc;
  return d->momentum == 0 || o->given[operand_of(o, "momentum_buffer")] ||
         raise_argument("momentum_buffer is None; with a momentum it must be given");
}

bool rule_elementwise(operation *o) {
  const sg_elementwise_desc *const d = (const sg_elementwise_desc *)o->desc;
  const int b = operand_of(o, "b");
  const bool two = d->function >= SG_FUNCTION_ADD;
  if (two == (o->given[b] != NULL)) return true;
  char room[SHOWN_SIZE];
  return raise_argument("b is %s; this function has %s operand%s", shown(o->given[b] ? o->given[b] : Py_None, room),
                        two ? "a second" : "one", two ? "" : " only");
}
