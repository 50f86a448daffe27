/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file streamgemm.h
 * @brief The whole public API. Each header also compiles alone.
 */
#ifndef STREAMGEMM_H
#define STREAMGEMM_H

#include <streamgemm/attention.h>
#include <streamgemm/axpby.h>
#include <streamgemm/context.h>
#include <streamgemm/conv.h>
#include <streamgemm/convert.h>
#include <streamgemm/custom.h>
#include <streamgemm/event.h>
#include <streamgemm/gather.h>
#include <streamgemm/gemm.h>
#include <streamgemm/graph.h>
#include <streamgemm/job.h>
#include <streamgemm/layers.h>
#include <streamgemm/linear.h>
#include <streamgemm/memory.h>
#include <streamgemm/metrics.h>
#include <streamgemm/operation.h>
#include <streamgemm/pipeline.h>
#include <streamgemm/plan.h>
#include <streamgemm/queue.h>
#include <streamgemm/recurrent.h>
#include <streamgemm/status.h>
#include <streamgemm/stream.h>
#include <streamgemm/trace.h>
#include <streamgemm/types.h>
#include <streamgemm/version.h>

#endif /* STREAMGEMM_H */
