import { createServer } from 'node:net';

/**
 * Below the range from which the kernel takes the ports of outgoing connections (32768 and up, by default): a client that
 * keeps dialling a server which is down could otherwise take that server's port, or even connect to itself.
 */
const LOWEST = 20_000;
const HIGHEST = 29_999;
const ATTEMPTS = 200;

/** A loopback port that nobody listens on now. Someone may take it before it is used: be ready to ask for another. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`finding a free port on 127.0.0.1 between ${LOWEST} and ${HIGHEST}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
