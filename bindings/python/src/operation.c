/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "operations.inc"

/* The dimension that is a row becomes the last one. */
static bool move_axis(operation *o, int at) {
  view *const v = &o->seen[at];
  if (o->axis == -1 || o->of->operands[at].kind != OF_ROWS) return true;
  const int axis = o->axis < 0 ? o->axis + v->ndim : o->axis;
  if (axis < 0 || axis >= v->ndim)
    return raise_argument("axis is %d; %s has %d dimensions", o->axis, o->of->operands[at].name, v->ndim);
  Py_ssize_t *const shape = o->moved[at].shape, *const strides = o->moved[at].strides;
  for (int i = 0, to = 0; i < v->ndim; ++i) {
    const int place = i == axis ? v->ndim - 1 : to++;
    shape[place] = v->shape[i], strides[place] = v->strides[i];
  }
  v->shape = shape, v->strides = strides;
  return true;
}

/* Extents as the caller has them. */
static void move_back(const operation *o, const operand_rule *rule, Py_ssize_t *extents, int ndim) {
  if (o->axis == -1 || rule->kind != OF_ROWS) return;
  const int axis = o->axis < 0 ? o->axis + ndim : o->axis;
  const Py_ssize_t row = extents[ndim - 1];
  memmove(extents + axis + 1, extents + axis, (size_t)(ndim - 1 - axis) * sizeof *extents);
  extents[axis] = row;
}

static bool see_array_of(operation *o, int at, PyObject *given) {
  const operand_rule *const rule = &o->of->operands[at];
  PyObject *const array = settled(o->in, given, rule->name);
  if (!array || !see_array(o->in, array, rule->name, rule->written, &o->seen[at]) || !move_axis(o, at)) return false;
  o->given[at] = array;
  return true;
}

/* Whether its dimensions before the last are the rows that results have. */
bool has_leads(const operation *o, const operand_rule *rule) {
  return rule->kind == OF_ROWS && rule->op_offset == 0 &&
         strcmp(o->of->symbols[rule->dims[0][0] - 'a'].name, "rows") == 0;
}

static bool bind_operand(operation *o, int at) {
  const operand_rule *const rule = &o->of->operands[at];
  const view *const v = &o->seen[at];
  int64_t sizes[4];
  int count;
  if (rule->kind == OF_SEQUENCE && v->ndim == 2) o->unbatched = true;
  if (!sizes_of(o, at, sizes, &count)) return false;
  if ((has_leads(o, rule) || rule->kind == OF_INDICES) && *symbol_of(o, "rows") < 0) {
    const bool in_words = rule->kind == OF_INDICES && FIELD(o, rule->type_offset, sg_index_type) == SG_INDEX_I64;
    o->lead.ndim = rule->kind == OF_INDICES && !(in_words && v->ndim > 1) ? v->ndim : v->ndim - 1;
    for (int i = 0; i < o->lead.ndim; ++i) o->lead.extent[i] = v->shape[i];
    if (in_words && v->ndim == 1) o->lead.extent[0] /= 2;
  }
  for (int i = 0; i < count && rule->kind != OF_SCORES; ++i) bind_size(o, rule->dims[i], sizes[i]);
  if (o->type == 0) o->type = v->dtype;
  if (rule->type == TYPE_OF_GRADIENTS && o->gradient == 0) o->gradient = v->dtype;
  return true;
}

static bool has_extents(const view *v, const char *name, const gemm_shape *s) {
  bool same = v->ndim == s->ndim;
  for (int i = 0; same && i < s->ndim; ++i) same = v->shape[i] == s->extent[i];
  if (same) return true;
  PyObject *is = shape_text(v), *should = shape_tuple(s, false);
  if (is && should) raise_argument("%s has shape %R; it must be %R", name, is, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

static bool refuse_type(const operation *o, int at, int other) {
  return raise_argument("%s is %s and %s is %s; they must be equal", o->of->operands[at].name,
                        sg_dtype_name(o->seen[at].dtype), o->of->operands[other].name,
                        sg_dtype_name(o->seen[other].dtype));
}

/* The type that an operand has to have; 0: any. */
static sg_dtype wanted_type(const operation *o, const operand_rule *rule) {
  switch (rule->type) {
    case TYPE_OF_GRADIENTS: return o->gradient;
    case TYPE_WIDE: return o->type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32;
    case TYPE_I8: return SG_DTYPE_I8;
    case TYPE_I32: return SG_DTYPE_I32;
    case TYPE_OF_RESULT:
    case TYPE_OWN: return 0;
    default: return o->type;
  }
}

static bool has_sizes(const operation *o, int at, const int64_t *wanted) {
  int64_t sizes[4];
  int count;
  return sizes_of(o, at, sizes, &count) && memcmp(sizes, wanted, (size_t)count * sizeof *sizes) == 0;
}

/* Elements have the dimensions of the first operand of this kind, whatever they are. */
static bool has_dimensions_of_elements(const operation *o, int at) {
  int first = 0;
  while (o->of->operands[first].kind != OF_ELEMENTS || !o->given[first]) ++first;
  gemm_shape shape = {.ndim = o->seen[first].ndim};
  for (int i = 0; i < shape.ndim; ++i) shape.extent[i] = o->seen[first].shape[i];
  return has_extents(&o->seen[at], o->of->operands[at].name, &shape);
}

static bool has_type(const operation *o, int at) {
  const operand_rule *const rule = &o->of->operands[at];
  const sg_dtype type = wanted_type(o, rule), is = o->seen[at].dtype;
  if (type == 0 || is == type) return true;
  if (rule->type == TYPE_COMMON) return refuse_type(o, at, o->first);
  return raise_argument("%s is %s; it must be %s%s", rule->name, sg_dtype_name(is),
                        rule->type == TYPE_I8 ? "bool, uint8 or " : "", sg_dtype_name(type));
}

/* Sizes of 1 before the keys are repeated. */
static bool check_scores(operation *o, int at, const int64_t *wanted) {
  const char *const name = o->of->operands[at].name;
  int64_t sizes[4];
  int count;
  if (!sizes_of(o, at, sizes, &count)) return false;
  for (int i = 0; i < 4; ++i) {
    if (sizes[i] == wanted[i] || (i < 3 && sizes[i] == 1)) continue;
    PyObject *const is = shape_text(&o->seen[at]);
    if (is)
      raise_argument("%s has shape %R; it must be (%lld, %lld, %lld, %lld), or 1 in place of some but the last", name,
                     is, (long long)wanted[0], (long long)wanted[1], (long long)wanted[2], (long long)wanted[3]);
    Py_XDECREF(is);
    return false;
  }
  return has_type(o, at) && store_operand(o, at);
}

static bool check_operand(operation *o, int at) {
  const operand_rule *const rule = &o->of->operands[at];
  const view *const v = &o->seen[at];
  int64_t sizes[4];
  int unknown;
  gemm_shape shape;
  if (!wanted_sizes(o, at, sizes, &unknown)) return false;
  if (rule->kind == OF_ELEMENTS && !has_dimensions_of_elements(o, at)) return false;
  if (rule->kind == OF_SCORES) return check_scores(o, at, sizes);
  const bool is_table = rule->kind == OF_INDICES || rule->kind == OF_ELEMENTS ||
                        (rule->kind == OF_ROWS && !has_leads(o, rule)); /* of any dimensions before the last */
  if (rule->dims[0] && unknown < 0 && !(is_table && has_sizes(o, at, sizes))) {
    shape_of_sizes(o, at, sizes, rule->kind == OF_HEADS ? at : -1, &shape);
    view as_given = *v;
    Py_ssize_t extents[MAX_DIMENSIONS];
    memcpy(extents, v->shape, (size_t)v->ndim * sizeof *extents);
    as_given.shape = extents;
    if (rule->kind == OF_INDICES && FIELD(o, rule->type_offset, sg_index_type) == SG_INDEX_I64) { /* of words */
      if (v->ndim > 1)
        --as_given.ndim;
      else
        extents[0] /= 2;
    }
    move_back(o, rule, extents, v->ndim);
    move_back(o, rule, shape.extent, shape.ndim);
    if (!has_extents(&as_given, rule->name, &shape)) return false;
  }
  if (!has_type(o, at)) return false;
  if (rule->type == TYPE_OF_GRADIENTS) o->gradient = v->dtype;
  if (rule->type_offset != 0 && rule->kind != OF_INDICES) FIELD(o, rule->type_offset, sg_dtype) = v->dtype;
  return store_operand(o, at);
}

static bool have_same_dims(const operand_rule *x, const operand_rule *y) {
  bool same = x->kind == y->kind;
  for (int d = 0; same && d < 4 && x->dims[d]; ++d) same = y->dims[d] && strcmp(x->dims[d], y->dims[d]) == 0;
  return same;
}

/* An operand of the same dimensions, or the first of its kind, whose number of dimensions a new result has. */
static int operand_form(const operation *o, int at) {
  const operand_rule *const rules = o->of->operands;
  int first = -1;
  for (int i = 0; i < o->of->operand_count; ++i) {
    if (rules[i].written || rules[i].kind != rules[at].kind || !o->given[i]) continue;
    if (have_same_dims(&rules[at], &rules[i])) return i;
    if (first < 0) first = i;
  }
  return first;
}

/* A new result of the first operand's shape has its layout. */
static bool is_by_columns(const operation *o, int at) {
  const view *const v = &o->seen[o->first];
  const Py_ssize_t size = (Py_ssize_t)sg_dtype_size(v->dtype);
  const uint16_t op = o->of->operands[o->first].op_offset;
  return o->axis == -1 && (op == 0 || FIELD(o, op, sg_transpose) == SG_TRANSPOSE_N) &&
         have_same_dims(&o->of->operands[at], &o->of->operands[o->first]) && v->ndim == 2 && v->shape[0] > 1 &&
         v->shape[1] > 1 && v->strides[0] == size && v->strides[1] >= v->shape[0] * size;
}

static PyObject *make_result(operation *o, int at) {
  const operand_rule *const rule = &o->of->operands[at];
  const sg_dtype of_gradients = rule->type == TYPE_OF_GRADIENTS ? o->gradient : 0;
  const sg_dtype type = o->made ? o->made : of_gradients ? of_gradients : o->type;
  int64_t sizes[4];
  int unknown;
  gemm_shape shape;
  if (!wanted_sizes(o, at, sizes, &unknown)) return NULL;
  if (unknown >= 0) {
    raise_argument("%s is None; it must be given, as its shape does not follow from what is given", rule->name);
    return NULL;
  }
  shape_of_sizes(o, at, sizes, rule->kind == OF_HEADS ? operand_form(o, at) : -1, &shape);
  move_back(o, rule, shape.extent, shape.ndim);
  return new_result(o->like, o->of->products ? product_dtype(type) : type, &shape, false, is_by_columns(o, at),
                    rule->name);
}

/* Whether an operand that this result needs is left out, so that it is not computed. */
static bool lacks_operand(const operation *o, int at) {
  for (int i = 0; i < o->of->operand_count; ++i)
    if (o->of->operands[i].needed_for == at && !o->given[i]) return true;
  return false;
}

static bool see_written(operation *o, int at, PyObject *given) {
  const operand_rule *const rule = &o->of->operands[at];
  const bool is_switch = o->of->accumulate_offset != 0,
             is_read = !is_switch || FIELD(o, o->of->accumulate_offset, int32_t) != 0;
  if (given == Py_False && rule->optional) return true;
  if (lacks_operand(o, at)) return true;
  if (given != Py_None) return o->given[at] || see_array_of(o, at, given);
  if (rule->result < 0)
    return rule->optional || raise_argument("%s is None; it is read and written: it must be given", rule->name);
  if (is_read && rule->is_read)
    return raise_argument("%s is None; %sit is read: it must be given", rule->name,
                          is_switch ? "accumulate is True, so " : "");
  if (o->in->is_run_later && o->in->places[3] == SG_MEMORY_PINNED)
    return raise_argument(
        "%s is None; a run makes it in ordinary memory, and %s is a placeholder in pinned memory: it must be given",
        rule->name, o->in->placed);
  PyObject *const made = make_result(o, at);
  if (!made) return false;
  PyTuple_SET_ITEM(o->results, rule->result, made);
  o->given[at] = made;
  return see_array(o->in, made, rule->name, true, &o->seen[at]) && move_axis(o, at);
}

static bool have_type_of_result(const operation *o) {
  int result = 0;
  while (!o->of->operands[result].written) ++result;
  for (int i = 0; i < o->of->operand_count; ++i)
    if (o->of->operands[i].type == TYPE_OF_RESULT && o->given[i] && o->seen[i].dtype != o->seen[result].dtype)
      return refuse_type(o, i, result);
  return true;
}

/* Of more dimensions than two nothing is transposed. */
static bool is_matrix_transposed(const operation *o) {
  bool transposes = false;
  for (int i = 0; i < o->of->operand_count; ++i) {
    const operand_rule *const rule = &o->of->operands[i];
    transposes = transposes || (rule->kind == OF_ROWS && rule->op_offset != 0 &&
                                FIELD(o, rule->op_offset, sg_transpose) != SG_TRANSPOSE_N);
  }
  return !transposes || o->lead.ndim == 1 ||
         raise_argument("%s has %d dimensions; only a matrix is transposed", o->of->operands[0].name, o->seen[0].ndim);
}

static bool see_operands(operation *o, PyObject *const *values) {
  const operation_rule *const rule = o->of;
  for (int i = 0; i < rule->operand_count; ++i) {
    if (rule->operands[i].written || (values[i] == Py_None && rule->operands[i].optional)) continue;
    if (!see_array_of(o, i, values[i]) || !bind_operand(o, i)) return false;
    if (!o->like) o->like = o->given[i], o->first = i;
  }
  if (!is_matrix_transposed(o)) return false;
  for (int i = 0; i < rule->operand_count; ++i) { /* results that are given have sizes, too */
    if (!rule->operands[i].written || values[i] == Py_None || values[i] == Py_False || lacks_operand(o, i)) continue;
    if (!see_array_of(o, i, values[i]) || !bind_operand(o, i)) return false;
    if (!o->like) o->like = o->given[i], o->first = i;
  }
  if (rule->windows_offset != 0) count_windows(o);
  if (rule->rule && !rule->rule(o)) return false;
  for (int i = 0; i < rule->operand_count; ++i)
    if (!rule->operands[i].written && o->given[i] && !check_operand(o, i)) return false;
  for (int i = 0; i < rule->operand_count; ++i) {
    const int result = rule->operands[i].result;
    if (!rule->operands[i].written) continue;
    if (!see_written(o, i, values[i]) || (o->given[i] && !check_operand(o, i))) return false;
    if (result >= 0 && !PyTuple_GET_ITEM(o->results, result))
      PyTuple_SET_ITEM(o->results, result, Py_NewRef(o->given[i] ? o->given[i] : Py_None));
  }
  return have_type_of_result(o);
}

static bool store_number(operation *o, const option_rule *rule, PyObject *given) {
  const bool narrow = rule->kind == OPTION_INT32 || rule->kind == OPTION_ENUM;
  const long long high = narrow ? INT32_MAX : rule->kind == OPTION_SIZE ? INT64_MAX : (long long)1 << 60;
  const long long low = narrow ? INT32_MIN : rule->kind == OPTION_SIZE ? 0 : -high;
  unsigned long long number;
  if (!number_of(given, rule->name, low, (unsigned long long)high, &number)) return false;
  if (narrow)
    FIELD(o, rule->offset, int32_t) = (int32_t)number;
  else
    FIELD(o, rule->offset, int64_t) = (int64_t)number;
  return true;
}

static bool store_windows(operation *o, const option_rule *rule, PyObject *given) {
  int64_t *const to = &FIELD(o, rule->offset, int64_t);
  for (int i = 0; i < (int)(offsetof(sg_windows, reserved) / sizeof *to); ++i) {
    PyObject *const number = PyTuple_GetItem(given, i);
    if (!number) return false;
    to[i] = number == Py_None ? -1 : PyLong_AsLongLong(number);
  }
  *symbol_of(o, "kernel_h") = to[0], *symbol_of(o, "kernel_w") = to[1];
  return !PyErr_Occurred();
}

/* The names of an enum, looked up once; NULL: it has none in Python. */
static PyObject *names_of(const operation *o, const option_rule *rule) {
  static PyObject *known[sizeof operation_rules / sizeof *operation_rules][MAX_OPTIONS];
  PyObject **const names = &known[o->of - operation_rules][rule - o->of->options];
  if (!*names) *names = PyDict_GetItemString(hook.enums, rule->names);
  return *names;
}

/* None leaves the initial value. */
static bool store_option(operation *o, const option_rule *rule, PyObject *given) {
  if (given == Py_None) return true;
  if (rule->kind == OPTION_WINDOWS) return store_windows(o, rule, given);
  if (rule->kind == OPTION_SCALAR) return scalar_of(given, rule->name, &FIELD(o, rule->offset, sg_scalar));
  if (rule->kind == OPTION_DOUBLE) {
    const double value = PyFloat_AsDouble(given);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      char room[SHOWN_SIZE];
      PyErr_Format(PyExc_TypeError, "%s is %s, which is no number", rule->name, shown(given, room));
      return false;
    }
    FIELD(o, rule->offset, double) = value;
    return true;
  }
  PyObject *const names = rule->kind == OPTION_ENUM ? names_of(o, rule) : NULL;
  if (rule->kind != OPTION_BOOL && !names) return store_number(o, rule, given);
  FIELD(o, rule->offset, int32_t) = names ? enum_of(given, names, rule->name) : PyObject_IsTrue(given);
  return !PyErr_Occurred();
}

static void store_sizes(operation *o) {
  const operation_rule *const rule = o->of;
  for (int i = 0; i < rule->symbol_count; ++i)
    if (rule->symbols[i].offset >= 0 && o->symbols[i] >= 0) FIELD(o, rule->symbols[i].offset, int64_t) = o->symbols[i];
  if (rule->type_offset != 0) FIELD(o, rule->type_offset, sg_dtype) = o->type;
  if (rule->gradient_offset != 0) FIELD(o, rule->gradient_offset, sg_dtype) = o->gradient ? o->gradient : o->type;
  if (rule->stack_offset != 0 && o->lead.ndim > 1 && (rule->stack_if == 0 || FIELD(o, rule->stack_if, int32_t) != 0))
    FIELD(o, rule->stack_offset, int64_t) = o->lead.extent[o->lead.ndim - 1];
}

/* Options first, as sizes may depend on them. */
static bool see_options(operation *o, PyObject *const *values) {
  const operation_rule *const rule = o->of;
  for (int i = 0; i < rule->symbol_count; ++i) o->symbols[i] = -1;
  for (int i = 0; i < rule->option_count; ++i) {
    if (!store_option(o, &rule->options[i], values[i])) return false;
    for (int j = 0; j < rule->symbol_count && values[i] != Py_None; ++j)
      if (rule->symbols[j].offset == rule->options[i].offset)
        o->symbols[j] = FIELD(o, rule->options[i].offset, int64_t);
  }
  if (rule->cell != 0) *symbol_of(o, "gates") = FIELD(o, rule->cell, sg_cell) == SG_CELL_LSTM ? 4 : 3;
  return true;
}

/* Of a linear layer, which is a GEMM. */
static PyObject *wait_for_operation(operation *o, const order_arguments *order, PyObject *result) {
  const sg_linear_desc *const d = (const sg_linear_desc *)o->desc;
  const blocking_call c = {d, o->of->run_to_its_end, sg_calls[o->of->number], d->y.rows, d->y.cols, d->x.cols, 1};
  sg_submit submit;
  return fill_order(o->in, order, &submit) && run_blocking(o->in, &c, &submit) ? Py_NewRef(result) : NULL;
}

/* submit_operation(type or graph, target, number of the rule, (its operands and options), dtype of new results or None,
 * batch_first, axis, waits, order): a Job, (keeper, result) of a recording, or the result if it waits. */
PyObject *submit_operation(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  PyObject *made = NULL, *result = NULL;
  order_arguments order = {0};
  call in = {.in_order = true};
  operation o;
  (void)self;
  if (count != 9) return PyErr_Format(PyExc_TypeError, "submit_operation takes 9 arguments (%zd given)", count);
  const int of_new = args[4] == Py_None ? 0 : dtype_of_name(args[4]);
  if (of_new < 0 || !order_of(args[8], &order)) return NULL;
  const bool waits = args[7] == Py_True;
  unsigned long long axis;
  if (!number_of(args[6], "axis", -MAX_DIMENSIONS, MAX_DIMENSIONS, &axis)) return NULL;
  o.axis = (int)(long long)axis;
  o.in = &in, o.of = &operation_rules[PyLong_AsLong(args[2])], in.operation = o.of->name;
  o.batch_first = PyObject_IsTrue(args[5]) > 0, o.unbatched = false;
  o.like = NULL, o.type = o.gradient = 0, o.made = (sg_dtype)of_new, o.lead.ndim = -1;
  memset(o.given, 0, sizeof o.given);
  memcpy(o.desc, o.of->initial, o.of->size);
  o.results = PyTuple_New(o.of->result_count);
  PyObject *room[MAX_OPERANDS + MAX_OPTIONS], *const *const given = items_of(args[3], room, MAX_OPERANDS + MAX_OPTIONS);
  if (o.results && target_of(args[1], &in.to) && begin_operation(&in, args[0], &order) &&
      see_options(&o, given + o.of->operand_count) && see_operands(&o, given)) {
    store_sizes(&o);
    result = o.of->results_are_tuple ? o.results : PyTuple_GET_ITEM(o.results, 0);
    made = waits ? wait_for_operation(&o, &order, result) : finish_operation(&in, &order, o.of->number, o.desc, result);
  }
  call_done(&in);
  Py_XDECREF(o.results);
  return made;
}
