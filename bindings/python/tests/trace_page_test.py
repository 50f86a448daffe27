# SPDX-License-Identifier: Apache-2.0
"""The page of a trace in headless Chromium: zoom, pan, search, clicks, and its figures beside those of the JSON."""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import streamgemm as sg
from support import DeviceTest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Runs in the page, as a user would use it, and leaves what it saw in the document.
DRIVER = """
<script>
const seen = {errors: []};
window.onerror = message => { seen.errors.push(String(message)); };
const range = () => document.getElementById("range").textContent;
// Without a screen no frame is asked for, so the page is drawn here.
const tick = () => new Promise(done => setTimeout(() => { draw(); done(); }, 200));
(async () => {
  await tick();
  seen.ready = document.body.dataset.ready;
  seen.lanes = [...document.querySelectorAll("#lanes tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
  seen.figures = Object.fromEntries([...document.querySelectorAll("#contexts tbody tr")].map(row => [row.cells[0].textContent, row.cells[1].textContent]));
  seen.whole = range();
  document.getElementById("zoom-in").click();
  await tick();
  seen.zoomed = range();
  const canvas = document.getElementById("timeline"), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: box.left + 600, clientY: box.top + 40, bubbles: true, cancelable: true}));
  await tick();
  seen.wheeled = range();
  canvas.dispatchEvent(new MouseEvent("mousedown", {clientX: box.left + 600, clientY: box.top + 40, bubbles: true}));
  window.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + 500, clientY: box.top + 40}));
  window.dispatchEvent(new MouseEvent("mouseup", {}));
  await tick();
  seen.panned = range();
  [...document.querySelectorAll("#commands tbody tr")].pop().click();  // the shortest: what is shown depends on its time
  await tick();
  seen.clicked = range();
  document.querySelector("#gaps tbody tr").click();
  await tick();
  seen.gaps = [...document.querySelectorAll("#gaps tbody tr")].map(row => row.cells[3].textContent);
  document.getElementById("fit").click();
  await tick();
  seen.fitted = range();
  const search = document.getElementById("search");
  search.value = "JOB 1";
  search.dispatchEvent(new Event("input"));
  await tick();
  seen.found = document.getElementById("found").textContent;
  seen.labels = [...document.querySelectorAll("#commands tbody tr")].map(row => row.cells[5].textContent);
  document.querySelector("#commands th").click();
  seen.sorted = [...document.querySelectorAll("#commands tbody tr")].map(row => row.cells[0].textContent);
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen).replace(/</g, "\\u003c");
  document.body.append(out);
})();
</script>
"""


@unittest.skipUnless(CHROMIUM, "Chromium is not installed")
class Page(DeviceTest):
    def open_page(self, page):
        """What the driver saw."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.html"
            file.write_text(page.replace("</body>", DRIVER + "</body>"))
            done = subprocess.run(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900", f"--user-data-dir={folder}/profile",
                 "--virtual-time-budget=20000", "--dump-dom", file.as_uri()],
                capture_output=True, text=True, timeout=300, check=True,
            )  # fmt: skip
        found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(found, done.stdout[-500:] + done.stderr[-500:])
        return json.loads(found[1].replace("&amp;", "&"))

    def test_is_used(self):
        a = np.ones((200, 200), np.float32)
        with sg.Trace() as trace:
            for job in [self.context.gemm_async(a, a, label=f"job {i}") for i in range(4)]:
                job.result(300)
        self.addCleanup(trace.close)
        seen = self.open_page(trace.export("html").decode())
        self.assertEqual([], seen["errors"])
        self.assertEqual("1", seen["ready"])
        ranges = [seen[name] for name in ("whole", "zoomed", "wheeled", "panned", "clicked")]
        self.assertEqual(len(ranges), len(set(ranges)), ranges)
        self.assertEqual(seen["whole"], seen["fitted"])
        self.assertRegex(seen["found"], "^[1-9][0-9]* found$")
        self.assertEqual({"job 1"}, set(seen["labels"]))
        self.assertEqual(sorted(seen["sorted"]), seen["sorted"])

        # The busy fraction of each lane is what the JSON's slices say: the union of their times.
        document = json.loads(trace.export("json"))
        contexts = document["otherData"]["contexts"]
        self.assertEqual([gap["cause"] for context in contexts for gap in context["longest_gaps"]], seen["gaps"])
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
        times = collections.defaultdict(list)
        for each in document["traceEvents"]:
            if each["ph"] == "X":
                times[names[each["pid"], each["tid"]]].append((each["ts"], each["ts"] + each["dur"]))
        lanes = {row[0]: row for row in seen["lanes"]}
        self.assertEqual(set(times), set(lanes))
        span = trace.metrics(self.context).span_seconds * 1e6
        for name, all_times in times.items():
            self.assertEqual(str(len(all_times)), lanes[name][2])
            busy, reached = 0.0, -1.0
            for start, end in sorted(all_times):
                busy += max(0.0, end - max(start, reached))
                reached = max(reached, end)
            if lanes[name][1] != "threads":
                self.assertAlmostEqual(100 * busy / span, float(lanes[name][4].rstrip("%")), delta=0.06)

        self.assertEqual(str(trace.metrics(self.context).jobs), seen["figures"]["jobs"])


if __name__ == "__main__":
    unittest.main()
