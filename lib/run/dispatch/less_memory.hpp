// SPDX-License-Identifier: Apache-2.0
// The device memory of a run, on a device that may have less of it than the plan supposed: others use it too.
#pragma once

namespace sg {

class arena_pool;
class job;

// Takes the device memory of a job's schedule into its operands. When the device refuses and `replans` is set, the job
// is planned again for what is free, with smaller tiles, and once more for less, as long as there is a plan; the job
// then has that plan. Throws sg::error(SG_STATUS_OUT_OF_MEMORY), which then says what was wanted and what is free,
// std::bad_alloc.
void take_device_memory(job &ready, arena_pool &from, bool replans);

}  // namespace sg
