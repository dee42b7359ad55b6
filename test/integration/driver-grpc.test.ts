import { copyFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ServerError, Status, createChannel, createClient, createServer, type ServiceImplementation } from 'nice-grpc';

import { createPki, type PkiFiles, pkiFiles } from '../../hack/control-plane/pki.ts';
import type { Clock } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Capabilities, Driver, DriverCall } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { FencingGuard } from '../../pkg/driver/fencing.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import {
  HealthDefinition,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../pkg/driver/grpc/gen/grpc/health/v1/health.ts';
import { DriverServiceDefinition } from '../../pkg/driver/grpc/gen/machine/driver/v1/driver.ts';
import { toCapabilities, toListedMachine, toVirtualMachine } from '../../pkg/driver/grpc/messages.ts';
import { DriverServer } from '../../pkg/driver/grpc/server.ts';
import { EMPTY_ANSWER } from '../../pkg/driver/grpc/service.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { callOf, classOf, requestOf } from '../drivers/requests.ts';
import { serve } from '../drivers/served.ts';
import { eventually } from '../expect/eventually.ts';
import { FakeClock } from '../fakes/fake-clock.ts';

const vm = {
  providerID: 'test:///1',
  nodeName: 'm-1',
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  capacity: { cpu: '4', memory: '8Gi' },
};
const request = requestOf('m-1', classOf('test', { size: 'small' }));

/** A driver whose methods all answer well, but for `methods`. */
function driverWith(methods: Partial<Driver>): Driver {
  return {
    capabilities: async () => ({
      contractVersion: 'v1',
      name: 'test',
      idempotentCreate: true,
      listScope: 'class',
      methods: new Set(['InitializeMachine', 'ListMachines', 'GetVolumeIDs'] as const),
    }),
    createMachine: async () => ({ ...vm, lastKnownState: undefined }),
    initializeMachine: async () => vm,
    getMachineStatus: async () => vm,
    deleteMachine: async () => ({ lastKnownState: undefined }),
    listMachines: async () => [],
    getVolumeIDs: async () => [],
    close: async () => undefined,
    ...methods,
  };
}

async function unexpected(): Promise<never> {
  throw new Error('was called');
}

/** Resolves when the call is given up, then rejects as a well-behaved driver does. */
const hang = (gaveUp: PromiseWithResolvers<void>) => (_request: unknown, call: DriverCall) =>
  new Promise<never>((_resolve, reject) => {
    call.signal.addEventListener('abort', () => {
      gaveUp.resolve();
      reject(call.signal.reason as Error);
    });
  });

describe('a driver behind gRPC', () => {
  test('gets the whole request and gives the whole answer', async () => {
    let seen: unknown;
    await using served = await serve(
      driverWith({
        createMachine: async (received, { cluster, fencingToken, timeoutMs }) => {
          seen = { received, cluster, fencingToken, timeoutMs };
          return { ...vm, lastKnownState: 'step 2' };
        },
      }),
    );

    const created = await served.client.createMachine(request, callOf({ fencingToken: 2n ** 63n, timeoutMs: 12_345 }));

    expect(created).toEqual({ ...vm, lastKnownState: 'step 2' });
    expect(seen).toEqual({
      received: { ...request, secretData: { userData: Buffer.from('#!/bin/sh') } },
      cluster: 'c-1',
      fencingToken: 2n ** 63n,
      timeoutMs: 12_345,
    });
  });

  test('gives result and failure together', async () => {
    await using served = await serve(
      driverWith({
        getMachineStatus: async () => {
          throw new DriverError('Uninitialized', 'not yet', { result: { providerID: 'test:///1', nodeName: 'm-1' } });
        },
      }),
    );

    await expect(served.client.getMachineStatus(request, callOf())).rejects.toMatchObject({
      code: 'Uninitialized',
      result: { providerID: 'test:///1', nodeName: 'm-1' },
      unanswered: false,
    });
  });

  test('gets its scratch state back unread, whatever stands in it, and its words without secrets', async () => {
    const secretData = { password: new TextEncoder().encode('hunter2-hunter2') };
    const text = 'hunter2-hunter2';
    await using served = await serve(
      driverWith({
        createMachine: async () => ({ ...vm, lastKnownState: text }),
        deleteMachine: () => Promise.reject(new DriverError('Internal', text, { lastKnownState: text })),
      }),
    );

    const { lastKnownState } = await served.client.createMachine({ ...request, secretData }, callOf());
    const deletion = served.client.deleteMachine({ ...request, secretData }, callOf());

    await expect(deletion).rejects.toMatchObject({ detail: '[redacted]', lastKnownState: text });
    expect(lastKnownState).toBe(text);
  });

  test('makes an unexpected exception Internal, in band', async () => {
    await using served = await serve(
      driverWith({ deleteMachine: () => Promise.reject(new TypeError('cannot read tags')) }),
    );

    await expect(served.client.deleteMachine(request, callOf())).rejects.toMatchObject({
      code: 'Internal',
      detail: 'cannot read tags',
      unanswered: false,
    });
  });

  test('is stopped at the deadline, and the caller does not know what happened', async () => {
    const gaveUp = Promise.withResolvers<void>();
    await using served = await serve(driverWith({ createMachine: hang(gaveUp) }));
    await served.client.capabilities(callOf().signal);
    const startedMs = performance.now();

    const err = await served.client
      .createMachine(request, callOf({ timeoutMs: 200 }))
      .catch((reason: unknown) => reason);

    expect(err).toMatchObject({ code: 'Unavailable', unanswered: true });
    expect(performance.now() - startedMs).toBeLessThan(20_000);
    await gaveUp.promise;
  });

  test('is stopped when the caller gives up', async () => {
    const gaveUp = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const caller = new AbortController();
    await using served = await serve(
      driverWith({
        createMachine: (received, call) => {
          started.resolve();
          return hang(gaveUp)(received, call);
        },
      }),
    );
    const outcome = served.client
      .createMachine(request, callOf({ signal: caller.signal }))
      .catch((err: unknown) => err);
    await started.promise;

    caller.abort(new Error('machine is being deleted'));

    expect(await outcome).toMatchObject({ code: 'Canceled', unanswered: true });
    await gaveUp.promise;
  });

  test('sends nothing for a call that was given up before', async () => {
    let calls = 0;
    await using served = await serve(
      driverWith({
        deleteMachine: async () => {
          calls++;
          return { lastKnownState: undefined };
        },
      }),
    );

    const outcome = served.client.deleteMachine(request, callOf({ signal: AbortSignal.abort() }));

    await expect(outcome).rejects.toMatchObject({ code: 'Canceled', unanswered: false });
    expect(calls).toBe(0);
  });

  test('lists 1,201 VMs in pages, each once', async () => {
    const vms = Array.from({ length: 1_201 }, (_, i) => ({
      providerID: `test:///${(i * 7919) % 1201}`,
      machineName: `m-${i}`,
      machineUID: i % 2 === 0 ? `u-${i}` : undefined,
    }));
    let lists = 0;
    await using served = await serve(
      driverWith({
        listMachines: async () => {
          lists++;
          return vms;
        },
      }),
    );

    const listed = await served.client.listMachines(request, callOf());

    expect(listed.toSorted((a, b) => a.machineName.localeCompare(b.machineName))).toEqual(
      vms.toSorted((a, b) => a.machineName.localeCompare(b.machineName)),
    );
    expect(lists).toBe(3);
  });

  test('is not asked for methods that it does not announce', async () => {
    const announced = await driverWith({}).capabilities(callOf().signal);
    await using served = await serve(
      driverWith({
        capabilities: async () => ({ ...announced, methods: new Set() }),
        initializeMachine: unexpected,
        getVolumeIDs: unexpected,
      }),
    );

    await expect(served.client.initializeMachine(request, callOf())).rejects.toMatchObject({ code: 'Unimplemented' });
    await expect(served.client.getVolumeIDs([{}], callOf())).rejects.toMatchObject({ code: 'Unimplemented' });
  });

  test('is asked anew what it can do after each reconnection', async () => {
    const announced = await driverWith({}).capabilities(callOf().signal);
    await using first = await serve(driverWith({}));
    expect((await first.client.capabilities(callOf().signal)).methods.size).toBe(3);

    await first.server.close();
    const clock = new SystemClock();
    await using second = await DriverServer.start({
      driver: driverWith({ capabilities: async () => ({ ...announced, methods: new Set() }) }),
      address: parseDriverAddress(`unix://${first.socket}`),
      fencing: await FencingGuard.open({ clock }),
      clock,
      log: silentLogger,
    });

    expect(second.address).toBe(first.server.address);
    await expect(first.client.listMachines(request, callOf())).rejects.toMatchObject({ code: 'Unimplemented' });
  });

  test('is asked anew what it can do once it says of a method that it has named that it does not implement it', async () => {
    const announced = await driverWith({}).capabilities(callOf().signal);
    const all = [...announced.methods];
    const asked: string[] = [];
    await using served = await serve(
      driverWith({
        capabilities: async () => {
          const methods = new Set(all.filter((method) => method !== 'ListMachines' || !asked.includes('ListMachines')));
          asked.push('capabilities');
          return { ...announced, methods };
        },
        getMachineStatus: async () => {
          throw new DriverError('Unimplemented', 'no such method');
        },
        listMachines: async () => {
          asked.push('ListMachines');
          throw new DriverError('Unimplemented', 'no such method');
        },
        // Named all the same.
        getVolumeIDs: async () => {
          asked.push('GetVolumeIDs');
          throw new DriverError('Unimplemented', 'no such method');
        },
      }),
    );
    const { client } = served;
    const isUnimplemented = { code: 'Unimplemented' };

    for (let looks = 0; looks < 3; looks++) {
      await expect(client.getMachineStatus(request, callOf())).rejects.toMatchObject(isUnimplemented);
      await expect(client.listMachines(request, callOf())).rejects.toMatchObject(isUnimplemented);
      expect((await client.capabilities(callOf().signal)).methods.has('ListMachines')).toBe(false);
      await expect(client.getVolumeIDs([{}], callOf())).rejects.toMatchObject(isUnimplemented);
    }
    const volumes = 'GetVolumeIDs';
    expect(asked).toEqual(['capabilities', 'ListMachines', 'capabilities', volumes, 'capabilities', volumes, volumes]);
  });

  test('names volumes by their specs', async () => {
    await using served = await serve(
      driverWith({
        getVolumeIDs: async (specs) =>
          specs.map((spec) => (spec as { csi: { volumeHandle: string } }).csi.volumeHandle),
      }),
    );

    expect(await served.client.getVolumeIDs([{ csi: { volumeHandle: 'vol-1' } }], callOf())).toEqual(['vol-1']);
  });

  test('serves the health of the driver until it stops', async () => {
    await using served = await serve(driverWith({}));
    const health = createClient(HealthDefinition, createChannel(`unix://${served.socket}`));
    const watched = health.watch({ service: 'machine.driver.v1.DriverService' })[Symbol.asyncIterator]();

    expect(await health.check({ service: '' })).toEqual({ status: Serving.SERVING });
    await expect(health.check({ service: 'x' })).rejects.toMatchObject({ code: Status.NOT_FOUND });
    expect((await watched.next()).value).toEqual({ status: Serving.SERVING });
    const closed = served.server.close();
    expect((await watched.next()).value).toEqual({ status: Serving.NOT_SERVING });

    await watched.return?.();
    await closed;
  });

  test('cannot be reached by other users of the host', async () => {
    await using served = await serve(driverWith({}));

    expect((await stat(served.socket)).mode & 0o777).toBe(0o600);
  });

  test('does not take the socket of a driver that listens', async () => {
    await using served = await serve(driverWith({}));
    const clock = new SystemClock();

    const second = DriverServer.start({
      driver: driverWith({}),
      address: parseDriverAddress(`unix://${served.socket}`),
      fencing: await FencingGuard.open({ clock }),
      clock,
      log: silentLogger,
    });

    await expect(second).rejects.toThrow('another process is listening');
    await expect(served.client.getMachineStatus(request, callOf())).resolves.toEqual(vm);
  });

  test('closes although a call hangs and does not heed its signal', async () => {
    const served = await serve(driverWith({ createMachine: () => new Promise(() => undefined) }));
    const outcome = served.client.createMachine(request, callOf({ timeoutMs: 60_000 })).catch((err: unknown) => err);
    await served.client.getMachineStatus(request, callOf());

    await served.server.close();

    expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true });
    await served[Symbol.asyncDispose]();
  });
});

const RAW: Capabilities = {
  contractVersion: 'v1',
  name: 'raw',
  idempotentCreate: false,
  listScope: 'class',
  methods: new Set(),
};

async function missing(): Promise<never> {
  throw new ServerError(Status.UNIMPLEMENTED, 'no such method');
}

/** Serves raw answers. */
async function serveRaw(methods: Partial<ServiceImplementation<DriverServiceDefinition>>) {
  const directory = await mkdtemp(join(tmpdir(), 'raw-'));
  const server = createServer();
  server.add(DriverServiceDefinition, {
    getCapabilities: async () => toCapabilities(RAW),
    createMachine: missing,
    initializeMachine: missing,
    getMachineStatus: missing,
    deleteMachine: missing,
    listMachines: missing,
    getVolumeIDs: missing,
    ...methods,
  });
  await server.listen(`unix://${directory}/s`);
  const address = parseDriverAddress(`unix://${directory}/s`);
  const client = new GrpcDriver({ address, clock: new SystemClock(), log: silentLogger });
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      server.forceShutdown();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

describe('a gRPC server that does not keep the contract', () => {
  test.each([Status.NOT_FOUND, Status.INTERNAL, Status.RESOURCE_EXHAUSTED, Status.CANCELLED])(
    'is not believed when it fails with gRPC status %d',
    async (status) => {
      await using raw = await serveRaw({
        getMachineStatus: () => Promise.reject(new ServerError(status, 'from a proxy')),
        deleteMachine: () => Promise.reject(new ServerError(status, 'from a proxy')),
      });

      await expect(raw.client.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'Unavailable' });
      await expect(raw.client.deleteMachine(request, callOf())).rejects.toMatchObject({
        code: 'Unavailable',
        unanswered: true,
      });
    },
  );

  test('is taken at its word when it lacks a method', async () => {
    await using raw = await serveRaw({});

    await expect(raw.client.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'Unimplemented' });
  });

  test('does not make a VM without id', async () => {
    await using raw = await serveRaw({ createMachine: async () => EMPTY_ANSWER });

    await expect(raw.client.createMachine(request, callOf())).rejects.toMatchObject({
      code: 'Internal',
      unanswered: true,
    });
  });

  test('is not believed about any VM when its list has an entry without id, which would be deleted by its name', async () => {
    const listed = toListedMachine({ providerID: 'test:///1', machineName: 'm-1', machineUID: 'u-1' });
    const getCapabilities = async () => ({ ...toCapabilities(RAW), optionalMethods: ['ListMachines'] });
    const listMachines = async () => ({ ...EMPTY_ANSWER, machines: [listed, { ...listed, providerId: '' }] });
    await using raw = await serveRaw({ getCapabilities, listMachines });

    await expect(raw.client.listMachines(request, callOf())).rejects.toMatchObject({
      code: 'Internal',
      detail: 'ListMachines returned no provider ID for machine m-1',
    });
  });

  test.each<{ what: string; methods: Partial<ServiceImplementation<DriverServiceDefinition>>; why: string }>([
    {
      what: 'speaks another version',
      methods: { getCapabilities: async () => toCapabilities({ ...RAW, contractVersion: 'v2' }) },
      why: 'uses contract version "v2"',
    },
    {
      what: 'does not know the contract',
      methods: { getCapabilities: () => Promise.reject(new ServerError(Status.UNIMPLEMENTED, 'unknown service')) },
      why: 'unknown service',
    },
  ])('is not used when it $what', async ({ methods, why }) => {
    const createMachine = async () => ({ ...EMPTY_ANSWER, vm: toVirtualMachine(vm) });
    await using raw = await serveRaw({ ...methods, createMachine });

    const err = await raw.client.createMachine(request, callOf()).catch((reason: unknown) => reason);

    // Not Unimplemented: that would say "this VM cannot be asked for".
    expect(err).toMatchObject({ code: 'Unavailable', unanswered: false, detail: expect.stringContaining(why) });
  });
});

async function serveTcp(
  query: string,
  { clock = new SystemClock(), port = '0' }: { clock?: Clock; port?: string } = {},
) {
  const address = parseDriverAddress(`dns:///127.0.0.1:${port}${query}`);
  const fencing = await FencingGuard.open({ clock });
  return await DriverServer.start({ driver: driverWith({}), address, fencing, clock, log: silentLogger });
}

function connectTcp(server: DriverServer, query: string): GrpcDriver {
  const address = parseDriverAddress(`${server.address}${query}`);
  return new GrpcDriver({ address, clock: new SystemClock(), log: silentLogger });
}

describe('a driver on TCP', () => {
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tls-'));
    await createPki(directory, ['localhost', '127.0.0.1']);
  });

  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  test('answers a client whose certificate it trusts, and no other', async () => {
    const files = pkiFiles(directory);
    await using server = await serveTcp(`?ca=${files.ca}&cert=${files.server}&key=${files.serverKey}`);
    const own = `?ca=${files.ca}&cert=${files.kubeletClient}&key=${files.kubeletClientKey}&serverName=localhost`;
    const trusted = connectTcp(server, own);
    const stranger = connectTcp(server, '');

    await expect(trusted.getMachineStatus(request, callOf())).resolves.toEqual(vm);
    await expect(stranger.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'Unavailable' });

    await trusted.close();
    await stranger.close();
  });

  test('takes certificates that were replaced for new connections, on both sides, and keeps the old ones when the new are broken', async () => {
    const [former, next] = [pkiFiles(directory), pkiFiles(join(directory, 'next'))];
    const of = (name: string): string => join(directory, name);
    const replace = (pki: PkiFiles): void => {
      copyFileSync(pki.ca, of('ca'));
      copyFileSync(pki.server, of('server'));
      copyFileSync(pki.serverKey, of('server-key'));
      copyFileSync(pki.kubeletClient, of('client'));
      copyFileSync(pki.kubeletClientKey, of('client-key'));
    };
    const clientOf = (pki: PkiFiles) =>
      `?ca=${pki.ca}&cert=${pki.kubeletClient}&key=${pki.kubeletClientKey}&serverName=localhost`;
    await createPki(join(directory, 'next'), ['localhost', '127.0.0.1']);
    replace(former);
    const clock = new FakeClock();
    const query = `?ca=${of('ca')}&cert=${of('server')}&key=${of('server-key')}`;
    const server = await serveTcp(query, { clock });
    const client = connectTcp(
      server,
      `?ca=${of('ca')}&cert=${of('client')}&key=${of('client-key')}&serverName=localhost`,
    );
    await client.getMachineStatus(request, callOf());

    replace(next);
    await eventually(async () => {
      clock.advance(10_000);
      const probe = connectTcp(server, clientOf(next));
      try {
        await probe.getMachineStatus(request, callOf());
      } finally {
        await probe.close();
      }
    });
    const port = server.address.split(':').at(-1) ?? '';
    await client.getMachineStatus(request, callOf()); // by its connection
    await server.close();
    const second = await serveTcp(query, { port });
    await eventually(() => client.getMachineStatus(request, callOf()));
    await second.close();
    writeFileSync(of('client'), 'no certificate');
    await using third = await serveTcp(`?ca=${next.ca}&cert=${next.server}&key=${next.serverKey}`, { port });
    await eventually(() => client.getMachineStatus(request, callOf()));

    expect(third.address).toBe(server.address);
    await client.close();
  });

  test('may do without TLS on loopback', async () => {
    await using server = await serveTcp('?insecure=true');
    const client = connectTcp(server, '');

    await expect(client.getMachineStatus(request, callOf())).resolves.toEqual(vm);

    await client.close();
  });
});
