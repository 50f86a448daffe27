# SPDX-License-Identifier: Apache-2.0
import asyncio

import numpy as np
import streamgemm as sg

INPUTS, OUTPUTS, CLIENTS, REQUESTS = 256, 16, 20, 25
weights = np.random.default_rng(1).standard_normal((INPUTS, OUTPUTS), np.float32)


async def serve(context, model, reader, writer):
    try:
        while rows := int.from_bytes(await reader.readexactly(4), "little"):
            x = np.frombuffer(await reader.readexactly(4 * rows * INPUTS), np.float32).reshape(rows, INPUTS)
            try:
                y = await context.softmax_async(context.matmul_async(x, model, timeout=30))
                writer.write(b"y" + y.tobytes())
            except sg.Error as failure:
                writer.write(b"n" + str(failure).encode()[:100].ljust(100))
            await writer.drain()
    finally:
        writer.close()


async def client(port, number):
    random = np.random.default_rng(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(REQUESTS):
        x = random.standard_normal((random.integers(1, 50), INPUTS), np.float32)
        writer.write(len(x).to_bytes(4, "little") + x.tobytes())
        assert await reader.readexactly(1) == b"y"
        y = np.frombuffer(await reader.readexactly(4 * len(x) * OUTPUTS), np.float32).reshape(len(x), OUTPUTS)
        known = np.exp(x @ weights)
        np.testing.assert_allclose(y, known / known.sum(1, keepdims=True), rtol=1e-3, atol=1e-5)
    writer.write(bytes(4))
    writer.close()


async def main():
    with sg.Context() as context:
        model = context.array(weights)
        server = await asyncio.start_server(lambda *ends: serve(context, model, *ends), "127.0.0.1")
        port = server.sockets[0].getsockname()[1]
        await asyncio.gather(*(client(port, number) for number in range(CLIENTS)))
        server.close()


asyncio.run(main())
