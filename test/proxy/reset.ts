import type { Socket } from 'node:net';

/**
 * Breaks a connection with a reset, if it can still be one: while its end is being sent libuv refuses to, and Node would leave the socket
 * open for ever although it calls it destroyed.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
