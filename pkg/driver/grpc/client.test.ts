import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { createServer } from 'nice-grpc';

import { SystemClock } from '../../base/clock/system-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { parseDriverAddress } from './address.ts';
import { GrpcDriver } from './client.ts';

/** What a driver answers to GetCapabilities, as bytes; undefined: nobody listens. */
const DRIVERS: readonly {
  readonly what: string;
  readonly bytes: readonly number[] | undefined;
  readonly says: RegExp;
}[] = [
  { what: 'is not there', bytes: undefined, says: /^driver aws \(unix:\/\/\/.*\) did not respond: no such socket$/ },
  {
    what: 'speaks another version',
    bytes: [0x12, 2, 0x76, 0x39],
    says: /^driver aws \(.*\) uses contract version "v9", not v1$/,
  },
  { what: 'says nothing', bytes: [], says: /^driver aws \(.*\) uses contract version "", not v1$/ },
  {
    what: 'refuses',
    bytes: [0x0a, 6, 0x08, 9, 0x12, 2, 0x6e, 0x6f],
    says: /^driver aws \(.*\) returned FailedPrecondition for GetCapabilities: no$/,
  },
  {
    what: 'answers garbage',
    bytes: [0x0a, 0xff, 0xff, 0xff],
    says: /^driver aws \(.*\) did not respond: INTERNAL: Response message parsing error/,
  },
];

test.each(DRIVERS)(
  'a driver that $what is told in one sentence, as one that cannot be reached',
  async ({ bytes, says }) => {
    const directory = await mkdtemp(path.join(tmpdir(), 'client-'));
    const socket = path.join(directory, 's');
    const server = createServer();
    const hello = {
      path: '/machine.driver.v1.DriverService/GetCapabilities',
      requestStream: false,
      responseStream: false,
      requestDeserialize: (request: Uint8Array) => request,
      requestSerialize: (request: Uint8Array) => request,
      responseDeserialize: (response: Uint8Array) => response,
      responseSerialize: (response: Uint8Array) => response,
      options: {},
    } as const;
    if (bytes !== undefined) {
      server.add({ getCapabilities: hello }, { getCapabilities: () => Promise.resolve(new Uint8Array(bytes)) });
      await server.listen(`unix://${socket}`);
    }
    const told: (string | undefined)[] = [];
    const greeted = (err: { detail: string } | undefined): void => void told.push(err?.detail);
    const address = parseDriverAddress(`unix://${socket}`);
    const driver = new GrpcDriver({ provider: 'aws', address, clock: new SystemClock(), log: silentLogger, greeted });
    try {
      await expect(driver.capabilities(new AbortController().signal)).rejects.toMatchObject({
        code: 'Unavailable',
        detail: expect.stringMatching(says),
      });
      expect(told).toEqual([expect.stringMatching(says)]);
    } finally {
      await driver.close();
      server.forceShutdown();
      await rm(directory, { recursive: true, force: true });
    }
  },
);
