import { expect, test } from '@jest/globals';
import type { CallContext } from 'nice-grpc';

import { callOf, classOf, requestOf } from '../../../test/drivers/requests.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { Driver } from '../driver.ts';
import { DriverError } from '../error.ts';
import { FencingGuard } from '../fencing.ts';
import { fromFailure } from './failure.ts';
import {
  CreateMachineResponse,
  DeleteMachineResponse,
  GetCapabilitiesResponse,
  GetMachineStatusResponse,
  GetVolumeIDsResponse,
  InitializeMachineResponse,
  ListMachinesResponse,
} from './gen/machine/driver/v1/driver.ts';
import { toClassRequest, toCall, toMachineRequest } from './messages.ts';
import { driverService } from './service.ts';

/** As one in JavaScript may be: nobody compares what it answers with its types. */
type LooseDriver = Partial<Record<keyof Driver, () => unknown>>;

const context = { signal: new AbortController().signal } as CallContext; // all that is read of it
const machineClass = classOf('test');
const request = toMachineRequest(requestOf('m-1', machineClass), callOf());
const NOTHING = { providerId: '', nodeName: '', addresses: [], capacity: {} };

async function serviceOf(methods: LooseDriver) {
  const clock = new FakeClock();
  const driver = Object.fromEntries(
    Object.entries(methods).map(([name, run]) => [name, async () => await Promise.resolve(run())]),
  ) as unknown as Driver; // the others are not called
  return driverService({ driver, fencing: await FencingGuard.open({ clock }), clock, log: silentLogger });
}

/** What arrives at the other side. */
function received<T>(
  type: { encode(message: T): { finish(): Uint8Array }; decode(bytes: Uint8Array): T },
  answer: T,
): T {
  return type.decode(type.encode(answer).finish());
}

test('a driver that cannot tell the id of a VM together with a failure has told none, and not the word null', async () => {
  const service = await serviceOf({
    getMachineStatus: () => {
      const result: unknown = { providerID: null, nodeName: null };
      throw new DriverError('Uninitialized', 'not yet', { result: result as { providerID: string } });
    },
  });

  const { failure, vm } = received(GetMachineStatusResponse, await service.getMachineStatus(request, context));

  expect(vm).toEqual(NOTHING);
  expect(failure && fromFailure(failure, vm).result).toEqual({});
});

test('a driver that tells all that its provider has said of a VM together with a failure has told of its id and name', async () => {
  const service = await serviceOf({
    getMachineStatus: () => {
      const result = { providerID: 'test:///1', nodeName: 'm-1', addresses: { private: [] }, capacity: 'small' };
      throw new DriverError('Uninitialized', 'not yet', { result });
    },
  });

  const { failure, vm } = received(GetMachineStatusResponse, await service.getMachineStatus(request, context));

  expect(failure).toMatchObject({ code: 17, message: 'not yet' });
  expect(vm).toEqual({ ...NOTHING, providerId: 'test:///1', nodeName: 'm-1' });
});

test('a driver that answers nothing has deleted and initialized a VM, and has none', async () => {
  const service = await serviceOf({
    createMachine: () => undefined,
    initializeMachine: () => null,
    getMachineStatus: () => undefined,
    deleteMachine: () => undefined,
  });

  const created = await service.createMachine(request, context);
  const initialized = await service.initializeMachine(request, context);
  const shown = await service.getMachineStatus(request, context);
  const deleted = await service.deleteMachine(request, context);

  const none = { failure: undefined, vm: NOTHING };
  expect(received(CreateMachineResponse, created)).toEqual({ ...none, lastKnownState: '' });
  expect(received(InitializeMachineResponse, initialized)).toEqual(none);
  expect(received(GetMachineStatusResponse, shown)).toEqual(none);
  expect(received(DeleteMachineResponse, deleted)).toEqual({
    failure: undefined,
    lastKnownState: '',
  });
});

test('a driver that says little of what it can do can little, and has no name', async () => {
  const service = await serviceOf({ capabilities: () => ({ contractVersion: 'v1', name: null }) });

  const said = await service.getCapabilities({ contractVersions: ['v1'] }, context);

  expect(received(GetCapabilitiesResponse, said)).toEqual({
    failure: undefined,
    contractVersion: 'v1',
    name: '',
    optionalMethods: [],
    idempotentCreate: false,
    listScope: 1,
  });
});

test('a driver that fails to say what it can do says why', async () => {
  const service = await serviceOf({
    capabilities: () => {
      throw new TypeError('region is not set');
    },
  });

  const { failure } = await service.getCapabilities({ contractVersions: ['v1'] }, context);

  expect(failure).toMatchObject({ code: 13, message: 'region is not set' });
});

test.each([undefined, null, ''])(
  'a driver that lists a VM with %p for an id fails, and hides no VM',
  async (providerID) => {
    const listed = { providerID: 'test:///1', machineName: 'm-1' };
    const service = await serviceOf({ listMachines: () => [listed, { providerID, machineName: 'm-2' }] });
    const page = { call: toCall(callOf()), pageSize: 10, pageToken: '' };
    const asked = { ...page, ...toClassRequest({ machineClass, secretData: {} }) };

    const answer = await service.listMachines(asked, context);

    expect(received(ListMachinesResponse, answer)).toMatchObject({
      failure: { code: 13, message: 'ListMachines returned no provider ID for machine m-2' },
      machines: [],
    });
  },
);

test.each([
  { what: 'a list', ids: [undefined, 'vol-1', null] },
  { what: 'a set', ids: new Set(['vol-1']) },
])('a driver that has no id for a volume leaves it out, of $what', async ({ ids }) => {
  const service = await serviceOf({ getVolumeIDs: () => ids });

  const answer = await service.getVolumeIDs({ call: toCall(callOf()), volumeSpecs: [] }, context);

  expect(received(GetVolumeIDsResponse, answer).volumeIds).toEqual(['vol-1']);
});

test.each([
  { what: 'a text', ids: 'vol-1' },
  { what: 'an object', ids: { volumeIDs: ['vol-1'] } },
])('a driver that returns $what for the IDs of volumes has failed', async ({ ids }) => {
  const service = await serviceOf({ getVolumeIDs: () => ids });

  const answer = await service.getVolumeIDs({ call: toCall(callOf()), volumeSpecs: [] }, context);

  expect(received(GetVolumeIDsResponse, answer)).toMatchObject({ failure: { code: 13 }, volumeIds: [] });
});
