"""A server that is far away: starts COMMAND on a port of its own, and lets what goes there and back wait for SECONDS each way.

    python3 bench/serve/far.py PORT SECONDS COMMAND...    {port} in COMMAND was replaced by PORT, which is replaced again"""

import asyncio
import signal
import socket
import subprocess
import sys

port, seconds, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    own = str(free.getsockname()[1])
server = subprocess.Popen([own if word == port else word for word in command])


async def way(reader, writer):
    loop, sent = asyncio.get_running_loop(), asyncio.Queue()

    async def arrive():
        while (item := await sent.get()) is not None:
            await asyncio.sleep(max(0, item[0] - loop.time()))
            writer.write(item[1])
            await writer.drain()
        writer.close()
    arriving = asyncio.create_task(arrive())
    try:
        while piece := await reader.read(65536):
            sent.put_nowait((loop.time() + seconds, piece))
    except OSError:
        pass
    sent.put_nowait(None)
    try:
        await arriving
    except OSError:
        pass


async def connected(reader, writer):
    try:
        there, back = await asyncio.open_connection("127.0.0.1", int(own))
    except OSError:
        writer.close()
        return
    await asyncio.gather(way(reader, back), way(there, writer))


async def main():
    async with await asyncio.start_server(connected, "127.0.0.1", int(port)):
        await asyncio.get_running_loop().run_in_executor(None, server.wait)


def end(*_):
    server.terminate()


signal.signal(signal.SIGTERM, end)
asyncio.run(main())
