/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * A header that does not exist, for golden_test.py. */
#ifndef STREAMGEMM_SAMPLE_H
#define STREAMGEMM_SAMPLE_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** What becomes of a value outside of the limits. */
typedef enum sg_outside {
  SG_OUTSIDE_LIMIT = 0, /**< The nearest limit. */
  SG_OUTSIDE_NAN = 1    /**< NaN. */
} sg_outside;

/** Limits elements: Y = X within limits, which a value for each column moves. Since 0.10. */
typedef struct sg_sample_desc {
  size_t struct_size; /**< sizeof(sg_sample_desc), set by SG_SAMPLE_DESC_INIT. */
  sg_matrix x;        /**< [in: rows x cols] X. */
  sg_matrix y;        /**< [out: rows x cols] The result; may be X. */
  const void *shift;  /**< [in optional: cols] Values that move the limits, of X's type; NULL: zeros. */
  double floor;       /**< The value of what is below. */
  double ceiling;     /**< The value of what is above. SG_SAMPLE_DESC_INIT sets 1. */
  sg_outside outside; /**< Default: the limit. */
  int32_t signs;      /**< 1: the limits are those of absolute values; 0: of values. */
} sg_sample_desc;

/** The initial value of a sg_sample_desc. */
#define SG_SAMPLE_DESC_INIT                                                                     \
  {                                                                                             \
    sizeof(sg_sample_desc), {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR},                 \
        {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR}, NULL, 0.0, 1.0, SG_OUTSIDE_LIMIT, 0 \
  }

/**
 * Submits Y = X within limits.
 *
 * @param[in]  context  The context.
 * @param[in]  desc     The operation.
 * @param[in]  submit   Submit options, or NULL.
 * @param[out] out_job  The job, or NULL.
 * @return SG_STATUS_OK or an error.
 */
SG_API sg_status sg_sample_async(sg_context *context, const sg_sample_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

SG_END_DECLS

#endif
