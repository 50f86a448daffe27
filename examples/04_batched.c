/* SPDX-License-Identifier: Apache-2.0 */
/* Many GEMMs in one job: items at a fixed stride, items at arbitrary addresses, and GEMMs of different shapes. */
#include "check.h"

enum { items = 16, m = 8, n = 4, k = 32 };

static float a[items][m][k], b[k][n], c[items][m][n];
static double tall[100][2], wide[2][100], inner[2][2], outer[100][100];

static sg_matrix view(void *data, int64_t rows, int64_t cols, sg_dtype dtype) {
  sg_matrix matrix = {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  matrix.data = data;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.dtype = dtype;
  return matrix;
}

static void expect_sums(void) {
  int i, j;
  for (i = 0; i < items; ++i)
    for (j = 0; j < n; ++j) expect(c[i][m - 1][j] == (float)(k * (i + 1) * (j + 1)), "item i's row times column j");
}

int main(int argc, char **argv) {
  sg_context *context = open_context(argc, argv);
  sg_gemm_desc desc = SG_GEMM_DESC_INIT, group[2] = {SG_GEMM_DESC_INIT, SG_GEMM_DESC_INIT};
  const void *a_items[items], *b_items[items];
  void *c_items[items];
  sg_job *job;
  int i, j, p;
  for (i = 0; i < items; ++i)
    for (j = 0; j < m; ++j)
      for (p = 0; p < k; ++p) a[i][j][p] = (float)(i + 1);
  for (p = 0; p < k; ++p)
    for (j = 0; j < n; ++j) b[p][j] = (float)(j + 1);

  /* Sixteen GEMMs with one B: a stride of 0 shares it. */
  desc.a = view(a, m, k, SG_DTYPE_F32);
  desc.b = view(b, k, n, SG_DTYPE_F32);
  desc.c = view(c, m, n, SG_DTYPE_F32);
  desc.batch = items;
  desc.stride_a = m * k;
  desc.stride_b = 0;
  desc.stride_c = m * n;
  check(sg_gemm(context, &desc, NULL), "strided batch");
  expect_sums();

  /* The same with items at arbitrary addresses; the arrays of pointers are read during the call only. */
  for (i = 0; i < items; ++i) {
    a_items[i] = a[i];
    b_items[i] = b;
    c_items[i] = c[i];
    c[i][m - 1][0] = -1;
  }
  desc.a_array = a_items;
  desc.b_array = b_items;
  desc.c_array = c_items;
  check(sg_gemm(context, &desc, NULL), "batch of pointers");
  expect_sums();

  /* GEMMs of different shapes, one job. */
  for (i = 0; i < 100; ++i) tall[i][0] = wide[1][i] = 1, tall[i][1] = wide[0][i] = 2;
  group[0].a = view(tall, 100, 2, SG_DTYPE_F64);
  group[0].b = view(wide, 2, 100, SG_DTYPE_F64);
  group[0].c = view(outer, 100, 100, SG_DTYPE_F64);
  group[1].a = view(wide, 2, 100, SG_DTYPE_F64);
  group[1].b = view(tall, 100, 2, SG_DTYPE_F64);
  group[1].c = view(inner, 2, 2, SG_DTYPE_F64);
  check(sg_gemm_grouped_async(context, group, 2, NULL, &job), "sg_gemm_grouped_async");
  check(sg_job_wait(job, SG_FOREVER, NULL), "sg_job_wait");
  expect(outer[99][99] == 4 && inner[0][0] == 200 && inner[0][1] == 400 && inner[1][0] == 100, "the grouped GEMMs");
  printf("%d GEMMs in a strided batch, %d by pointers, 2 in a group\n", items, items);
  sg_job_release(job);
  sg_context_release(context);
  return 0;
}
