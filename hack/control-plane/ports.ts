import { createServer } from 'node:net';

/**
 * Below the range from which the kernel takes the ports of outgoing connections (32768 and up, by default): a client that
 * keeps dialling a server which is down could otherwise take that server's port, or even connect to itself.
 */
const LOWEST = 20_000;
const HIGHEST = 29_999;
const ATTEMPTS = 200;
/** Processes that look at the same time seldom look for the same: each looks for one port in so many, by its id. */
const STRIDE = 97;

/** The last that this process looked for: what was free mostly is listened on a little later. */
const tried: number[] = [];
const REMEMBERED = 50;

/** A loopback port that nobody listens on now. Someone may take it before it is used: be ready to ask for another. */
export async function freePort(): Promise<number> {
  const first = LOWEST + (process.pid % STRIDE);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = first + STRIDE * Math.floor((Math.random() * (HIGHEST - first + 1)) / STRIDE);
    if (tried.includes(port)) continue;
    tried.push(port);
    if (tried.length > REMEMBERED) tried.shift();
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
