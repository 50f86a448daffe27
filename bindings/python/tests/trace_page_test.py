# SPDX-License-Identifier: Apache-2.0
"""The page of a trace in headless Chromium: zoom, pan, search, clicks, and its figures beside those of the JSON."""

import collections
import html
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import numpy as np
import streamgemm as sg
from support import DEVICE, DeviceTest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# Runs in the page, as a user would use it, and leaves what it saw in the document.
DRIVER = """
<script>
const seen = {errors: []};
window.onerror = message => { seen.errors.push(String(message)); };
window.onunhandledrejection = event => { seen.errors.push(String(event.reason)); };
const range = () => document.getElementById("range").textContent;
// Without a screen no frame is asked for, so the page is drawn here.
const tick = () => new Promise(done => setTimeout(() => { draw(); done(); }, 200));
(async () => {
  await tick();
  seen.ready = document.body.dataset.ready;
  seen.lanes = [...document.querySelectorAll("#lanes tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
  seen.figures = Object.fromEntries([...document.querySelectorAll("#contexts dl div")].map(row => [...row.children].map(cell => cell.textContent)));
  seen.whole = range();
  document.getElementById("zoom-in").click();
  await tick();
  seen.zoomed = range();
  const canvas = document.getElementById("timeline"), box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: box.left + 600, clientY: box.top + 40, bubbles: true, cancelable: true}));
  await tick();
  seen.wheeled = range();
  canvas.dispatchEvent(new PointerEvent("pointerdown", {clientX: box.left + 600, clientY: box.top + 40, bubbles: true}));
  window.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 500, clientY: box.top + 40}));
  window.dispatchEvent(new PointerEvent("pointerup", {}));
  await tick();
  seen.panned = range();
  [...document.querySelectorAll("#commands tbody tr")].pop().click();  // the shortest: what is shown depends on its time
  await tick();
  seen.clicked = range();
  document.querySelector("#gaps tbody tr")?.click();
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

# What a reader sees without a click.
LOOK = """
<script>
const seen = {errors: []};
window.onerror = message => { seen.errors.push(String(message)); };
window.onunhandledrejection = event => { seen.errors.push(String(event.reason)); };
setTimeout(() => {
  draw();
  const all = (selector, of = document) => [...of.querySelectorAll(selector)].filter(each => each.checkVisibility());
  const texts = selector => all(selector).map(each => each.textContent);
  const bars = (x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3);
  Object.assign(seen, {
    title: document.title, summary: texts("#summary dd"), headings: texts("h2"), figures: texts("#contexts dt"), columns: texts("#commands th"),
    labels: all("#commands tbody tr").map(row => row.cells[row.cells.length - 1].textContent), lanes: rows.filter(row => row.track).length, rowHeight,
    bottom: canvas.getBoundingClientRect().bottom, window: innerHeight, overflow: document.documentElement.scrollWidth - innerWidth,
    empty: all("table").filter(table => !table.querySelector("td")).length,
  });
  // Of the first lane with a prediction: a pixel of its first bar, and one of its first prediction.
  const index = rows.findIndex(row => row.twin && row.twin.start.length);
  if (index >= 0) {
    const {track, twin} = rows[index], x = ns => Math.floor(labelWidth + (ns - from) * (canvas.clientWidth - labelWidth) / (to - from)) + 3;
    seen.bar = bars(x(track.start[0]), tops[index] + 5);
    seen.strip = bars(x(twin.start[0]), tops[index] + rowHeight - 3);
  }
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen).replace(/</g, "\\u003c");
  document.body.append(out);
}, 200);
</script>
"""


@unittest.skipUnless(CHROMIUM, "Chromium is not installed")
class Page(DeviceTest):
    def open_page(self, page, driver=DRIVER, size="1300,900"):
        """What the driver saw."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trace.html"
            file.write_text(page.replace("</body>", driver + "</body>"))
            done = subprocess.run(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}", f"--user-data-dir={folder}/profile",
                 "--virtual-time-budget=20000", "--dump-dom", file.as_uri()],
                capture_output=True, text=True, timeout=300, check=True,
            )  # fmt: skip
        found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(found, done.stdout[-500:] + done.stderr[-500:])
        return json.loads(html.unescape(found[1]))

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

    def look(self, page, size="1300,900"):
        seen = self.open_page(page.decode() if isinstance(page, bytes) else page, LOOK, size)
        self.assertEqual([], seen["errors"])
        self.assertEqual(0, seen["empty"], "no table is empty")
        self.assertLessEqual(seen["overflow"], 0, "the page is no wider than its window")
        return seen

    def test_opens_with_three_sentences(self):
        a = np.ones((100, 100), np.float32)
        names = ["<b>&\"quoted\" 'too'", "long " * 12, ""]
        with sg.Trace() as trace:
            for job in [self.context.gemm_async(a, a, label=name) for name in names]:
                job.result(300)
            with self.assertRaises(sg.DeadlineExceeded):
                self.context.gemm_async(a, a, label="late", timeout=0).result(300)
        self.addCleanup(trace.close)
        page = trace.export("html").decode()
        for size in ("1300,900", "500,800"):
            seen = self.look(page, size)
            self.assertEqual(3, len(seen["summary"]), seen["summary"])
            time, limit, change = seen["summary"]
            metrics = trace.metrics(self.context)
            self.assertTrue(time.startswith(f"{metrics.jobs} jobs took "), time)
            self.assertIn("(1 failed)", time)
            self.assertIn(DEVICE, time)
            self.assertRegex(limit, r" limits?: the compute lanes (worked|waited|had) ")
            advice = json.loads(trace.export("json"))["otherData"]["advice"]
            if advice:
                self.assertIn(advice[0]["title"], change)
                self.assertEqual(DEVICE.startswith("sim"), "on a real one" in change)
            else:
                self.assertTrue(change.startswith("No advice"), change)
            self.assertLess({name.strip() for name in names if name}, {label.strip() for label in seen["labels"]})
        if DEVICE == "cpu":
            processors = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
            self.assertIn("cpu" + "".join(f", {name}" for name in processors[:1]), time)

    @unittest.skipUnless(DEVICE == "cpu", "the same with every device")
    def test_predictions_do_not_hide_the_bars(self):
        a = np.ones((1024, 1024), np.float32)
        with sg.Context("sim:h200?timing-only") as context, sg.Trace() as trace:
            context.gemm_async(a, a).result(300)
        self.addCleanup(trace.close)
        seen = self.look(trace.export("html"))
        self.assertNotEqual(seen["bar"], [0x94, 0x46, 0xED])
        self.assertIn(seen["bar"], ([0x40, 0x98, 0xD7], [0x3E, 0xBD, 0x93], [0xF9, 0x70, 0x3E], [0xF0, 0xB4, 0x29]))
        self.assertEqual(seen["strip"], [0x94, 0x46, 0xED])

    @unittest.skipUnless(DEVICE == "cpu", "the same with every device")
    def test_lanes_fill_the_window(self):
        a = np.ones((8, 8), np.float32)
        one_lane = 46  # the highest lane
        for threads in (1, 40):
            with sg.Context("cpu") as context, sg.Trace() as trace:
                go = threading.Barrier(threads)
                run = lambda: (go.wait(), context.gemm_async(a, a).result(300))  # noqa: E731
                all_threads = [threading.Thread(target=run) for _ in range(threads)]
                for each in all_threads:
                    each.start()
                for each in all_threads:
                    each.join()
            self.addCleanup(trace.close)
            seen = self.look(trace.export("html"))
            self.assertGreaterEqual(seen["lanes"], threads)
            if seen["rowHeight"] < one_lane and seen["rowHeight"] > 18:
                self.assertLess(seen["bottom"], seen["window"])
                self.assertGreater(seen["bottom"], seen["window"] - seen["lanes"] - 60, "no room is left")
            else:
                self.assertEqual(seen["rowHeight"], one_lane if threads == 1 else 18)

    @unittest.skipUnless(DEVICE == "cpu", "the same with every device")
    def test_nothing_to_show(self):
        with sg.Context("cpu"), sg.Trace() as trace:
            pass
        self.addCleanup(trace.close)
        seen = self.look(trace.export("html"))
        self.assertEqual(["No command ran on a device."], seen["summary"])
        self.assertEqual([], seen["headings"])

    @unittest.skipUnless(DEVICE == "cpu", "the same with every device")
    def test_a_plan(self):
        a = np.ones((2048, 2048), np.float32)
        with sg.Context("sim:h200?timing-only") as context:
            plan = context.plan(a, a)
            seen = self.look(plan.html)
            self.assertEqual("StreamGEMM plan, not run", seen["title"])
            time, _, change = seen["summary"]
            self.assertTrue(time.startswith(f"Predicted, not run: {plan.prediction.commands} commands"), time)
            self.assertIn("To save a predicted ", change)
            self.assertEqual(["Advice", "Prediction", "Longest times without arithmetic", "Lanes", "Commands"], seen["headings"])
            self.assertLess({"strategy", "predicted", "bound"}, set(seen["figures"]))
            self.assertEqual(["command", "lane", "start", "time"], seen["columns"])


if __name__ == "__main__":
    unittest.main()
