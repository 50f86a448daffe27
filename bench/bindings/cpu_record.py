# SPDX-License-Identifier: Apache-2.0
"""The record of a program of this folder that measures on the cpu."""

import datetime
import json
import platform

import numpy as np
import streamgemm as sg


def add_arguments(parser, rounds):
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown", help="of the library measured, for the record")
    parser.add_argument("--rounds", type=int, default=rounds)


def write(path, suite, commit, rows):
    """rows: (case, variant, microseconds)."""
    record = {"schema": "streamgemm-bench/1", "suite": suite, "version": sg.__version__, "commit": commit,
              "rows": [{"case": case, "variant": variant, "seconds": us * 1e-6} for case, variant, us in rows],
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "device": {"device": "cpu", "machine": platform.platform(), "numpy": np.__version__}}
    with open(path, "w") as file:
        json.dump(record, file, indent=2)
        file.write("\n")
