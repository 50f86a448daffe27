# SPDX-License-Identifier: Apache-2.0
"""Pictures of the site: bar charts of records under bench/results, and lanes of recorded traces, as SVG in the page, in its colours.

usage: pictures.py ROOT FOLDER     records the traces of the gallery into the folder, as pages and as JSON; needs the Python package
"""
import html
import json
import pathlib
import sys

# chart: (record, unit, factor, divide by the GEMMs of a case, [(case, [variant, ...])]); the first variant is this library's.
CHARTS = {
    "host": ("host.json", "ms", 1e3, False, [
        ("f32 8192^3 pinned", ["streamgemm", "CUDA, 32 panels", "cuBLASXt 4096", "copy, cuBLAS, copy", "PyTorch"]),
        ("f32 8192^3 pageable", ["streamgemm", "cuBLASXt 4096, pinning", "copy, cuBLAS, copy", "PyTorch"]),
        ("bf16 8192^3 pinned", ["streamgemm", "CUDA, 32 panels", "copy, cuBLAS, copy", "PyTorch"])]),
    "small": ("small.json", "us", 1e6, True, [
        ("512 gemm f32 64x64x1024", ["streamgemm", "streamgemm, one batch", "streamgemm, recorded graph", "cuBLAS, one stream"]),
        ("512 gemm f32 128^3", ["streamgemm", "streamgemm, one batch", "streamgemm, recorded graph", "cuBLAS, one stream"])]),
    "cpu": ("cpu.json", "ms", 1e3, False, [
        ("gemm f32 4096^3", ["streamgemm", "OpenBLAS x2", "oneDNN x2"]),
        ("512 gemm f32 64x64x1024", ["streamgemm", "OpenBLAS x2", "oneDNN x2"])]),
    "layers": ("layers.json", "ms", 1e3, False, [
        ("linear 16384x4096x4096 relu bf16, pinned", ["streamgemm", "PyTorch"]),
        ("linear backward 8192^3 bf16, pinned", ["streamgemm", "PyTorch"])]),
}
LANES = {"copy in": "in", "compute": "compute", "copy out": "out", "staging": "staging"}


def chart(root, name):
    """(picture, complaints): a bar for each variant of each case of a record."""
    record, unit, factor, each, cases = CHARTS[name]
    rows = json.loads(pathlib.Path(root, "bench/results", record).read_text())["rows"]
    known = {(row["case"], row["variant"]): row["seconds"] * factor / ((row.get("products") or 1) if each else 1) for row in rows}
    out, y, complaints, told = [], 6, [], []
    for case, variants in cases:
        times = {variant: known.get((case, variant)) for variant in variants}
        complaints += [f"{record} has no row '{case}', '{variant}'" for variant, time in times.items() if time is None]
        times = {variant: time for variant, time in times.items() if time is not None}
        out.append(f'<text class="sg-case" x="0" y="{y + 12}">{html.escape(case)}</text>')
        y += 18
        for variant, time in times.items():
            length = max(1.5, 430 * time / max(times.values()))
            own = " sg-own" if variant.startswith("streamgemm") else ""
            out.append(f'<text x="174" y="{y + 12}" text-anchor="end">{html.escape(variant)}</text>'
                       f'<rect class="sg-bar{own}" x="180" y="{y}" width="{length:.1f}" height="15" rx="2"/>'
                       f'<text class="sg-figure" x="{186 + length:.1f}" y="{y + 12}">{time:.3g} {unit}</text>')
            told.append(f"{case}, {variant}: {time:.3g} {unit}")
            y += 19
        y += 8
    label = html.escape("; ".join(told), quote=True)
    return (f'<figure class="sg-picture"><svg viewBox="0 0 700 {y}" role="img" aria-label="{label}">{"".join(out)}</svg>'
            f"<figcaption><code>{record}</code>; shorter is better</figcaption></figure>"), complaints


def lanes(documents):
    """A picture of traces of one length of time, one below the other: (title, Chrome's JSON) each."""
    read = []
    for title, document in documents:
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
        times = {}
        for event in document["traceEvents"]:
            lane = names.get((event["pid"], event.get("tid")), "").rstrip("0123456789 +") if event["ph"] == "X" else ""
            if lane in LANES:
                times.setdefault(lane, []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
        read.append((title, times))
    start = min(begin for _, times in read for all_times in times.values() for begin, _, _ in all_times)
    span = max(end for _, times in read for all_times in times.values() for _, end, _ in all_times) - start
    out, y = [], 0
    for title, times in read:
        end = max(last for all_times in times.values() for _, last, _ in all_times)
        out.append(f'<text class="sg-case" x="0" y="{y + 13}">{html.escape(title)}</text>')
        y += 20
        top = y
        for lane in LANES:
            if lane not in times:
                continue
            out.append(f'<text x="0" y="{y + 16}">{lane}</text>')
            for begin, last, name in sorted(times[lane]):
                x, width = 74 + 620 * (begin - start) / span, 620 * (last - begin) / span
                out.append(f'<rect class="sg-{LANES[lane]}" x="{x:.2f}" y="{y}" width="{max(width - 1, 0.6):.2f}" height="23" rx="2"><title>{html.escape(name)}</title></rect>')
            y += 27
        x = 74 + 620 * (end - start) / span
        out.append(f'<line class="sg-end" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{y}"/>')
        y += 10
    return f'<figure class="sg-picture"><svg viewBox="0 0 700 {y}" role="img" aria-label="lanes of the traces: {html.escape(", ".join(x[0] for x in documents), quote=True)}">{"".join(out)}</svg></figure>'


def overlap(folder):
    """The picture of the start page."""
    read = [json.loads((folder / f"{name}.json").read_text()) for name in ("one-stream", "two-streams")]
    return lanes(list(zip(("One stream: each step waits for the one before", "Two streams: copies run beside the GEMMs"), read)))


def record(root, folder):
    """The gallery."""
    import numpy as np
    import streamgemm as sg

    def keep(name, trace):
        for form in ("html", "json"):
            (folder / f"{name}.{form}").write_bytes(trace.export(form))

    def overlapped(context, streams):
        square = (64, 64)
        b = context.array(2 * np.eye(64))
        batches = []
        for _ in range(4):
            host = context.pinned_empty(square, "f64")
            np.asarray(host)[:] = 1
            batches.append((host, context.empty(square, "f64"), context.empty(square, "f64")))
        context.synchronize()
        with sg.Trace() as trace:
            for i, (host, a, c) in enumerate(batches):
                stream = streams[i % len(streams)]
                context.copy_async(a, host, stream=stream, label=f"batch {i}")
                context.gemm_async(a, b, c, stream=stream, label=f"batch {i}")
                context.copy_async(host, c, stream=stream, label=f"batch {i}")
            context.synchronize()
        assert all((np.asarray(host) == 2).all() for host, _, _ in batches)
        return trace

    folder.mkdir(parents=True, exist_ok=True)
    with sg.Context(f"sim:{root}/examples/data/textbook.json") as context:
        with context.stream() as one, context.stream() as other:
            keep("one-stream", overlapped(context, [one]))
            keep("two-streams", overlapped(context, [one, other]))
    large = np.empty((4096, 4096), np.float32)
    with sg.Context("sim:h200?timing-only") as context:
        with sg.Trace() as trace:
            for job in [context.gemm_async(large, large, label=f"job {i}") for i in range(2)]:
                job.result()
        keep("pageable", trace)
        pinned = context.pinned_empty((8192, 8192), "f32")
        (folder / "plan.html").write_text(context.plan(pinned, pinned).html)
        pipeline = context.pipeline((256, 4096), "f32", memory_limit=200 << 20)
        for i in range(6):
            stage = pipeline.stage((256, 4096), weights=[large], name=f"layer {i}")
            stage.gemm(stage.input, stage.weights[0], stage.output, activation="relu")
        with sg.Trace() as trace:
            for job in [pipeline.push_async(np.empty((256, 4096), np.float32), label=f"batch {i}") for i in range(3)]:
                job.result()
        keep("pipeline", trace)
    small = np.ones((512, 512), np.float32)
    with sg.Context("cpu") as context:
        with sg.Trace() as trace:
            for job in [context.gemm_async(small, small, label=f"job {i}") for i in range(8)]:
                job.result()
        keep("cpu", trace)


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
