/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file streamgemm.h
 * @brief The whole public API, with operation.h for the headers of operations. Each header also compiles alone.
 */
#ifndef STREAMGEMM_H
#define STREAMGEMM_H

#include <streamgemm/context.h>
#include <streamgemm/event.h>
#include <streamgemm/graph.h>
#include <streamgemm/job.h>
#include <streamgemm/log.h>
#include <streamgemm/memory.h>
#include <streamgemm/metrics.h>
#include <streamgemm/operation.h>
#include <streamgemm/pipeline.h>
#include <streamgemm/plan.h>
#include <streamgemm/queue.h>
#include <streamgemm/status.h>
#include <streamgemm/stream.h>
#include <streamgemm/trace.h>
#include <streamgemm/types.h>
#include <streamgemm/version.h>

#endif /* STREAMGEMM_H */
