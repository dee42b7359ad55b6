import { describe, expect, test } from '@jest/globals';

import { runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import type { IronCoreMachine, IronCoreMachineStatus } from '../../api/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { isUpToDate, ironCoreStatusOf, type MachineStatusFacts } from './status.ts';

const NOW_MS = Date.parse('2026-01-01T00:01:00Z');
const NOW = '2026-01-01T00:01:00Z';
const EARLIER = '2026-01-01T00:00:00Z';

function machineOf(status?: IronCoreMachineStatus, spec: Partial<IronCoreMachine['spec']> = {}): IronCoreMachine {
  return {
    metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: EARLIER },
    spec: { machineClassRef: { name: 'c' }, ...spec },
    ...(status !== undefined && { status }),
  };
}

function seenWith(status: object, annotations: Record<string, string> = {}): RuntimeMachine {
  return runtimeMachine({ id: 'i', annotations }, {}, status);
}

function said(part: Partial<MachineStatusFacts>): IronCoreMachineStatus {
  const whole = { machine: machineOf(), seen: undefined, machineID: undefined, waits: [], problem: undefined };
  return ironCoreStatusOf({ ...whole, ...part }, NOW_MS);
}

function ready(status: IronCoreMachineStatus): object | undefined {
  return status.conditions?.find(({ type }) => type === 'Ready');
}

describe('the state of a Machine', () => {
  // promise: ironcore/machines/states-iri-mapped
  test.each([
    { number: 0, state: 'Pending', status: 'False', reason: 'Pending' },
    { number: 1, state: 'Running', status: 'True', reason: 'Running' },
    { number: 2, state: 'Shutdown', status: 'False', reason: 'NotReady' },
    { number: 3, state: 'Terminated', status: 'False', reason: 'Terminating' },
    { number: 4, state: 'Terminating', status: 'False', reason: 'Terminating' },
    { number: 5, state: 'Shutdown', status: 'False', reason: 'NotReady' },
    { number: 9, state: 'Pending', status: 'Unknown', reason: 'UnknownState' },
  ])('$number at the runtime is $state', ({ number, state, status, reason }) => {
    const shown = said({ seen: seenWith({ state: number }), machineID: 'sim://i' });

    expect(shown).toMatchObject({ state, machineID: 'sim://i' });
    expect(ready(shown)).toMatchObject({ status, reason, lastTransitionTime: NOW });
  });

  test.each([
    { before: 'Running', state: 'Running' },
    { before: 'Shutdown', state: 'Shutdown' },
    // As an earlier version has written it.
    { before: 'Unknown (9)', state: 'Pending' },
  ])('that a newer runtime says, and IronCore has no word for, leaves $before at $state', ({ before, state }) => {
    const machine = machineOf({ state: before });

    const shown = said({ machine, seen: seenWith({ state: 9, volumes: [{ name: 'v', handle: 'h', state: 7 }] }) });

    expect(shown).toMatchObject({ state, volumes: [{ name: 'v', state: 'Pending' }] });
    expect(ready(shown)).toMatchObject({
      status: 'Unknown',
      message: expect.stringMatching(/^The runtime reports state 9/),
    });
  });

  test('is Pending while something is waited for, which is told', () => {
    const waits = [
      { reason: 'IgnitionNotReady', message: 'Secret s does not exist' },
      { reason: 'VolumeNotReady', message: 'Volume v does not exist' },
    ] as const;

    const shown = said({ waits });

    expect(shown.state).toBe('Pending');
    expect(shown.conditions).toEqual([
      {
        type: 'Ready',
        status: 'False',
        reason: 'IgnitionNotReady',
        message: 'Secret s does not exist; Volume v does not exist',
        lastTransitionTime: NOW,
      },
      {
        type: 'VolumesReady',
        status: 'False',
        reason: 'VolumeNotReady',
        message: 'Volume v does not exist',
        lastTransitionTime: NOW,
      },
      {
        type: 'NetworkInterfacesReady',
        status: 'True',
        reason: 'NetworkInterfacesReady',
        message: 'All network interfaces are ready',
        lastTransitionTime: NOW,
      },
    ]);
  });

  test('stays what it was while the runtime is not heard of, with what is wrong', () => {
    const machine = machineOf({ state: 'Running', machineID: 'sim://i', observedGeneration: 3 });
    const problem = { reason: 'RuntimeUnreachable', message: 'no such socket' };

    const shown = said({ machine, problem });

    expect(shown).toMatchObject({ state: 'Running', machineID: 'sim://i', observedGeneration: 3 });
    expect(ready(shown)).toMatchObject({ status: 'False', ...problem });
  });

  test('keeps conditions of others, and the time of what has not changed', () => {
    const conditions = [
      { type: 'Scheduled', status: 'True', reason: 'Placed', message: '', lastTransitionTime: EARLIER },
      { type: 'Ready', status: 'True', reason: 'Running', message: 'old words', lastTransitionTime: EARLIER },
    ] as const;

    const shown = said({ machine: machineOf({ conditions }), seen: seenWith({ state: 1 }) });

    expect(shown.conditions).toMatchObject([
      conditions[0],
      { type: 'Ready', message: 'Machine is running', lastTransitionTime: EARLIER },
      { type: 'VolumesReady', lastTransitionTime: NOW },
      { type: 'NetworkInterfacesReady' },
    ]);
  });
});

describe('what is attached to a Machine', () => {
  const spec = {
    volumes: [
      { name: 'root', device: 'oda', localDisk: {} },
      { name: 'data', device: 'odb', volumeRef: { name: 'v' } },
      { name: 'tmp', device: 'odc', ephemeral: { volumeTemplate: {} } },
    ],
    networkInterfaces: [{ name: 'eth', ephemeral: { networkInterfaceTemplate: {} } }],
  };
  const attached = {
    state: 1,
    volumes: [
      { name: 'root', handle: 'r', state: 1 },
      { name: 'data', handle: 'd', state: 0 },
      { name: 'gone', handle: 'g', state: 1 },
    ],
    networkInterfaces: [{ name: 'eth', handle: 'e', state: 1 }],
  };

  test('is shown with its handle, since when, and what it is; also what is still being detached', () => {
    const before = { volumes: [{ name: 'root', state: 'Attached', lastStateTransitionTime: EARLIER }] };

    const shown = said({ machine: machineOf(before, spec), seen: seenWith(attached) });

    expect(shown.volumes).toEqual([
      { name: 'root', handle: 'r', state: 'Attached', lastStateTransitionTime: EARLIER },
      { name: 'data', handle: 'd', state: 'Pending', lastStateTransitionTime: NOW, volumeRef: { name: 'v' } },
      { name: 'gone', handle: 'g', state: 'Attached', lastStateTransitionTime: NOW },
      { name: 'tmp', state: 'Pending', lastStateTransitionTime: NOW, volumeRef: { name: 'm-tmp' } },
    ]);
    expect(shown.networkInterfaces).toEqual([
      {
        name: 'eth',
        handle: 'e',
        state: 'Attached',
        lastStateTransitionTime: NOW,
        networkInterfaceRef: { name: 'm-eth' },
      },
    ]);
    expect(shown.conditions?.slice(1)).toMatchObject([
      { type: 'VolumesReady', status: 'False', message: 'Volume data is not attached (state: Pending)' },
      { type: 'NetworkInterfacesReady', status: 'True' },
    ]);
  });

  test('has the generation of the Machine that the runtime was last told', () => {
    const annotations = { 'machinepoollet.ironcore.dev/machine-generation': '4' };
    expect(said({ seen: seenWith({ state: 1 }, annotations) }).observedGeneration).toBe(4);
  });

  test.each([
    { needed: undefined, observed: 0n, want: true },
    { needed: '2', observed: 1n, want: false },
    { needed: '2', observed: 2n, want: true },
    { needed: 'nonsense', observed: 0n, want: true },
  ])('is up to date with $observed of $needed: $want', ({ needed, observed, want }) => {
    const annotations = needed === undefined ? {} : { 'machinepoollet.ironcore.dev/irimachine-generation': needed };
    expect(isUpToDate(seenWith({ observedGeneration: observed }, annotations))).toBe(want);
  });
});
