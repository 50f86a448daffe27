/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

PyTypeObject *matrix_type;

static bool take_extents(matrix_object *m, PyObject *shape, PyObject *strides) {
  const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
  if (ndim > MAX_DIMENSIONS || (strides != Py_None && (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != ndim)))
    return raise_argument("shape %R and strides %R do not fit", shape, strides);
  m->of.ndim = (int)ndim;
  Py_ssize_t tight = sg_dtype_size(m->of.dtype);
  for (Py_ssize_t i = ndim - 1; i >= 0; --i) {
    m->shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    m->strides[i] = strides == Py_None ? tight : PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
    if (PyErr_Occurred()) return false;
    if (m->shape[i] < 0) return raise_argument("shape is %R", shape);
    if (__builtin_mul_overflow(tight, m->shape[i] ? m->shape[i] : 1, &tight))
      return raise_argument("shape %R is too large", shape);
  }
  return sound(&m->of, "a Matrix");
}

matrix_object *matrix_alloc(PyTypeObject *type) {
  matrix_object *m = (matrix_object *)PyType_GenericAlloc(type, 0);
  if (m) {
    m->of.shape = m->shape;
    m->of.strides = m->strides;
    m->of.place = ON_HOST;
  }
  return m;
}

/* Three ways to a Matrix: _of(object, dtype or None), of any exporter of a buffer (None: of a format without a dtype
 * here); _capsule(capsule, owner), of DLPack; _at(...), of an address. */
static PyObject *matrix_capsule(PyObject *type, PyObject *args) {
  PyObject *capsule, *owner;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &owner)) return NULL;
  matrix_object *m = matrix_alloc((PyTypeObject *)type);
  if (m && !take_capsule(m, capsule)) Py_CLEAR(m);
  if (m) m->held.owner = Py_NewRef(owner);
  return (PyObject *)m;
}

static PyObject *matrix_at(PyObject *type, PyObject *args) {
  unsigned long long address;
  PyObject *shape, *strides, *dtype, *owner;
  int readonly, place, device_id, memory;
  if (!PyArg_ParseTuple(args, "KO!OOpiiiO", &address, &PyTuple_Type, &shape, &strides, &dtype, &readonly, &place,
                        &device_id, &memory, &owner))
    return NULL;
  const int d = dtype_of_name(dtype);
  if (d < 0) return NULL;
  matrix_object *m = matrix_alloc((PyTypeObject *)type);
  if (!m) return NULL;
  m->of.dtype = (sg_dtype)d;
  m->of.data = (void *)(uintptr_t)address;
  m->of.readonly = readonly != 0;
  m->of.place = place;
  m->of.device_id = device_id;
  m->of.memory = (sg_memory_kind)memory;
  m->held.owner = Py_NewRef(owner);
  if (!take_extents(m, shape, strides)) Py_CLEAR(m);
  return (PyObject *)m;
}

/* An exporter may report anything: only consistent values are accepted. */
static bool take_buffer(matrix_object *m) {
  const Py_buffer *b = &m->held.buffer;
  if (b->ndim < 0 || b->ndim > MAX_DIMENSIONS)
    return raise_argument("a buffer has %d dimensions; at most %d are possible", b->ndim, MAX_DIMENSIONS);
  if (b->itemsize != sg_dtype_size(m->of.dtype))
    return raise_argument("elements of %zd bytes cannot be %s", b->itemsize, sg_dtype_name(m->of.dtype));
  if (b->ndim > 1 && !b->shape) return raise_argument("a buffer of %d dimensions has no shape", b->ndim);
  Py_ssize_t tight = b->itemsize;
  for (int i = b->ndim - 1; i >= 0; --i) {
    if (b->suboffsets && b->suboffsets[i] >= 0)
      return raise_argument("dimension %d of a buffer is made of pointers (suboffsets)", i);
    m->shape[i] = b->shape ? b->shape[i] : b->len / b->itemsize;
    m->strides[i] = b->strides ? b->strides[i] : tight;
    if (__builtin_mul_overflow(tight, m->shape[i] ? m->shape[i] : 1, &tight))
      return raise_argument("a buffer is too large in dimension %d", i);
  }
  m->of.data = b->buf;
  m->of.readonly = b->readonly != 0;
  m->of.ndim = b->ndim;
  return sound(&m->of, "a buffer");
}

PyObject *matrix_from_buffer(PyTypeObject *type, PyObject *object, sg_dtype dtype) {
  matrix_object *m = matrix_alloc(type);
  if (!m) return NULL;
  Py_buffer *b = &m->held.buffer;
  if (PyObject_GetBuffer(object, b, PyBUF_STRIDES | (dtype ? 0 : PyBUF_FORMAT)) < 0) {
    b->obj = NULL;
    Py_CLEAR(m);
    return NULL;
  }
  m->of.dtype = dtype ? dtype : dtype_of_code(b->format, b->itemsize);
  if (m->of.dtype == 0) {
    Py_DECREF(m);
    Py_RETURN_NONE; /* there are other ways to read it */
  }
  m->held.owner = Py_NewRef(object);
  if (!take_buffer(m)) Py_CLEAR(m);
  return (PyObject *)m;
}

static PyObject *matrix_of_buffer(PyObject *type, PyObject *args) {
  PyObject *object, *dtype = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &object, &dtype)) return NULL;
  const int d = dtype == Py_None ? 0 : dtype_of_name(dtype); /* the caller may set the element type */
  return d < 0 ? NULL : matrix_from_buffer((PyTypeObject *)type, object, (sg_dtype)d);
}

static int matrix_traverse(PyObject *self, visitproc visit, void *arg) {
  matrix_object *m = (matrix_object *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(m->held.owner);
  Py_VISIT(m->held.buffer.obj);
  return 0;
}

static int matrix_clear(PyObject *self) {
  let_go(&((matrix_object *)self)->held);
  return 0;
}

static void matrix_dealloc(PyObject *self) {
  matrix_object *m = (matrix_object *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (m->managed) release_tensor(m);
  let_go(&m->held);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

/* Reads an attribute of m, a matrix_object. */
#define GETTER(NAME, VALUE)                                     \
  static PyObject *get_##NAME(PyObject *self, void *unused) {   \
    const matrix_object *const m = (const matrix_object *)self; \
    return (void)unused, VALUE;                                 \
  }
GETTER(shape, shape_text(&m->of))
GETTER(strides, strides_text(&m->of))
GETTER(dtype, PyUnicode_FromString(sg_dtype_name(m->of.dtype)))
GETTER(address, PyLong_FromVoidPtr(m->of.data))
GETTER(readonly, PyBool_FromLong(m->of.readonly))
GETTER(place, Py_BuildValue("(ii)", m->of.place, m->of.device_id))
GETTER(memory, PyLong_FromLong(m->of.memory))
GETTER(owner, Py_NewRef(m->held.owner ? m->held.owner : Py_None))
#undef GETTER

static PyMethodDef matrix_methods[] = {
    {"_of", matrix_of_buffer, METH_VARARGS | METH_CLASS, NULL},
    {"_capsule", matrix_capsule, METH_VARARGS | METH_CLASS, NULL},
    {"_at", matrix_at, METH_VARARGS | METH_CLASS, NULL},
    {"_export", matrix_export, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef matrix_getset[] = {
    {"shape", get_shape, NULL, "The extents of its dimensions.", NULL},
    {"strides", get_strides, NULL, "Bytes from one element to the next, for each dimension.", NULL},
    {"dtype", get_dtype, NULL, "Element type: \"f32\", \"bf16\", ...", NULL},
    {"address", get_address, NULL, "Address of the first element.", NULL},
    {"readonly", get_readonly, NULL, "Whether a result may not be written to it.", NULL},
    {"owner", get_owner, NULL, "What keeps the memory alive.", NULL},
    {"_place", get_place, NULL, NULL, NULL},
    {"_memory", get_memory, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot matrix_slots[] = {
    {Py_tp_traverse, matrix_traverse}, {Py_tp_clear, matrix_clear},   {Py_tp_dealloc, matrix_dealloc},
    {Py_tp_methods, matrix_methods},   {Py_tp_getset, matrix_getset}, {0, NULL},
};

PyType_Spec matrix_spec = {
    "streamgemm._native.MatrixBase", sizeof(matrix_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, matrix_slots};
