import type { Socket } from 'node:net';

/** Each gets what the other one sends, and ends with it. Both are in `open` as long as they are. */
export function joinSockets(client: Socket, server: Socket, open: Set<Socket>): void {
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    open.add(one);
    one.on('error', () => other.destroy());
    one.on('close', () => {
      open.delete(one);
      other.destroy();
    });
    one.pipe(other);
  }
}
