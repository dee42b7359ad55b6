import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver } from '../../pkg/driver/driver.ts';
import { FencingGuard } from '../../pkg/driver/fencing.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { DriverServer } from '../../pkg/driver/grpc/server.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';

/** A driver in this process, served on a socket, and a client for it. */
export interface Served extends AsyncDisposable {
  readonly client: GrpcDriver;
  readonly server: DriverServer;
  readonly socket: string;
}

/** Serves `driver`; disposing ends both sides. */
export async function serve(driver: Driver): Promise<Served> {
  const directory = await mkdtemp(join(tmpdir(), 'served-'));
  const socket = join(directory, 'driver.sock');
  const clock = new SystemClock();
  const address = parseDriverAddress(`unix://${socket}`);
  const fencing = await FencingGuard.open({ clock });
  const server = await DriverServer.start({ driver, address, fencing, clock, log: silentLogger });
  const client = new GrpcDriver({ address, clock, log: silentLogger });
  return {
    client,
    server,
    socket,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
