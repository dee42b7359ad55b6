import { expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../builders.ts';
import { watchCutOff } from './cut-off.ts';

type World = Parameters<typeof watchCutOff>[0];
type Request = Parameters<Parameters<World['processes']['onRequest']>[0]>[0];
type Change = Parameters<Parameters<World['servers']['control']['objects']['onChange']>[0]>;

const forced = (m: BuiltMachine): void => {
  m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  Object.assign(m.metadata.labels, { 'force-deletion': 'True' });
};

/** What is found of a request, or of a Machine that becomes Failed, at 100 s in a world with Machine m-1. */
function found(
  { method = '', path = '' },
  world: Partial<Pick<World, 'downSinceMs' | 'isControlDown' | 'isActing' | 'machines'>>,
): string[] {
  const findings: string[] = [];
  let tell: (request: Request) => void = () => undefined;
  let change: (...args: Change) => void = () => undefined;
  const given: World = {
    concerns: () => true,
    downSinceMs: Infinity,
    isControlDown: false,
    isActing: false,
    machines: [machine()],
    namespace: 'default',
    time: { elapsedMs: 100_000 },
    processes: { onRequest: (listener) => void (tell = listener) },
    servers: {
      control: {
        objects: {
          onChange: (listener) => {
            change = listener;
            return () => undefined;
          },
        },
      },
    },
    ...world,
  };
  watchCutOff(given, (what) => findings.push(what));
  if (method !== '') tell({ identity: 'manager-1', to: 'sim', method, path, sentAtMs: 100_000 });
  else {
    const [failed, running] = ['Failed', 'Running'].map((phase) =>
      machine((m) => void Object.assign(m.status.currentStatus, { phase })),
    );
    const of = { plural: 'machines' } as Change[0]; // what is read of it
    change(of, { type: 'MODIFIED', object: failed, previous: running } as unknown as Change[1]);
  }
  return findings;
}

const DELETED = { method: 'DeleteMachine', path: 'm-1' };

test.each([
  { what: 'a call', request: DELETED, world: { downSinceMs: 87_000 }, count: 1 },
  { what: 'a creation', request: { method: 'CreateMachine', path: 'm-1' }, world: { downSinceMs: 80_000 }, count: 1 },
  { what: 'a call soon after the last answer', request: DELETED, world: { downSinceMs: 88_500 }, count: 0 },
  { what: 'a call while all answer', request: DELETED, world: {}, count: 0 },
  { what: 'a read', request: { method: 'GetMachineStatus', path: 'm-1' }, world: { downSinceMs: 0 }, count: 0 },
  {
    what: 'a call for a Machine that is forced',
    request: DELETED,
    world: { downSinceMs: 0, machines: [machine(forced)] },
    count: 0,
  },
  {
    what: 'that while nothing is known of the Machine either',
    request: DELETED,
    world: { downSinceMs: 0, isControlDown: true, machines: [machine(forced)] },
    count: 1,
  },
  {
    what: 'a deletion of a Node',
    request: { method: 'DELETE', path: '/api/v1/nodes/m-1?x=y' },
    world: { downSinceMs: 0 },
    count: 1,
  },
  {
    what: 'an eviction',
    request: { method: 'POST', path: '/api/v1/namespaces/a/pods/p/eviction' },
    world: { downSinceMs: 0 },
    count: 1,
  },
  {
    what: 'a patch',
    request: { method: 'PATCH', path: '/api/v1/nodes/m-1' },
    world: { downSinceMs: 0 },
    count: 0,
  },
  { what: 'a Machine that is given up', request: {}, world: { downSinceMs: 60_000 }, count: 1 },
  { what: 'one that was about to be', request: {}, world: { downSinceMs: 70_000 }, count: 0 },
  { what: 'one that others give up', request: {}, world: { downSinceMs: 0, isActing: true }, count: 0 },
])('while a cluster does not answer, $what is found $count times', ({ request, world, count }) => {
  expect(found(request, world)).toHaveLength(count);
});
