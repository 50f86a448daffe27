/* SPDX-License-Identifier: Apache-2.0 */
/* Operations by a table, operations.inc, which bindings/api/python.py writes from the headers: operands, whose shapes
 * are products of symbols, and options. */
#ifndef STREAMGEMM_PYTHON_OPERATION_H
#define STREAMGEMM_PYTHON_OPERATION_H

#include "submission.h"

enum { MAX_OPERANDS = 16, MAX_SYMBOLS = 20, MAX_OPTIONS = 12, MAX_DESC = 512 };

/* How an array is an operand. */
typedef enum operand_kind {
  OF_ROWS,     /* any dimensions; the last is a row */
  OF_MATRIX,   /* two */
  OF_VALUES,   /* contiguous, with as many as the shape */
  OF_HEADS,    /* (batch, heads, tokens, width), or the last two or three */
  OF_SCORES,   /* (batch, heads, queries, keys), or the last ones; a dimension before keys may be 1 */
  OF_SEQUENCE, /* (steps, batch, values), (steps, values), or with the first two exchanged */
  OF_IMAGES,   /* four, in an image layout */
  OF_FILTERS,  /* four, in a filter layout, contiguous */
  OF_INDICES,  /* one */
  OF_ELEMENTS  /* contiguous, of any dimensions */
} operand_kind;

/* That of the first operand, of the result, of all gradients of weights, f32 or f64, any, which the library checks, or
 * that type. */
typedef enum type_rule {
  TYPE_COMMON,
  TYPE_OF_RESULT,
  TYPE_OF_GRADIENTS,
  TYPE_WIDE,
  TYPE_OWN,
  TYPE_I8,
  TYPE_I32
} type_rule;

typedef struct operand_rule {
  const char *name;
  uint16_t offset;
  operand_kind kind;
  bool written, optional, is_read; /* is_read: a result that is read, if there is accumulate, where that is set */
  int8_t result;                   /* its place among the results; -1: it is none, and not made if it is None */
  int8_t needed_for; /* the operand that is not computed without it; -1: it is needed for all, or may be left out */
  int8_t batch_dim;  /* of values of sequences: the dimension that they have in a batch only; -1: none */
  type_rule type;
  uint16_t type_offset; /* the field that gets its type; 0: none */
  uint16_t op_offset;   /* the sg_transpose that transposes it; 0: none */
  const char *dims[4];  /* products and quotients of letters, which number the symbols, and digits */
} operand_rule;

typedef enum option_kind {
  OPTION_INT32,
  OPTION_INT64,
  OPTION_SIZE,
  OPTION_DOUBLE,
  OPTION_ENUM,
  OPTION_BOOL,
  OPTION_SCALAR,
  OPTION_WINDOWS /* a tuple of the fields; a kernel of None is that of the filters */
} option_kind;

typedef struct option_rule {
  const char *name;
  uint16_t offset;
  option_kind kind;
  const char *names; /* of an enum: the class with its names */
} option_rule;

typedef struct symbol_rule {
  const char *name;
  int offset; /* of the field that has it; -1: none */
} symbol_rule;

struct operation;

typedef struct operation_rule {
  const char *name;
  int32_t number;                                                                         /* of its call */
  sg_status (*run_to_its_end)(sg_context *on, const void *desc, const sg_submit *submit); /* NULL: none is offered */
  uint16_t size;
  const void *initial;
  operand_rule operands[MAX_OPERANDS];
  int8_t operand_count, result_count, symbol_count, option_count;
  bool results_are_tuple, products; /* products: new results of f8 are f32, those of i8 i32 */
  symbol_rule symbols[MAX_SYMBOLS];
  option_rule options[MAX_OPTIONS];
  uint16_t type_offset, gradient_offset, accumulate_offset, windows_offset, image_layout, filter_layout,
      cell;                         /* 0: none */
  uint16_t stack_offset, stack_if;  /* a field for the rows of each matrix of a stack, if that other one is not 0 */
  bool (*rule)(struct operation *); /* what no shape can say, before the results; NULL: nothing */
} operation_rule;

typedef struct operation {
  call *in;
  const operation_rule *of;
  union {
    char desc[MAX_DESC];
    int64_t align;
  };
  view seen[MAX_OPERANDS];
  PyObject *given[MAX_OPERANDS]; /* borrowed; NULL: left out */
  PyObject *results;             /* a tuple of all */
  PyObject *like;                /* the first operand that is given */
  int first;
  sg_dtype type, gradient, made; /* made: of new results; 0: type */
  int64_t symbols[MAX_SYMBOLS];  /* -1: unknown */
  gemm_shape lead;               /* the leading dimensions of rows; ndim -1: unknown */
  bool batch_first, unbatched;
  int axis; /* the dimension of OF_ROWS that is a row; -1: the last */
  struct {
    Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
  } moved[MAX_OPERANDS]; /* with that dimension as the last */
} operation;

#define FIELD(O, OFFSET, TYPE) (*(TYPE *)((O)->desc + (OFFSET)))

/* symbols.c */
int64_t *symbol_of(const operation *o, const char *name); /* NULL: the rule has none */
int operand_of(const operation *o, const char *name);
void bind_size(operation *o, const char *text, int64_t size); /* of a dimension */
/* The sizes that an operand must have; -1 where a symbol is unknown, of which `unknown` is the first; -1: all are
 * known. */
bool wanted_sizes(const operation *o, int at, int64_t *sizes, int *unknown);
void count_windows(operation *o);

/* operation.c */
bool has_leads(const operation *o, const operand_rule *rule);

/* operands.c: an array as an operand of its kind */
/* Its sizes in the order of the rule's dimensions, four at most; false: an exception. */
bool sizes_of(const operation *o, int at, int64_t *sizes, int *count);
/* The shape of an array of these sizes; `like`: an operand whose number of dimensions it has. */
void shape_of_sizes(const operation *o, int at, const int64_t *sizes, int like, gemm_shape *to);
bool store_operand(operation *o, int at);

/* operation_rules.c: see operation_rule.rule */
bool rule_dequantize(operation *o);
bool rule_windows(operation *o);
bool rule_size(operation *o);
bool rule_elementwise(operation *o);
bool rule_pool_gradient(operation *o);
bool rule_momentum(operation *o);
bool rule_scatter(operation *o);

#endif
