#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzz target for a time, 80 times as long with SG_SOAK=1. usage: timed.py SECONDS TARGET ARGUMENT..."""
import os
import sys

seconds, *command = sys.argv[1:]
seconds = int(seconds) * (80 if os.environ.get("SG_SOAK") == "1" else 1)
os.execv(command[0], [*command, f"-max_total_time={seconds}"])
