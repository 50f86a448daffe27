#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many clients at once ask the matrix service; each answer is compared. Wrong requests are answered, too.

usage: service_test.py DEVICE COMMAND...     the command that runs MatrixService.exe
"""
import array
import concurrent.futures
import http.client
import random
import subprocess
import sys

CLIENTS, REQUESTS = 32, 12


def ask(address, method, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=300)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def client(address, seed):
    numbers = random.Random(seed)
    for _ in range(REQUESTS):
        m, k, n = (numbers.randint(1, 40) for _ in range(3))
        a = array.array("f", (numbers.randint(-8, 8) for _ in range(m * k)))
        b = array.array("f", (numbers.randint(-8, 8) for _ in range(k * n)))
        status, body = ask(address, "POST", f"/multiply/{m}/{k}/{n}", a.tobytes() + b.tobytes())
        assert status == 200, body
        c = array.array("f", body)
        expected = [sum(a[i * k + l] * b[l * n + j] for l in range(k)) for i in range(m) for j in range(n)]
        assert list(c) == expected, f"{m} x {k} x {n}"
    return REQUESTS


def main():
    device, *command = sys.argv[1:]
    service = subprocess.Popen([*command, device, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = service.stdout.readline()
        if "//" not in first:
            said = first + service.stderr.read()
            # Without the runtime, or without OpenSSL 1, which .NET Core 3.1 loads for every listener.
            sys.exit(77 if service.wait(timeout=300) == 77 or "No usable version of libssl" in said else said)
        address = first.split("//")[1].strip().rstrip("/")
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            served = sum(clients.map(lambda seed: client(address, seed), range(CLIENTS)))
        for method, path, body, status in [("POST", "/multiply/2/2/2", b"\0" * 31, 400), ("POST", "/multiply/0/2/2", b"", 400),
                                           ("POST", "/multiply/2/2/99999999999", b"", 400), ("GET", "/nothing", None, 404)]:
            seen, text = ask(address, method, path, body)
            assert seen == status, f"{path}: {seen} {text}"
        status, text = ask(address, "GET", "/health")
        print(f"{CLIENTS} clients at once: {text.decode().strip()}")
        assert status == 200 and f"{served} served" in text.decode(), text
        service.stdin.close()
        assert service.wait(timeout=300) == 0, "the service ends cleanly"
    finally:
        service.kill()


if __name__ == "__main__":
    main()
