import { createServer } from 'node:net';

/** Below the range from which the kernel takes the ports of outgoing connections. */
const LOWEST = 20_000;
const HIGHEST = 29_999;
const ATTEMPTS = 500;

/** Loopback ports that nobody listens on and that are not in `taken`. Someone may take one before it is used. */
export async function freePorts(count: number, taken: ReadonlySet<number>): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let attempt = 0; attempt < ATTEMPTS && found.size < count; attempt++) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (!taken.has(port) && (await isFree(port))) found.add(port);
  }
  if (found.size < count) throw new Error(`finding a free port between ${LOWEST} and ${HIGHEST}`);
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
