/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of level 3 did, counted by routine, shape class and reason, and written as JSON. */
#ifndef STREAMGEMM_BLAS_REPORT_H
#define STREAMGEMM_BLAS_REPORT_H

#include "device.h"
#include "dispatcher.h"
#include "settings.h"

/* Counts a call. `seconds`: of the side that computed it; `outcome`: NULL unless the device did. */
void sg_blas_count(const sg_blas_call *call, double seconds, const sg_blas_outcome *outcome);
/* The same of a call below the floor, in ticks (clock.h). */
void sg_blas_count_small(const sg_blas_call *call, uint64_t ticks);
/* The report as JSON, at most `size` bytes with the NUL; returns the bytes that the whole needs. */
size_t sg_blas_write_report(const sg_blas_settings *settings, char *text, size_t size);
/* Writes it where SG_BLAS_REPORT says. */
void sg_blas_save_report(const sg_blas_settings *settings);
/* In a child of fork nothing has been counted. */
void sg_blas_report_after_fork(void);

#endif
