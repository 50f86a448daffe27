// SPDX-License-Identifier: Apache-2.0
// What the sources of this room include, compiled once for all of them: no file includes it.

#include <algorithm>
#include <string>
#include <vector>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/operation.hpp"
